//! Flow lists and mappings whose closing bracket is at the beginning of a line.
//!
//! Many editors write them so, but YAML 1.2 wants that line indented, and the parser with the spans refuses it. This
//! module makes a copy of the same length in which the bracket follows the line above. So every span fits the real
//! text. In a block mapping nothing else can begin a line with such a bracket. The second parser reads the real text.

/// The copy, or `None` if no line begins with a closing bracket.
pub(super) fn join_closing_brackets(yaml: &str) -> Option<String> {
    let mut bytes = yaml.as_bytes().to_vec();
    let (mut above, mut at, mut found) = (0..0, 0, false);
    for line in yaml.split_inclusive('\n') {
        if line.starts_with([']', '}']) && !above.is_empty() {
            let text = &yaml[above.clone()];
            let kept = find_comment(text).unwrap_or(text.trim_end_matches(['\r', '\n']).len());
            bytes[above.start + kept..above.end].fill(b' ');
            found = true;
        }
        above = at..at + line.len();
        at = above.end;
    }
    if found { String::from_utf8(bytes).ok() } else { None }
}

/// The offset of the comment in a line that is inside brackets.
fn find_comment(line: &str) -> Option<usize> {
    // `''` inside single quotes is one quote: it ends the text and begins it again.
    let (mut quote, mut before, mut ended_at) = (None, ' ', None);
    // Only double quotes know a backslash, and the second one of two escapes nothing.
    let mut is_escaped = false;
    for (at, c) in line.char_indices() {
        match quote {
            Some(open) if c == open && !is_escaped => (quote, ended_at) = (None, Some(at)),
            Some('"') => is_escaped = c == '\\' && !is_escaped,
            Some(_) => {}
            None if c == '\'' && before == '\'' && ended_at.map(|ended| ended + 1) == Some(at) => quote = Some(c),
            None if c == '#' && before.is_whitespace() => return Some(at),
            None if matches!(c, '"' | '\'') && (before.is_whitespace() || "[{,:".contains(before)) => quote = Some(c),
            None => {}
        }
        before = c;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::join_closing_brackets;

    #[test]
    fn a_bracket_at_the_beginning_of_a_line_moves_behind_the_line_above_and_no_offset_changes() {
        for (yaml, copy) in [
            ("a: [\n  b\n]\n", "a: [\n  b ]\n"),
            ("a: [\r\n  b\r\n]\r\n", "a: [\r\n  b  ]\r\n"),
            ("a: [\n  b, # größe\n]\n", "a: [\n  b,           ]\n"),
            ("a: {\n  b: 'x # y' # z\n}\n", "a: {\n  b: 'x # y'     }\n"),
            ("a: [\n  'it''s # x'\n]\n", "a: [\n  'it''s # x' ]\n"),
            ("a: [\n  \"\\\\\" # x\n]\n", "a: [\n  \"\\\\\"     ]\n"),
            ("a: [\n  \"\\\" # x\"\n]\n", "a: [\n  \"\\\" # x\" ]\n"),
            ("a: [\n  'b\\' # x\n]\n", "a: [\n  'b\\'     ]\n"),
            ("a: [\n\n]\nb: 1\n", "a: [\n ]\nb: 1\n"),
            ("a: [[\n  b\n]\n]\n", "a: [[\n  b ] ]\n"),
        ] {
            let joined = join_closing_brackets(yaml).unwrap();
            assert_eq!((joined.as_str(), joined.len()), (copy, yaml.len()));
        }
        assert_eq!((join_closing_brackets("a: [\n  b ]\n"), join_closing_brackets("]\n")), (None, None));
    }
}
