//! Which trouble is worth another try.
//!
//! Trouble with the machine (files, databases) may pass: it is tried again. Input that no retry
//! can mend is not. Everything a person should read as an answer is a value, not a failure.

use temporalio_common::ActivityError;
use temporalio_common::error::ApplicationFailure;

/// The machine did not do what it should; it may next time.
pub(crate) fn retryable_failure(e: impl std::error::Error + Send + Sync + 'static) -> ActivityError {
    ActivityError::application(ApplicationFailure::new(std::io::Error::other(render_error_chain(&e))))
}

/// No retry can mend this.
pub(crate) fn non_retryable_failure(reason: String) -> ActivityError {
    ActivityError::application(ApplicationFailure::non_retryable(std::io::Error::other(reason)))
}

fn render_error_chain(e: &dyn std::error::Error) -> String {
    let mut text = e.to_string();
    let mut source = e.source();
    while let Some(inner) = source {
        let said = inner.to_string();
        if !text.contains(&said) {
            text = format!("{text}: {said}");
        }
        source = inner.source();
    }
    text
}
