//! A case about a task: its signals, and what they say about it.
//!
//! It reads no files and asks nobody. What is wrong in a case is said in the words of its fields.

use super::{CaseQuestion, asked_at, name_note, read_form};
use crate::gates::mode::Ceiling;
use crate::record::entity::{RecordState, SignalEffect, SurfaceClass};
use crate::record::path::{RecordKind, RecordPath};
use crate::signals::signal::MAX_NOTE_CHARS;
use crate::steward::clerk::{
    ClerkQuestion, Judgement, MAX_DESCRIPTION_CHARS, QuestionSubject, SignalEvidence, hash_description,
};
use chrono::{NaiveDate, NaiveTime, TimeDelta};
use serde::Deserialize;
use serde_json::Value;

/// The oldest signal, in days.
const MAX_DAYS: f64 = 3_650.0;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TaskCase {
    #[expect(dead_code, reason = "it was read before")]
    id: String,
    /// The name of the task.
    task: String,
    /// The name of its matter.
    matter: String,
    description: Option<String>,
    state: Option<RecordState>,
    #[serde(default)]
    surface: SurfaceClass,
    due: Option<NaiveDate>,
    signals: Vec<SignalCase>,
    expect: Judgement,
    /// Other answers that are as good.
    #[serde(default)]
    accept: Vec<Judgement>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SignalCase {
    /// How long before the check it was made.
    days_ago: f64,
    source: String,
    note: String,
    effect: SignalEffect,
    proposes: Option<RecordState>,
    /// How sure the extractor was of the target, and of the effect.
    target: f64,
    sure: f64,
}

pub(super) fn read_task(item: Value) -> Result<CaseQuestion, String> {
    let case: TaskCase = read_form(item)?;
    if case.signals.is_empty() {
        return Err("it has no `signals`: give one at least".to_owned());
    }
    let task = name_note(RecordKind::Task, &case.task)?;
    let evidence = case.signals.into_iter().enumerate().map(|(at, signal)| read_signal(at, signal));
    let mut evidence = evidence.collect::<Result<Vec<_>, _>>()?;
    // As a check lists them.
    evidence.sort_by(|a, b| b.created.cmp(&a.created).then_with(|| a.reference.cmp(&b.reference)));
    if let Some(text) = case.description.as_ref().filter(|text| text.chars().count() > MAX_DESCRIPTION_CHARS) {
        return Err(format!(
            "`description` has {} characters, at most {MAX_DESCRIPTION_CHARS} are shown",
            text.chars().count()
        ));
    }
    let subject = QuestionSubject {
        task,
        task_name: case.task,
        matter: name_note(RecordKind::Matter, &case.matter)?,
        matter_name: case.matter,
        state: case.state.unwrap_or(RecordState::Open),
        surface_class: case.surface,
        due: case.due.map(|due| due.and_time(NaiveTime::MIN).and_utc()),
        description_hash: case.description.as_deref().map(hash_description),
        last_decision: None,
    };
    let question = ClerkQuestion { subject, evidence, complaint: None, asked_at: asked_at() };
    let expected = std::iter::once(case.expect).chain(case.accept).collect();
    Ok(CaseQuestion::Task { question: Box::new(question), description: case.description, expected })
}

fn read_signal(at: usize, signal: SignalCase) -> Result<SignalEvidence, String> {
    let number = at + 1;
    for (name, value) in [("target", signal.target), ("sure", signal.sure)] {
        if !(0.0..=1.0).contains(&value) {
            return Err(format!("signal {number}: `{name}` is {value}: give a number from 0 to 1"));
        }
    }
    if !(0.0..=MAX_DAYS).contains(&signal.days_ago) {
        return Err(format!("signal {number}: `days_ago` is {}: give a number from 0 to {MAX_DAYS}", signal.days_ago));
    }
    let characters = signal.note.chars().count();
    if characters > MAX_NOTE_CHARS {
        return Err(format!(
            "signal {number}: `note` has {characters} characters: a signal keeps at most {MAX_NOTE_CHARS}"
        ));
    }
    if (signal.effect == SignalEffect::Mutation) != signal.proposes.is_some() {
        return Err(format!("signal {number}: `proposes` belongs to the effect `mutation`, and to no other"));
    }
    #[expect(clippy::cast_possible_truncation, reason = "at most ten years in seconds")]
    let seconds = (signal.days_ago * 86_400.0) as i64;
    Ok(SignalEvidence {
        source: signal.source,
        reference: RecordPath::new(RecordKind::Signal, &format!("s{number}")).map_err(|e| e.to_string())?,
        note: signal.note,
        created: asked_at() - TimeDelta::seconds(seconds),
        effect: signal.effect,
        proposed_state: signal.proposes,
        target_confidence: signal.target,
        effect_confidence: signal.sure,
        observations: 0,
        ceiling: Ceiling::Act,
    })
}
