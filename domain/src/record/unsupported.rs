//! Counts what notes hold that Steward does not read: checkbox lines and inline fields.
//!
//! People keep tasks there too, so the numbers are shown. Nothing in these lines is ever used.

/// What was found in the text of a note.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnsupportedLines {
    /// Lines such as `- [ ] call the bank`.
    pub checkboxes: u64,
    /// Lines with a field of Dataview, such as `due:: 2026-12-01` or `(due:: 2026-12-01)`.
    pub inline_fields: u64,
}

/// Counts the lines of a note's text. Code blocks do not count.
#[must_use]
pub fn count_unsupported_lines(text: &str) -> UnsupportedLines {
    let mut found = UnsupportedLines::default();
    let mut fence: Option<&str> = None;
    for line in text.lines() {
        let line = line.trim_start_matches([' ', '\t', '>']);
        match fence {
            Some(open) if line.starts_with(open) => fence = None,
            Some(_) => {}
            None if line.starts_with("```") => fence = Some("```"),
            None if line.starts_with("~~~") => fence = Some("~~~"),
            None => {
                found.checkboxes += u64::from(is_checkbox(line));
                found.inline_fields += u64::from(has_inline_field(line));
            }
        }
    }
    found
}

/// Whether a line is a list item that begins with a box.
fn is_checkbox(line: &str) -> bool {
    let number = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let after =
        if number.len() < line.len() { number.strip_prefix(['.', ')']) } else { line.strip_prefix(['-', '*', '+']) };
    let text = after.filter(|after| after.starts_with([' ', '\t'])).map(str::trim_start);
    let mut text = text.and_then(|text| text.strip_prefix('[')).unwrap_or_default().chars();
    text.next().is_some() && text.next() == Some(']') && text.next().is_none_or(char::is_whitespace)
}

/// Whether a line holds a key that two colons and a blank follow. A key begins the line or follows a bracket.
fn has_inline_field(line: &str) -> bool {
    let (mut key, mut rest) = (Some(0), line);
    while let Some(at) = rest.find(['[', '(', ':']) {
        let here = line.len() - rest.len() + at;
        let after = &line[here + 1..];
        match (rest.as_bytes()[at], after.strip_prefix(':')) {
            (b'[' | b'(', _) => key = Some(here + 1),
            (_, Some(value)) if value.is_empty() || value.starts_with([' ', '\t']) => {
                if key.take().is_some_and(|start| is_key(&line[start..here])) {
                    return true;
                }
            }
            // No key holds a colon.
            _ => key = None,
        }
        rest = after;
    }
    false
}

fn is_key(text: &str) -> bool {
    let text = text.trim_start_matches(['-', '*', '+', ' ', '\t', '_']);
    text.starts_with(char::is_alphanumeric)
        && text.chars().all(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_' | '*'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(text: &str) -> (u64, u64) {
        let found = count_unsupported_lines(text);
        (found.checkboxes, found.inline_fields)
    }

    #[test]
    fn boxes_and_fields_are_counted_in_the_forms_that_plugins_read() {
        assert_eq!(
            count("- [ ] a\n  * [x] b\n1. [-] c\n> - [ ] quoted\n-[ ] no\n- [link] no\n- [ ](x)\n- [x]"),
            (5, 0)
        );
        assert_eq!(count("due:: 2026-12-01\n- Über wen:: Ann\nCall (due:: now)\nBuy [cost:: 3]\n**Key**:: x"), (0, 5));
        assert_eq!(count("std::vector\na :: Type::new\nIt is so: see:: \nhttp::\n:: x"), (0, 2));
        assert_eq!(count("- [ ] a due:: x"), (1, 0), "a key holds no bracket");
    }

    #[test]
    fn a_line_of_any_length_is_read_once() {
        // Reading the line again for each of its colons would take minutes.
        assert_eq!(count(&":: ".repeat(300_000)), (0, 0));
        assert_eq!(count(&format!("{}(due:: x)", "[a::b ".repeat(100_000))), (0, 1));
    }

    #[test]
    fn code_does_not_count() {
        assert_eq!(count("```\n- [ ] a\nkey:: x\n```\n- [ ] b\n~~~\n```\n- [ ] c\n~~~\n"), (1, 0));
    }
}
