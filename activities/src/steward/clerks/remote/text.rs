//! Makes texts of strangers fit to be shown: bounded, without control characters, without our key.
//!
//! Reasons of refusals and complaints about answers are [`shown`]; what is kept in full loses only the
//! key. Nothing is decided here; the texts go on to the log, the audit record and a person's terminal.

use super::Secret;

/// Longest text of a provider or model that a reason or complaint repeats, in characters.
const MAX_SHOWN_CHARS: usize = 300;

/// What a provider or model said, as a reason or complaint may repeat it.
pub(super) fn sanitize_text(said: &str, key: Option<&Secret>) -> String {
    // The key goes first: cut in half, it would not be recognised.
    let said = redact_key(said, key);
    let mut shown = String::new();
    let mut left = MAX_SHOWN_CHARS;
    for c in said.chars() {
        let Some(rest) = left.checked_sub(1) else {
            shown.push('…');
            break;
        };
        left = rest;
        if is_hidden(c) { shown.extend(c.escape_unicode()) } else { shown.push(c) }
    }
    shown
}

pub(super) fn redact_key(said: &str, key: Option<&Secret>) -> String {
    key.map_or_else(|| said.to_owned(), |key| key.redact_from(said))
}

/// Whether a character moves the cursor, turns the direction of writing or shows nothing.
pub(super) fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}
