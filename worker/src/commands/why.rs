//! The command `steward why <task, matter or action>`: the signals, the decision, its gates, and what would change it.
//!
//! It reads the index and the newest audit record. It asks no clerk and changes nothing. The gate values are those of
//! the decision, as the record keeps them; they are not evaluated again.

mod hints;
mod target;

use crate::cli::output::{CommandExit, CommandOutput, escape_text};
use crate::cli::style::{TextColor, TextStyle};
use crate::config::StewardConfig;
use chrono::{DateTime, Utc};
use hints::HintFacts;
use serde::Serialize;
use std::collections::BTreeMap;
use steward_domain::action::audit::{ActionKind, AuditRecord};
use steward_domain::action::mutation::Mutation;
use steward_domain::action::plan::ActionId;
use steward_domain::record::entity::{RecordState, SignalEffect};
use steward_domain::record::path::RecordKind;
use steward_domain::signals::signal::SignalStatus;
use steward_domain::signals::stance::SignalStance;
use steward_domain::time::format_millis;
use steward_server::views::VaultViews;
use steward_server::views::quote::mark_cut_quote;
use steward_vault::action::answers;
use steward_vault::action::writer::ApplyError;
use steward_vault::files::root::VaultRoot;
use steward_vault::gates::stop;
use steward_vault::index::{ActionRow, Index, SubjectRow, WeighedSignal};
use steward_vault::tracker::outbox::{self, DeliveryStatus};
use target::{WhyTarget, find_target};

/// The most signals that are printed, the newest first.
const MAX_SIGNALS: u32 = 10;
/// The most actions of a note among which one is found.
const MAX_ACTIONS: u32 = 50;
/// The most resolutions that are followed: a confirmation and its undo. Only forged records could name more.
const MAX_RESOLUTIONS: usize = 2;

#[derive(Serialize)]
struct WhyReport {
    subject: SubjectRow,
    /// The newest first.
    seen: Vec<WeighedSignal>,
    /// What signals say about the change that was decided or still waits, by path. Empty if there is none.
    stances: BTreeMap<String, SignalStance>,
    /// The open question about the record, with the signals that were withheld because of it.
    asks: Option<WhyQuestion>,
    decided: Option<AuditRecord>,
    /// The resolution of that decision by a person.
    resolution: Option<ActionKind>,
    /// That resolution with its details, then the resolution of that one, as when a confirmation was undone.
    resolutions: Vec<WhyResolution>,
    /// What was delivered to the tracker for that decision, or is owed to it.
    tracker: Option<DeliveryStatus>,
    would_change_it: Vec<String>,
}

#[derive(Serialize)]
struct WhyQuestion {
    id: ActionId,
    at: DateTime<Utc>,
    /// The newest first.
    withheld: Vec<WeighedSignal>,
}

/// What a person did about a decision, or about an earlier resolution of it.
#[derive(Serialize)]
struct WhyResolution {
    kind: ActionKind,
    id: ActionId,
    at: DateTime<Utc>,
    /// The name that the person gave. Untrusted.
    by: String,
    /// Untrusted.
    reason: Option<String>,
    /// Until when its change can be undone; absent if it made none.
    undo_until: Option<DateTime<Utc>>,
}

pub(crate) async fn run(config: &StewardConfig, target: &str, out: CommandOutput) -> anyhow::Result<CommandExit> {
    let vault = super::open_read_only(config).await?;
    let (root, index) = (&vault.root, &vault.index);
    let WhyTarget { subject, action: chosen } = find_target(&vault.views, index, target).await?;
    let path = subject.path.clone();
    let actions = index.actions().list_actions(None, Some(&path), MAX_ACTIONS).await?;
    // A question may be newer than the proposal that still waits.
    let waiting = actions.iter().find(|action| action.waits && !action.settled).map(|action| action.id.clone());
    let action = chosen.or_else(|| actions.into_iter().find(|action| action.kind == ActionKind::Action));
    let decided = action.as_ref().map(|a| super::audit::read_record(root, &a.path)).transpose()?;
    let resolution = action.as_ref().and_then(|a| a.resolution);
    let resolutions = read_resolutions(root, index, action).await?;
    let tracker = decided.as_ref().map(|record| read_tracker_status(root, record)).transpose()?.flatten();
    let seen = index.read().list_signals_about(&path, MAX_SIGNALS).await?;
    let decision = decided.as_ref().filter(|record| record.draft.proposal.is_some()).map(|r| r.draft.id.clone());
    let stances = read_stances(root, index, decision.or(waiting)).await?;
    let asks = match index.read().find_open_question(&path).await? {
        Some(row) => Some(WhyQuestion {
            withheld: index.read().list_signals_withheld_by(&row.id, MAX_SIGNALS).await?,
            id: row.id,
            at: row.at,
        }),
        None => None,
    };
    let stopped = stop::is_stopped(root);
    let notes = index.gates().list_matter_policies(&path, None).await?;
    let quiet = notes.iter().filter_map(|(_, note)| note.quiet_until(Utc::now())).max();
    let kind = index.read().find_note_kind(&path).await?.or(path.folder_kind()).unwrap_or(RecordKind::Task);
    let hints = HintFacts {
        subject: &subject,
        reopening: &index.note_schema().spell_state(kind, RecordState::Open),
        decided: decided.as_ref(),
        resolutions: &resolutions,
        has_unjudged: has_unjudged_signal(index, &seen).await?,
        stopped,
        now: Utc::now(),
    };
    let mut would_change_it = hints.list_hints();
    would_change_it.extend(quiet.map(|until| format!("the end of its matter's quiet hours, {}", format_millis(until))));
    let why = WhyReport { subject, seen, stances, asks, decided, resolution, resolutions, tracker, would_change_it };
    out.print_value(&why, || TextStyle::current().wrap_lines(&describe_why(&why)))?;
    Ok(CommandExit::Ok)
}

/// Reads how people resolved an action, and each resolution of a resolution.
async fn read_resolutions(
    root: &VaultRoot,
    index: &Index,
    action: Option<ActionRow>,
) -> anyhow::Result<Vec<WhyResolution>> {
    let (mut found, mut next) = (Vec::new(), action.and_then(|action| action.resolved_by));
    while let Some(id) = next.filter(|_| found.len() < MAX_RESOLUTIONS) {
        let Some(row) = index.actions().action_by_id(&id).await? else { break };
        let record = super::audit::read_record(root, &row.path)?;
        let undo_until = record.undo_recipe.is_some().then(|| record.undo_deadline());
        let resolution = record.draft.resolution;
        let (by, reason) = resolution.map_or_else(|| ("unknown".into(), None), |r| (r.by, r.reason));
        found.push(WhyResolution { kind: row.kind, id, at: row.at, by, reason, undo_until });
        next = row.resolved_by;
    }
    Ok(found)
}

/// What the signals about the record say about the change that an action made or proposes.
async fn read_stances(
    root: &VaultRoot,
    index: &Index,
    action: Option<ActionId>,
) -> anyhow::Result<BTreeMap<String, SignalStance>> {
    let Some(action) = action else { return Ok(BTreeMap::new()) };
    let views = VaultViews::new(root.clone(), index.clone());
    let detail = views.read_detail(action.as_str()).await?;
    Ok(detail.action.signals.into_iter().map(|signal| (signal.signal, signal.stance)).collect())
}

/// Whether a signal could lead to a decision and no decision cites it.
async fn has_unjudged_signal(index: &Index, seen: &[WeighedSignal]) -> anyhow::Result<bool> {
    for signal in seen.iter().filter(|s| s.status == SignalStatus::Unrouted && s.effect != SignalEffect::None) {
        if index.actions().action_citing(&signal.path).await?.is_none() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Reads the delivery status of the newest record of a decision: the undo, else the confirmation, else the decision.
fn read_tracker_status(root: &VaultRoot, decided: &AuditRecord) -> Result<Option<DeliveryStatus>, ApplyError> {
    let answer = answers::read_standing(root, &decided.draft)?.answer.map(|answer| answer.record);
    let confirmed = answer.filter(|answer| answer.draft.kind == ActionKind::Confirmed);
    let applied = confirmed.as_ref().unwrap_or(decided);
    let undone = outbox::find_follower(root, applied, ActionKind::Reversed)?.map(|(_, record)| record);
    outbox::read_delivery_status(root, undone.as_ref().unwrap_or(applied))
}

fn describe_why(why: &WhyReport) -> String {
    let mut lines = vec![format!("{}  {}", why.subject.path, describe_state(&why.subject))];
    let mut row = |name: &str, text: String| lines.push(format!("{name:<10} {text}"));
    if why.seen.is_empty() {
        row("signal", "none is about this record".into());
    }
    for signal in &why.seen {
        let stance = why.stances.get(signal.path.as_str()).map_or("", |stance| stance.as_str());
        let separator = if stance.is_empty() { "" } else { ": " };
        row("signal", format!("{stance}{separator}{}", describe_weighed_signal(signal)));
    }
    if let Some(question) = &why.asks {
        let (since, id) = (TextStyle::current().show_moment(question.at), &question.id);
        row("question", format!("asked {since}: edit the record, or run `steward dismiss {id}`"));
        for signal in &question.withheld {
            row("withheld", describe_weighed_signal(signal));
        }
    }
    match &why.decided {
        None => row("decision", "none yet".into()),
        Some(record) => {
            row("decision", describe_decision(record, why.resolution));
            row("reasoning", escape_text(&record.draft.reasoning));
            for gate in &record.draft.gates {
                let closed = TextStyle::current().paint("closed", TextColor::Yellow);
                let open = if gate.open { "open  " } else { closed.as_str() };
                row(
                    "gate",
                    format!(
                        "{open} {}: {}, needs {}",
                        gate.gate.as_str(),
                        escape_text(&gate.found),
                        escape_text(&gate.needed)
                    ),
                );
            }
        }
    }
    for resolution in &why.resolutions {
        row("resolution", describe_resolution(resolution));
    }
    if let Some(delivery) = &why.tracker {
        row("tracker", super::audit::describe_tracker_status(delivery));
    }
    for hint in &why.would_change_it {
        row("to change", hint.clone());
    }
    lines.join("\n")
}

fn describe_state(subject: &SubjectRow) -> String {
    let last = subject
        .last_check_at
        .map_or("never checked".into(), |at| format!("last checked {}", TextStyle::current().show_moment(at)));
    let next = subject.next_check_after.filter(|_| subject.state == RecordState::Open);
    let next = next.map(|at| format!(", next check {}", TextStyle::current().show_moment(at))).unwrap_or_default();
    format!("{}, {last}{next}", subject.state.as_str())
}

fn describe_weighed_signal(signal: &WeighedSignal) -> String {
    let reason = signal.reason.as_deref().map(|r| format!(" ({})", escape_text(r))).unwrap_or_default();
    format!(
        "{} from {}: \"{}\"; {}; confidence in the target {:.2}, in the effect {:.2}; {}{reason}",
        signal.path,
        escape_text(&signal.source),
        escape_text(&mark_cut_quote(&signal.note).replace('\n', " ")),
        signal.class.map_or("proposes no change", |class| class.as_str()),
        signal.target_confidence,
        signal.effect_confidence,
        signal.status.as_str(),
    )
}

fn describe_decision(record: &AuditRecord, resolution: Option<ActionKind>) -> String {
    let draft = &record.draft;
    let change = draft.proposal.as_ref().map(|p| format!(", {}", describe_mutation(&p.mutation))).unwrap_or_default();
    let resolution = resolution.map(|kind| format!(", {}", kind.describe())).unwrap_or_default();
    let (at, decision) = (TextStyle::current().show_moment(draft.timestamp), draft.decision.as_str());
    let (confidence, disposition, id) = (draft.confidence, draft.disposition.as_str(), &draft.id);
    format!("{at} {decision}, confidence {confidence:.2}{change}: {disposition}{resolution} (action {id})")
}

fn describe_resolution(resolution: &WhyResolution) -> String {
    let WhyResolution { kind, id, at, by, reason, .. } = resolution;
    let reason = reason.as_deref().map(|reason| format!(": {}", escape_text(reason))).unwrap_or_default();
    format!(
        "{} {} by {}{reason} (action {id})",
        TextStyle::current().show_moment(*at),
        kind.describe(),
        escape_text(by)
    )
}

/// Describes a change in a few words.
pub(crate) fn describe_mutation(mutation: &Mutation) -> String {
    match mutation {
        Mutation::StateChange { to } => format!("state to {}", to.as_str()),
        Mutation::ContextEdit { field, to } => format!("{} to \"{}\"", field.as_str(), escape_text(to)),
        Mutation::ParentMatter { to } => format!("under {to}"),
        Mutation::Related { field, member, present: true } => {
            format!("{} gains \"{}\"", field.as_str(), escape_text(member))
        }
        Mutation::Related { field, member, present: false } => {
            format!("{} loses \"{}\"", field.as_str(), escape_text(member))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resolution_names_who_did_what_and_when() {
        let undone = WhyResolution {
            kind: ActionKind::Reversed,
            id: ActionId::derive(&["undo"]),
            at: steward_domain::time::parse("2026-11-22").unwrap(),
            by: "ann\n".into(),
            reason: Some("not yet".into()),
            undo_until: None,
        };
        let shown = describe_resolution(&undone);
        assert!(shown.starts_with("2026-11-22T00:00:00Z undone by ann\\n: not yet (action "), "{shown}");
    }
}
