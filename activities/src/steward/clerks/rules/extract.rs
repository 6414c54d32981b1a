//! Reads events by fixed patterns, sentence by sentence, without a model.
//!
//! | what a sentence says | what follows | how sure |
//! |---|---|---|
//! | paid, settled, completed, finished, signed, delivered, shipped, done | `state: done` | 0.85 |
//! | cancelled, called off, no longer needed | `state: archived` | 0.85 |
//! | owner is now X, new owner is X | the matter's `owner` | 0.8 |
//! | belongs to M, moved to M, where M is a candidate | the task's `parent_matter` | 0.75 |
//! | together with X Ltd, Inc, GmbH, … | `related_orgs` gains X | 0.7 |
//! | please …, a question, could you … | an action, no change | 0.7 |
//!
//! What is denied, planned or conditional ("not yet paid", "will be paid", "once it is paid") is a fact
//! without effect. It knows English only and says so in its reasoning; what it does not understand gives
//! no signal. Its target is the candidate whose name the sentence shares most with, else the one that
//! the whole event shares most with.

use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use steward_domain::action::mutation::{Mutation, format_link};
use steward_domain::record::entity::RecordState;
use steward_domain::record::path::{RecordKind, RecordPath};
use steward_domain::signals::extract::{
    ExtractQuestion, LEAST_LETTERS, MAX_SIGNALS, TargetOffer, fold_text, split_words,
};
use steward_domain::signals::signal::MAX_QUOTE_CHARS;

const DONE: [&str; 9] =
    ["paid", "settled", "completed", "finished", "signed", "delivered", "shipped", "done", "resolved"];
const ARCHIVED: [&str; 5] = ["cancelled", "canceled", "called off", "no longer needed", "no longer required"];
/// Beside a word of [`DONE`], these say that it is not so, or not yet. Apostrophes are gone by then.
const NOT_SO: [&str; 40] = [
    "not",
    "never",
    "no",
    "nothing",
    "without",
    "unless",
    "until",
    "if",
    "when",
    "once",
    "before",
    "as soon as",
    "will",
    "would",
    "should",
    "shall",
    "must",
    "might",
    "can",
    "cannot",
    "could",
    "to be",
    "has to",
    "have to",
    "going to",
    "about to",
    "almost",
    "nearly",
    "partly",
    "partially",
    "half",
    "overdue",
    "isnt",
    "wasnt",
    "hasnt",
    "havent",
    "arent",
    "werent",
    "wont",
    "didnt",
];
const ASKING: [&str; 10] = [
    "please",
    "could you",
    "can you",
    "would you",
    "will you",
    "kindly",
    "let me know",
    "let us know",
    "we need you to",
    "do you",
];
const OWNER: [&str; 4] = ["owner is now", "new owner is", "is now owned by", "responsibility passes to"];
const BELONGS: [&str; 4] = ["belongs to", "is part of", "moved to", "belong to"];
const TOGETHER: [&str; 2] = ["together with", "in cooperation with"];
const COMPANY: [&str; 12] =
    ["ltd", "limited", "inc", "llc", "corp", "gmbh", "ag", "kg", "bv", "sarl", "plc", "company"];
/// A matter is spoken of whenever its tasks are: of a change of state it is half as likely the target.
const MATTER_BESIDE_TASKS: f64 = 0.5;
/// Longest sentence that is looked at, in characters; a longer one is no sentence.
const MAX_SENTENCE_CHARS: usize = 400;

/// What one sentence says.
struct SentenceFact {
    effect: &'static str,
    mutation: Option<Mutation>,
    confidence: f64,
    why: &'static str,
}

/// The answer to a question, as JSON text.
pub(super) fn render_answer(question: &ExtractQuestion) -> String {
    let mut all: Vec<(String, SentenceFact)> = Vec::new();
    for sentence in split_sentences(question) {
        // A quote is found whatever the spaces in it, so they make no other sentence.
        let words = collapse_spaces(&sentence);
        let start: String = words.chars().take(MAX_QUOTE_CHARS / 2).collect();
        let said_before = |said: &str| said.starts_with(&start) || words.starts_with(said);
        if let Some(fact) = find_fact(&sentence, question)
            && fact.mutation.as_ref().is_none_or(|m| question.offers.iter().any(|o| m.is_applicable_to(o.path.kind())))
            && sentence.chars().filter(|c| c.is_alphanumeric()).count() >= LEAST_LETTERS
            && !all.iter().any(|(said, _)| said_before(&collapse_spaces(said)))
        {
            all.push((sentence, fact));
        }
    }
    // What changes something first: there is room for five.
    all.sort_by_key(|(_, fact)| (fact.effect == "none", fact.effect == "action"));
    all.truncate(MAX_SIGNALS);
    let signals: Vec<Value> = all.iter().map(|(sentence, fact)| render_signal(sentence, fact, question)).collect();
    json!({"signals": signals}).to_string()
}

fn collapse_spaces(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn render_signal(sentence: &str, fact: &SentenceFact, question: &ExtractQuestion) -> Value {
    let scores = score_offers(sentence, fact, question);
    let best = scores.iter().max_by(|a, b| a.1.total_cmp(&b.1)).filter(|(_, score)| *score > 0.0);
    let target = best.map(|(path, _)| path.as_str());
    let scores: Map<String, Value> = scores.iter().map(|(path, score)| (path.to_string(), json!(score))).collect();
    json!({
        "quote": sentence,
        "target": target,
        "scores": scores,
        "effect": fact.effect,
        "mutation": fact.mutation.as_ref().map(Mutation::to_proposal),
        "effect_confidence": fact.confidence,
        "reasoning": format!("Fixed rules, no model was asked: {}.", fact.why),
    })
}

/// How likely each candidate is meant; those that cannot take the change are not.
fn score_offers<'q>(sentence: &str, fact: &SentenceFact, question: &'q ExtractQuestion) -> Vec<(&'q RecordPath, f64)> {
    let said: BTreeSet<String> = split_words(sentence).into_iter().collect();
    let shares: Vec<f64> = question.offers.iter().map(|o| name_overlap(o, &said)).collect();
    let named = shares.iter().any(|share| *share > 0.0);
    let fits = |o: &TargetOffer| fact.mutation.as_ref().is_none_or(|m| m.is_applicable_to(o.path.kind()));
    let tasks = question.offers.iter().any(|o| o.path.kind() == RecordKind::Task);
    let about_a_matter = matches!(fact.mutation, Some(Mutation::ContextEdit { .. } | Mutation::Related { .. }));
    let one = |(offer, share): (&'q TargetOffer, &f64)| {
        let score = if named { 0.5 * offer.score + 0.5 * share } else { offer.score };
        let matter = offer.path.kind() == RecordKind::Matter && tasks && !about_a_matter;
        let score = if matter { score * MATTER_BESIDE_TASKS } else { score };
        let score = if fits(offer) { (score * 100.0).round() / 100.0 } else { 0.0 };
        (&offer.path, score.clamp(0.0, 1.0))
    };
    question.offers.iter().zip(&shares).map(one).collect()
}

/// How much of a record's name a sentence has.
fn name_overlap(offer: &TargetOffer, said: &BTreeSet<String>) -> f64 {
    let own: BTreeSet<String> = split_words(&offer.name).into_iter().collect();
    let met = own.iter().filter(|w| said.contains(*w)).count();
    if own.is_empty() { 0.0 } else { met as f64 / own.len() as f64 }
}

fn find_fact(sentence: &str, question: &ExtractQuestion) -> Option<SentenceFact> {
    let flat = flatten_sentence(sentence);
    let has = |all: &[&str]| all.iter().any(|phrase| contains_phrase(&flat, phrase));
    if sentence.ends_with('?') || has(&ASKING) {
        return is_about_offer(sentence, question).then_some(SentenceFact {
            effect: "action",
            mutation: None,
            confidence: 0.7,
            why: "the sentence asks something",
        });
    }
    let change = |to: RecordState, why| SentenceFact {
        effect: "mutation",
        mutation: Some(Mutation::StateChange { to }),
        confidence: 0.85,
        why,
    };
    let nothing = |why| Some(SentenceFact { effect: "none", mutation: None, confidence: 0.7, why });
    if has(&ARCHIVED) {
        let rest = ARCHIVED.iter().fold(flat.clone(), |text, phrase| text.replace(phrase, ""));
        if NOT_SO.iter().any(|phrase| contains_phrase(&rest, phrase)) {
            return nothing("what it says of an end is denied, planned or conditional");
        }
        return Some(change(RecordState::Archived, "the sentence says that it is off"));
    }
    if let Some(fact) =
        find_owner(sentence).or_else(|| find_parent_matter(sentence, question)).or_else(|| find_company(sentence))
    {
        return if has(&NOT_SO) { nothing("what it says is denied, planned or conditional") } else { Some(fact) };
    }
    if has(&DONE) {
        if has(&NOT_SO) {
            return nothing("what it says of being done is denied, planned or conditional");
        }
        return Some(change(RecordState::Done, "the sentence says that it is done"));
    }
    None
}

/// Whether a sentence that asks names any candidate, or there is only one.
fn is_about_offer(sentence: &str, question: &ExtractQuestion) -> bool {
    let said: BTreeSet<String> = split_words(sentence).into_iter().collect();
    question.offers.len() == 1 || question.offers.iter().any(|o| name_overlap(o, &said) > 0.0)
}

fn find_owner(sentence: &str) -> Option<SentenceFact> {
    let name = text_after_phrase(sentence, &OWNER)?;
    let proposal = json!({"class": "context_edit", "set": {"owner": name}});
    let mutation = Some(Mutation::from_proposal(&proposal).ok()?);
    Some(SentenceFact { effect: "mutation", mutation, confidence: 0.8, why: "the sentence names an owner" })
}

fn find_parent_matter(sentence: &str, question: &ExtractQuestion) -> Option<SentenceFact> {
    let named: BTreeSet<String> = split_words(text_after_phrase(sentence, &BELONGS)?).into_iter().collect();
    let matters = question.offers.iter().filter(|o| o.path.kind() == RecordKind::Matter);
    let to = matters.filter(|o| name_overlap(o, &named) >= 1.0).map(|o| &o.path).next()?;
    let proposal = json!({"class": "parent_matter", "set": {"parent_matter": format_link(to)}});
    let mutation = Some(Mutation::from_proposal(&proposal).ok()?);
    Some(SentenceFact { effect: "mutation", mutation, confidence: 0.75, why: "the sentence says where it belongs" })
}

/// Up to and with the word that makes a name a company's.
fn find_company(sentence: &str) -> Option<SentenceFact> {
    let rest = text_after_phrase(sentence, &TOGETHER)?;
    let mut name: Vec<&str> = Vec::new();
    let mut is_company = false;
    for word in rest.split_whitespace().take(6) {
        name.push(word.trim_matches(|c: char| !c.is_alphanumeric()));
        is_company = COMPANY.contains(&fold_text(name.last()?).as_str());
        if is_company {
            break;
        }
    }
    let proposal = json!({"class": "related", "add": {"related_orgs": name.join(" ")}});
    let mutation = is_company.then(|| Mutation::from_proposal(&proposal).ok()).flatten();
    mutation.map(|m| SentenceFact {
        effect: "mutation",
        mutation: Some(m),
        confidence: 0.7,
        why: "the sentence names a company",
    })
}

/// What stands after a phrase, up to the next comma, without the end of the sentence.
fn text_after_phrase<'a>(sentence: &'a str, phrases: &[&str]) -> Option<&'a str> {
    let lower = sentence.to_ascii_lowercase();
    let at = phrases.iter().find_map(|phrase| lower.find(phrase).map(|at| at + phrase.len()))?;
    let rest = sentence.get(at..)?.split([',', ';', '(']).next()?;
    let rest = rest.trim().trim_end_matches(['.', '!']).trim();
    (!rest.is_empty()).then_some(rest)
}

/// Folded words with single blanks between and around them.
fn flatten_sentence(sentence: &str) -> String {
    let folded = fold_text(&sentence.replace(['\'', '’'], ""));
    let words: Vec<&str> = folded.split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty()).collect();
    format!(" {} ", words.join(" "))
}

fn contains_phrase(flat: &str, phrase: &str) -> bool {
    flat.contains(&format!(" {phrase} "))
}

/// The sentences of an event, each on one line with its end. What others wrote earlier is left out: the
/// subject of a reply and quoted lines.
fn split_sentences(question: &ExtractQuestion) -> Vec<String> {
    let subject = question.subject.as_deref().unwrap_or_default().trim();
    let answers = ["re:", "aw:", "fwd:", "fw:"].iter().any(|p| subject.to_ascii_lowercase().starts_with(p));
    let mut all = Vec::new();
    split_paragraph(if answers { "" } else { subject }, &mut all);
    let mut paragraph = String::new();
    for line in question.text.lines().map(str::trim) {
        let begins = line.starts_with(['-', '*', '\u{2022}']);
        if line.is_empty() || line.starts_with('>') || begins {
            split_paragraph(&paragraph, &mut all);
            paragraph.clear();
        }
        if !line.starts_with('>') {
            paragraph.push_str(line);
            paragraph.push(' ');
        }
    }
    split_paragraph(&paragraph, &mut all);
    all
}

fn split_paragraph(paragraph: &str, all: &mut Vec<String>) {
    let mut rest = paragraph.trim();
    while !rest.is_empty() {
        let end = rest.char_indices().find(|(at, c)| is_sentence_end(rest, *at, *c));
        let (one, more) = rest.split_at(end.map_or(rest.len(), |(at, c)| at + c.len_utf8()));
        rest = more.trim_start();
        let one = one.trim();
        if one.chars().count() <= MAX_SENTENCE_CHARS {
            all.push(one.to_owned());
        }
    }
}

/// Not the dot of `5.20`.
fn is_sentence_end(text: &str, at: usize, c: char) -> bool {
    matches!(c, '.' | '!' | '?') && text[at + c.len_utf8()..].chars().next().is_none_or(char::is_whitespace)
}

#[cfg(test)]
mod tests;
