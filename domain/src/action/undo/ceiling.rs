//! The undo of a ceiling that a person set: which recipes are used, and which undos let a source act again.
//!
//! A record is a file that anyone with access to the vault can write. So the recipe may restore only the ceiling of an
//! instinct.

use super::{ResolutionRefusal, check_recorded_lines, refuse_recipe};
use crate::action::audit::{ActionKind, AuditRecord, FieldPatch};
use crate::gates::mode::Ceiling;
use crate::record::path::RecordKind;
use crate::trust::ceiling::FIELD;
use crate::trust::mark::{TrustMark, TrustSubject};
use serde_json::Value;

pub(super) fn check_recipe(record: &AuditRecord, patches: &[FieldPatch]) -> Result<(), ResolutionRefusal> {
    let is_instinct = record.draft.target.own_kind() == Some(RecordKind::Instinct);
    match patches {
        [patch] if is_instinct && is_ceiling_patch(patch) => Ok(()),
        _ => Err(refuse_recipe(record)),
    }
}

fn is_ceiling_patch(patch: &FieldPatch) -> bool {
    let is_ceiling = |value: &Value| value.as_str().is_some_and(|text| text.parse::<Ceiling>().is_ok());
    patch.field == FIELD
        && patch.key() == FIELD
        && patch.value.as_ref().is_some_and(is_ceiling)
        && check_recorded_lines(patch).is_some()
}

impl AuditRecord {
    /// The source that an undo of this record lets act. `None` if an undo of it lets no source act.
    ///
    /// Such an undo needs the same evidence as letting the source act.
    #[must_use]
    pub fn source_let_act_by_undo(&self) -> Option<&str> {
        let Some(TrustMark::CeilingSet { subject: TrustSubject::Source(key), .. }) = &self.draft.trust else {
            return None;
        };
        let patches = self.undo_recipe.as_ref().map_or(&[][..], |recipe| &recipe.vault_patch);
        let restores_act = |patch: &FieldPatch| {
            patch.prior.as_ref().and_then(Value::as_str).map(Ceiling::parse_or_ask) == Some(Ceiling::Act)
        };
        (self.draft.kind == ActionKind::CeilingSet && patches.iter().any(restores_act)).then_some(key)
    }
}
