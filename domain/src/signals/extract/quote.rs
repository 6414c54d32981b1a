//! Finds a quote in an event, verbatim except for its white space.
//!
//! A model may write a line break as a space, so a run of white space counts as one space on both sides.
//! The kept quote must be the event's own slice, never the model's text.

use crate::signals::signal::MAX_QUOTE_CHARS;

/// The fewest letters and digits in a quote. A shorter quote is refused.
pub const MIN_QUOTE_LETTERS: usize = 2;

/// The slice of `text` that a quote names, cut at [`MAX_QUOTE_CHARS`], or `None` if it does not occur.
pub(super) fn find_quote<'a>(text: &'a str, quote: &str) -> Option<&'a str> {
    let wanted = quote.split_whitespace().collect::<Vec<_>>().join(" ");
    if wanted.chars().filter(|c| c.is_alphanumeric()).count() < MIN_QUOTE_LETTERS {
        return None;
    }
    let (folded, offsets) = fold_whitespace(text);
    let start = folded.find(&wanted)?;
    let last = start + wanted.len() - wanted.chars().next_back()?.len_utf8();
    let (from, to) = (*offsets.get(start)?, *offsets.get(last)?);
    let whole = text.get(from..to)?.len() + text.get(to..)?.chars().next()?.len_utf8();
    let found = text.get(from..from + whole)?;
    let end = found.char_indices().nth(MAX_QUOTE_CHARS).map_or(found.len(), |(at, _)| at);
    Some(found[..end].trim_end())
}

/// The text with single spaces, and for each of its bytes the offset in the original.
fn fold_whitespace(text: &str) -> (String, Vec<usize>) {
    let (mut folded, mut offsets) = (String::with_capacity(text.len()), Vec::with_capacity(text.len()));
    let mut blank = false;
    for (at, c) in text.char_indices() {
        if c.is_whitespace() {
            if !blank {
                folded.push(' ');
                offsets.push(at);
            }
        } else {
            folded.push(c);
            offsets.extend(std::iter::repeat_n(at, c.len_utf8()));
        }
        blank = c.is_whitespace();
    }
    (folded, offsets)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_quote_is_found_whatever_its_blanks_and_kept_as_it_stands_there() {
        for (text, quote, kept) in [
            ("The rent was paid.", "rent was paid", Some("rent was paid")),
            ("The rent\n  was\tpaid.", " rent was paid ", Some("rent\n  was\tpaid")),
            ("Größe: 5 €", "Größe: 5 €", Some("Größe: 5 €")),
            ("rent paid", "Rent paid", None),
            ("rent paid", "rent", Some("rent")),
            ("rent paid", "rentpaid", None),
            ("rent paid", "  ", None),
            ("a b", "a", None),
            ("", "rent", None),
        ] {
            assert_eq!(find_quote(text, quote), kept, "{text:?} {quote:?}");
        }
    }

    #[test]
    fn a_long_quote_is_cut_at_a_character() {
        let text = "ä".repeat(500);
        assert_eq!(find_quote(&text, &text).unwrap().chars().count(), MAX_QUOTE_CHARS);
    }

    proptest! {
        #[test]
        fn what_is_kept_always_stands_in_the_text(text in "[ab \n\u{e4}\u{1f600}]{0,40}", quote in "[ab \n\u{e4}\u{1f600}]{0,12}") {
            if let Some(kept) = find_quote(&text, &quote) {
                prop_assert!(text.contains(kept));
                let fold = |t: &str| t.split_whitespace().collect::<Vec<_>>().join(" ");
                prop_assert_eq!(fold(kept), fold(&quote));
            }
        }

        #[test]
        fn every_slice_of_a_text_is_found(text in "[a-z \n]{10,60}", from in 0..5usize, to in 5..10usize) {
            let slice = &text[from..to];
            if slice.chars().filter(|c| c.is_alphanumeric()).count() >= MIN_QUOTE_LETTERS {
                prop_assert!(find_quote(&text, slice).is_some());
            }
        }
    }
}
