//! Reads events by fixed patterns, sentence by sentence, without a model.
//!
//! | a sentence contains | proposed change | confidence |
//! |---|---|---|
//! | paid, settled, completed, finished, signed, delivered, shipped, done | `state: done` | 0.85 |
//! | cancelled, called off, no longer needed | `state: archived` | 0.85 |
//! | owner is now X, new owner is X | the matter's `owner` | 0.8 |
//! | belongs to M, moved to M, where M is a candidate | the task's `parent_matter` | 0.75 |
//! | together with X Ltd, Inc, GmbH, … | `related_orgs` gains X | 0.7 |
//! | please …, a question, could you … | an action, no change | 0.7 |
//!
//! A denied, planned or conditional statement ("not yet paid", "will be paid", "once it is paid") has no effect. Only
//! English is understood; any other sentence gives no signal. The target is the candidate whose name shares most words
//! with the sentence, else with the whole event.

use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use steward_domain::action::mutation::Mutation;
use steward_domain::record::entity::RecordState;
use steward_domain::record::path::{RecordKind, RecordPath};
use steward_domain::signals::extract::{
    ExtractQuestion, MAX_SIGNALS, MIN_QUOTE_LETTERS, TargetOffer, fold_text, split_words,
};
use steward_domain::signals::signal::MAX_QUOTE_CHARS;

const DONE: [&str; 9] =
    ["paid", "settled", "completed", "finished", "signed", "delivered", "shipped", "done", "resolved"];
const ARCHIVED: [&str; 5] = ["cancelled", "canceled", "called off", "no longer needed", "no longer required"];
/// Beside a word of [`DONE`], these mean that it is not true, or not yet. Apostrophes are already removed.
const NEGATIONS: [&str; 40] = [
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
const COOPERATION: [&str; 2] = ["together with", "in cooperation with"];
const COMPANY: [&str; 12] =
    ["ltd", "limited", "inc", "llc", "corp", "gmbh", "ag", "kg", "bv", "sarl", "plc", "company"];
/// The factor on a matter's score beside its tasks: a sentence about a task mentions its matter too.
const MATTER_BESIDE_TASKS: f64 = 0.5;
/// Longest sentence that is read, in characters: 400. A longer text is no sentence.
const MAX_SENTENCE_CHARS: usize = 400;

/// The fact that one sentence states.
struct SentenceFact {
    effect: &'static str,
    mutation: Option<Mutation>,
    confidence: f64,
    why: &'static str,
}

/// Renders the answer to a question as JSON text.
pub(super) fn render_answer(question: &ExtractQuestion) -> String {
    let mut facts: Vec<(String, SentenceFact)> = Vec::new();
    for sentence in split_sentences(question) {
        // A quote is found whatever its spaces are, so other spaces make no other sentence.
        let words = collapse_spaces(&sentence);
        let start: String = words.chars().take(MAX_QUOTE_CHARS / 2).collect();
        let repeats = |earlier: &str| earlier.starts_with(&start) || words.starts_with(earlier);
        if let Some(fact) = find_fact(&sentence, question)
            && fact.mutation.as_ref().is_none_or(|m| question.offers.iter().any(|o| m.is_applicable_to(o.kind)))
            && sentence.chars().filter(|c| c.is_alphanumeric()).count() >= MIN_QUOTE_LETTERS
            && !facts.iter().any(|(earlier, _)| repeats(&collapse_spaces(earlier)))
        {
            facts.push((sentence, fact));
        }
    }
    // Changes come first, because there is room for five signals.
    facts.sort_by_key(|(_, fact)| (fact.effect == "none", fact.effect == "action"));
    facts.truncate(MAX_SIGNALS);
    let signals: Vec<Value> = facts.iter().map(|(sentence, fact)| render_signal(sentence, fact, question)).collect();
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

/// Scores how likely each candidate is meant, 0 to 1. A candidate that cannot take the change gets 0.
fn score_offers<'q>(sentence: &str, fact: &SentenceFact, question: &'q ExtractQuestion) -> Vec<(&'q RecordPath, f64)> {
    let words: BTreeSet<String> = split_words(sentence).into_iter().collect();
    let shares: Vec<f64> = question.offers.iter().map(|o| name_overlap(o, &words)).collect();
    let named = shares.iter().any(|share| *share > 0.0);
    let fits = |o: &TargetOffer| fact.mutation.as_ref().is_none_or(|m| m.is_applicable_to(o.kind));
    let tasks = question.offers.iter().any(|o| o.kind == RecordKind::Task);
    let about_a_matter = matches!(fact.mutation, Some(Mutation::ContextEdit { .. } | Mutation::Related { .. }));
    let score_offer = |offer: &'q TargetOffer, share: f64| {
        let score = if named { 0.5 * offer.score + 0.5 * share } else { offer.score };
        let is_beside_tasks = offer.kind == RecordKind::Matter && tasks && !about_a_matter;
        let score = if is_beside_tasks { score * MATTER_BESIDE_TASKS } else { score };
        let score = if fits(offer) { (score * 100.0).round() / 100.0 } else { 0.0 };
        (&offer.path, score.clamp(0.0, 1.0))
    };
    question.offers.iter().zip(&shares).map(|(offer, share)| score_offer(offer, *share)).collect()
}

/// The share of the words of a record's name that occur in a sentence, 0 to 1.
fn name_overlap(offer: &TargetOffer, words: &BTreeSet<String>) -> f64 {
    let name: BTreeSet<String> = split_words(&offer.name).into_iter().collect();
    let shared = name.iter().filter(|w| words.contains(*w)).count();
    if name.is_empty() { 0.0 } else { shared as f64 / name.len() as f64 }
}

fn find_fact(sentence: &str, question: &ExtractQuestion) -> Option<SentenceFact> {
    let flat = flatten_sentence(sentence);
    let has = |phrases: &[&str]| phrases.iter().any(|phrase| contains_phrase(&flat, phrase));
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
        if NEGATIONS.iter().any(|phrase| contains_phrase(&rest, phrase)) {
            return nothing("the cancellation is denied, planned or conditional");
        }
        return Some(change(RecordState::Archived, "the sentence says that it is cancelled"));
    }
    if let Some(fact) =
        find_owner(sentence).or_else(|| find_parent_matter(sentence, question)).or_else(|| find_company(sentence))
    {
        return if has(&NEGATIONS) { nothing("the statement is denied, planned or conditional") } else { Some(fact) };
    }
    if has(&DONE) {
        if has(&NEGATIONS) {
            return nothing("the completion is denied, planned or conditional");
        }
        return Some(change(RecordState::Done, "the sentence says that it is done"));
    }
    None
}

/// Reports whether a sentence that asks something names any candidate, or there is only one.
fn is_about_offer(sentence: &str, question: &ExtractQuestion) -> bool {
    let words: BTreeSet<String> = split_words(sentence).into_iter().collect();
    question.offers.len() == 1 || question.offers.iter().any(|o| name_overlap(o, &words) > 0.0)
}

fn find_owner(sentence: &str) -> Option<SentenceFact> {
    let name = text_after_phrase(sentence, &OWNER)?;
    let proposal = json!({"class": "context_edit", "set": {"owner": name}});
    let mutation = Some(Mutation::from_proposal(&proposal).ok()?);
    Some(SentenceFact { effect: "mutation", mutation, confidence: 0.8, why: "the sentence names an owner" })
}

fn find_parent_matter(sentence: &str, question: &ExtractQuestion) -> Option<SentenceFact> {
    let named: BTreeSet<String> = split_words(text_after_phrase(sentence, &BELONGS)?).into_iter().collect();
    let matters = question.offers.iter().filter(|o| o.kind == RecordKind::Matter);
    let to = matters.filter(|o| name_overlap(o, &named) >= 1.0).map(|o| &o.path).next()?;
    let proposal = json!({"class": "parent_matter", "set": {"parent_matter": to}});
    let mutation = Some(Mutation::from_proposal(&proposal).ok()?);
    Some(SentenceFact { effect: "mutation", mutation, confidence: 0.75, why: "the sentence names another matter" })
}

/// Finds a company: the name ends with the word that marks companies, such as `Ltd`.
fn find_company(sentence: &str) -> Option<SentenceFact> {
    let rest = text_after_phrase(sentence, &COOPERATION)?;
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

/// The text after a phrase, up to the next comma, without the end mark of the sentence.
fn text_after_phrase<'a>(sentence: &'a str, phrases: &[&str]) -> Option<&'a str> {
    let lower = sentence.to_ascii_lowercase();
    let at = phrases.iter().find_map(|phrase| lower.find(phrase).map(|at| at + phrase.len()))?;
    let rest = sentence.get(at..)?.split([',', ';', '(']).next()?;
    let rest = rest.trim().trim_end_matches(['.', '!']).trim();
    (!rest.is_empty()).then_some(rest)
}

/// Folds a sentence to words with single blanks between and around them.
fn flatten_sentence(sentence: &str) -> String {
    let folded = fold_text(&sentence.replace(['\'', '’'], ""));
    let words: Vec<&str> = folded.split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty()).collect();
    format!(" {} ", words.join(" "))
}

fn contains_phrase(flat: &str, phrase: &str) -> bool {
    flat.contains(&format!(" {phrase} "))
}

/// Splits an event into sentences, each on one line with its end mark.
///
/// Earlier text of others is left out: the subject of a reply, and quoted lines.
fn split_sentences(question: &ExtractQuestion) -> Vec<String> {
    let subject = question.subject.as_deref().unwrap_or_default().trim();
    let is_reply = ["re:", "aw:", "fwd:", "fw:"].iter().any(|p| subject.to_ascii_lowercase().starts_with(p));
    let mut sentences = Vec::new();
    split_paragraph(if is_reply { "" } else { subject }, &mut sentences);
    let mut paragraph = String::new();
    for line in question.text.lines().map(str::trim) {
        let is_list_item = line.starts_with(['-', '*', '\u{2022}']);
        if line.is_empty() || line.starts_with('>') || is_list_item {
            split_paragraph(&paragraph, &mut sentences);
            paragraph.clear();
        }
        if !line.starts_with('>') {
            paragraph.push_str(line);
            paragraph.push(' ');
        }
    }
    split_paragraph(&paragraph, &mut sentences);
    sentences
}

fn split_paragraph(paragraph: &str, sentences: &mut Vec<String>) {
    let mut rest = paragraph.trim();
    while !rest.is_empty() {
        let end = rest.char_indices().find(|(at, c)| is_sentence_end(rest, *at, *c));
        let (sentence, more) = rest.split_at(end.map_or(rest.len(), |(at, c)| at + c.len_utf8()));
        rest = more.trim_start();
        let sentence = sentence.trim();
        if sentence.chars().count() <= MAX_SENTENCE_CHARS {
            sentences.push(sentence.to_owned());
        }
    }
}

/// Reports whether a sentence ends at this character. The dot of `5.20` does not end one.
fn is_sentence_end(text: &str, at: usize, c: char) -> bool {
    matches!(c, '.' | '!' | '?') && text[at + c.len_utf8()..].chars().next().is_none_or(char::is_whitespace)
}

#[cfg(test)]
mod tests;
