//! `GET /startz`, `GET /healthz` and `GET /readyz`, for monitors and supervisors.
//!
//! Anybody may call them under any host name, so they tell nothing about the vault: one word, or what is missing. The
//! first says that the process has started. The second says that its main loop turns, so a supervisor restarts it if not.
//! The third says that it shows current values and can carry out requests; it also depends on other processes.

use super::problem::ProblemDetails;
use crate::http::app::{AppState, SharedAppState};
use crate::http::holder::VaultHolder;
use axum::extract::State;
use axum::http::StatusCode;
use chrono::{DateTime, TimeDelta, Utc};
use std::time::Duration;
use steward_vault::files::disk;
use steward_vault::index::IndexFileStatus;

/// How long the index, a disk or the Temporal server may take to answer: 3 s.
const PATIENCE: Duration = Duration::from_secs(3);
/// How many scans may be missed before the index counts as behind.
const MISSED_SCANS: i32 = 3;
/// How long one scan of a large vault may take in addition: 2 min.
const SCAN_DURATION: TimeDelta = TimeDelta::minutes(2);

/// Whether a path is that of one of the checks.
pub(crate) fn is_health_check(path: &str) -> bool {
    matches!(path, "/startz" | "/healthz" | "/readyz")
}

/// Says that the process has read its configuration, has reached the Temporal server once and listens.
///
/// The router that holds it replaces another one when that is so.
#[utoipa::path(get, path = "/startz", tag = "health", security(()),
    responses((status = 200, description = "It has started", body = String, content_type = "text/plain"),
        (status = 503, description = "Not yet", body = ProblemDetails, content_type = "application/problem+json")))]
pub(crate) async fn startz() -> &'static str {
    "started"
}

/// Says that the process lives and that its main loop turned in the last 30 seconds.
#[utoipa::path(get, path = "/healthz", tag = "health", security(()),
    responses((status = 200, description = "It runs", body = String, content_type = "text/plain"),
        (status = 503, description = "Its main loop hangs: restart it", body = ProblemDetails, content_type = "application/problem+json")))]
pub(crate) async fn healthz(State(app): State<SharedAppState>) -> Result<&'static str, ProblemDetails> {
    let hangs = "the main loop has not turned for 30 s: restart the process; its log says more";
    app.pulse.is_alive().then_some("ok").ok_or_else(|| ProblemDetails::new(StatusCode::SERVICE_UNAVAILABLE, hangs))
}

/// Says that it can do its work: a worker holds the vault, the index is up to date, and the Temporal server answers and
/// has the schedules.
#[utoipa::path(get, path = "/readyz", tag = "health", security(()),
    responses((status = 200, description = "Ready", body = String, content_type = "text/plain"),
        (status = 429, description = "Too many requests", body = ProblemDetails, content_type = "application/problem+json"),
        (status = 503, description = "Not yet; `detail` says what is missing", body = ProblemDetails, content_type = "application/problem+json")))]
pub(crate) async fn readyz(State(app): State<SharedAppState>) -> Result<&'static str, ProblemDetails> {
    let not_ready = |detail: String| ProblemDetails::new(StatusCode::SERVICE_UNAVAILABLE, detail);
    let fault = find_readiness_fault(&app).await.map(str::to_owned).or_else(|| find_registration_fault(&app));
    fault.map_or(Ok("ready"), |detail| Err(not_ready(detail)))
}

/// Describes what is wrong with the schedules at the server, without naming one.
fn find_registration_fault(app: &AppState) -> Option<String> {
    // A holder without a record is still registering its schedules.
    let VaultHolder::Runs(record) = app.views.holder() else { return None };
    let status = app.registration.borrow();
    if status.error.is_some() {
        return Some("the schedules cannot be listed at the Temporal server: `steward doctor` says why".to_owned());
    }
    status.registered.describe_fault(record.schedule_check_interval())
}

/// Describes what is missing, without naming a file, a matter or a person.
async fn find_readiness_fault(app: &AppState) -> Option<&'static str> {
    match app.views.holder() {
        VaultHolder::Runs(record) if record.obstacle.is_some() => {
            return Some("the process does not poll yet: the page Today and `steward status` say why");
        }
        VaultHolder::Runs(_) | VaultHolder::Silent(_) => {}
        VaultHolder::Died(_) => {
            return Some("the process that served the vault died: start `steward up` or a worker again");
        }
        VaultHolder::Nobody => return Some("no process serves the vault: start `steward up` or a worker"),
    }
    if !app.views.root().path().is_dir() {
        return Some("the vault's folder is missing: put it back, and the process goes on by itself");
    }
    if app.views.index_file_status() != IndexFileStatus::InPlace {
        return Some("the index was replaced and this process reads the old one: restart the process");
    }
    if let Some(fault) = find_unwritable_folder(app).await {
        return Some(fault);
    }
    match tokio::time::timeout(PATIENCE, app.views.last_sync_at()).await {
        Ok(Ok(Some(synced))) if is_index_behind(synced, app.read_settings().scan_every, Utc::now()) => {
            return Some("the index is behind: several scans of the vault were missed; the worker's log says why");
        }
        Ok(Ok(Some(_))) => {}
        Ok(Ok(None)) => return Some("the vault has not been read yet"),
        Ok(Err(_)) | Err(_) => return Some("the index cannot be read"),
    }
    (!app.resolution_client().is_reachable(PATIENCE).await).then_some("the Temporal server does not answer")
}

/// Describes which folder cannot be written. A disk that does not answer counts as not writable.
async fn find_unwritable_folder(app: &AppState) -> Option<&'static str> {
    let (vault, state) = (app.views.root().path().to_owned(), app.views.state_dir().to_owned());
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
    let several = TimeDelta::from_std(scan_every).unwrap_or(TimeDelta::MAX).checked_mul(MISSED_SCANS);
    now - synced > several.and_then(|several| several.checked_add(&SCAN_DURATION)).unwrap_or(TimeDelta::MAX)
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
