//! Decides which activity failures Temporal retries.
//!
//! A failure of the machine (files, databases) may pass, so it is retried. Input that no retry can fix is not retried.
//! Anything that a person should read as a result is a value and not a failure.

use temporalio_common::ActivityError;
use temporalio_common::error::ApplicationFailure;

/// Fails so that Temporal retries: the machine failed, and may work the next time.
pub(crate) fn retryable_failure(e: impl std::error::Error + Send + Sync + 'static) -> ActivityError {
    ActivityError::application(ApplicationFailure::new(std::io::Error::other(render_error_chain(&e))))
}

/// Fails for good: no retry can fix this.
pub(crate) fn non_retryable_failure(reason: String) -> ActivityError {
    ActivityError::application(ApplicationFailure::non_retryable(std::io::Error::other(reason)))
}

fn render_error_chain(e: &dyn std::error::Error) -> String {
    let mut text = e.to_string();
    let mut source = e.source();
    while let Some(inner) = source {
        let message = inner.to_string();
        if !text.contains(&message) {
            text = format!("{text}: {message}");
        }
        source = inner.source();
    }
    text
}
