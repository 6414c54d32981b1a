//! Repeats the first calls to Temporal while the server does not answer.
//!
//! A busy server or a slow connection must not end the process. Such a call is repeated with growing pauses, and the
//! log names the call. An error that a repetition cannot change is returned at once: a missing namespace, a refused
//! key, or a server that does not know the call. The caller ends the wait by dropping the future.

use crate::cli::output::format_causes;
use crate::registrar::RegistrarError;
use chrono::{DateTime, Utc};
use std::error::Error as _;
use std::time::Duration;
use steward_domain::time::format_seconds;
use steward_server::views::schedules::ScheduleListingError;
use temporalio_client::errors::ClientConnectError;
use temporalio_client::tonic::{Code, Status};
use tokio::time::error::Elapsed;
use tokio::time::{Instant, interval_at};

/// The pause after the first failure: 0.5 s. Every further one is twice as long as the one before.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
/// The longest pause: 15 s.
const LONGEST_PAUSE: Duration = Duration::from_secs(15);

/// Repeats a call until it succeeds or fails for good. `action` reads after "to".
///
/// # Errors
/// The first error that a repetition cannot change.
pub(crate) async fn retry_unanswered<T>(
    action: &str,
    address: &str,
    mut call: impl AsyncFnMut() -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let mut retry = StartRetry::new(action, address);
    loop {
        match call().await {
            Err(e) if is_unanswered(&e) => retry.log_and_wait(&e).await,
            ended => return ended,
        }
    }
}

/// A call that is repeated, and the time of its first failure.
pub(crate) struct StartRetry {
    action: String,
    address: String,
    since: DateTime<Utc>,
    next_pause: Duration,
}

impl StartRetry {
    pub(crate) fn new(action: &str, address: &str) -> Self {
        Self { action: action.to_owned(), address: address.to_owned(), since: Utc::now(), next_pause: FIRST_PAUSE }
    }

    /// Logs the call that failed, and waits before the next try.
    pub(crate) async fn log_and_wait(&mut self, error: &anyhow::Error) {
        let pause = self.take_pause();
        tracing::warn!(
            "waiting for the Temporal server at {} to {} since {}: {}; trying again in {:.1} s",
            self.address,
            self.action,
            format_seconds(self.since),
            format_causes(error),
            pause.as_secs_f64()
        );
        interval_at(Instant::now() + pause, pause).tick().await;
    }

    fn take_pause(&mut self) -> Duration {
        let pause = self.next_pause;
        self.next_pause = (pause * 2).min(LONGEST_PAUSE);
        pause
    }
}

/// Whether an error means only that no answer came in time, or that the server cannot answer now.
pub(crate) fn is_unanswered(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        if cause.is::<Elapsed>() {
            return true;
        }
        if let Some(RegistrarError::Listing(ScheduleListingError::Late { .. })) = cause.downcast_ref() {
            return true;
        }
        if let Some(ClientConnectError::SystemInfoCallError(status)) = cause.downcast_ref() {
            return is_transient(status);
        }
        let boxed = cause.downcast_ref::<Box<Status>>().map(AsRef::as_ref);
        boxed.or_else(|| cause.downcast_ref::<Status>()).is_some_and(is_transient)
    })
}

/// Whether a later call may succeed.
///
/// A client's own time limit is reported as `Cancelled`. A connection that broke during the call has the code `Unknown`
/// and a source; a status that the server sent has no source. A server that is too busy to run its own scheduler
/// answers `FailedPrecondition` until it has caught up.
fn is_transient(status: &Status) -> bool {
    let code = status.code();
    matches!(
        code,
        Code::Cancelled
            | Code::DeadlineExceeded
            | Code::Unavailable
            | Code::ResourceExhausted
            | Code::Aborted
            | Code::FailedPrecondition
    ) || (code == Code::Unknown && status.source().is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    fn describe(code: Code) -> anyhow::Error {
        let source = Box::new(Status::new(code, "Timeout expired"));
        let error = RegistrarError::Call { what: "describe", id: "al-signal-router".into(), source };
        anyhow::Error::new(error).context("failed to describe schedule al-signal-router")
    }

    #[test]
    fn a_missing_answer_is_retried_and_a_refusal_is_not() {
        for code in [Code::Cancelled, Code::DeadlineExceeded, Code::Unavailable, Code::FailedPrecondition] {
            assert!(is_unanswered(&describe(code)), "{code}");
        }
        for code in [Code::NotFound, Code::PermissionDenied, Code::Unauthenticated, Code::Unimplemented] {
            assert!(!is_unanswered(&describe(code)), "{code}");
        }
        let broken = Status::from_error(std::io::Error::from(std::io::ErrorKind::BrokenPipe).into());
        assert_eq!(broken.code(), Code::Unknown);
        assert!(is_unanswered(&anyhow::Error::new(broken)), "the connection broke during the call");
        assert!(!is_unanswered(&describe(Code::Unknown)), "the server sent this code");
        let info = |code| anyhow::Error::new(ClientConnectError::SystemInfoCallError(Status::new(code, "x")));
        assert!(is_unanswered(&info(Code::Cancelled)) && !is_unanswered(&info(Code::Unauthenticated)));
        let listing = |e: ScheduleListingError| anyhow::Error::new(RegistrarError::from(e));
        assert!(is_unanswered(&listing(ScheduleListingError::Late { page: 1 })));
        let source = Box::new(Status::unavailable("x"));
        assert!(is_unanswered(&listing(ScheduleListingError::Broken { page: 1, source })));
        assert!(!is_unanswered(&listing(ScheduleListingError::Endless)));
        assert!(!is_unanswered(&anyhow::anyhow!("the address is invalid")));
    }

    #[test]
    fn the_pauses_grow_up_to_a_limit() {
        let mut retry = StartRetry::new("connect", "127.0.0.1:1");
        let pauses: Vec<u128> = (0..7).map(|_| retry.take_pause().as_millis()).collect();
        assert_eq!(pauses, [500, 1_000, 2_000, 4_000, 8_000, 15_000, 15_000]);
    }

    #[tokio::test]
    async fn a_call_is_repeated_until_it_is_answered() {
        let calls = Cell::new(0);
        let answer = retry_unanswered("connect", "127.0.0.1:1", async || {
            calls.set(calls.get() + 1);
            if calls.get() < 2 { Err(describe(Code::Cancelled)) } else { Ok(7) }
        });
        assert_eq!((answer.await.unwrap(), calls.get()), (7, 2));
    }

    #[tokio::test]
    async fn an_error_that_a_repeat_cannot_change_ends_the_wait_at_once() {
        let calls = Cell::new(0);
        let ended = retry_unanswered::<()>("describe the schedules", "127.0.0.1:1", async || {
            calls.set(calls.get() + 1);
            Err(describe(Code::NotFound))
        });
        assert!(ended.await.is_err());
        assert_eq!(calls.get(), 1);
    }
}
