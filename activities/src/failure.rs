//! Decides which activity failures Temporal retries.
//!
//! A failure of the machine (files, databases) may pass, so it is retried. Input that no retry can fix is not retried.
//! Anything that a person should read as a result is a value and not a failure. A failure carries the name of its error's
//! type, so that the Temporal UI shows it and a retry policy can name it.

use std::error::Error;
use temporalio_common::ActivityError;
use temporalio_common::error::ApplicationFailure;

/// Fails so that Temporal retries: the machine failed, and may work the next time.
pub(crate) fn retryable_failure<E: Error + Send + Sync + 'static>(e: E) -> ActivityError {
    ActivityError::application(build_failure(&e, false))
}

/// Fails for good: no retry can fix this.
pub(crate) fn non_retryable_failure<E: Error + Send + Sync + 'static>(e: E) -> ActivityError {
    ActivityError::application(build_failure(&e, true))
}

fn build_failure<E: Error>(e: &E, non_retryable: bool) -> ApplicationFailure {
    ApplicationFailure::builder(std::io::Error::other(render_error_chain(e)))
        .type_name(error_type_name::<E>())
        .non_retryable(non_retryable)
        .build()
}

/// The name of an error's type without its path, such as `IndexError`.
fn error_type_name<E>() -> String {
    let path = std::any::type_name::<E>();
    path.rsplit("::").next().unwrap_or(path).to_owned()
}

fn render_error_chain(e: &dyn Error) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;
    use steward_vault::index::IndexError;

    #[test]
    fn a_failure_names_the_type_of_its_error_and_says_why() {
        let error = || IndexError::Prefix("a b".to_owned());
        for (failure, non_retryable) in [(build_failure(&error(), false), false), (build_failure(&error(), true), true)]
        {
            assert_eq!(failure.type_name(), Some("IndexError"));
            assert_eq!(failure.is_non_retryable(), non_retryable);
            assert!(failure.to_string().contains("a b"), "{failure}");
        }
    }
}
