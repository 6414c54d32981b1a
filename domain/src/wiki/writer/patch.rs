//! Puts a text in the place of another one, block by block: what both hold keeps its bytes.
//!
//! What the new text lacks is gone here. Whether that is allowed is judged elsewhere.

use crate::wiki::body::PAGE_MARKDOWN;
use crate::wiki::quote::collapse_blanks;
use pulldown_cmark::{Event, Parser};
use std::ops::Range;

/// The new text, with the bytes of the old one for each block that stands in both, and for what stood between two such blocks.
pub(super) fn patch_text(old: &str, new: &str) -> String {
    let (before, after) = (list_blocks(old), list_blocks(new));
    let keys: Vec<String> = before.iter().map(|block| collapse_blanks(&old[block.clone()])).collect();
    let mut is_used = vec![false; before.len()];
    let mut text = String::with_capacity(new.len());
    let mut last: Option<usize> = None;
    for block in after {
        let key = collapse_blanks(&new[block.clone()]);
        let same = (0..before.len()).find(|at| !is_used[*at] && keys[*at] == key);
        let follows = same.is_some() && (same == Some(0) || same.is_some_and(|at| at > 0 && last == Some(at - 1)));
        match (same, last) {
            (Some(0), None) if text.is_empty() => text.push_str(&old[..before[0].start]),
            (Some(at), Some(previous)) if follows => text.push_str(&old[before[previous].end..before[at].start]),
            _ if text.is_empty() => {}
            _ => text.push_str("\n\n"),
        }
        match same {
            Some(at) => {
                is_used[at] = true;
                text.push_str(&old[before[at].clone()]);
            }
            None => text.push_str(&new[block]),
        }
        last = same;
    }
    match last {
        Some(at) if at + 1 == before.len() => text.push_str(&old[before[at].end..]),
        Some(_) | None => text.push('\n'),
    }
    text
}

/// The blocks of a text that stand in no other one, without the blanks at their ends.
pub(super) fn list_blocks(text: &str) -> Vec<Range<usize>> {
    let (mut blocks, mut depth) = (Vec::new(), 0_usize);
    for (event, range) in Parser::new_ext(text, PAGE_MARKDOWN).into_offset_iter() {
        let is_whole = match event {
            Event::Start(_) => {
                depth += 1;
                depth == 1
            }
            Event::End(_) => {
                depth = depth.saturating_sub(1);
                false
            }
            _ => depth == 0,
        };
        if is_whole {
            let end = range.start + text[range.clone()].trim_end().len();
            blocks.push(range.start..end);
        }
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn equal_blocks_keep_their_bytes_and_new_ones_stand_where_they_were_put() {
        let old = "\n# Plot 12\n\n\nIt  ends\nin March.[^c1]\n\n- one\n- two\n";
        let new = "# Plot 12\n\nIt ends in March.[^c1]\n\nNew.[^c2]\n\n- one\n- two\n\nLast.\n";
        assert_eq!(
            patch_text(old, new),
            "\n# Plot 12\n\n\nIt  ends\nin March.[^c1]\n\nNew.[^c2]\n\n- one\n- two\n\nLast.\n"
        );
        assert_eq!(patch_text(old, "# Plot 12\n\nIt ends in March.[^c1]\n\n- one\n- two"), old);
        assert_eq!(patch_text("", "# A\n\nB\n"), "# A\n\nB\n");
        assert_eq!(patch_text("# A\n", ""), "\n");
    }

    proptest! {
        #[test]
        fn a_text_in_its_own_place_is_the_same(text in "([a-c#>*-]| |\n|```\n){0,60}") {
            let patched = patch_text(&text, &text);
            prop_assert_eq!(list_blocks(&patched).len(), list_blocks(&text).len());
            if !list_blocks(&text).is_empty() {
                prop_assert_eq!(patched, text);
            }
        }
    }
}
