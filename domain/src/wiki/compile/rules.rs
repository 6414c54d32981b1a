//! The pages that a source becomes by fixed rules: a summary, and a concept for each of its terms.
//!
//! The summary has the first sentence of at most seven sections. A concept has at most three sentences of each source, below
//! a heading of its own. A page with the same title or alias is extended, never doubled.

use super::EXTRACT_LINE;
use super::sections::{Section, Sentence, split_sections};
use super::terms::{SentencePlace, Term, WordCounts, find_known, find_terms, list_sentences};
use crate::record::plain_text::{count_noun, escape_one_line};
use crate::wiki::ACCEPTED_FILES;
use crate::wiki::claims::MAX_STATEMENT;
use crate::wiki::names::{find_free_slug, name_folder, name_page, name_summary};
use crate::wiki::page::{MAX_SUMMARY, WikiPage, shorten};
use crate::wiki::page_text::{AnchoredText, NewPage, append_section};
use crate::wiki::quote::{Anchor, QuoteFinder};
use crate::wiki::source_text::SourceText;
use chrono::{DateTime, Utc};
use std::collections::BTreeSet;

/// The kind of the page of a term.
const CONCEPT: &str = "concept";
/// How sure a page is that was made here, from 0 to 1.
const CONFIDENCE: f64 = 0.5;
/// The fewest words of the sentence that stands for a section, if it has a longer one. A sentence with a full stop needs two.
const MIN_LEAD_WORDS: usize = 4;
/// The most sections of which a summary has a sentence.
const MAX_LEADS: usize = 7;
/// A source of at most so many sentences stands in its summary as a whole.
const MAX_WHOLE: usize = 20;
/// The most sentences of a source on a concept.
const MAX_PER_CONCEPT: usize = 3;
/// The most questions of a source that are kept as ideas.
const MAX_IDEAS: usize = 3;
/// Kinds of pages that are no concept, so a term with their title is left out.
const FOREIGN_KINDS: [&str; 5] = ["summary", "overview", "archive", "lint", "qa"];

/// What is compiled.
#[derive(Clone, Debug)]
pub struct CompileInput<'a> {
    pub source_id: &'a str,
    pub source_title: &'a str,
    pub text: &'a SourceText,
    /// The pages of the wiki.
    pub pages: &'a [WikiPage],
    /// Files that are left alone. Nothing links to a page that is not made.
    pub taken: &'a BTreeSet<String>,
    pub counts: &'a WordCounts,
    /// Whether pages link to each other.
    pub links: bool,
    pub at: DateTime<Utc>,
}

/// What became of a source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CompiledSource {
    pub pages: Vec<CompiledPage>,
    /// The source's own questions.
    pub ideas: Vec<String>,
    /// What could not be done, for people.
    pub notes: Vec<String>,
}

/// A page that is new or extended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompiledPage {
    /// Relative to the wiki.
    pub file: String,
    pub title: String,
    pub kind: String,
    pub text: String,
}

/// A page that a term becomes.
struct Concept<'a> {
    term: Term,
    slug: String,
    sentences: Vec<(&'a Sentence, Anchor)>,
    /// The page that is extended.
    page: Option<&'a WikiPage>,
}

struct Compiler<'a> {
    input: &'a CompileInput<'a>,
    sections: &'a [Section],
    quotes: QuoteFinder<'a>,
    /// The slugs of all pages, also of those that are made here.
    slugs: BTreeSet<String>,
    /// The title of the summary, which no other page has.
    title: String,
}

/// Compiles a source.
#[must_use]
pub fn compile_source(input: &CompileInput<'_>) -> CompiledSource {
    let sections = split_sections(input.text);
    let slugs = input.pages.iter().map(|page| page.slug.clone()).collect();
    let quotes = QuoteFinder::new(input.text.as_str());
    let title = choose_title(input);
    let mut compiler = Compiler { input, sections: &sections, quotes, slugs, title };
    let mut made = CompiledSource { ideas: compiler.list_ideas(), ..CompiledSource::default() };
    let summary = name_summary(input.source_id);
    let has_summary = !compiler.slugs.insert(summary.clone());
    let concepts = compiler.plan_concepts(&mut made.notes);
    if has_summary {
        made.notes.push(format!("there is a summary `{summary}` already, and it stays as it is"));
    } else {
        made.pages.extend(compiler.write_summary(&summary, &concepts, &mut made.notes));
    }
    for concept in &concepts {
        match compiler.write_concept(concept, &summary) {
            Ok(page) => made.pages.extend(page),
            Err(note) => made.notes.push(note),
        }
    }
    made
}

impl<'a> Compiler<'a> {
    /// A sentence that can stand as a statement, with its anchor.
    fn anchor(&self, sentence: &'a Sentence) -> Option<(&'a Sentence, Anchor)> {
        // A question states nothing.
        let is_text = sentence.text.chars().any(char::is_alphabetic) && !is_question(&sentence.text);
        if !is_text || escape_statement(&sentence.text).chars().count() > MAX_STATEMENT {
            return None;
        }
        let slice = self.quotes.read_slice(self.quotes.find_quote(&sentence.slice).ok()?)?;
        Some((sentence, Anchor::new(self.input.source_id, slice)))
    }

    fn list_ideas(&self) -> Vec<String> {
        let sentences = self.sections.iter().flat_map(|section| &section.sentences);
        let stands = |one: &&Sentence| is_question(&one.text) && self.quotes.find_quote(&one.slice).is_ok();
        let questions = sentences.filter(stands);
        questions.map(|one| one.text.clone()).take(MAX_IDEAS).collect()
    }

    fn plan_concepts(&mut self, notes: &mut Vec<String>) -> Vec<Concept<'a>> {
        // What the wiki has a page for comes first, so that pages grow and do not multiply.
        let is_open = |page: &&WikiPage| !FOREIGN_KINDS.contains(&page.kind.as_str());
        let pages = self.input.pages.iter().filter(is_open);
        let names = pages.flat_map(|page| std::iter::once(&page.title).chain(&page.aliases)).map(String::as_str);
        let mut terms = find_known(self.sections, names);
        terms.extend(find_terms(self.sections, self.input.source_title, self.input.counts));
        let mut concepts: Vec<Concept<'a>> = Vec::new();
        for term in terms {
            let name = term.name.to_lowercase();
            let is_called = |page: &&WikiPage| {
                std::iter::once(&page.title).chain(&page.aliases).any(|title| title.to_lowercase() == name)
            };
            let page = self.input.pages.iter().find(is_called);
            if let Some(page) = page.filter(|page| FOREIGN_KINDS.contains(&page.kind.as_str())) {
                notes.push(format!("{} has the title of a term, so the term got no page", page.file));
                continue;
            }
            let is_planned = |concept: &Concept<'_>| match page {
                Some(page) => concept.slug == page.slug,
                None => concept.term.name.to_lowercase() == name,
            };
            if concepts.iter().any(is_planned) {
                continue;
            }
            let places = list_sentences(&term, self.sections);
            let of = |place: SentencePlace| self.anchor(&self.sections[place.section].sentences[place.sentence]);
            let sentences: Vec<_> = places.into_iter().filter_map(of).take(MAX_PER_CONCEPT).collect();
            if sentences.is_empty() {
                continue;
            }
            let slug = page.map_or_else(|| self.choose_slug(&term.name), |page| page.slug.clone());
            let file = page.map_or_else(|| name_file(&slug, CONCEPT), |page| page.file.clone());
            if self.input.taken.contains(&file) {
                continue;
            }
            concepts.push(Concept { term, slug, sentences, page });
        }
        concepts
    }

    /// A slug that no other page has.
    fn choose_slug(&mut self, title: &str) -> String {
        let named = name_page(title);
        // Files of these names are a person's.
        let is_reserved = ACCEPTED_FILES.iter().any(|file| file.eq_ignore_ascii_case(&format!("{named}.md")));
        let slug = if is_reserved { format!("{named}-page") } else { named };
        find_free_slug(slug, |slug| self.slugs.insert(slug.clone()))
    }

    fn write_summary(&self, slug: &str, concepts: &[Concept<'_>], notes: &mut Vec<String>) -> Option<CompiledPage> {
        let title = self.input.source_title;
        let mut text = AnchoredText::default();
        text.add_paragraph(EXTRACT_LINE);
        text.add_paragraph(&format!("# {}", escape_one_line(title)));
        let mut first = None;
        let leads = self.list_leads();
        notes.extend(self.describe_rest(leads.iter().map(|(_, sentences)| sentences.len()).sum()));
        for (section, sentences) in leads {
            if !section.heading.is_empty() && section.heading.to_lowercase() != title.to_lowercase() {
                text.add_paragraph(&format!("## {}", escape_one_line(&section.heading)));
            }
            for (sentence, anchor) in sentences {
                first.get_or_insert_with(|| sentence.text.clone());
                text.add_statement(&escape_statement(&sentence.text), anchor);
            }
        }
        let Some(first) = first else {
            notes.push("no sentence of the source can be quoted: none has 8 to 280 characters".to_owned());
            return None;
        };
        let links = concepts
            .iter()
            .map(|concept| link(&concept.slug, concept.page.map_or(&concept.term.name, |page| &page.title)));
        self.add_links(&mut text, links.collect());
        Some(self.render_page(slug, "summary", &self.title, &first, &text))
    }

    /// The sentences of a summary, by section: all of a short source, and the first one of each section of a longer one.
    fn list_leads(&self) -> Vec<(&'a Section, Vec<(&'a Sentence, Anchor)>)> {
        // A salutation or a label says nothing, unless there is nothing else.
        let is_long = |sentence: &Sentence| {
            let words = sentence.text.split_whitespace().count();
            words >= MIN_LEAD_WORDS || words > 1 && sentence.text.ends_with(['.', '!'])
        };
        let quotable = |section: &'a Section| -> Vec<(&'a Sentence, Anchor)> {
            let (long, short): (Vec<_>, Vec<_>) =
                section.sentences.iter().filter_map(|one| self.anchor(one)).partition(|(one, _)| is_long(one));
            if long.is_empty() { short } else { long }
        };
        let mut leads: Vec<_> = self.sections.iter().map(|section| (section, quotable(section))).collect();
        leads.retain(|(_, sentences)| !sentences.is_empty());
        let is_short = leads.iter().map(|(_, sentences)| sentences.len()).sum::<usize>() <= MAX_WHOLE;
        if !is_short || leads.len() > MAX_LEADS {
            leads.iter_mut().for_each(|(_, sentences)| sentences.truncate(1));
        }
        leads.truncate(MAX_LEADS);
        leads
    }

    /// What a summary with so many sentences leaves out, one line each.
    fn describe_rest(&self, taken: usize) -> impl Iterator<Item = String> {
        let sentences = self.sections.iter().flat_map(|section| &section.sentences);
        let all = sentences.filter(|one| self.anchor(one).is_some()).count();
        let rest = (taken < all).then(|| {
            let all = count_noun(all as u64, "sentence");
            format!("the summary has {taken} of {all}; the others are on no page unless a concept quotes them")
        });
        let tables = count_tables(self.input.text.as_str());
        let tables =
            (tables > 0).then(|| format!("{} left out, as fixed rules read no tables", count_noun(tables, "table")));
        rest.into_iter().chain(tables)
    }

    /// The page of a concept; `None` if it has a section of this source already.
    fn write_concept(&self, concept: &Concept<'_>, summary: &str) -> Result<Option<CompiledPage>, String> {
        let mut text = AnchoredText::default();
        // Two documents may have one title, and each has a section of its own.
        let title = self.title.as_str();
        let heading = format!("## From {}", escape_one_line(title));
        if concept.page.is_none() {
            text.add_paragraph(EXTRACT_LINE);
            text.add_paragraph(&format!("# {}", escape_one_line(&concept.term.name)));
        }
        text.add_paragraph(&heading);
        if concept.page.is_some() {
            text.add_paragraph(EXTRACT_LINE);
        }
        for (sentence, anchor) in &concept.sentences {
            text.add_statement(&escape_statement(&sentence.text), anchor.clone());
        }
        self.add_links(&mut text, vec![link(summary, title)]);
        let Some(page) = concept.page else {
            let first = concept.sentences.first().map_or("", |(sentence, _)| sentence.text.as_str());
            return Ok(Some(self.render_page(&concept.slug, CONCEPT, &concept.term.name, first, &text)));
        };
        if page.document.body().lines().any(|line| line == heading) {
            return Ok(None);
        }
        let extended = append_section(page, &text, self.input.source_id, self.input.at)
            .map_err(|e| format!("{} was not extended: {e}", page.file))?;
        Ok(Some(CompiledPage {
            file: page.file.clone(),
            title: page.title.clone(),
            kind: page.kind.clone(),
            text: extended,
        }))
    }

    fn add_links(&self, text: &mut AnchoredText, links: Vec<String>) {
        if self.input.links && !links.is_empty() {
            text.add_paragraph(&format!("See also: {}", links.join(", ")));
        }
    }

    fn render_page(&self, slug: &str, kind: &str, title: &str, first: &str, text: &AnchoredText) -> CompiledPage {
        let page = NewPage {
            slug: slug.to_owned(),
            kind: kind.to_owned(),
            title: title.to_owned(),
            sources: vec![self.input.source_id.to_owned()],
            confidence: CONFIDENCE,
            updated_at: self.input.at,
            summary: shorten(first, MAX_SUMMARY),
            tags: Vec::new(),
            aliases: Vec::new(),
        };
        CompiledPage {
            file: name_file(slug, kind),
            title: title.to_owned(),
            kind: kind.to_owned(),
            text: page.render(text),
        }
    }
}

/// The title of the summary: that of the source, with the source's id if another page has it.
fn choose_title(input: &CompileInput<'_>) -> String {
    let summary = name_summary(input.source_id);
    if let Some(page) = input.pages.iter().find(|page| page.slug == summary) {
        return page.title.clone();
    }
    let title = input.source_title;
    let is_taken = input.pages.iter().any(|page| page.title.to_lowercase() == title.to_lowercase());
    if is_taken { format!("{title} ({})", input.source_id) } else { title.to_owned() }
}

/// The file of a new page, relative to the wiki.
fn name_file(slug: &str, kind: &str) -> String {
    format!("{}/{slug}.md", name_folder(kind))
}

/// The tables of a text, by the lines below their headings.
fn count_tables(text: &str) -> u64 {
    let is_rule = |line: &&str| {
        line.contains('|') && line.contains("--") && line.chars().all(|c| matches!(c, '|' | '-' | ':' | ' ' | '\t'))
    };
    text.lines().filter(is_rule).count() as u64
}

fn is_question(text: &str) -> bool {
    text.trim_end_matches(['"', '\'', ')', '”', '’', '»']).ends_with(['?', '？'])
}

/// A sentence as Markdown that shows nothing but its words.
fn escape_statement(text: &str) -> String {
    let escaped = escape_one_line(text);
    // It would open a block.
    if escaped.starts_with(":::") { format!("\\{escaped}") } else { escaped }
}

/// A link to a page with a title.
fn link(slug: &str, title: &str) -> String {
    let shown: String = title.chars().filter(|c| !matches!(c, '[' | ']' | '|')).collect();
    format!("[[{slug}|{}]]", escape_one_line(&shown))
}

#[cfg(test)]
mod tests;
