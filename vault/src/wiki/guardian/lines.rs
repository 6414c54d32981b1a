//! What happened to a run of an assistant, line by line, and what follows from it.
//!
//! The lines are only ever appended. Those of an older version read as they were meant.

use crate::wiki::staged::{RunState, StagedRun, StagedRunError};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use steward_domain::wiki::writer::draft::PageChange;

/// What happened to a run of an assistant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum GuardianLine {
    Change {
        change: PageChange,
    },
    Submitted {
        at: DateTime<Utc>,
        subject: String,
        keeps: Vec<PageChange>,
    },
    /// The run is open again.
    Reopened {
        at: DateTime<Utc>,
        /// The submission reached nobody. Otherwise something was found, and the assistant may correct it.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        unsent: bool,
    },
}

/// Whether a run was submitted and is not open again.
pub(super) fn is_submitted(lines: &[GuardianLine]) -> bool {
    let last = lines.iter().rev().find(|line| !matches!(line, GuardianLine::Change { .. }));
    matches!(last, Some(GuardianLine::Submitted { .. }))
}

/// How often a run was submitted.
pub(super) fn count_submissions(lines: &[GuardianLine]) -> usize {
    lines.iter().filter(|line| matches!(line, GuardianLine::Submitted { .. })).count()
}

/// How often a run was submitted to somebody who could judge it.
pub(crate) fn count_judged_submissions(lines: &[GuardianLine]) -> usize {
    let unsent = lines.iter().filter(|line| matches!(line, GuardianLine::Reopened { unsent: true, .. })).count();
    count_submissions(lines).saturating_sub(unsent)
}

/// Whether a run was submitted and has not ended: it is carried out or checked, or it waits for a person.
///
/// # Errors
/// [`StagedRunError::Edited`].
pub fn is_under_way(run: &StagedRun) -> Result<bool, StagedRunError> {
    match run.read_status()? {
        Some(status) if status.state == RunState::Verifying => Ok(true),
        Some(status) if status.state != RunState::Pending => Ok(false),
        Some(status) if status.waits => Ok(true),
        Some(_) | None => Ok(is_submitted(&run.read_changes()?)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{from_value, json, to_value};

    #[test]
    fn a_submission_that_reached_nobody_does_not_count() {
        let at: DateTime<Utc> = "2026-11-24T09:00:00Z".parse().unwrap();
        let submitted = || GuardianLine::Submitted { at, subject: "x".to_owned(), keeps: Vec::new() };
        let mut lines = vec![submitted()];
        assert!(is_submitted(&lines));
        lines.push(GuardianLine::Reopened { at, unsent: true });
        assert_eq!((is_submitted(&lines), count_submissions(&lines), count_judged_submissions(&lines)), (false, 1, 0));
        lines.extend([submitted(), GuardianLine::Reopened { at, unsent: false }, submitted()]);
        assert_eq!((is_submitted(&lines), count_submissions(&lines), count_judged_submissions(&lines)), (true, 3, 2));
    }

    #[test]
    fn a_line_of_an_older_version_means_that_something_was_found() {
        let at = "2026-11-24T09:00:00Z";
        let old = json!({"kind": "reopened", "at": at});
        let line = GuardianLine::Reopened { at: at.parse().unwrap(), unsent: false };
        assert_eq!(from_value::<GuardianLine>(old.clone()).unwrap(), line);
        assert_eq!(to_value(&line).unwrap(), old);
    }
}
