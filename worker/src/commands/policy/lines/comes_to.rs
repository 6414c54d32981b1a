//! How far a class of change may go at a matter by all lines together, and which of them decides.
//!
//! It follows the gates in their order: whether the matter is looked at and the mode, what was decided with (classes,
//! fields, ceilings, sources), what undos have lowered, what is counted when a change lands, and when that may be. It
//! tells the farthest that any change of the class may come, so a change may still stop earlier, at its confidence say.

use super::super::format_time;
use super::MatterPolicyContext;
use super::PolicyContext;
use super::PolicyLine;
use super::build_line;
use steward_domain::action::mutation::{ContextField, MutationClass, RelatedField};
use steward_domain::gates::matter_policy::read::BLOCK;
use steward_domain::gates::mode::{Ceiling, Mode};
use steward_domain::record::entity::RecordState;
use steward_domain::signals::signal::source_key;
use steward_domain::trust::mark::TrustSubject;

/// What is said, and the line or setting that says so.
type ValueWithOrigin = (String, String);

/// What the lines come to for a class.
pub(super) fn build_outcome_line(
    settings: &PolicyContext<'_>,
    note: &MatterPolicyContext<'_>,
    class: MutationClass,
) -> PolicyLine {
    let (value, from) = describe_class_reach(settings, note, class);
    build_line(format!("so: {}", class.as_str()), value, from)
}

fn describe_class_reach(
    settings: &PolicyContext<'_>,
    note: &MatterPolicyContext<'_>,
    class: MutationClass,
) -> ValueWithOrigin {
    match note.state {
        RecordState::Open => {}
        RecordState::Done | RecordState::Archived => {
            return ("is not looked at".to_owned(), note.locate_key(&["state"]));
        }
    }
    if settings.effective_mode() == Mode::Shadow {
        return ("is only said".to_owned(), settings.build_mode_line().from);
    }
    let (held, source) = (find_lowest_ceiling(settings, note, class), find_furthest_source(settings, note));
    let (lowest, from) = if source.0 < held.0 { source } else { held };
    let (reach, (mut value, mut from)) = match lowest {
        Ceiling::Ask => return ("is left to you".to_owned(), from),
        Ceiling::Confirm => (lowest, ("waits for your confirmation".to_owned(), from)),
        Ceiling::Act => find_live_reach(settings, note, class),
    };
    let (others, because) = find_unnamed_source_ceiling(settings, note);
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

/// The lowest that the class and the note allow whoever speaks for a change.
fn find_lowest_ceiling(
    settings: &PolicyContext<'_>,
    note: &MatterPolicyContext<'_>,
    class: MutationClass,
) -> (Ceiling, String) {
    let no_class = note.policy.and_then(|p| p.classes.as_ref()).is_some_and(|allowed| !allowed.contains(&class));
    let fields = note.policy.and_then(|p| p.fields.as_ref());
    let no_field =
        fields.is_some_and(|allowed| !list_class_fields(class).iter().any(|f| allowed.iter().any(|a| a == f)));
    let closed = |is_closed: bool, key: &str| is_closed.then(|| (Ceiling::Ask, note.locate_key(&[BLOCK, key])));
    let here = [closed(no_class, "classes"), closed(no_field, "fields"), note.top_ceiling(), note.block_ceiling()];
    // Of several that are as low the first is told.
    let everywhere = settings.class_ceiling(class);
    here.into_iter().flatten().fold(everywhere, |lowest, one| if one.0 < lowest.0 { one } else { lowest })
}

/// How far the source may go that may go farthest, and which line says so.
fn find_furthest_source(settings: &PolicyContext<'_>, note: &MatterPolicyContext<'_>) -> (Ceiling, String) {
    let mut furthest = find_unnamed_source_ceiling(settings, note);
    for (_, one) in list_named_sources(settings, note) {
        if one.0 > furthest.0 {
            furthest = one;
        }
    }
    furthest
}

/// The sources that an instinct or the note names, by key, with how far each may go and which line says so.
fn list_named_sources(
    settings: &PolicyContext<'_>,
    note: &MatterPolicyContext<'_>,
) -> Vec<(String, (Ceiling, String))> {
    let default = || (settings.config.default_ceiling, settings.describe_origin("default_ceiling", true));
    let own = |key: &str| {
        let all = settings.sources.iter().filter(|(one, _)| one.source == key);
        all.min_by_key(|(one, _)| one.ceiling).map(|(one, from)| (one.ceiling, from.clone()))
    };
    let named = settings.sources.iter().map(|(one, _)| one.source.clone());
    let listed = trusted_sources(note).into_iter().flatten().map(|name| source_key(name));
    let within = |key: String| {
        let reach = cap_by_trust(note, &key, own(&key).unwrap_or_else(default));
        (key, reach)
    };
    named.chain(listed).map(within).collect()
}

/// How far a source may go that neither an instinct nor the note names.
fn find_unnamed_source_ceiling(settings: &PolicyContext<'_>, note: &MatterPolicyContext<'_>) -> (Ceiling, String) {
    cap_by_trust(note, "", (settings.config.default_ceiling, settings.describe_origin("default_ceiling", true)))
}

/// The same, lowered where the note does not trust the source.
fn cap_by_trust(note: &MatterPolicyContext<'_>, key: &str, (ceiling, from): (Ceiling, String)) -> (Ceiling, String) {
    let is_stranger = trusted_sources(note).is_some_and(|names| !names.iter().any(|name| source_key(name) == key));
    if is_stranger && ceiling > Ceiling::Confirm {
        return (Ceiling::Confirm, note.locate_key(&[BLOCK, "trusted_sources"]));
    }
    (ceiling, from)
}

fn trusted_sources<'a>(note: &MatterPolicyContext<'a>) -> Option<&'a [String]> {
    note.policy?.trusted_sources.as_deref()
}

/// What undos and the counts of the day have left of a class that nothing else holds back, and how far that is.
fn find_live_reach(
    settings: &PolicyContext<'_>,
    note: &MatterPolicyContext<'_>,
    class: MutationClass,
) -> (Ceiling, ValueWithOrigin) {
    let lowered = find_demotion(settings, note, class);
    let raise = |whose: &TrustSubject| format!("undone too often: `steward trust raise {whose}`");
    if let Some((Mode::Shadow, whose)) = &lowered {
        return (Ceiling::Ask, ("is only said".to_owned(), raise(whose)));
    }
    if let Some(from) = find_exhausted_budget(settings, note) {
        return (Ceiling::Confirm, ("waits for your confirmation".to_owned(), from));
    }
    let said = match lowered {
        Some((cap, whose)) if cap < settings.effective_mode() => ("may be made where it is sure", raise(&whose)),
        Some(_) | None => ("may be made", settings.build_mode_line().from),
    };
    (Ceiling::Act, (said.0.to_owned(), said.1))
}

/// How far undos have left the class, or every source that may act for it, and whose mark says so. Where sources that
/// nobody named may act, one of them may be as yet unlowered.
fn find_demotion(
    settings: &PolicyContext<'_>,
    note: &MatterPolicyContext<'_>,
    class: MutationClass,
) -> Option<(Mode, TrustSubject)> {
    let cap = |subject: &TrustSubject| settings.caps.get(subject).and_then(|cap| cap.mode);
    let class = TrustSubject::Class(class);
    let of_class = cap(&class).map(|mode| (mode, class));
    let others_act = find_unnamed_source_ceiling(settings, note).0 == Ceiling::Act;
    let acting = list_named_sources(settings, note).into_iter().filter(|(_, (ceiling, _))| *ceiling == Ceiling::Act);
    let of_sources = acting
        .map(|(key, _)| TrustSubject::Source(key))
        .map(|source| (cap(&source).unwrap_or(Mode::Live), source))
        .max_by_key(|(mode, _)| *mode)
        .filter(|_| !others_act);
    of_class.into_iter().chain(of_sources).min_by_key(|(mode, _)| *mode)
}

/// Why every change waits when it lands: no source has a budget, or the matter's is spent.
fn find_exhausted_budget(settings: &PolicyContext<'_>, note: &MatterPolicyContext<'_>) -> Option<String> {
    if settings.config.live_per_source_day == 0 {
        return Some(settings.describe_origin("live_per_source_day", true));
    }
    let budget = note.policy.and_then(|policy| policy.daily_budget)?;
    (note.spent >= budget).then(|| note.locate_key(&[BLOCK, "daily_budget"]))
}

/// The fields that changes of a class write.
fn list_class_fields(class: MutationClass) -> Vec<&'static str> {
    match class {
        MutationClass::StateChange => vec!["state"],
        MutationClass::ContextEdit => ContextField::ALL.map(ContextField::as_str).to_vec(),
        MutationClass::ParentMatter => vec!["parent_matter"],
        MutationClass::Related => RelatedField::ALL.map(RelatedField::as_str).to_vec(),
    }
}

#[cfg(test)]
mod tests;
