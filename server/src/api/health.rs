//! `GET /healthz` and `GET /readyz`, for whoever starts and watches the process.
//!
//! They are answered to anybody by any name, so they tell nothing about the vault: one word, or what is missing. The first
//! says that the process lives, the second that what is shown is true and what is clicked is done.

use super::problem::ProblemDetails;
use crate::http::app::{AppState, SharedAppState};
use crate::http::holder::VaultHolder;
use axum::extract::State;
use axum::http::StatusCode;
use chrono::{DateTime, TimeDelta, Utc};
use std::time::Duration;
use steward_vault::files::disk;
use steward_vault::index::IndexFileStatus;

/// How long the index and the server may take to answer: 3 s.
const PATIENCE: Duration = Duration::from_secs(3);
/// How many whole scans may be missed before the index is behind.
const SCANS: i32 = 3;
/// What a scan of a large vault may take besides: 2 min.
const A_SCAN: TimeDelta = TimeDelta::minutes(2);

/// The process answers.
#[utoipa::path(get, path = "/healthz", tag = "health", security(()),
    responses((status = 200, description = "It runs", body = String, content_type = "text/plain")))]
pub(crate) async fn healthz() -> &'static str {
    "ok"
}

/// It can do its work: a worker holds the vault, the index is up to date, the Temporal server answers and has the schedules.
#[utoipa::path(get, path = "/readyz", tag = "health", security(()),
    responses((status = 200, description = "Ready", body = String, content_type = "text/plain"),
        (status = 429, description = "Too many requests", body = ProblemDetails, content_type = "application/problem+json"),
        (status = 503, description = "Not yet; `detail` says what is missing", body = ProblemDetails, content_type = "application/problem+json")))]
pub(crate) async fn readyz(State(app): State<SharedAppState>) -> Result<&'static str, ProblemDetails> {
    let away = |what: String| ProblemDetails::new(StatusCode::SERVICE_UNAVAILABLE, what);
    let fault = find_readiness_fault(&app).await.map(str::to_owned).or_else(|| find_registration_fault(&app));
    fault.map_or(Ok("ready"), |what| Err(away(what)))
}

/// What is wrong with the schedules at the server, in words that name none of them.
fn find_registration_fault(app: &AppState) -> Option<String> {
    // Whoever has not said that it serves is still registering them.
    let VaultHolder::Runs(note) = VaultHolder::read(&app.root, app.index.state_dir()) else { return None };
    let status = app.registration.borrow();
    if status.error.is_some() {
        return Some("the schedules cannot be listed at the Temporal server: `steward doctor` says why".to_owned());
    }
    status.registered.describe_fault(note.schedule_check_interval())
}

/// What is missing, in words that name no file, matter or person.
async fn find_readiness_fault(app: &AppState) -> Option<&'static str> {
    match VaultHolder::read(&app.root, app.index.state_dir()) {
        VaultHolder::Runs(_) | VaultHolder::Silent(_) => {}
        VaultHolder::Died(_) => {
            return Some("the process that served the vault died: start `steward up` or a worker again");
        }
        VaultHolder::Nobody => return Some("nobody serves the vault: start `steward up` or a worker"),
    }
    if !app.root.path().is_dir() {
        return Some("the vault's folder is not at its place: put it back, the process goes on by itself");
    }
    if app.index.file_status() != IndexFileStatus::InPlace {
        return Some("the index was set aside and this process reads the old one: start it again");
    }
    if let Some(what) = find_unwritable_folder(app).await {
        return Some(what);
    }
    match tokio::time::timeout(PATIENCE, app.index.last_sync_at()).await {
        Ok(Ok(Some(synced))) if is_index_behind(synced, app.read_settings().scan_every, Utc::now()) => {
            return Some(
                "the index is behind: the vault was not read for several scans; the log of the worker says why",
            );
        }
        Ok(Ok(Some(_))) => {}
        Ok(Ok(None)) => return Some("the vault has not been read yet"),
        Ok(Err(_)) | Err(_) => return Some("the index cannot be read"),
    }
    (!app.resolution_client().is_reachable(PATIENCE).await).then_some("the Temporal server does not answer")
}

/// Which folder cannot be written. A disk that does not answer counts as one that cannot.
async fn find_unwritable_folder(app: &AppState) -> Option<&'static str> {
    let (vault, state) = (app.root.path().to_owned(), app.index.state_dir().to_owned());
    let check = tokio::task::spawn_blocking(move || {
        if disk::check_writable(&vault).is_err() {
            return Some(
                "the vault cannot be written: its disk is full, read-only or broken; `steward doctor` names it",
            );
        }
        let state = disk::check_writable(&state);
        state.is_err().then_some(
            "the state folder cannot be written: its disk is full, read-only or broken; `steward doctor` names it",
        )
    });
    match tokio::time::timeout(PATIENCE, check).await {
        Ok(Ok(checked)) => checked,
        Ok(Err(_)) | Err(_) => Some("a disk does not answer"),
    }
}

fn is_index_behind(synced: DateTime<Utc>, scan_every: Duration, now: DateTime<Utc>) -> bool {
    let several = TimeDelta::from_std(scan_every).unwrap_or(TimeDelta::MAX).checked_mul(SCANS);
    now - synced > several.and_then(|several| several.checked_add(&A_SCAN)).unwrap_or(TimeDelta::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_that_missed_several_scans_is_behind_and_a_slow_one_is_not() {
        let (now, every) = (Utc::now(), Duration::from_secs(60));
        assert!(!is_index_behind(now - TimeDelta::seconds(299), every, now));
        assert!(is_index_behind(now - TimeDelta::seconds(301), every, now));
        assert!(!is_index_behind(now + TimeDelta::hours(1), every, now), "a clock that was set back");
        assert!(!is_index_behind(now - TimeDelta::days(9), Duration::MAX, now));
    }
}
