//! The outcome of all lines for one class of change: how far it may go at a matter, and which line limits it.
//!
//! It follows the order of the gates: the state of the matter, the mode, the limits on the decision (classes, fields,
//! ceilings, sources), demotions, the budgets, and the quiet hours. The outcome is the most permissive one that any
//! change of the class can reach. A single change may still be held earlier, for example by its confidence.

use super::super::format_time;
use super::MatterPolicyContext;
use super::PolicyContext;
use super::PolicyLine;
use super::build_line;
use steward_domain::action::mutation::{ContextField, Mutation, MutationClass, RelatedField};
use steward_domain::action::plan::Disposition;
use steward_domain::gates::evaluate::{ChangeFacts, ClerkCall};
use steward_domain::gates::evidence::EvidenceWeight;
use steward_domain::gates::matter_policy::MatterPolicy;
use steward_domain::gates::matter_policy::read::BLOCK;
use steward_domain::gates::mode::{Ceiling, Mode};
use steward_domain::record::entity::RecordState;
use steward_domain::record::path::{RecordKind, RecordPath};
use steward_domain::signals::signal::source_key;
use steward_domain::trust::mark::TrustSubject;

/// An outcome, and the line or setting that causes it.
type ValueWithOrigin = (String, String);

/// The outcome of a class that is never applied: its decisions have the disposition `shadow`.
const SHADOW_ONLY: &str = "is recorded as shadow only";

/// Builds the line with the outcome for a class.
pub(super) fn build_outcome_line(
    settings: &PolicyContext<'_>,
    note: &MatterPolicyContext<'_>,
    class: MutationClass,
) -> PolicyLine {
    let (value, from) = describe_class_reach(settings, note, class);
    build_line(format!("outcome: {}", class.as_str()), value, from)
}

fn describe_class_reach(
    settings: &PolicyContext<'_>,
    note: &MatterPolicyContext<'_>,
    class: MutationClass,
) -> ValueWithOrigin {
    match note.state {
        RecordState::Open => {}
        RecordState::Done | RecordState::Archived => {
            return ("is not checked".to_owned(), note.locate_key(&["state"]));
        }
    }
    let can_write = |mutation: &Mutation| {
        [RecordKind::Matter, RecordKind::Task].iter().any(|kind| settings.schema.can_write(*kind, mutation))
    };
    if !list_class_examples(class, note.matter).iter().any(can_write) {
        return ("is never made".to_owned(), "`[map]` names no property for it".to_owned());
    }
    if settings.effective_mode() == Mode::Shadow {
        return (SHADOW_ONLY.to_owned(), settings.build_mode_line().from);
    }
    let (ceiling, source) = (find_lowest_ceiling(settings, note, class), find_furthest_source(settings, note));
    let (_, from) = if source.0 < ceiling.0 { source } else { ceiling };
    let (others_ceiling, because) = find_unnamed_source_ceiling(settings, note);
    let others = evaluate_reach(settings, note, class, "", others_ceiling);
    let named = list_named_sources(settings, note);
    let reaches = named.iter().map(|(key, (ceiling, _))| evaluate_reach(settings, note, class, key, *ceiling));
    let (reach, (mut value, mut from)) = match reaches.fold(others, Ceiling::max) {
        Ceiling::Ask => return ("is left to you".to_owned(), from),
        Ceiling::Confirm => (Ceiling::Confirm, ("waits for your confirmation".to_owned(), from)),
        Ceiling::Act => find_live_reach(settings, note, class),
    };
    if others < reach {
        let whose =
            if trusted_sources(note).is_some() { "trusted sources" } else { "sources with a ceiling of their own" };
        value += &format!(", from {whose} only");
        from = format!("{because}; {from}");
    }
    match note.policy.and_then(|policy| policy.quiet_until(settings.now)) {
        Some(until) => (
            format!("waits until {}, then {value}", format_time(until)),
            format!("{}; {from}", note.locate_key(&[BLOCK, "quiet_hours"])),
        ),
        None => (value, from),
    }
}

/// How far a change of the class may go that a source with this ceiling supports, by the gates themselves: all that
/// varies from change to change is at its best. The quiet hours are shown beside it.
fn evaluate_reach(
    settings: &PolicyContext<'_>,
    note: &MatterPolicyContext<'_>,
    class: MutationClass,
    source: &str,
    ceiling: Ceiling,
) -> Ceiling {
    let policy = note.policy.map(|policy| MatterPolicy { quiet_hours: None, ..policy.clone() });
    let policies: Vec<&MatterPolicy> = policy.iter().collect();
    let evaluate = |mutation: &Mutation| {
        let facts = ChangeFacts {
            mutation: Some(mutation),
            is_shadow_requested: false,
            policy: settings.effective_policy(),
            confidence: 1.0,
            evidence: &[EvidenceWeight { source, confidence: 1.0, observations: u32::MAX }],
            sources: &[source],
            ceiling: ceiling.min(note.top),
            clerk_call: ClerkCall::NotNeeded,
            passed_over: false,
            matter_policies: &policies,
            at: settings.now,
        };
        let evaluation = facts.evaluate();
        match evaluation.disposition {
            Disposition::Live => Ceiling::Act,
            Disposition::Pending if evaluation.is_confirmable => Ceiling::Confirm,
            Disposition::Pending | Disposition::Shadow | Disposition::Recorded => Ceiling::Ask,
        }
    };
    list_class_examples(class, note.matter).iter().map(evaluate).max().unwrap_or(Ceiling::Ask)
}

/// A change of the class for each field that it may write.
fn list_class_examples(class: MutationClass, matter: &RecordPath) -> Vec<Mutation> {
    let text = String::new;
    match class {
        MutationClass::StateChange => vec![Mutation::StateChange { to: RecordState::Done }],
        MutationClass::ContextEdit => ContextField::ALL.map(|field| Mutation::ContextEdit { field, to: text() }).into(),
        MutationClass::ParentMatter => vec![Mutation::ParentMatter { to: matter.clone() }],
        MutationClass::Related => {
            RelatedField::ALL.map(|field| Mutation::Related { field, member: text(), present: true }).into()
        }
    }
}

/// The lowest ceiling that the class and the note set, whichever source supports a change.
fn find_lowest_ceiling(
    settings: &PolicyContext<'_>,
    note: &MatterPolicyContext<'_>,
    class: MutationClass,
) -> (Ceiling, String) {
    let no_class = note.policy.and_then(|p| p.classes.as_ref()).is_some_and(|allowed| !allowed.contains(&class));
    let fields = note.policy.and_then(|p| p.fields.as_ref());
    let no_field = fields.is_some_and(|allowed| {
        !list_class_examples(class, note.matter).iter().any(|m| allowed.iter().any(|field| field == m.field()))
    });
    let closed = |is_closed: bool, key: &str| is_closed.then(|| (Ceiling::Ask, note.locate_key(&[BLOCK, key])));
    let here = [closed(no_class, "classes"), closed(no_field, "fields"), note.top_ceiling(), note.block_ceiling()];
    // Of several equally low ceilings, the first one is named.
    let everywhere = settings.class_ceiling(class);
    here.into_iter().flatten().fold(everywhere, |lowest, next| if next.0 < lowest.0 { next } else { lowest })
}

/// The ceiling of the source that may go furthest, and the line that sets it.
fn find_furthest_source(settings: &PolicyContext<'_>, note: &MatterPolicyContext<'_>) -> (Ceiling, String) {
    let mut furthest = find_unnamed_source_ceiling(settings, note);
    for (_, reach) in list_named_sources(settings, note) {
        if reach.0 > furthest.0 {
            furthest = reach;
        }
    }
    furthest
}

/// The sources that an instinct or the note names, by key, with the ceiling of each and the line that sets it.
fn list_named_sources(
    settings: &PolicyContext<'_>,
    note: &MatterPolicyContext<'_>,
) -> Vec<(String, (Ceiling, String))> {
    let default = || (settings.config.default_ceiling, settings.describe_origin("default_ceiling", true));
    let own = |key: &str| {
        let all = settings.sources.iter().filter(|(source, _)| source.source == key);
        all.min_by_key(|(source, _)| source.ceiling).map(|(source, from)| (source.ceiling, from.clone()))
    };
    let named = settings.sources.iter().map(|(source, _)| source.source.clone());
    let listed = trusted_sources(note).into_iter().flatten().map(|name| source_key(name));
    let add_reach = |key: String| {
        let (ceiling, from) = own(&key).unwrap_or_else(default);
        let reach = cap_by_trust(note, &key, ceiling, from);
        (key, reach)
    };
    named.chain(listed).map(add_reach).collect()
}

/// The ceiling of a source that neither an instinct nor the note names.
fn find_unnamed_source_ceiling(settings: &PolicyContext<'_>, note: &MatterPolicyContext<'_>) -> (Ceiling, String) {
    cap_by_trust(note, "", settings.config.default_ceiling, settings.describe_origin("default_ceiling", true))
}

/// Lowers the ceiling of a source to `confirm` if the note lists trusted sources and this one is not among them.
fn cap_by_trust(note: &MatterPolicyContext<'_>, key: &str, ceiling: Ceiling, from: String) -> (Ceiling, String) {
    let is_untrusted = trusted_sources(note).is_some_and(|names| !names.iter().any(|name| source_key(name) == key));
    if is_untrusted && ceiling > Ceiling::Confirm {
        return (Ceiling::Confirm, note.locate_key(&[BLOCK, "trusted_sources"]));
    }
    (ceiling, from)
}

fn trusted_sources<'a>(note: &MatterPolicyContext<'a>) -> Option<&'a [String]> {
    note.policy?.trusted_sources.as_deref()
}

/// How far a class may go under demotions and budgets if no ceiling limits it.
fn find_live_reach(
    settings: &PolicyContext<'_>,
    note: &MatterPolicyContext<'_>,
    class: MutationClass,
) -> (Ceiling, ValueWithOrigin) {
    let demotion = find_demotion(settings, note, class);
    let explain = |subject: &TrustSubject| format!("undone too often: `steward trust raise {subject}`");
    if let Some((Mode::Shadow, subject)) = &demotion {
        return (Ceiling::Ask, (SHADOW_ONLY.to_owned(), explain(subject)));
    }
    if let Some(from) = find_exhausted_budget(settings, note) {
        return (Ceiling::Confirm, ("waits for your confirmation".to_owned(), from));
    }
    let (value, from) = match demotion {
        Some((cap, subject)) if cap < settings.effective_mode() => {
            ("may be made at high confidence", explain(&subject))
        }
        Some(_) | None => ("may be made", settings.build_mode_line().from),
    };
    (Ceiling::Act, (value.to_owned(), from))
}

/// The demotion of the class, or of every source that may act for it, with the demoted subject.
///
/// If sources that nobody named may act, one of them may not be demoted, so demotions of sources do not limit the
/// class.
fn find_demotion(
    settings: &PolicyContext<'_>,
    note: &MatterPolicyContext<'_>,
    class: MutationClass,
) -> Option<(Mode, TrustSubject)> {
    let cap = |subject: &TrustSubject| settings.caps.get(subject).and_then(|cap| cap.mode);
    let class = TrustSubject::Class(class);
    let class_cap = cap(&class).map(|mode| (mode, class));
    let others_act = find_unnamed_source_ceiling(settings, note).0 == Ceiling::Act;
    let acting = list_named_sources(settings, note).into_iter().filter(|(_, (ceiling, _))| *ceiling == Ceiling::Act);
    let source_cap = acting
        .map(|(key, _)| TrustSubject::Source(key))
        .map(|source| (cap(&source).unwrap_or(Mode::Live), source))
        .max_by_key(|(mode, _)| *mode)
        .filter(|_| !others_act);
    class_cap.into_iter().chain(source_cap).min_by_key(|(mode, _)| *mode)
}

/// The origin of a budget that makes every change wait: sources have a budget of 0, or the matter's budget is used up.
fn find_exhausted_budget(settings: &PolicyContext<'_>, note: &MatterPolicyContext<'_>) -> Option<String> {
    if settings.config.live_per_source_day == 0 {
        return Some(settings.describe_origin("live_per_source_day", true));
    }
    let budget = note.policy.and_then(|policy| policy.daily_budget)?;
    (note.spent >= budget).then(|| note.locate_key(&[BLOCK, "daily_budget"]))
}

#[cfg(test)]
mod tests;
