//! `steward why <task or matter>`: what was seen, what was decided, by which gates, and what would
//! change the answer.
//!
//! Reads the index and the newest audit record; asks nobody and changes nothing. The gate values are the
//! ones that decided, as the record keeps them.

use crate::config::Config;
use crate::out::{Exit, Out, shown};
use anyhow::Context;
use chrono::{DateTime, Utc};
use serde::Serialize;
use steward_domain::audit::{ActionKind, AuditRecord};
use steward_domain::mutation::Mutation;
use steward_domain::path::{RecordKind, RecordPath, parse_link};
use steward_domain::plan::{ActionId, Disposition};
use steward_domain::record::RecordState;
use steward_domain::signal::SignalStatus;
use steward_domain::time::format_millis;
use steward_server::facts::why::opens;
use steward_vault::brake;
use steward_vault::index::{SubjectRow, WeighedSignal};
use steward_vault::keeper::ApplyError;
use steward_vault::outbox::{self, DeliveryStatus};
use steward_vault::root::VaultRoot;

/// Most signals that are told; the newest.
const SIGNALS: u32 = 10;

#[derive(Serialize)]
struct Why {
    subject: SubjectRow,
    /// The newest first.
    seen: Vec<WeighedSignal>,
    /// What a human is asked about it, and what was not proposed because of that.
    asks: Option<Question>,
    decided: Option<AuditRecord>,
    /// How a human has answered that.
    answered: Option<ActionKind>,
    /// What the tracker was told of that, or is owed.
    tracker: Option<DeliveryStatus>,
    would_change_it: Vec<String>,
}

#[derive(Serialize)]
struct Question {
    id: ActionId,
    at: DateTime<Utc>,
    /// The newest first.
    withheld: Vec<WeighedSignal>,
}

pub(crate) async fn run(config: &Config, what: &str, out: Out) -> anyhow::Result<Exit> {
    let path = subject(what)?;
    let look = super::look(config).await?;
    let (root, index) = (&look.root, &look.index);
    let found = index.find_subject(&path).await?;
    let subject = found.with_context(|| format!("{path}: not in the vault, or not readable: see `steward status`"))?;
    let action = index.list_actions(None, Some(&path), 50).await?.into_iter().find(|a| a.kind == ActionKind::Action);
    let decided = action.as_ref().map(|a| super::audit::read(root, &a.path)).transpose()?;
    let answered = action.and_then(|a| a.answered);
    let tracker = decided.as_ref().map(|record| told_elsewhere(root, record)).transpose()?.flatten();
    let seen = index.list_signals_about(&path, SIGNALS).await?;
    let asks = match index.find_open_question(&path).await? {
        Some(row) => {
            Some(Question { withheld: index.list_signals_withheld_by(&row.id, SIGNALS).await?, id: row.id, at: row.at })
        }
        None => None,
    };
    let stopped = brake::is_stopped(root);
    let notes = index.list_matter_policies(&path, None).await?;
    let quiet = notes.iter().filter_map(|(_, note)| note.quiet_until(Utc::now())).max();
    let mut would_change_it =
        hints((&subject, &seen), decided.as_ref().filter(|_| answered.is_none()), stopped, Utc::now());
    would_change_it.extend(quiet.map(|until| format!("the end of its matter's quiet hours, {}", format_millis(until))));
    let why = Why { subject, seen, asks, decided, answered, tracker, would_change_it };
    out.value(&why, || describe(&why))?;
    Ok(Exit::Ok)
}

/// The tracker's part of what was decided: of the newest of the decision, its confirmation and their undo.
fn told_elsewhere(root: &VaultRoot, decided: &AuditRecord) -> Result<Option<DeliveryStatus>, ApplyError> {
    let confirmed = outbox::find_follower(root, decided, ActionKind::Confirmed)?.map(|(_, record)| record);
    let done = confirmed.as_ref().unwrap_or(decided);
    let undone = outbox::find_follower(root, done, ActionKind::Reversed)?.map(|(_, record)| record);
    outbox::read_delivery_status(root, undone.as_ref().unwrap_or(done))
}

/// A task or matter as a person names it; a bare name is a task's.
fn subject(text: &str) -> anyhow::Result<RecordPath> {
    let kind = if text.contains("matter/") { RecordKind::Matter } else { RecordKind::Task };
    parse_link(kind, text).with_context(|| format!("failed to read `{}` as a task or matter", text.escape_debug()))
}

fn describe(why: &Why) -> String {
    let mut lines = vec![format!("{}  {}", why.subject.path, state(&why.subject))];
    let mut row = |name: &str, text: String| lines.push(format!("{name:<10} {text}"));
    if why.seen.is_empty() {
        row("seen", "no signal points here".into());
    }
    for signal in &why.seen {
        row("seen", told(signal));
    }
    if let Some(question) = &why.asks {
        row(
            "asks you",
            format!("since {}: answer by your edit, or `steward dismiss {}`", format_millis(question.at), question.id),
        );
        for signal in &question.withheld {
            row("withheld", told(signal));
        }
    }
    match &why.decided {
        None => row("decided", "nothing yet".into()),
        Some(record) => {
            row("decided", decision(record, why.answered));
            row("because", shown(&record.draft.reasoning));
            for gate in &record.draft.gates {
                let open = if gate.open { "open  " } else { "closed" };
                row(
                    "gate",
                    format!("{open} {}: {}, needs {}", gate.gate.as_str(), shown(&gate.found), shown(&gate.needed)),
                );
            }
        }
    }
    if let Some(standing) = &why.tracker {
        row("tracker", super::audit::tracker(standing));
    }
    for hint in &why.would_change_it {
        row("to change", hint.clone());
    }
    lines.join("\n")
}

fn state(subject: &SubjectRow) -> String {
    let looked =
        subject.last_check_at.map_or("never looked at".into(), |at| format!("last looked at {}", format_millis(at)));
    let next = subject.next_check_after.filter(|_| subject.state == RecordState::Open);
    let next = next.map(|at| format!(", next {}", format_millis(at))).unwrap_or_default();
    format!("{}, {looked}{next}", subject.state.as_str())
}

fn told(signal: &WeighedSignal) -> String {
    let reason = signal.reason.as_deref().map(|r| format!(" ({})", shown(r))).unwrap_or_default();
    format!(
        "{} {} said \"{}\", {}; target {:.2}, effect {:.2}; {}{reason}",
        signal.path,
        shown(&signal.source),
        shown(&signal.note),
        signal.class.map_or("proposes no change", |class| class.as_str()),
        signal.target_confidence,
        signal.effect_confidence,
        signal.status.as_str(),
    )
}

fn decision(record: &AuditRecord, answered: Option<ActionKind>) -> String {
    let draft = &record.draft;
    let change = draft.proposal.as_ref().map(|p| format!(", {}", change(&p.mutation))).unwrap_or_default();
    let answer =
        answered.map(|k| format!(", {}", k.as_str().trim_start_matches("steward-action-"))).unwrap_or_default();
    let (at, word, landed) = (format_millis(draft.timestamp), draft.decision.as_str(), draft.landing.as_str());
    format!("{at} {word} {:.2}{change}: {landed}{answer} (action {})", draft.confidence, draft.id)
}

/// A change in a few words.
pub(crate) fn change(mutation: &Mutation) -> String {
    match mutation {
        Mutation::StateChange { to } => format!("state to {}", to.as_str()),
        Mutation::ContextEdit { field, to } => format!("{} to \"{}\"", field.as_str(), shown(to)),
        Mutation::ParentMatter { to } => format!("under {to}"),
        Mutation::Related { field, member, present: true } => format!("{} gains \"{}\"", field.as_str(), shown(member)),
        Mutation::Related { field, member, present: false } => {
            format!("{} loses \"{}\"", field.as_str(), shown(member))
        }
    }
}

fn hints(
    (subject, seen): (&SubjectRow, &[WeighedSignal]),
    record: Option<&AuditRecord>,
    stopped: bool,
    now: DateTime<Utc>,
) -> Vec<String> {
    let mut hints = Vec::new();
    match subject.state {
        RecordState::Open => {}
        RecordState::Done | RecordState::Archived => {
            hints.push("set `state: open`: what is closed is not looked at".into())
        }
    }
    if let Some(until) = subject.snoozed_until.filter(|until| *until > now) {
        hints.push(format!("take `snoozed_until` out: it is put off until {}", format_millis(until)));
    }
    if stopped {
        hints.push("`steward resume`: the fleet is stopped, and no clerk is asked".into());
    }
    let Some(record) = record else {
        let waits = seen.iter().any(|s| s.status == SignalStatus::Unrouted);
        hints.push(if waits {
            "a tick in which a clerk can be asked: `steward tick <matter> --wait` says what holds it back, \
             `steward status` how full the rate guard is"
                .into()
        } else {
            "a new signal: without one nobody is asked".into()
        });
        return hints;
    };
    let id = &record.draft.id;
    match record.draft.landing {
        Disposition::Live => hints.push(format!("`steward undo {id}` takes it back for 7 days")),
        Disposition::Pending if record.draft.confirmable => {
            hints.push(format!("`steward confirm {id}` lets it happen"))
        }
        Disposition::Pending => {
            hints.push("make the change by hand: a ceiling of `ask`, or the matter's note, leaves it to you".into())
        }
        Disposition::Recorded => hints.push("a new signal that proposes a change".into()),
        Disposition::Shadow => {}
    }
    if record.draft.landing != Disposition::Recorded {
        hints.extend(
            record.draft.gates.iter().filter(|g| !g.open).map(|g| opens(g.gate, &shown(&g.found), &shown(&g.needed))),
        );
    }
    hints
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_named_as_people_do_and_a_matter_by_its_folder() {
        for (text, path) in [
            ("pay", "task/pay.md"),
            ("task/pay.md", "task/pay.md"),
            ("[[task/pay]]", "task/pay.md"),
            ("matter/m", "matter/m.md"),
        ] {
            assert_eq!(subject(text).unwrap().as_str(), path);
        }
        assert!(subject("../x").is_err());
    }

    #[test]
    fn what_would_change_the_answer_is_said_in_every_case() {
        let open = SubjectRow {
            path: RecordPath::parse("task/pay.md").unwrap(),
            name: "Pay".into(),
            state: RecordState::Open,
            snoozed_until: None,
            last_check_at: None,
            next_check_after: None,
        };
        let now = steward_domain::time::parse("2026-11-22").unwrap();
        assert_eq!(hints((&open, &[]), None, false, now), ["a new signal: without one nobody is asked"]);
        assert!(hints((&open, &[]), None, true, now)[0].contains("steward resume"));
        let put_off = SubjectRow { snoozed_until: Some(now + chrono::TimeDelta::days(1)), ..open.clone() };
        assert!(hints((&put_off, &[]), None, false, now)[0].contains("snoozed_until"));
        let done = SubjectRow { state: RecordState::Done, ..open };
        assert!(hints((&done, &[]), None, false, now)[0].contains("state: open"));
    }
}
