//! A case about an event: its words, the notes that it may be about, and the facts that it states.
//!
//! It reads no files and asks nobody. What is wrong in a case is said in the words of its fields.

use super::{CaseQuestion, ExpectedFact, name_note, read_form};
use crate::action::mutation::{Mutation, MutationClass};
use crate::record::entity::SignalEffect;
use crate::record::path::{RecordKind, RecordPath};
use crate::signals::extract::{ExtractQuestion, TargetOffer};
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// The most notes that are offered, as for any event.
const MAX_OFFERS: usize = 5;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EventCase {
    #[expect(dead_code, reason = "it was read before")]
    id: String,
    source: String,
    author: Option<String>,
    subject: Option<String>,
    text: String,
    candidates: Vec<CandidateCase>,
    expect: Vec<FactCase>,
}

/// A note: a task with its matter, or a matter alone.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CandidateCase {
    task: Option<String>,
    matter: Option<String>,
    score: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FactCase {
    /// The name of a candidate.
    about: String,
    effect: SignalEffect,
    set: Option<Map<String, Value>>,
    add: Option<Map<String, Value>>,
    remove: Option<Map<String, Value>>,
}

pub(super) fn read_event(item: Value) -> Result<CaseQuestion, String> {
    let case: EventCase = read_form(item)?;
    if case.candidates.is_empty() || case.candidates.len() > MAX_OFFERS {
        return Err(format!("it has {} `candidates`: give 1 to {MAX_OFFERS}", case.candidates.len()));
    }
    let offers = case.candidates.into_iter().map(read_offer).collect::<Result<Vec<_>, _>>()?;
    let expected = case.expect.into_iter().map(|fact| read_fact(fact, &offers)).collect::<Result<Vec<_>, _>>()?;
    let question = ExtractQuestion {
        source: case.source,
        author: case.author,
        subject: case.subject,
        text: case.text,
        offers,
        complaint: None,
    };
    Ok(CaseQuestion::Event { question: Box::new(question), expected })
}

fn read_offer(candidate: CandidateCase) -> Result<TargetOffer, String> {
    let (kind, name, matter_name) = match (candidate.task, candidate.matter) {
        (Some(task), matter) => (RecordKind::Task, task, matter),
        (None, Some(matter)) => (RecordKind::Matter, matter, None),
        (None, None) => return Err("a candidate has a `task` with its `matter`, or a `matter` alone".to_owned()),
    };
    if !(0.0..=1.0).contains(&candidate.score) {
        return Err(format!("`{name}`: `score` is {}: give a number from 0 to 1", candidate.score));
    }
    Ok(TargetOffer { path: name_note(kind, &name)?, kind, name, matter_name, score: candidate.score })
}

fn read_fact(fact: FactCase, offers: &[TargetOffer]) -> Result<ExpectedFact, String> {
    let offer = offers.iter().find(|offer| offer.name == fact.about);
    let offer = offer.ok_or_else(|| format!("`{}` is no candidate of the case", fact.about))?;
    let target = offer.path.clone();
    let change = [("set", &fact.set), ("add", &fact.add), ("remove", &fact.remove)];
    let given: Vec<(&str, &Map<String, Value>)> =
        change.into_iter().filter_map(|(how, fields)| Some((how, fields.as_ref()?))).collect();
    match (fact.effect, given.as_slice()) {
        (SignalEffect::Mutation, [(how, fields)]) => {
            let mutation = read_mutation(how, fields, offers)?;
            Ok(ExpectedFact { target, effect: fact.effect, mutation: Some(mutation) })
        }
        (SignalEffect::Action, []) => Ok(ExpectedFact { target, effect: fact.effect, mutation: None }),
        _ => Err(format!("`{}`: a `mutation` has `set`, `add` or `remove`, and an `action` has none", fact.about)),
    }
}

/// The change of one field.
fn read_mutation(how: &str, fields: &Map<String, Value>, offers: &[TargetOffer]) -> Result<Mutation, String> {
    let (Some((field, value)), 1) = (fields.iter().next(), fields.len()) else {
        return Err(format!("`{how}` names one field"));
    };
    let class = match (how, field.as_str()) {
        ("set", "state") => MutationClass::StateChange,
        ("set", "parent_matter") => MutationClass::ParentMatter,
        ("set", _) => MutationClass::ContextEdit,
        _ => MutationClass::Related,
    };
    let value = match class {
        MutationClass::ParentMatter => {
            let name = value.as_str().unwrap_or_default();
            let matter = offers.iter().find(|offer| offer.kind == RecordKind::Matter && offer.name == name);
            let path = matter.map(|offer| &offer.path).ok_or_else(|| format!("`{name}` is no candidate matter"))?;
            json!(link(path))
        }
        MutationClass::StateChange | MutationClass::ContextEdit | MutationClass::Related => value.clone(),
    };
    Mutation::from_proposal(&json!({"class": class.as_str(), how: {field: value}})).map_err(|e| e.to_string())
}

fn link(path: &RecordPath) -> String {
    format!("[[{}]]", path.as_str().trim_end_matches(".md"))
}
