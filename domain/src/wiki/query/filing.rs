//! Makes a page of an answer: the question, the answer, and the quotes that it cites.
//!
//! An answer without any quote can only be an archive, which shows what was said on its day.

use super::WikiAnswer;
use super::references::strip_references;
use crate::record::plain_text::{escape_one_line, to_one_line};
use crate::wiki::compile::EXTRACT_LINE;
use crate::wiki::names::{find_free_slug, name_folder, name_page};
use crate::wiki::page::{MAX_SUMMARY, WikiPage, shorten};
use crate::wiki::page_text::{AnchoredText, NewPage};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The heading above the question. What stands below it are a person's words, which no source holds.
pub const QUESTION_HEADING: &str = "Question";
/// The longest title, in characters.
const MAX_TITLE: usize = 120;
/// The highest confidence of a page with one source, with several, and with a dispute or without a model.
const ONE_SOURCE: f64 = 0.7;
const MORE_SOURCES: f64 = 0.9;
const DOUBTFUL: f64 = 0.5;

/// As what an answer is kept.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, strum::Display, strum::EnumString, strum::EnumIter,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum FiledKind {
    /// An answer that later questions find.
    Qa,
    /// A thought that several pages led to.
    Insight,
    /// What was answered on a day. No run changes it any more.
    Archive,
}

/// A page of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FiledPage {
    /// Relative to the wiki.
    pub file: String,
    pub text: String,
    pub kind: FiledKind,
}

/// The page of an answer, beside these pages.
#[must_use]
pub fn render_filed_page(answer: &WikiAnswer, kind: FiledKind, pages: &[WikiPage], at: DateTime<Utc>) -> FiledPage {
    let kind = if answer.citations.is_empty() { FiledKind::Archive } else { kind };
    let title = name_title(&answer.question, pages, at);
    let slug = name_page(&title);
    // Such a slug belongs to the summary of a source.
    let slug = if slug.starts_with("summary-") { name_page(&format!("question {title}")) } else { slug };
    let slug = find_free_slug(slug, |slug| pages.iter().all(|page| page.slug != *slug));
    let mut body = AnchoredText::default();
    body.add_paragraph(&format!("# {}", escape_one_line(&title)));
    body.add_paragraph(&format!("## {QUESTION_HEADING}"));
    body.add_paragraph(&render_question(&answer.question));
    body.add_paragraph("## Answer");
    body.add_paragraph(answer.text.trim());
    body.anchors = answer.citations.iter().map(|cited| (cited.anchor.label.clone(), cited.anchor.clone())).collect();
    let sources: BTreeSet<String> = answer.citations.iter().map(|cited| cited.anchor.source.clone()).collect();
    let is_doubtful = answer.clerk.is_none() || answer.citations.iter().any(|cited| cited.is_disputed);
    let confidence = match sources.len() {
        _ if is_doubtful => DOUBTFUL,
        0 | 1 => ONE_SOURCE,
        _ => MORE_SOURCES,
    };
    let page = NewPage {
        slug: slug.clone(),
        kind: kind.to_string(),
        title,
        sources: sources.into_iter().collect(),
        confidence,
        updated_at: at,
        summary: summarize(answer),
        tags: Vec::new(),
        aliases: Vec::new(),
    };
    let file = format!("{}/{slug}.md", name_folder(&page.kind));
    FiledPage { file, text: page.render(&body), kind }
}

/// The question as it stands on its page.
#[must_use]
pub fn render_question(question: &str) -> String {
    escape_one_line(question)
}

/// The question as a title, with the day if a page is called so.
fn name_title(question: &str, pages: &[WikiPage], at: DateTime<Utc>) -> String {
    let title = shorten(&to_one_line(question), MAX_TITLE);
    let is_taken = pages.iter().any(|page| page.title.to_lowercase() == title.to_lowercase());
    if is_taken { format!("{title} ({})", at.format("%Y-%m-%d %H:%M:%S")) } else { title }
}

/// The first line of the answer, without its marks.
fn summarize(answer: &WikiAnswer) -> String {
    let line = answer.text.lines().map(str::trim).find(|line| !line.is_empty() && *line != EXTRACT_LINE);
    let line = line.unwrap_or_default().trim_start_matches(['-', '*', '#', '>', '|', ' ']);
    let plain = strip_references(line);
    shorten(&to_one_line(&plain), MAX_SUMMARY)
}
