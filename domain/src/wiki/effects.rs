//! What a run does to the claims of its pages, wherever they stand on them.
//!
//! A person approves what they saw. If the pages changed meanwhile and the run is made again, it may be committed only if it does
//! the same.

use super::claims::{Claim, PageClaims, read_claims};
use super::page::read_page;
use super::plan::RunFile;

/// A claim that a run makes, or sets into a dispute.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClaimEffect {
    /// The file of its page, relative to the wiki.
    pub file: String,
    pub statement: String,
    pub labels: Vec<String>,
    pub is_disputed: bool,
}

/// Lists what the files of a run do to claims, sorted.
#[must_use]
pub fn list_claim_effects(files: &[RunFile]) -> Vec<ClaimEffect> {
    let mut effects: Vec<ClaimEffect> = files.iter().flat_map(list_file_effects).collect();
    effects.sort();
    effects
}

fn list_file_effects(file: &RunFile) -> Vec<ClaimEffect> {
    let read = |bytes: &Option<Vec<u8>>| {
        let page = bytes.as_deref().and_then(|bytes| read_page(file.path.file(), bytes).page);
        page.map(|page| list_claims(file.path.file(), &read_claims(page.document.body(), &page.body.disputed)))
    };
    let (mut before, mut after) = (read(&file.before).unwrap_or_default(), read(&file.after).unwrap_or_default());
    after.retain(|claim| match before.iter().position(|known| known == claim) {
        Some(at) => {
            before.remove(at);
            false
        }
        None => true,
    });
    after
}

fn list_claims(file: &str, claims: &PageClaims) -> Vec<ClaimEffect> {
    let effect = |claim: &Claim| ClaimEffect {
        file: file.to_owned(),
        statement: claim.statement.clone(),
        labels: claim.labels.clone(),
        is_disputed: claim.is_disputed,
    };
    claims.claims.iter().map(effect).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wiki::path::PagePath;
    use crate::wiki::quote::Anchor;

    fn file(before: &str, after: &str) -> RunFile {
        let note = Anchor::new("lease", "The lease of plot 12 ends on 31 March 2027.");
        let page = |body: &str| {
            let head = "---\nschema: knowledge.entry/v1\nslug: plot\nkind: entity\ntitle: Plot\nupdated_at: \"2026-11-22T09:15:04Z\"\n---\n";
            let body = body.replace("[^1]", &format!("[^{}]", note.label));
            (!body.is_empty()).then(|| format!("{head}{body}\n\n{}\n", note.render()).into_bytes())
        };
        let path = PagePath::new("wiki/a", "entities/plot.md").unwrap();
        RunFile { path, before: page(before), after: page(after) }
    }

    #[test]
    fn the_same_claims_at_another_place_are_the_same_effects_and_others_are_not() {
        let seen = list_claim_effects(&[file("", "# Plot\n\nIt ends.[^1]")]);
        assert_eq!(seen.len(), 1);
        assert_eq!(seen, list_claim_effects(&[file("# Plot\n\nMine.", "# Plot\n\nMine.\n\n## More\n\nIt\nends.[^1]")]));
        assert_ne!(seen, list_claim_effects(&[file("", "# Plot\n\nIt ends soon.[^1]")]));
        assert_ne!(seen, list_claim_effects(&[file("", "# Plot\n\n::: disputed\n> ⚠️ x\n\nIt ends.[^1]\n:::")]));
        assert_eq!(list_claim_effects(&[file("# Plot\n\nIt ends.[^1]", "# Plot\n\nIt ends.[^1]\n\nA word.")]), []);
        // A claim that stood there goes into a dispute.
        assert_eq!(list_claim_effects(&[file("It ends.[^1]", "::: disputed\n> ⚠️ x\n\nIt ends.[^1]\n:::")]).len(), 1);
    }
}
