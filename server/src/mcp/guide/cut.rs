//! Cuts the parts of a guide so that they fit.
//!
//! A text is cut at the end of a paragraph or, without one, of a line.

use crate::mcp::tokens::{count_tokens, cut_to_tokens};

/// The beginning of a text that has at most so many tokens. It ends at a paragraph if there is one, or else at a line.
pub(super) fn cut_to_paragraph(text: &str, limit: usize) -> &str {
    let cut = cut_to_tokens(text, limit);
    if cut.len() == text.len() {
        return text;
    }
    let end = cut.rfind("\n\n").or_else(|| cut.rfind('\n')).unwrap_or(cut.len());
    cut[..end].trim_end()
}

/// As many of the items as fit, and how many are left out: at most `most`, and with `render` at most so many tokens.
pub(super) fn fit_items<T>(items: &[T], most: usize, limit: usize, render: impl Fn(&[T], usize) -> String) -> String {
    let mut shown = items.len().min(most);
    loop {
        let text = render(&items[..shown], items.len() - shown);
        if shown == 0 || count_tokens(&text) <= limit {
            return text;
        }
        shown -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_at_a_paragraph_and_else_at_a_line() {
        let text = format!("First.\n\nSecond {}\n", "word ".repeat(200));
        assert_eq!(cut_to_paragraph(&text, 100), "First.");
        assert_eq!(cut_to_paragraph("short\n", 100), "short\n");
        let lines = "A line of the index.\n".repeat(100);
        let cut = cut_to_paragraph(&lines, 50);
        assert!(cut.ends_with("index.") && count_tokens(cut) <= 50, "{cut}");
        assert_eq!(cut_to_paragraph(&text, 0), "");
    }

    #[test]
    fn items_that_do_not_fit_are_counted() {
        let render = |items: &[&str], left: usize| format!("{} and {left} more", items.join(", "));
        let items = ["one", "two", "three", "four"];
        assert_eq!(fit_items(&items, 2, 100, render), "one, two and 2 more");
        assert_eq!(fit_items(&items, 4, 1, render), " and 4 more");
    }
}
