//! What a run does to the pages that a person sees before they approve it.
//!
//! If pages changed meanwhile and the run is made again, it may be committed only if it does the same: it makes or extends the same
//! files, and adds the same blocks or sets the same ones into a dispute, wherever they stand on the page.

use super::claims::{BlockKind, PageBlock, read_claims};
use super::page::read_page;
use super::plan::RunFile;

/// A block that a run adds to a page, or sets into a dispute.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BlockEffect {
    /// The file of its page, relative to the wiki.
    pub file: String,
    /// Whether the run makes the page.
    pub is_new: bool,
    pub is_heading: bool,
    pub text: String,
    pub is_disputed: bool,
}

/// Lists what the files of a run do to blocks, sorted.
#[must_use]
pub fn list_effects(files: &[RunFile]) -> Vec<BlockEffect> {
    let mut effects: Vec<BlockEffect> = files.iter().flat_map(list_file_effects).collect();
    effects.sort();
    effects
}

fn list_file_effects(file: &RunFile) -> Vec<BlockEffect> {
    let is_new = file.before.is_none();
    let read = |bytes: &Option<Vec<u8>>| {
        bytes.as_deref().map_or_else(Vec::new, |bytes| list_blocks(file.path.file(), is_new, bytes))
    };
    let mut before = read(&file.before);
    let mut after = read(&file.after);
    after.retain(|block| match before.iter().position(|known| known == block) {
        Some(at) => {
            before.remove(at);
            false
        }
        None => true,
    });
    after
}

/// The blocks of a page above its footnotes.
fn list_blocks(file: &str, is_new: bool, bytes: &[u8]) -> Vec<BlockEffect> {
    let Some(page) = read_page(file, bytes).page else { return Vec::new() };
    let disputed = &page.body.disputed;
    let effect = |block: &PageBlock| BlockEffect {
        file: file.to_owned(),
        is_new,
        is_heading: block.kind == BlockKind::Heading,
        text: format!("{} {}", block.text(), block.labels().collect::<Vec<_>>().join(" ")),
        is_disputed: disputed.iter().any(|dispute| (dispute.first..=dispute.last).contains(&block.line)),
    };
    read_claims(page.document.body(), disputed).blocks.iter().map(effect).collect()
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

    fn list(before: &str, after: &str) -> Vec<BlockEffect> {
        list_effects(&[file(before, after)])
    }

    #[test]
    fn the_same_blocks_at_another_place_are_the_same_effects() {
        let seen = list("# Plot\n\nOld.", "# Plot\n\nOld.\n\n## From lease\n\nIt ends.[^1]");
        assert_eq!(seen.len(), 2);
        let later = "# Plot\n\nOld.\n\nMine.";
        assert_eq!(seen, list(later, &format!("{later}\n\n## From lease\n\nIt\nends.[^1]")));
        assert_eq!(list("# Plot\n\nIt ends.[^1]", "# Plot\n\nIt ends.[^1]"), []);
    }

    #[test]
    fn whatever_a_person_has_not_seen_is_another_effect() {
        let seen = list("# Plot\n\nOld.", "# Plot\n\nOld.\n\nIt ends.[^1]");
        for (before, after) in [
            // The page was there, or was not.
            ("", "# Plot\n\nOld.\n\nIt ends.[^1]"),
            ("# Plot\n\nOld.", "# Plot\n\nOld.\n\nIt ends soon.[^1]"),
            ("# Plot\n\nOld.", "# Plot\n\nOld.\n\nIt ends.[^1]\n\nA word."),
            ("# Plot\n\nOld.", "# Plot\n\nOld.\n\n::: disputed\n> ⚠️ x\n\nIt ends.[^1]\n:::"),
        ] {
            assert_ne!(list(before, after), seen, "{after}");
        }
        // What a person added to a paragraph would go into the dispute with it.
        let wrap = |text: &str| list(text, &format!("::: disputed\n> ⚠️ x\n\n{text}\n:::"));
        assert_ne!(wrap("It ends.[^1]"), wrap("It ends.[^1] I believe it."));
    }
}
