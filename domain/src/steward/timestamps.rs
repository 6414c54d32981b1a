//! The timestamp write-back: `last_steward_check_at` and `next_check_after` in the task's own file (S3-27).
//!
//! These fields are bookkeeping for people who read the file. They are written only if the operator enabled it.
//! A human's value must not be overwritten. A date that somebody else set stays, unless it is earlier than ours and so
//! has no effect. A value that is not a date stays as well. The vault writer writes the bytes, and
//! [`crate::steward::tick`] interprets the dates.

use crate::record::entity::{RecordFaults, RecordState};
use crate::record::frontmatter::{self, FieldEdit, FrontmatterError, RecordFields};
use crate::record::path::RecordPath;
use crate::record::schema::NoteSchema;
use crate::time;
use chrono::{DateTime, Utc};
use serde_json::Value;

const CHECKED: &str = "last_steward_check_at";
const NEXT: &str = "next_check_after";

/// Whether the write-back writes this field.
pub(crate) fn is_timestamp_field(field: &str) -> bool {
    matches!(field, CHECKED | NEXT)
}

/// The timestamps of a task's last check, as its file should hold them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckTimestamps {
    checked_at: DateTime<Utc>,
    next_check_after: Option<DateTime<Utc>>,
    ours: Vec<DateTime<Utc>>,
}

/// Why the timestamps cannot be written. The file is unchanged.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum CheckTimestampsError {
    #[error(transparent)]
    Record(#[from] RecordFaults),
    #[error(transparent)]
    Frontmatter(#[from] FrontmatterError),
}

impl CheckTimestamps {
    /// Makes the timestamps, cut to whole seconds.
    ///
    /// Without a next check the file's own date stays. `ours` are the dates that we may have written before.
    /// Any other date is a human's.
    #[must_use]
    pub fn new(
        checked_at: DateTime<Utc>,
        next_check_after: Option<DateTime<Utc>>,
        ours: impl IntoIterator<Item = DateTime<Utc>>,
    ) -> Self {
        Self {
            checked_at: time::truncate_to_seconds(checked_at),
            next_check_after: next_check_after.map(time::truncate_to_seconds),
            ours: ours.into_iter().collect(),
        }
    }

    /// The next check that would be written.
    #[must_use]
    pub fn next_check_after(&self) -> Option<DateTime<Utc>> {
        self.next_check_after
    }

    /// The file's bytes with the timestamps. They are unchanged if the file holds the timestamps already.
    ///
    /// A task that is done or archived is never checked again, so its next check stays as it is.
    ///
    /// # Errors
    /// [`CheckTimestampsError`] if the file is not a valid task or cannot be edited line by line.
    pub fn prepare(
        &self,
        current: &[u8],
        path: &RecordPath,
        schema: &NoteSchema,
    ) -> Result<Vec<u8>, CheckTimestampsError> {
        let document = frontmatter::read_document(current)?;
        let fields = document.fields();
        let task = schema.read_task(path, fields)?;
        let mut edits = Vec::new();
        if can_advance(TimestampFieldValue::read_field(fields, CHECKED), self.checked_at) {
            edits.push(build_timestamp_edit(CHECKED, self.checked_at));
        }
        if let Some(next) = self.next_check_after.filter(|_| task.state == RecordState::Open)
            && self.can_replace(TimestampFieldValue::read_field(fields, NEXT), next)
        {
            edits.push(build_timestamp_edit(NEXT, next));
        }
        Ok(frontmatter::edit_fields(current, &edits)?)
    }

    fn can_replace(&self, found: TimestampFieldValue, next: DateTime<Utc>) -> bool {
        match found {
            TimestampFieldValue::Date(date) if self.ours.contains(&date) => date != next,
            found @ (TimestampFieldValue::Nothing | TimestampFieldValue::Date(_) | TimestampFieldValue::NoDate) => {
                can_advance(found, next)
            }
        }
    }
}

/// The present value of a timestamp field.
#[derive(Clone, Copy)]
enum TimestampFieldValue {
    Nothing,
    Date(DateTime<Utc>),
    /// Any other value. It is a human's.
    NoDate,
}

impl TimestampFieldValue {
    fn read_field(fields: &RecordFields, field: &str) -> Self {
        match fields.get(field) {
            None | Some(Value::Null) => Self::Nothing,
            Some(value) => value.as_str().and_then(time::parse).map_or(Self::NoDate, Self::Date),
        }
    }
}

fn can_advance(found: TimestampFieldValue, to: DateTime<Utc>) -> bool {
    match found {
        TimestampFieldValue::Nothing => true,
        TimestampFieldValue::Date(date) => date < to,
        TimestampFieldValue::NoDate => false,
    }
}

fn build_timestamp_edit(field: &str, at: DateTime<Utc>) -> FieldEdit {
    FieldEdit { field: field.to_owned(), value: Some(Value::from(time::format_seconds(at))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TASK: &str = "---\ntype: task\nname: \"Pay\"   # the roofer\nparent_matter: matter/garden.md\n---\n\nBody\n";

    fn at(text: &str) -> DateTime<Utc> {
        time::parse(text).unwrap()
    }

    fn timestamps(next: Option<&str>, ours: &[&str]) -> CheckTimestamps {
        CheckTimestamps::new(at("2026-11-21T10:00:00.75Z"), next.map(at), ours.iter().map(|t| at(t)))
    }

    fn path() -> RecordPath {
        RecordPath::parse("task/pay.md").unwrap()
    }

    fn with(lines: &str) -> String {
        TASK.replace("---\n\n", &format!("{lines}---\n\n"))
    }

    fn apply(text: &str, timestamps: &CheckTimestamps) -> String {
        String::from_utf8(timestamps.prepare(text.as_bytes(), &path(), &NoteSchema::Folders).unwrap()).unwrap()
    }

    const CHECKED_AT_TEN: &str = "last_steward_check_at: \"2026-11-21T10:00:00Z\"\n";

    #[test]
    fn both_fields_are_added_and_every_other_byte_stays() {
        let timestamps = timestamps(Some("2026-11-21T14:00:00.9Z"), &[]);
        let expected = with(&format!("{CHECKED_AT_TEN}next_check_after: \"2026-11-21T14:00:00Z\"\n"));
        assert_eq!(apply(TASK, &timestamps), expected);
        assert_eq!(apply(&expected, &timestamps), expected, "twice is once");
        let crlf = TASK.replace('\n', "\r\n");
        assert_eq!(apply(&crlf, &timestamps), expected.replace('\n', "\r\n"));
    }

    #[test]
    fn a_humans_later_date_stays_in_whatever_form_it_has() {
        let timestamps = timestamps(Some("2026-11-21T14:00:00Z"), &["2026-11-21T09:00:00Z"]);
        for line in [
            "next_check_after: 2026-12-01  # after the holidays\n",
            "next_check_after: '2026-11-21 14:00'\n",
            "next_check_after: next week\n",
            "next_check_after: 2027\n",
            "next_check_after: [2026-01-01]\n",
        ] {
            assert_eq!(apply(&with(line), &timestamps), with(&format!("{line}{CHECKED_AT_TEN}")), "{line}");
        }
    }

    #[test]
    fn an_earlier_date_and_an_empty_field_are_replaced_and_a_comment_stays() {
        let timestamps = timestamps(Some("2026-11-21T14:00:00Z"), &[]);
        let after = with(&format!("next_check_after: \"2026-11-21T14:00:00Z\"  # mine\n{CHECKED_AT_TEN}"));
        assert_eq!(apply(&with("next_check_after: 2026-11-20  # mine\n"), &timestamps), after);
        let empty = apply(&with("next_check_after:\n"), &timestamps);
        assert!(empty.contains("next_check_after: \"2026-11-21T14:00:00Z\"\n"), "{empty}");
    }

    #[test]
    fn our_own_date_gives_way_to_an_earlier_one_of_ours() {
        let before = with("next_check_after: 2026-11-22T10:00:00Z\n");
        let ours = timestamps(Some("2026-11-21T10:30:00Z"), &["2026-11-21T08:00:00Z", "2026-11-22T10:00:00Z"]);
        let after = with(&format!("next_check_after: \"2026-11-21T10:30:00Z\"\n{CHECKED_AT_TEN}"));
        assert_eq!(apply(&before, &ours), after);
        let lost = timestamps(Some("2026-11-21T10:30:00Z"), &[]);
        assert!(apply(&before, &lost).contains("next_check_after: 2026-11-22T10:00:00Z\n"), "then it is a human's");
    }

    #[test]
    fn a_task_that_is_never_checked_again_keeps_its_date() {
        let timestamps = timestamps(Some("2026-11-21T14:00:00Z"), &["2026-11-22T10:00:00Z"]);
        for state in ["state: done\n", "state: Archived\n"] {
            for date in ["", "next_check_after: 2026-11-22T10:00:00Z\n", "next_check_after: 2026-11-01\n"] {
                let lines = format!("{state}{date}");
                assert_eq!(apply(&with(&lines), &timestamps), with(&format!("{lines}{CHECKED_AT_TEN}")), "{lines}");
            }
        }
    }

    #[test]
    fn the_time_of_the_check_never_goes_back() {
        let later = with("last_steward_check_at: 2026-11-21T11:00:00Z\n");
        assert_eq!(apply(&later, &timestamps(None, &[])), later);
        let words = with("last_steward_check_at: by hand\n");
        assert_eq!(apply(&words, &timestamps(None, &[])), words);
    }

    #[test]
    fn an_invalid_task_or_one_that_cannot_be_edited_by_lines_is_refused() {
        for text in [
            "no frontmatter",
            "---\ntype: matter\n---\n",
            "---\ntype: task\nstate: perhaps\nparent_matter: matter/m.md\n---\n",
            "---\na: &x 1\nb: *x\n---\n",
            "---\n{type: task, parent_matter: matter/garden.md}\n---\n",
        ] {
            assert!(timestamps(None, &[]).prepare(text.as_bytes(), &path(), &NoteSchema::Folders).is_err(), "{text}");
        }
    }
}
