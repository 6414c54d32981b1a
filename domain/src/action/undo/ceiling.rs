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
    match (patches, &record.draft.trust) {
        ([patch], Some(TrustMark::CeilingSet { subject: TrustSubject::Source(_), from, to, .. }))
            if is_instinct && is_ceiling_patch(patch, *from, *to) =>
        {
            Ok(())
        }
        (_, _) => Err(refuse_recipe(record)),
    }
}

/// Whether a patch changes the ceiling as its record says.
fn is_ceiling_patch(patch: &FieldPatch, from: Option<Ceiling>, to: Ceiling) -> bool {
    patch.field == FIELD
        && patch.key() == FIELD
        && read_ceiling(patch.prior.as_ref()) == from
        && patch.value.as_ref().and_then(Value::as_str) == Some(to.as_str())
        && check_recorded_lines(patch).is_some()
}

/// The ceiling that a value means, as [`crate::record::entity::Instinct`] reads it.
fn read_ceiling(value: Option<&Value>) -> Option<Ceiling> {
    value.map(|value| value.as_str().map_or(Ceiling::Ask, Ceiling::parse_or_ask))
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
        let restores_act = |patch: &FieldPatch| read_ceiling(patch.prior.as_ref()) == Some(Ceiling::Act);
        (self.draft.kind == ActionKind::CeilingSet && patches.iter().any(restores_act)).then_some(key)
    }
}
