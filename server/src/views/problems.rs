//! What needs mending, worst first: failures before anything else.
//!
//! Reads what the processes of the vault have noted; it looks for nothing itself, as `steward doctor` does. Shown on top
//! of Today and of Fleet.

use crate::http::app::AppState;
use crate::http::holder::VaultHolder;
use crate::temporal::client::FailedSchedule;
use crate::temporal::health::{PausedSchedule, TemporalHealth, name_schedule};
use crate::views::drill::NightlyDrillStatus;
use crate::views::tracker;
use chrono::Utc;
use steward_domain::time::format_seconds;
use steward_vault::action::writer::VaultWriter;
use steward_vault::index::{IndexError, ListPage};

/// Records that cannot be used of which each is told; of more only how many there are.
const RECORDS: usize = 5;
/// So many are counted.
const COUNTED: u32 = 500;

/// Schedules of a kind of which each is told; of more only how many there are.
const SCHEDULES: usize = 3;

/// One thing that needs mending.
pub(crate) struct AttentionItem {
    /// What it is about.
    pub(crate) what: String,
    /// What is wrong, with the mend. May hold words of others.
    pub(crate) says: String,
}

/// What is wrong at Temporal.
fn list_temporal_items(outside: &TemporalHealth) -> Vec<AttentionItem> {
    let mut troubles = Vec::new();
    let mut say = |what: String, says: String| troubles.push(AttentionItem { what, says });
    if let Some(away) = &outside.away {
        let says =
            format!("{away}: until it answers no steward looks and no answer is taken; `steward doctor` says more");
        say("The Temporal server".into(), says);
    }
    for FailedSchedule { schedule, at, status } in outside.failed.iter().take(SCHEDULES) {
        let says = format!(
            "its last run {status} at {}: the Temporal UI has its history, the worker's log why",
            format_seconds(*at)
        );
        say(name_schedule(schedule), says);
    }
    let more = if outside.more { "at least " } else { "" };
    if outside.failed.len() > SCHEDULES {
        let says = "their last runs failed as well: `steward schedules list` has the newest of each".into();
        say(format!("{more}{} more schedules", outside.failed.len() - SCHEDULES), says);
    }
    for PausedSchedule { what, note } in outside.paused.iter().take(SCHEDULES) {
        let note = if note.is_empty() { String::new() } else { format!(" (“{note}”)") };
        say(
            what.clone(),
            format!("its schedule was paused by hand{note}: nobody looks until it is unpaused in Temporal"),
        );
    }
    if outside.paused.len() > SCHEDULES {
        let says = "were paused by hand too: `steward schedules list` names them".into();
        say(format!("{more}{} more schedules", outside.paused.len() - SCHEDULES), says);
    }
    troubles
}

/// Everything that is known to need mending.
///
/// # Errors
/// [`IndexError::Sql`].
pub(crate) async fn list_attention_items(app: &AppState) -> Result<Vec<AttentionItem>, IndexError> {
    let mut troubles = Vec::new();
    let mut say = |what: &str, says: String| troubles.push(AttentionItem { what: what.to_owned(), says });
    if !VaultWriter::is_locked(&app.root) {
        say("Nobody serves this vault", "no steward looks and nothing is answered: start `steward up`".into());
    }
    for AttentionItem { what, says } in list_temporal_items(&app.outside.borrow()) {
        say(&what, says);
    }
    if let VaultHolder::Runs(note) = VaultHolder::read(&app.root, app.index.state_dir())
        && let Some(fault) = app.registration.borrow().registered.describe_fault(note.schedule_check_interval())
    {
        say("The schedules", fault);
    }
    let drilled =
        NightlyDrillStatus::read(&app.index, &VaultHolder::read(&app.root, app.index.state_dir()), Utc::now()).await?;
    if drilled.late {
        say("The nightly drill", drilled.describe_status());
    }
    if let Some(refusal) = app.read_guard_status().await.and_then(|status| status.refusal) {
        say("No clerk is asked", refusal.reason);
    }
    let settings = app.read_settings();
    let debt = tracker::read_debt(&app.root, &app.index, settings.tracker).await?;
    if debt.failed > 0 {
        let error = debt.last_error.map(|error| format!(": {error}")).unwrap_or_default();
        say("The tracker", format!("{} of {} that are owed to it were tried in vain{error}", debt.failed, debt.owed));
    }
    for warning in settings.warnings {
        say("The configuration", warning);
    }
    for stream in app.index.list_stream_counts().await? {
        if let Some(error) = &stream.last_error {
            say(&format!("Stream {}", stream.source), format!("failed {} times: {error}", stream.failures));
        }
        if stream.parked > 0 {
            let says = format!("{} events could not be read: `steward streams list`", stream.parked);
            say(&format!("Stream {}", stream.source), says);
        }
    }
    for (subject, cap) in app.index.read_mode_caps().await? {
        if let Some(mode) = cap.mode {
            let name = app.index.find_subject_name(&subject).await?;
            let (told, since) = (subject.describe(name.as_deref()), format_seconds(cap.since));
            let says = format!("undone too often, {} since {since}: `steward trust raise {subject}`", mode.as_str());
            say(&told, says);
        }
    }
    let ListPage { rows, more, .. } = app.index.list_first_problems(COUNTED).await?;
    for problem in rows.iter().take(RECORDS) {
        say(&problem.path, problem.message.clone());
    }
    if rows.len() > RECORDS {
        say(&describe_remaining(rows.len() - RECORDS, more), "cannot be used: `steward status` lists them".into());
    }
    Ok(troubles)
}

/// How many more there are, as far as they are counted.
fn describe_remaining(count: usize, more: bool) -> String {
    let least = if more { "at least " } else { "" };
    format!("{least}{count} more records")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_counted_is_said_to_be() {
        assert_eq!(
            (describe_remaining(3, false), describe_remaining(495, true)),
            ("3 more records".into(), "at least 495 more records".into())
        );
    }
}
