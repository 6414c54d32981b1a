//! Takes the blocks that a run added out of a page on which others wrote since.
//!
//! A merge by lines sees an overlap where a later run added a section right below. If the run only added blocks, and all of
//! them stand as it wrote them, they can go, and everything else stays byte for byte. A block is what stands between blank
//! lines.

use crate::record::frontmatter::{self, Document, FieldEdit};
use crate::wiki::merge::{SplitBody, list_sources, merge_fields};
use serde_json::{Value, json};

/// A block with the blank lines below it.
#[derive(Clone, Copy)]
struct TextBlock<'t> {
    text: &'t str,
    whole: &'t str,
}

/// The page as it is without the blocks of a run; `None` if that is not all that the run did, or if one of them was edited.
///
/// Of a page that the run made (`before` is `None`), its title and what stands above it stay, and so do edited blocks.
pub(super) fn take_out_blocks(before: Option<&str>, after: &str, now: &str) -> Option<String> {
    let read = |text: &str| frontmatter::read_note(text.as_bytes()).ok();
    let (old, made, current) = (before.map(read), read(after)?, read(now)?);
    let old = match old {
        Some(read) => Some(read?),
        None => None,
    };
    let made_body = SplitBody::new(made.body());
    let made_blocks = split_blocks(made_body.text);
    let head = old.is_none().then(|| count_head(&made_blocks));
    let old_blocks = old.as_ref().map_or_else(Vec::new, |old| split_blocks(SplitBody::new(old.body()).text));
    let groups = list_added(&old_blocks, &made_blocks, head.unwrap_or_default())?;
    let body = SplitBody::new(current.body());
    let blocks = split_blocks(body.text);
    let mut is_taken = vec![false; blocks.len()];
    for group in &groups {
        let found = match find_group(&blocks, &is_taken, group) {
            Some(found) => found,
            // Of a page that the run made, what nobody edited goes.
            None if old.is_none() => {
                group.iter().filter_map(|block| find_group(&blocks, &is_taken, &[*block])).flatten().collect()
            }
            None => return None,
        };
        for at in found {
            is_taken[at] = true;
        }
    }
    if is_taken.iter().all(|taken| !taken) {
        return None;
    }
    let left = is_taken.iter().filter(|taken| !**taken).count();
    if groups.is_empty() || head.is_some_and(|head| left <= head) {
        return None;
    }
    let stays = blocks.iter().zip(&is_taken).filter(|(_, taken)| !**taken);
    let kept: String = stays.map(|(block, _)| block.whole).collect();
    let kept = kept.trim_end_matches(['\n', '\r']).to_owned() + "\n";
    let old_labels = old.as_ref().map(|old| SplitBody::new(old.body()).list_labels());
    let is_old = |label: &str| old_labels.as_ref().is_some_and(|labels| labels.contains(&label));
    // A footnote that somebody edited is theirs.
    let is_own = |label: &str| {
        let made = made_body.find_line(label);
        made.is_some() && made == body.find_line(label) && !is_old(label)
    };
    let below = body.render_notes(|label| !is_own(label) || kept.contains(&format!("[^{label}]")));
    let (gap, _) = body.split_below();
    let new_body =
        if below.is_empty() { kept } else { format!("{kept}{}{below}", if gap.is_empty() { "\n" } else { gap }) };
    let ours = match old {
        Some(old) => old,
        None => without_traces(&made)?,
    };
    let merged = merge_fields(&made, &ours, &current, &list_sources(&new_body)).ok()?;
    let above = merged.as_str().len() - merged.body().len();
    Some(format!("{}{new_body}", &merged.as_str()[..above]))
}

/// How many blocks the title and what stands above it are.
fn count_head(blocks: &[TextBlock<'_>]) -> usize {
    blocks.iter().position(|block| block.text.starts_with("# ")).map_or(0, |at| at + 1)
}

/// The blocks that the run added, in groups of those that stand together; `None` if it removed or changed one.
fn list_added<'t>(old: &[TextBlock<'_>], made: &[TextBlock<'t>], head: usize) -> Option<Vec<Vec<&'t str>>> {
    let (mut rest, mut groups) = (old.iter().peekable(), Vec::new());
    let mut open: Vec<&str> = Vec::new();
    for block in made.iter().skip(head) {
        if rest.next_if(|old| old.text == block.text).is_some() {
            groups.extend((!open.is_empty()).then(|| std::mem::take(&mut open)));
        } else {
            open.push(block.text);
        }
    }
    groups.extend((!open.is_empty()).then_some(open));
    rest.peek().is_none().then_some(groups)
}

/// Where the blocks of a group stand now, in their order: the place where the fewest others stand between them.
fn find_group(blocks: &[TextBlock<'_>], is_taken: &[bool], group: &[&str]) -> Option<Vec<usize>> {
    let first = group.first()?;
    let begins = (0..blocks.len()).filter(|at| blocks[*at].text == *first && !is_taken[*at]);
    let places = begins.filter_map(|begin| {
        let mut found = Vec::with_capacity(group.len());
        let mut from = begin;
        for wanted in group {
            let at = (from..blocks.len()).find(|at| blocks[*at].text == *wanted && !is_taken[*at])?;
            found.push(at);
            from = at + 1;
        }
        Some(found)
    });
    places.min_by_key(|found| found.last().copied().unwrap_or_default() - found.first().copied().unwrap_or_default())
}

/// The page without what its frontmatter took from the source: the source itself, and the sentence for the index.
fn without_traces(page: &Document) -> Option<Document> {
    let mut edits = vec![FieldEdit { field: "sources".to_owned(), value: Some(json!([])) }];
    if let Some(Value::Object(mut metadata)) = page.fields().get("metadata").cloned() {
        if let Some(Value::Object(own)) = metadata.get_mut("steward") {
            own.remove("summary");
        }
        if metadata.get("steward").and_then(Value::as_object).is_some_and(serde_json::Map::is_empty) {
            metadata.remove("steward");
        }
        let value = (!metadata.is_empty()).then_some(Value::Object(metadata));
        edits.push(FieldEdit { field: "metadata".to_owned(), value });
    }
    let edits: Vec<FieldEdit> = edits.into_iter().filter(|edit| page.fields().contains_key(&edit.field)).collect();
    frontmatter::read_note(&frontmatter::edit_fields(page.as_bytes(), &edits).ok()?).ok()
}

fn split_blocks(text: &str) -> Vec<TextBlock<'_>> {
    let (mut blocks, mut begin, mut end, mut offset) = (Vec::new(), 0, 0, 0);
    let mut is_below = false;
    for line in text.split_inclusive('\n') {
        if line.trim().is_empty() {
            is_below = end > begin;
        } else {
            if is_below {
                blocks.push(TextBlock { text: text[begin..end].trim_end(), whole: &text[begin..offset] });
                begin = offset;
                is_below = false;
            }
            end = offset + line.len();
        }
        offset += line.len();
    }
    if end > begin {
        blocks.push(TextBlock { text: text[begin..end].trim_end(), whole: &text[begin..] });
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(body: &str) -> String {
        format!(
            "---\nschema: knowledge.entry/v1\nslug: plot\nkind: concept\ntitle: Plot\nsources: [lease, letter]\nmetadata: {{steward: {{summary: It ends.}}}}\n---\n{body}"
        )
    }

    const MADE: &str = "An extract.\n\n# Plot\n\n## From lease\n\nIt ends.[^a]\n\n[^a]: lease — \"It ends.\"\n";

    #[test]
    fn a_page_of_the_run_keeps_what_others_wrote() {
        let now = "An extract.\n\n# Plot\n\nMine.\n\n## From lease\n\nIt ends.[^a]\n\n## From letter\n\nIt goes on.[^b]\n\n\
            [^a]: lease — \"It ends.\"\n[^b]: letter — \"It goes on.\"\n";
        let left = take_out_blocks(None, &page(MADE), &page(now)).unwrap();
        let expected =
            "An extract.\n\n# Plot\n\nMine.\n\n## From letter\n\nIt goes on.[^b]\n\n[^b]: letter — \"It goes on.\"\n";
        assert!(left.ends_with(&format!("---\n{expected}")), "{left}");
        assert!(!left.contains("lease") && left.contains("letter") && !left.contains("summary: It"), "{left}");
        let pinned = page(now).replace("{summary: It ends.}", "{summary: It ends., pinned: true}");
        let left = take_out_blocks(None, &page(MADE), &pinned).unwrap();
        assert!(left.contains("pinned: true"), "a person pinned it: {left}");
    }

    #[test]
    fn a_page_that_the_run_extended_loses_its_blocks_alone() {
        let before = page("# Plot\n\nOld.[^o]\n\n[^o]: letter — \"Old words.\"\n");
        let after =
            page("# Plot\n\nOld.[^o]\n\nNew.[^n]\n\n[^o]: letter — \"Old words.\"\n[^n]: lease — \"New words.\"\n");
        let now = page(
            "# Plot\n\nOld.[^o]\n\nNew.[^n]\n\nLater.[^l]\n\n[^o]: letter — \"Old words.\"\n[^n]: lease — \"New words.\"\n[^l]: x — \"Later words.\"\n",
        );
        let left = take_out_blocks(Some(&before), &after, &now).unwrap();
        assert!(
            left.ends_with(
                "# Plot\n\nOld.[^o]\n\nLater.[^l]\n\n[^o]: letter — \"Old words.\"\n[^l]: x — \"Later words.\"\n"
            ),
            "{left}"
        );
    }

    #[test]
    fn of_two_equal_blocks_the_one_of_the_run_goes() {
        let first = page("An extract.\n\n# Plot\n\n## From lease\n\nIt ends.\n");
        let second =
            page("An extract.\n\n# Plot\n\n## From lease\n\nIt ends.\n\n## From letter\n\nAn extract.\n\nMore.\n");
        let third = page(
            "An extract.\n\n# Plot\n\n## From lease\n\nIt ends.\n\n## From letter\n\nAn extract.\n\nMore.\n\n## From council\n\nAn extract.\n\nLast.\n",
        );
        let left = take_out_blocks(Some(&first), &second, &third).unwrap();
        let expected =
            "An extract.\n\n# Plot\n\n## From lease\n\nIt ends.\n\n## From council\n\nAn extract.\n\nLast.\n";
        assert!(left.ends_with(&format!("---\n{expected}")), "{left}");
    }

    #[test]
    fn an_edited_block_and_a_run_that_changed_one_are_left_to_the_merge() {
        let edited = page(&MADE.replace("It ends.[^a]", "It ended.[^a]"));
        let left = take_out_blocks(None, &page(MADE), &edited).unwrap();
        assert!(
            left.ends_with("# Plot\n\nIt ended.[^a]\n\n[^a]: lease — \"It ends.\"\n"),
            "an edited block stays: {left}"
        );
        assert!(left.contains("sources: [lease]"), "its source is still cited: {left}");
        assert_eq!(take_out_blocks(None, &page(MADE), &page(&MADE.replace("An extract", "Extract"))), None);
        let before = page("Old.\n");
        assert_eq!(take_out_blocks(Some(&before), &page("New.\n"), &page("New.\n\nMine.\n")), None);
    }
}
