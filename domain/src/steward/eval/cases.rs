//! Reads labelled cases: 200 about tasks and 100 about events are part of the program, and a person can add their own.
//!
//! A file is a YAML list. Its name without the ending is the group of its cases. The format stands in `docs/clerks.md`. No case
//! names its label to the clerk: the notes and signals of a question are named after what they say, and not after the case.

mod event;
mod task;

#[cfg(test)]
mod tests;

use crate::action::mutation::Mutation;
use crate::record::entity::SignalEffect;
use crate::record::path::{RecordKind, RecordPath};
use crate::signals::extract::ExtractQuestion;
use crate::steward::clerk::{ClerkQuestion, Judgement};
use chrono::{DateTime, NaiveDate, NaiveTime, Utc};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeSet;

/// The cases of the program, by their groups.
const SHIPPED: [(&str, &str); 20] = [
    ("done-one-signal", include_str!("cases/done-one-signal.yaml")),
    ("done-several-signals", include_str!("cases/done-several-signals.yaml")),
    ("done-other-languages", include_str!("cases/done-other-languages.yaml")),
    ("done-paraphrased", include_str!("cases/done-paraphrased.yaml")),
    ("archived", include_str!("cases/archived.yaml")),
    ("plans-and-promises", include_str!("cases/plans-and-promises.yaml")),
    ("denials", include_str!("cases/denials.yaml")),
    ("sarcasm", include_str!("cases/sarcasm.yaml")),
    ("part-payments", include_str!("cases/part-payments.yaml")),
    ("near-misses", include_str!("cases/near-misses.yaml")),
    ("contradictions", include_str!("cases/contradictions.yaml")),
    ("questions", include_str!("cases/questions.yaml")),
    (INJECTIONS, include_str!("cases/injections.yaml")),
    ("events-changes", include_str!("cases/events-changes.yaml")),
    ("events-other-changes", include_str!("cases/events-other-changes.yaml")),
    ("events-questions", include_str!("cases/events-questions.yaml")),
    ("events-several", include_str!("cases/events-several.yaml")),
    ("events-nothing", include_str!("cases/events-nothing.yaml")),
    ("events-other-languages", include_str!("cases/events-other-languages.yaml")),
    (EVENT_INJECTIONS, include_str!("cases/events-injections.yaml")),
];
/// The groups in which an event or a quotation gives orders. A person's own files may have these names, too.
pub(crate) const INJECTIONS: &str = "injections";
pub(crate) const EVENT_INJECTIONS: &str = "events-injections";
/// The largest file of cases, in bytes.
pub const MAX_FILE_BYTES: usize = 4 * 1024 * 1024;
/// The longest id of a case, in characters.
const MAX_ID: usize = 80;

/// A case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EvalCase {
    /// It names the case in reports. No clerk sees it.
    pub id: String,
    pub group: String,
    pub question: CaseQuestion,
}

/// A question with its answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum CaseQuestion {
    /// The first answer is the label. Another one is as good.
    Task {
        question: Box<ClerkQuestion>,
        description: Option<String>,
        expected: Vec<Judgement>,
    },
    Event {
        question: Box<ExtractQuestion>,
        expected: Vec<ExpectedFact>,
    },
}

/// A fact that an event states about one note.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExpectedFact {
    pub target: RecordPath,
    /// A change or a request.
    pub effect: SignalEffect,
    pub mutation: Option<Mutation>,
}

impl CaseQuestion {
    /// Says on a second try why the first answer could not be used.
    pub fn complain(&mut self, complaint: String) {
        match self {
            Self::Task { question, .. } => question.complaint = Some(complaint),
            Self::Event { question, .. } => question.complaint = Some(complaint),
        }
    }
}

impl EvalCase {
    /// Whether it gives orders to the clerk.
    #[must_use]
    pub fn is_injection(&self) -> bool {
        self.group == INJECTIONS || self.group == EVENT_INJECTIONS
    }
}

/// Why cases cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {problem}")]
pub struct CaseError {
    pub file: String,
    /// From 1.
    pub line: usize,
    /// What is wrong, and how to fix it.
    pub problem: String,
}

/// The moment at which all questions are asked, so that the same cases are always the same questions.
#[must_use]
pub fn asked_at() -> DateTime<Utc> {
    NaiveDate::from_ymd_opt(2026, 11, 24)
        .unwrap_or_default()
        .and_time(NaiveTime::from_hms_opt(12, 0, 0).unwrap_or_default())
        .and_utc()
}

/// The cases of the program.
///
/// # Errors
/// Never: a test reads them all.
pub fn read_shipped_cases() -> Result<Vec<EvalCase>, CaseError> {
    let mut cases = Vec::new();
    for (group, text) in SHIPPED {
        cases.extend(read_cases(&format!("{group}.yaml"), group, text)?);
    }
    Ok(cases)
}

/// Reads a file of cases.
///
/// # Errors
/// [`CaseError`] for the first case that cannot be used.
pub fn read_cases(file: &str, group: &str, text: &str) -> Result<Vec<EvalCase>, CaseError> {
    let fail = |line: usize, problem: String| CaseError { file: file.to_owned(), line, problem };
    let items: Vec<Value> = match serde_saphyr::from_str(text) {
        Ok(items) => items,
        Err(e) => {
            let line = e.location().map_or(1, |at| usize::try_from(at.line()).unwrap_or(1));
            return Err(fail(line, format!("a file of cases is a YAML list: {}", first_line(&e.to_string()))));
        }
    };
    let (mut cases, mut seen) = (Vec::new(), BTreeSet::new());
    for (at, item) in items.into_iter().enumerate() {
        let id = item.get("id").and_then(Value::as_str).unwrap_or_default().to_owned();
        let line = find_line(text, &id, at);
        if !is_id(&id) {
            let problem =
                format!("case {} has no `id`: lower-case words with hyphens, at most {MAX_ID} characters", at + 1);
            return Err(fail(line, problem));
        }
        if !seen.insert(id.clone()) {
            return Err(fail(line, format!("`{id}` stands twice: each case has an id of its own")));
        }
        let question = match item.get("text") {
            Some(_) => event::read_event(item),
            None => task::read_task(item),
        };
        let question = question.map_err(|problem| fail(line, format!("`{id}`: {problem}")))?;
        cases.push(EvalCase { id, group: group.to_owned(), question });
    }
    Ok(cases)
}

fn is_id(id: &str) -> bool {
    let is_word = |word: &str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    id.len() <= MAX_ID && id.split('-').all(is_word)
}

/// The line on which a case begins.
fn find_line(text: &str, id: &str, at: usize) -> usize {
    let begins = |line: &str| line.trim_start().starts_with("- ");
    let by_id = |line: &&str| {
        let rest = line.trim_start().trim_start_matches("- ").trim_start();
        rest.strip_prefix("id:")
            .is_some_and(|rest| rest.split('#').next().unwrap_or_default().trim().trim_matches('"') == id)
    };
    let found = text.lines().position(|line| by_id(&line));
    let counted =
        text.lines().enumerate().filter(|(_, line)| begins(line) && !line.starts_with(' ')).nth(at).map(|(at, _)| at);
    found.filter(|_| !id.is_empty()).or(counted).unwrap_or_default() + 1
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

/// Reads an item as a form that knows all its keys.
fn read_form<T: DeserializeOwned>(item: Value) -> Result<T, String> {
    serde_json::from_value(item).map_err(|e| e.to_string())
}

/// The path of a note that is called like this.
fn name_note(kind: RecordKind, name: &str) -> Result<RecordPath, String> {
    let slug: String = name.chars().map(|c| if c.is_alphanumeric() { c.to_ascii_lowercase() } else { '-' }).collect();
    let slug = slug.split('-').filter(|word| !word.is_empty()).collect::<Vec<_>>().join("-");
    RecordPath::new(kind, &slug).map_err(|e| format!("`{name}` cannot be the name of a note: {e}"))
}
