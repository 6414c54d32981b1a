//! Escapes untrusted text, so that Markdown shows it as plain text.
//!
//! A record's body is Markdown that people open in their editor, and its words come from mails and models.
//! Escaped text shows the words themselves. It must not contain a link, embed, tag, heading, list, fence, comment,
//! formula or raw HTML, or a character that changes the reading direction. `unescape_markdown` reverses the escaping.

/// Escaped text on one line, ready for a Markdown body.
#[must_use]
pub fn escape_one_line(text: &str) -> String {
    escape_markdown(&to_one_line(text))
}

/// The text on one line. Characters that break a line, hide text or turn its direction become spaces.
pub fn to_one_line(text: &str) -> String {
    let spaced: String = text.chars().map(|c| if is_misleading(c) { ' ' } else { c }).collect();
    spaced.trim().to_owned()
}

/// NEL, LS and PS: some YAML parsers read them as line breaks, others as part of the line.
pub(crate) const LINE_SEPARATORS: [char; 3] = ['\u{85}', '\u{2028}', '\u{2029}'];

/// Whether a character shows nothing by itself and is not a space.
pub(crate) fn is_invisible(c: char) -> bool {
    let joins =
        matches!(c, '\u{ad}' | '\u{34f}' | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{206f}');
    let fills = matches!(c, '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{2800}' | '\u{3164}' | '\u{ffa0}');
    let selects = matches!(c, '\u{fe00}'..='\u{fe0f}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}');
    joins || fills || selects || is_misleading(c)
}

/// Whether it is a line break, a control character, or a mark that reorders or hides text.
fn is_misleading(c: char) -> bool {
    let turns = matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' | '\u{061c}');
    let hides = matches!(c, '\u{200b}' | '\u{2060}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}');
    c.is_control() || turns || hides || LINE_SEPARATORS.contains(&c)
}

/// Whether a character is invisible or changes the reading direction.
///
/// This covers more than a record leaves out. Joiners belong to many scripts and stay in a record, but two
/// names that differ only in a joiner look alike on a screen.
#[must_use]
pub fn is_unseen(c: char) -> bool {
    let joins = matches!(c, '\u{ad}' | '\u{34f}' | '\u{180e}' | '\u{200c}' | '\u{200d}' | '\u{2061}'..='\u{2064}');
    let marks = matches!(c, '\u{206a}'..='\u{206f}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}');
    is_misleading(c) || joins || marks
}

/// Puts a backslash before every character that Markdown would read as markup.
#[must_use]
pub fn escape_markdown(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    for (at, c) in line.char_indices() {
        if is_markup(c, &line[..at], &line[at + c.len_utf8()..]) || is_block_start(line, at, c) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

fn is_markup(c: char, before: &str, rest: &str) -> bool {
    match c {
        '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '#' | '|' | '!' | '~' | '&' | '$' => true,
        '%' | '=' => before.ends_with(c) || rest.starts_with(c),
        // A bare address becomes a link that can be clicked.
        ':' => rest.starts_with("//"),
        _ => false,
    }
}

/// Whether the character would start a list or a heading at the beginning of the line.
fn is_block_start(line: &str, at: usize, c: char) -> bool {
    match c {
        '-' | '+' | '=' => at == 0,
        '.' | ')' => at > 0 && line[..at].bytes().all(|b| b.is_ascii_digit()),
        _ => false,
    }
}

/// Removes the backslashes of [`escape_markdown`].
pub(crate) fn unescape_markdown(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match chars.peek() {
            Some(next) if c == '\\' && next.is_ascii_punctuation() => out.extend(chars.next()),
            Some(_) | None => out.push(c),
        }
    }
    out
}

/// A number with its noun, as in `1 task` and `2 tasks`.
#[must_use]
pub fn count_noun(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}
