//! The gate `trust`: holds a change whose sources or class were demoted after too many undos.
//!
//! [`crate::trust::demotion`] decides which sources and classes are demoted. If several sources support a change, the
//! least restricted one counts. So a demoted source does not hold a change that another source supports as well.

use crate::action::audit::AuditDraft;
use crate::action::plan::Disposition;
use crate::gates::mode::{DecisionPolicy, Mode};
use crate::gates::result::{GateName, GateResult, LandingGate};
use crate::trust::demotion::{ChangeSupporter, ModeCaps};
use crate::trust::mark::TrustSubject;

/// A subject, and the mode that trust allows it.
struct SubjectCap<'a> {
    mode: Mode,
    subject: TrustSubject,
    /// The source's name in the record; `None` if the subject is not a single source.
    name: Option<&'a str>,
}

/// Evaluates the gate. Returns `None` if no demotion is stricter than the mode.
pub(crate) fn trust_gate(
    draft: &AuditDraft,
    supporters: &[ChangeSupporter],
    caps: &ModeCaps,
    policy: &DecisionPolicy,
) -> Option<LandingGate> {
    let furthest = supporters.iter().map(|source| find_source_cap(source, caps)).max_by_key(|cap| cap.mode);
    let class = draft.class.map(TrustSubject::Class).and_then(|subject| {
        let mode = caps.get(&subject)?.mode?;
        Some(SubjectCap { mode, subject, name: None })
    });
    let lowest = furthest.into_iter().chain(class).min_by_key(|cap| cap.mode);
    let SubjectCap { mode, subject, name } = lowest.filter(|cap| cap.mode < policy.mode)?;
    let found = format!("{} for {}, which was demoted", mode.as_str(), subject.describe(name));
    if mode == Mode::Shadow {
        let needed = format!("`steward trust raise {subject}`");
        let result = GateResult::new(GateName::Trust, false, found, needed);
        return Some(LandingGate { result, allows: Disposition::Shadow });
    }
    let needed = policy.high_confidence_threshold;
    let open = draft.confidence >= needed;
    Some(LandingGate::waiting(GateResult::new(GateName::Trust, open, found, format!("confidence >= {needed}"))))
}

/// The stricter of the source's own cap and, if the source is unknown, the cap of all unknown sources.
fn find_source_cap<'a>(source: &'a ChangeSupporter, caps: &ModeCaps) -> SubjectCap<'a> {
    let cap = |subject: TrustSubject, name| {
        let mode = caps.get(&subject).and_then(|cap| cap.mode).unwrap_or(Mode::Live);
        SubjectCap { mode, subject, name }
    };
    let own = cap(TrustSubject::Source(source.key.clone()), Some(source.name.as_str()));
    let unknown = cap(TrustSubject::UnknownSources, None);
    if source.is_unknown && unknown.mode < own.mode { unknown } else { own }
}
