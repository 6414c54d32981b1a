//! Sets what a new source says beside the claim that it contradicts. Both sides stay, in one `::: disputed` block.
//!
//! The words of a model are escaped: they can open no block and no link.

use super::patch::list_blocks;
use crate::record::plain_text::escape_one_line;
use crate::wiki::body::LineStarts;
use crate::wiki::claims::{Claim, read_claims};
use crate::wiki::page::{WikiPage, shorten};
use crate::wiki::quote::Anchor;
use chrono::{DateTime, Utc};

/// The most characters of each side in the callout.
const MAX_SIDE: usize = 120;

/// What a source says against a claim.
pub(super) struct NewSide<'a> {
    pub(super) source: &'a str,
    pub(super) statement: &'a str,
    pub(super) anchor: &'a Anchor,
    pub(super) at: DateTime<Utc>,
}

impl NewSide<'_> {
    /// The dated line, as in `**Updated 2026-11-22 per letter:** it ends on 31 March 2029.[^c4dc23754]`.
    fn render(&self) -> String {
        let statement = escape_one_line(self.statement.trim());
        format!("**Updated {} per {}:** {statement}[^{}]", self.at.format("%Y-%m-%d"), self.source, self.anchor.label)
    }

    fn render_callout(&self, old: &Claim) -> String {
        let side = |text: &str| shorten(&escape_one_line(text.trim_end_matches('.')), MAX_SIDE);
        let (old, new) = (side(&strip_marks(&old.statement)), side(self.statement));
        format!("> ⚠️ Contradiction: {old} vs {new} ({})", self.source)
    }
}

/// The text of the page's body, without its footnotes, with the new side beside the claim.
///
/// # Errors
/// The reply to the model.
pub(super) fn add_side(page: &WikiPage, text: &str, claim: &str, new: &NewSide<'_>) -> Result<String, String> {
    let claims = read_claims(page.document.body(), &page.body.disputed).claims;
    let is_named = |known: &&Claim| known.id == claim || known.labels.iter().any(|label| label == claim);
    let Some(old) = claims.iter().find(is_named) else {
        let labels: Vec<&str> = claims.iter().map(|claim| claim.id.as_str()).take(20).collect();
        return Err(format!("error: no claim of this name on the page; there are {}", labels.join(", ")));
    };
    if let Some(block) = page.body.disputed.iter().find(|block| (block.first..=block.last).contains(&old.line)) {
        let end: usize = text.split_inclusive('\n').take(block.last - 1).map(str::len).sum();
        return Ok(format!("{}\n{}\n{}", &text[..end], new.render(), &text[end..]));
    }
    let starts = LineStarts::new(text);
    let line_of = |at: usize| starts.find_line(at);
    let block = list_blocks(text).into_iter().find(|block| {
        (line_of(block.start)..=line_of(block.end.saturating_sub(1).max(block.start))).contains(&old.line)
    });
    let Some(block) = block else { return Err("error: the claim stands in no block of its own".to_owned()) };
    let (callout, side) = (new.render_callout(old), new.render());
    let hedged = format!("::: disputed\n{callout}\n\n{}\n\n{side}\n:::", &text[block.clone()]);
    Ok(format!("{}{hedged}{}", &text[..block.start], &text[block.end..]))
}

/// A statement without footnote marks and emphasis.
fn strip_marks(statement: &str) -> String {
    statement.replace(['*', '_', '`'], "")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wiki::page::read_page;

    fn page(body: &str) -> WikiPage {
        let text = format!(
            "---\nschema: knowledge.entry/v1\nslug: plot-12\nkind: entity\ntitle: Plot 12\nupdated_at: \"2026-11-22T09:15:04Z\"\n---\n{body}"
        );
        read_page("entities/plot-12.md", text.as_bytes()).page.unwrap()
    }

    fn add(body: &str, claim: &str, statement: &str) -> Result<String, String> {
        let anchor = Anchor::new("letter", "The council extends the lease of plot 12 to 31 March 2029.");
        let at = "2026-11-22T09:15:04Z".parse().unwrap();
        let new = NewSide { source: "letter", statement, anchor: &anchor, at };
        let notes = format!("\n[^c6107d23f]: lease — \"It ends there.\"\n{}\n", anchor.render());
        add_side(&page(&format!("{body}{notes}")), body, claim, &new)
    }

    #[test]
    fn a_claim_is_wrapped_once_and_further_sides_join_it() {
        let body = "# Plot 12\n\nThe lease ends on 31 March 2027.[^c6107d23f]\n\nSee also: [[water]]\n";
        let once = add(body, "c6107d23f", "it ends on 31 March 2029.").unwrap();
        let (label, rest) = (
            Anchor::new("letter", "The council extends the lease of plot 12 to 31 March 2029.").label,
            "\n\nSee also: [[water]]\n",
        );
        let expected = format!(
            "# Plot 12\n\n::: disputed\n> ⚠️ Contradiction: The lease ends on 31 March 2027 vs it ends on 31 March 2029 (letter)\n\n\
             The lease ends on 31 March 2027.[^c6107d23f]\n\n**Updated 2026-11-22 per letter:** it ends on 31 March 2029.[^{label}]\n:::{rest}"
        );
        assert_eq!(once, expected);
        assert_eq!(page(&once).body.disputed.len(), 1);
        let twice = add(&once, "c6107d23f", "it never ends.").unwrap();
        assert!(
            twice.contains(&format!(
                "2029.[^{label}]\n\n**Updated 2026-11-22 per letter:** it never ends.[^{label}]\n:::\n"
            )),
            "{twice}"
        );
        assert_eq!(page(&twice).body.disputed.len(), 1);
        assert!(add(body, "c0000000a", "x").unwrap_err().contains("there are c6107d23f"));
    }

    #[test]
    fn words_of_a_model_open_nothing() {
        let body = "It ends.[^c6107d23f]\n";
        let hostile = "x\n:::\n\n# Free [[link]] <b>";
        let text = add(body, "c6107d23f", hostile).unwrap();
        assert_eq!(text.lines().filter(|line| line.starts_with(":::")).count(), 2, "{text}");
        assert!(!text.contains("<b>") && !text.contains("\n# Free"), "{text}");
    }
}
