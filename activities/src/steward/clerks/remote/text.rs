//! Makes untrusted texts safe to show: bounded, without control characters, without the key.
//!
//! Reasons of refusals and complaints about answers go through [`sanitize_text`]. Texts that are kept in full lose only
//! the key. Nothing is decided here. The texts end in the log, in audit records and on terminals.

use super::Secret;

/// Longest quote from a provider or model in a reason or complaint, in characters: 300.
const MAX_SHOWN_CHARS: usize = 300;

/// Prepares a text of a provider or model for a reason or complaint.
pub(super) fn sanitize_text(text: &str, key: Option<&Secret>) -> String {
    // The key is redacted before the cut: half of a key would not be recognised.
    let text = redact_key(text, key);
    let mut shown = String::new();
    let mut left = MAX_SHOWN_CHARS;
    for c in text.chars() {
        let Some(rest) = left.checked_sub(1) else {
            shown.push('…');
            break;
        };
        left = rest;
        if is_hidden(c) { shown.extend(c.escape_unicode()) } else { shown.push(c) }
    }
    shown
}

pub(super) fn redact_key(text: &str, key: Option<&Secret>) -> String {
    key.map_or_else(|| text.to_owned(), |key| key.redact_from(text))
}

/// Reports whether a character moves the cursor, changes the direction of writing or shows nothing.
pub(super) fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}
