//! Text from mails and models as plain text of one paragraph.
//!
//! A record's body is Markdown that people open in their editor, and its words come from outside.
//! What is written here shows as the words themselves: no link, embed, tag, heading, list, fence,
//! comment, formula or raw HTML survives, and no character turns the reading direction. [`unescape_markdown`]
//! is the way back, for whoever reads the record.

/// Escaped text on one line, ready for a Markdown body.
#[must_use]
pub fn escape_one_line(text: &str) -> String {
    escape_markdown(&to_one_line(text))
}

/// The text on one line: what breaks a line, hides or turns text becomes a space.
pub fn to_one_line(text: &str) -> String {
    let spaced: String = text.chars().map(|c| if is_misleading(c) { ' ' } else { c }).collect();
    spaced.trim().to_owned()
}

/// What some readers of YAML take for a line break and others for a part of the line: NEL, LS and PS.
pub(crate) const LINE_SEPARATORS: [char; 3] = ['\u{85}', '\u{2028}', '\u{2029}'];

/// Characters that are no space and show nothing by themselves.
pub(crate) fn is_invisible(c: char) -> bool {
    let joins =
        matches!(c, '\u{ad}' | '\u{34f}' | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{206f}');
    let fills = matches!(c, '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{2800}' | '\u{3164}' | '\u{ffa0}');
    let selects = matches!(c, '\u{fe00}'..='\u{fe0f}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}');
    joins || fills || selects || is_misleading(c)
}

/// Line breaks, control characters, and the marks that reorder or hide what a person reads.
fn is_misleading(c: char) -> bool {
    let turns = matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' | '\u{061c}');
    let hides = matches!(c, '\u{200b}' | '\u{2060}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}');
    c.is_control() || turns || hides || LINE_SEPARATORS.contains(&c)
}

/// Whether a character does not show, or turns the direction in which a person reads.
///
/// Wider than what a record leaves out: joiners belong to many scripts and stay in a record, but two names that differ in
/// one of them look alike on a screen.
#[must_use]
pub fn is_unseen(c: char) -> bool {
    let joins = matches!(c, '\u{ad}' | '\u{34f}' | '\u{180e}' | '\u{200c}' | '\u{200d}' | '\u{2061}'..='\u{2064}');
    let marks = matches!(c, '\u{206a}'..='\u{206f}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}');
    is_misleading(c) || joins || marks
}

/// Puts a backslash before whatever Markdown would take for markup.
pub(crate) fn escape_markdown(line: &str) -> String {
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

/// A bullet or a number at the beginning would make a list of it.
fn is_block_start(line: &str, at: usize, c: char) -> bool {
    match c {
        '-' | '+' | '=' => at == 0,
        '.' | ')' => at > 0 && line[..at].bytes().all(|b| b.is_ascii_digit()),
        _ => false,
    }
}

/// Takes the backslashes away again.
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
