//! A run: one staged attempt to change a wiki, and the mark of it in an audit record.
//!
//! A run is committed as one transaction with one audit record, or it changes nothing.

use crate::action::audit::ActionKind;
use crate::action::plan::ActionId;
use chrono::{DateTime, NaiveDateTime, Utc};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// What a run does to a wiki.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, strum::Display, strum::EnumString,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum WikiRunType {
    /// It makes pages of a source.
    Ingest,
    /// A person or an assistant edits pages, adds a source or accepts the manifest.
    Manual,
    /// It fixes what a check found.
    Lint,
    /// It files an answer.
    Archive,
    /// It takes back an earlier run.
    Rollback,
}

/// What happens to a run that passed, if a person asked for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, strum::Display, strum::EnumString)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum WikiMode {
    /// It is committed at once.
    #[default]
    Live,
    /// It waits for a person.
    Pending,
    /// Its changes are only shown. A person may still approve it.
    Shadow,
}

/// The name of a run, such as `r-20261122T091504Z-3f9a1c22`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RunId(String);

/// A text is not the name of a run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is not the name of a run: it looks like r-20261122T091504Z-3f9a1c22", .0.escape_debug())]
pub struct RunIdError(String);

/// The run that a record is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WikiMark {
    /// The name of the wiki.
    pub wiki: String,
    /// Its folder, relative to the root of the vault.
    pub folder: String,
    pub run: RunId,
    pub run_type: WikiRunType,
    /// The run that a rollback takes back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reverts: Option<RunId>,
    /// The source that a run is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<RunSource>,
    /// The model that checked every claim of the run, as in `openai/gpt-4.1`; `None` if none did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verifier: Option<String>,
    /// How the run ended, if it committed nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rejection: Option<RunRejection>,
}

/// How a run ended that committed nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunRejection {
    pub end: RunEnd,
    /// The person who rejected it, as they gave their name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

/// The end of a run that committed nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, strum::Display)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum RunEnd {
    /// The rules, a verifier, a limit or a person refused it.
    Rejected,
    /// Nobody answered for it in time.
    Abandoned,
}

/// How the name of the record of such a run ends. No wiki has a name that ends so.
pub const REJECTED_SUFFIX: &str = "-rejected";

/// The source of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunSource {
    pub id: String,
    /// Relative to the wiki.
    pub path: String,
    /// As in `sha256:55a2…`.
    pub content_hash: String,
}

/// The id of the record of a run, such as that of its commit with [`ActionKind::Wiki`].
#[must_use]
pub fn derive_record_id(kind: ActionKind, run: &str, wiki: &str) -> ActionId {
    ActionId::derive(&[kind.as_str(), run, wiki])
}

impl RunId {
    /// The bytes of every name.
    pub const LENGTH: usize = 27;

    /// The run of these parts, which began at a moment. The same parts give the same name.
    #[must_use]
    pub fn derive(began: DateTime<Utc>, parts: &[&str]) -> Self {
        let hash = ActionId::derive(parts);
        Self(format!("r-{}-{}", began.format("%Y%m%dT%H%M%SZ"), &hash.as_str()[..8]))
    }

    /// The second in which the run began.
    #[must_use]
    pub fn began(&self) -> Option<DateTime<Utc>> {
        let time = self.0.strip_prefix("r-")?.split('-').next()?;
        NaiveDateTime::parse_from_str(time, "%Y%m%dT%H%M%SZ").ok().map(|naive| naive.and_utc())
    }

    /// The last 8 characters, by which people name it.
    #[must_use]
    pub fn short(&self) -> &str {
        self.0.rsplit('-').next().unwrap_or(&self.0)
    }

    /// Whether a name means this run: the whole one, or the 8 characters at its end.
    #[must_use]
    pub fn is_named(&self, name: &str) -> bool {
        self.0 == name || self.short() == name
    }

    /// The whole name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for RunId {
    type Err = RunIdError;

    fn from_str(text: &str) -> Result<Self, RunIdError> {
        let is_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        let is_time = |part: &str| match part.strip_suffix('Z').and_then(|part| part.split_once('T')) {
            Some((day, clock)) => (day.len(), clock.len()) == (8, 6) && is_digits(day) && is_digits(clock),
            None => false,
        };
        let is_hex = |part: &str| part.len() == 8 && part.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        match text.split('-').collect::<Vec<_>>().as_slice() {
            ["r", at, hash] if is_time(at) && is_hex(hash) => Ok(Self(text.to_owned())),
            _ => Err(RunIdError(text.to_owned())),
        }
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for RunId {
    type Error = RunIdError;

    fn try_from(text: String) -> Result<Self, RunIdError> {
        text.parse()
    }
}

impl From<RunId> for String {
    fn from(run: RunId) -> Self {
        run.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_has_a_name_that_reads_back() {
        let at = "2026-11-22T09:15:04.900Z".parse().unwrap();
        let run = RunId::derive(at, &["plot", "letter"]);
        assert!(run.as_str().starts_with("r-20261122T091504Z-"), "{run}");
        assert_eq!(run.as_str().parse(), Ok(run.clone()));
        assert_ne!(run, RunId::derive(at, &["plot", "lease"]));
        assert_eq!(run.began(), Some("2026-11-22T09:15:04Z".parse().unwrap()));
        assert_eq!((run.as_str().len(), run.short().len()), (RunId::LENGTH, 8));
    }

    #[test]
    fn nothing_else_is_the_name_of_a_run() {
        for text in [
            "",
            "r-20261122T091504Z-3F9A1C22",
            "r-20261122T091504Z-3f9a1c2",
            "r-2026T0915Z-3f9a1c22",
            "r-20261122T091504Z-3f9a1c22-x",
            "../r-20261122T091504Z-3f9a1c22",
            "x-20261122T091504Z-3f9a1c22",
        ] {
            assert!(text.parse::<RunId>().is_err(), "{text}");
        }
    }
}
