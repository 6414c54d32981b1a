//! The list "Needs attention", the worst problem first. It is at the top of Today and of Fleet.
//!
//! It reads what the processes of the vault have recorded. It runs no checks of its own; `steward doctor` does that.

use crate::http::app::AppState;
use crate::http::holder::VaultHolder;
use crate::temporal::client::FailedSchedule;
use crate::temporal::health::{PausedSchedule, TemporalHealth, name_schedule};
use crate::temporal::service_pause::find_service_pause;
use crate::views::VaultViews;
use crate::views::backup::BackupStatus;
use crate::views::trust::Demotion;
use chrono::Utc;
use std::sync::Arc;
use steward_domain::record::path::RecordPath;
use steward_domain::record::plain_text::count_noun;
use steward_domain::record::url::encode_path;
use steward_domain::time::format_seconds;
use steward_vault::action::writer::VaultWriter;
use steward_vault::index::{IndexError, ListPage, LostNote};

/// Unusable records that are listed one by one; the others are only counted.
const RECORDS: usize = 5;
/// Most unusable records that are counted.
const COUNTED: u32 = 500;

/// Schedules of a kind that are listed one by one; the others are only counted.
const SCHEDULES: usize = 3;

/// One thing that needs attention.
pub(crate) struct AttentionItem {
    /// What has the problem.
    pub(crate) subject: String,
    /// The page on which it can be solved.
    pub(crate) href: Option<String>,
    /// The problem, with the fix. May contain foreign text.
    pub(crate) problem: String,
}

/// What is wrong with the process: none serves the vault, it is drained or does not poll yet, or its backups are late.
fn list_process_items(views: &VaultViews) -> Vec<AttentionItem> {
    let mut items = Vec::new();
    let mut add =
        |subject: &str, problem: String| items.push(AttentionItem { subject: subject.to_owned(), problem, href: None });
    if !VaultWriter::is_locked(views.root()) {
        add("No process serves this vault", "no check runs and nothing can be resolved: start `steward up`".into());
    }
    if let Some(pause) = find_service_pause(views.root(), &views.holder()) {
        add("Nothing is checked or resolved", pause.reason);
    }
    if let Some(backups) = BackupStatus::read(&views.holder(), Utc::now()).filter(|backups| backups.late) {
        add("Backups", backups.describe());
    }
    items
}

/// The problems at Temporal.
fn list_temporal_items(outside: &TemporalHealth) -> Vec<AttentionItem> {
    let mut items = Vec::new();
    let mut add = |subject: String, problem: String| items.push(AttentionItem { subject, problem, href: None });
    if let Some(away) = &outside.error {
        let problem =
            format!("{away}. Until it answers, no check runs and nothing can be resolved. See `steward doctor`");
        add("The Temporal server".into(), problem);
    }
    for FailedSchedule { schedule, at, status } in outside.failed.iter().take(SCHEDULES) {
        let problem = format!(
            "its last run {status} at {}. See its history in the Temporal UI and the reason in the worker's log",
            format_seconds(*at)
        );
        add(name_schedule(schedule), problem);
    }
    let more = if outside.more { "at least " } else { "" };
    if outside.failed.len() > SCHEDULES {
        let problem = "their last runs failed as well: `steward schedules list` shows the newest of each".into();
        add(format!("{more}{} more schedules", outside.failed.len() - SCHEDULES), problem);
    }
    for PausedSchedule { subject, note } in outside.paused.iter().take(SCHEDULES) {
        let note = if note.is_empty() { String::new() } else { format!(" (“{note}”)") };
        add(
            subject.clone(),
            format!("its schedule was paused by hand{note}: no check runs until it is unpaused in Temporal"),
        );
    }
    if outside.paused.len() > SCHEDULES {
        let problem = "were paused by hand too: `steward schedules list` names them".into();
        add(format!("{more}{} more schedules", outside.paused.len() - SCHEDULES), problem);
    }
    items
}

/// The notes that are gone from their places, each with the page on which a person can say where it is.
async fn list_lost_items(views: &VaultViews) -> Result<Vec<AttentionItem>, IndexError> {
    let mut lost = Vec::new();
    let gone = views.list_lost_notes().await?;
    for LostNote { path, .. } in gone.iter().take(RECORDS) {
        let problem = "is gone from its place, and Steward does not know where it is: open it and say it".into();
        lost.push(AttentionItem {
            href: Some(format!("/records/{}", encode_path(path))),
            subject: path.clone(),
            problem,
        });
    }
    if gone.len() > RECORDS {
        let subject = format!("{} more notes", gone.len() - RECORDS);
        lost.push(AttentionItem { subject, problem: "are gone too: `steward moved` lists them".into(), href: None });
    }
    Ok(lost)
}

/// Lists everything that is known to need attention.
///
/// # Errors
/// [`IndexError::Sql`].
pub(crate) async fn list_attention_items(app: &AppState) -> Result<Vec<AttentionItem>, IndexError> {
    let mut items = Vec::new();
    let mut add =
        |subject: &str, problem: String| items.push(AttentionItem { subject: subject.to_owned(), problem, href: None });
    for AttentionItem { subject, problem, .. } in list_process_items(&app.views) {
        add(&subject, problem);
    }
    for AttentionItem { subject, problem, .. } in list_temporal_items(&app.temporal_health.borrow()) {
        add(&subject, problem);
    }
    if let VaultHolder::Runs(record) = app.views.holder()
        && let Some(fault) = app.registration.borrow().registered.describe_fault(record.schedule_check_interval())
    {
        add("The schedules", fault);
    }
    for AttentionItem { subject, problem, .. } in list_drill_items(&app.views).await? {
        add(&subject, problem);
    }
    if let Some(refusal) = app.read_guard_status().await.and_then(|status| status.refusal) {
        add("No clerk is asked", refusal.reason);
    }
    let settings = app.read_settings();
    let debt = app.views.read_tracker_debt(settings.tracker).await?;
    if debt.failed > 0 {
        let error = debt.last_error.map(|error| format!(": {error}")).unwrap_or_default();
        add("The tracker", format!("{} of {} deliveries failed{error}", debt.failed, debt.owed));
    }
    for warning in settings.warnings {
        add("The configuration", warning);
    }
    let check = Arc::clone(&app.mapping_check);
    for difference in tokio::task::spawn_blocking(move || check()).await.unwrap_or_default() {
        add("The mapping in steward.toml is not accepted", difference);
    }
    items.extend(list_record_items(&app.views).await?);
    Ok(items)
}

/// Lists what is known without the process that serves the dashboard.
///
/// # Errors
/// [`IndexError::Sql`].
pub(crate) async fn list_vault_items(views: &VaultViews) -> Result<Vec<AttentionItem>, IndexError> {
    let mut items = list_process_items(views);
    items.extend(list_drill_items(views).await?);
    items.extend(list_record_items(views).await?);
    Ok(items)
}

async fn list_drill_items(views: &VaultViews) -> Result<Vec<AttentionItem>, IndexError> {
    let drill = views.read_drill_status(Utc::now()).await?;
    let item =
        || AttentionItem { subject: "The nightly drill".to_owned(), problem: drill.describe_status(), href: None };
    Ok(if drill.late { vec![item()] } else { Vec::new() })
}

/// What is wrong with streams, with trust and with notes.
async fn list_record_items(views: &VaultViews) -> Result<Vec<AttentionItem>, IndexError> {
    let mut items = Vec::new();
    let mut add =
        |subject: &str, problem: String| items.push(AttentionItem { subject: subject.to_owned(), problem, href: None });
    for stream in views.list_stream_counts().await? {
        if let Some(error) = &stream.last_error {
            add(&format!("Stream {}", stream.source), format!("failed {} times: {error}", stream.failures));
        }
        if stream.parked > 0 {
            let problem =
                format!("{} could not be read: see `steward streams list`", count_noun(stream.parked, "event"));
            add(&format!("Stream {}", stream.source), problem);
        }
    }
    for Demotion { subject, name, mode, since } in views.list_demotions().await? {
        let problem = format!(
            "undone too often, so demoted to {} since {}: `steward trust raise {subject}` restores it",
            mode.as_str(),
            format_seconds(since)
        );
        add(&subject.describe(name.as_deref()), problem);
    }
    let ListPage { rows, more, .. } = views.read().list_first_problems(COUNTED).await?;
    for problem in rows.iter().take(RECORDS) {
        let message = problem.message.strip_prefix("failed to read ");
        let message = message.map(|rest| format!("could not be read, {rest}"));
        let is_note = RecordPath::parse(&problem.path).is_ok_and(|path| path.own_kind().is_none());
        items.push(AttentionItem {
            href: is_note.then(|| format!("/records/{}", encode_path(&problem.path))),
            subject: problem.path.clone(),
            problem: message.unwrap_or_else(|| problem.message.clone()),
        });
    }
    if rows.len() > RECORDS {
        let problem = "cannot be used: `steward status` lists them".into();
        items.push(AttentionItem { subject: describe_remaining(rows.len() - RECORDS, more), problem, href: None });
    }
    items.extend(list_lost_items(views).await?);
    Ok(items)
}

/// Describes how many more records there are, as far as they were counted.
fn describe_remaining(count: usize, more: bool) -> String {
    let least = if more { "at least " } else { "" };
    format!("{least}{count} more records")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_incomplete_count_says_at_least() {
        assert_eq!(
            (describe_remaining(3, false), describe_remaining(495, true)),
            ("3 more records".into(), "at least 495 more records".into())
        );
    }
}
