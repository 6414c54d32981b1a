//! Shortens outside words, so that one row never fills an answer.
//!
//! What is cut ends in an ellipsis. The length is counted in characters, as limits of schemas are.

use crate::mcp::outside::OutsideWords;

/// The beginning of a text, at most so many characters.
pub(super) fn shorten_words(text: &str, most: usize) -> OutsideWords {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]).into(),
        None => text.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_between_characters() {
        assert_eq!(shorten_words("ärger", 2).0, "är…");
        assert_eq!(shorten_words("är", 2).0, "är");
    }
}
