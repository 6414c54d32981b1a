//! Makes the page of a review.
//!
//! Code writes it, and the words of the model stand in it as plain text. A claim is shown with its own words and marks if its quotes
//! stand in their sources, and by its name alone if not.

use super::{ReviewFinding, WikiReview};
use crate::record::plain_text::{count_noun, escape_one_line};
use crate::wiki::claims::{Claim, MAX_STATEMENT, read_claims};
use crate::wiki::names::{find_free_slug, name_folder};
use crate::wiki::page::{LINT_KIND, WikiPage};
use crate::wiki::page_text::{AnchoredText, NewPage};
use crate::wiki::quote::Anchor;
use crate::wiki::verify::{HIDING, list_code};
use std::collections::BTreeSet;

/// The most bytes of the text of a page, without its footnotes.
const MAX_TEXT: usize = 32 * 1024;

/// Says whether the quote of an anchor stands in its source.
pub type SoundCheck<'a> = &'a dyn Fn(&Anchor) -> bool;

/// The page of a review.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReviewPage {
    /// Relative to the wiki.
    pub file: String,
    pub text: String,
}

/// A claim with the page that has it.
struct FoundClaim<'p> {
    page: &'p WikiPage,
    claim: Claim,
    anchors: Vec<Anchor>,
}

struct Renderer<'a> {
    pages: &'a [WikiPage],
    is_sound: Option<SoundCheck<'a>>,
    body: AnchoredText,
    /// How many findings are shown, and for how many there is no room.
    shown: u64,
    left_out: u64,
}

/// The page of a review of these pages. `is_sound` says whether the quote of an anchor stands in its source; without it, claims and
/// pages are shown by their names alone.
#[must_use]
pub fn render_review(review: &WikiReview, pages: &[WikiPage], is_sound: Option<SoundCheck<'_>>) -> ReviewPage {
    let slug = format!("lint-{}", review.at.format("%Y%m%d-%H%M"));
    let slug = find_free_slug(slug, |slug| pages.iter().all(|page| page.slug != *slug));
    let title = format!("Health check {}", review.at.format("%Y-%m-%d %H:%M"));
    let mut renderer = Renderer { pages, is_sound, body: AnchoredText::default(), shown: 0, left_out: 0 };
    renderer.body.add_paragraph(&format!("# {title}"));
    renderer.add_head(review);
    renderer.add_contradictions(review);
    renderer.add_findings(review);
    if renderer.left_out > 0 {
        let count = count_noun(renderer.left_out, "finding");
        renderer.body.add_paragraph(&format!("The page has no room for {count} more."));
    }
    let Renderer { body, shown, .. } = renderer;
    let sources: BTreeSet<String> = body.anchors.values().map(|anchor| anchor.source.clone()).collect();
    let page = NewPage {
        slug: slug.clone(),
        kind: LINT_KIND.to_owned(),
        title,
        sources: sources.into_iter().collect(),
        confidence: 0.5,
        updated_at: review.at,
        summary: describe_counts(review, shown),
        tags: Vec::new(),
        aliases: Vec::new(),
    };
    ReviewPage { file: format!("{}/{slug}.md", name_folder(LINT_KIND)), text: page.render(&body) }
}

fn describe_counts(review: &WikiReview, shown: u64) -> String {
    let count = |count: usize, noun: &str| count_noun(count as u64, noun);
    format!(
        "{} read: {}, {}.",
        count(review.pages.len(), "page"),
        count(review.contradictions.len(), "contradiction"),
        count_noun(shown, "other finding")
    )
}

impl Renderer<'_> {
    fn add_head(&mut self, review: &WikiReview) {
        let all = self.pages.iter().filter(|page| !page.is_report()).count();
        let model = escape_one_line(&review.model);
        let mut head = format!("{model} read {} of {}.", review.pages.len(), count_noun(all as u64, "page"));
        head.push_str(" These are its words, and nobody checked them.");
        if !review.contradictions.is_empty() || review.dropped > 0 {
            head.push_str(" Both sides of each contradiction were shown to it again with their quotes.");
        }
        if review.dropped > 0 {
            head.push_str(&format!(" {} did not hold then.", review.dropped));
        }
        if review.contradictions.is_empty() && review.findings.is_empty() {
            head.push_str(" It found nothing.");
        }
        self.body.add_paragraph(&head);
    }

    fn add_contradictions(&mut self, review: &WikiReview) {
        if review.contradictions.is_empty() {
            return;
        }
        self.body.add_paragraph("## Contradictions");
        for found in &review.contradictions {
            if self.body.text.len() >= MAX_TEXT {
                self.left_out += 1;
                continue;
            }
            let reason = show_words(&found.reason).unwrap_or_else(|| "Both cannot be true.".to_owned());
            self.body.add_paragraph(&reason);
            let lines = [self.render_claim(&found.first), self.render_claim(&found.second)];
            self.body.add_paragraph(&lines.join("\n"));
        }
    }

    fn add_findings(&mut self, review: &WikiReview) {
        let sections = ["Stale claims", "Missing pages", "Missing links", "Gaps"];
        for (at, heading) in sections.into_iter().enumerate() {
            let mut lines: Vec<String> = Vec::new();
            for finding in review.findings.iter().filter(|it| find_section(it) == at) {
                let Some(line) = self.render(finding) else { continue };
                let is_room = self.body.text.len() + lines.iter().map(String::len).sum::<usize>() < MAX_TEXT;
                if is_room {
                    lines.push(line);
                }
                self.shown += u64::from(is_room);
                self.left_out += u64::from(!is_room);
            }
            if !lines.is_empty() {
                self.body.add_paragraph(&format!("## {heading}"));
                self.body.add_paragraph(&lines.join("\n"));
            }
        }
    }

    /// The line of a finding; `None` if its words hold what only a source may say exactly, or it does not fit the pages any more.
    fn render(&mut self, finding: &ReviewFinding) -> Option<String> {
        match finding {
            ReviewFinding::StaleClaim { claim, reason } => {
                let words = show_words(reason).unwrap_or_default();
                Some(format!("{} {words}", self.render_claim(claim)).trim_end().to_owned())
            }
            ReviewFinding::MissingPage { title, reason } => {
                let lower = title.trim().to_lowercase();
                let has_name = |page: &WikiPage| {
                    std::iter::once(&page.title).chain(&page.aliases).any(|name| name.to_lowercase() == lower)
                };
                let is_missing = !self.pages.iter().any(has_name);
                is_missing.then(|| Some(format!("- {}: {}", show_words(title)?, show_words(reason)?)))?
            }
            ReviewFinding::MissingLink { from, to } => {
                Some(format!("- {} does not link {}", self.link(from)?, self.link(to)?))
            }
            ReviewFinding::Gap { gap, search } => {
                Some(format!("- **Gap** {} **Search** {}", show_words(gap)?, show_words(search)?))
            }
        }
    }

    /// A claim as a list item: its statement with its marks and its page, or its name.
    fn render_claim(&mut self, name: &str) -> String {
        let Some(FoundClaim { page, claim, anchors }) = self.find_claim(name) else {
            return format!("- {}", escape_one_line(name));
        };
        let link = self.link(&page.slug).unwrap_or_default();
        let disputed = if claim.is_disputed { ", disputed" } else { "" };
        let quoted = |code: &String| anchors.iter().any(|anchor| anchor.quote.contains(code.as_str()));
        let is_plain = list_code(&claim.statement).iter().all(quoted) && !claim.statement.contains(['<', '|', '[']);
        let is_short = claim.statement.chars().count() <= MAX_STATEMENT;
        let is_sound = self.is_sound.is_some_and(|is_sound| {
            anchors.len() == claim.labels.len() && anchors.iter().all(|it| it.is_intact() && is_sound(it))
        });
        if !is_plain || !is_short || !is_sound {
            return format!("- {link}: {}{disputed}", escape_one_line(name));
        }
        let marks: String = claim.labels.iter().map(|label| format!("[^{label}]")).collect();
        self.body.anchors.extend(anchors.into_iter().map(|anchor| (anchor.label.clone(), anchor)));
        format!("- {}{marks} {link}{disputed}", claim.statement)
    }

    fn find_claim(&self, name: &str) -> Option<FoundClaim<'_>> {
        let (slug, id) = name.split_once('#')?;
        let page = self.pages.iter().find(|page| page.slug == slug)?;
        let read = read_claims(page.document.body(), &page.body.disputed);
        let claim = read.claims.into_iter().find(|claim| claim.id == id)?;
        let anchors = claim.labels.iter().filter_map(|label| read.anchors.get(label).cloned()).collect();
        Some(FoundClaim { page, claim, anchors })
    }

    fn link(&self, slug: &str) -> Option<String> {
        let page = self.pages.iter().find(|page| page.slug == slug)?;
        let is_plain = |c: char| c.is_alphanumeric() || matches!(c, ' ' | ',' | '\'' | '’' | '(' | ')' | '-');
        let shows_title = self.is_sound.is_some() && page.title.chars().all(is_plain);
        Some(if shows_title { format!("[[{slug}|{}]]", page.title.trim()) } else { format!("[[{slug}]]") })
    }
}

fn find_section(finding: &ReviewFinding) -> usize {
    match finding {
        ReviewFinding::StaleClaim { .. } => 0,
        ReviewFinding::MissingPage { .. } => 1,
        ReviewFinding::MissingLink { .. } => 2,
        ReviewFinding::Gap { .. } => 3,
    }
}

/// Words of a model as plain text; `None` if there are none, or if they hold code, an address or a version number.
fn show_words(words: &str) -> Option<String> {
    let escaped = escape_one_line(words.trim());
    let is_open = !HIDING.iter().any(|sign| escaped.contains(sign));
    (!escaped.is_empty() && is_open && list_code(words).is_empty() && list_code(&escaped).is_empty()).then_some(escaped)
}
