//! Counts tokens, so that no result is larger than a client takes.
//!
//! The count is that of o200k_base, and 15 % more for callers whose tokenizer is another one. Loading the tokenizer takes a moment, so it is
//! loaded when a result is first so large that it must be counted.

use bpe_openai::o200k_base;
use serde::Serialize;

/// For tokenizers that we do not have.
const FACTOR: f64 = 1.15;
/// What the rows of a result may take of a model's context, in tokens. With its frame a result stays under 8,000.
pub(crate) const MAX_ROW_TOKENS: usize = 7_500;

/// The number of tokens of a text.
pub(crate) fn count_tokens(text: &str) -> usize {
    (o200k_base().count(text) as f64 * FACTOR).ceil() as usize
}

/// Whether a text has at most so many tokens. It is read only as far as that takes.
pub(crate) fn has_at_most(text: &str, limit: usize) -> bool {
    let tokenizer = o200k_base();
    tokenizer.count_till_limit(&tokenizer.normalize(text), (limit as f64 / FACTOR) as usize).is_some()
}

/// The longest beginning of a text that has at most so many tokens. It ends at a line if there is one.
pub(crate) fn cut_to_tokens(text: &str, limit: usize) -> &str {
    // No text has more tokens than bytes.
    if text.len() as f64 * FACTOR <= limit as f64 || has_at_most(text, limit) {
        return text;
    }
    let mut end = find_end(text, (limit as f64 / FACTOR) as usize);
    // What follows a word may decide how it is divided, so the cut text is counted again.
    while end > 0 && !has_at_most(&text[..end], limit) {
        end = floor_boundary(text, end - 1);
    }
    let cut = &text[..end];
    match cut.rfind('\n') {
        Some(at) if end < text.len() && at > end / 2 => &cut[..=at],
        _ => cut,
    }
}

/// Where about so many tokens of a text end. It is read only so far.
fn find_end(text: &str, tokens: usize) -> usize {
    let tokenizer = o200k_base();
    let (mut end, mut left) = (0, tokens);
    for piece in tokenizer.split(text) {
        if let Some(count) = tokenizer.bpe.count_till_limit(piece.as_bytes(), left) {
            (end, left) = (end + piece.len(), left - count);
            continue;
        }
        // No token has more than 128 bytes, so what lies beyond need not be counted.
        let (mut fits, mut exceeds) = (0, floor_boundary(piece, left.saturating_mul(128)) + 1);
        while fits + 1 < exceeds {
            let middle = floor_boundary(piece, usize::midpoint(fits, exceeds));
            if middle <= fits {
                break;
            }
            match tokenizer.bpe.count_till_limit(&piece.as_bytes()[..middle], left) {
                Some(_) => fits = middle,
                None => exceeds = middle,
            }
        }
        return end + fits;
    }
    end
}

/// The rows of a list that fit into an answer, at least one. The rest is for a cursor.
pub(crate) fn keep_rows<T: Serialize>(mut rows: Vec<T>) -> Vec<T> {
    rows.truncate(count_fitting(&rows, MAX_ROW_TOKENS).max(1));
    rows
}

/// How many of the first rows have at most so many tokens together.
pub(crate) fn count_fitting<R: Serialize>(rows: &[R], limit: usize) -> usize {
    let fits = |count: usize| {
        let text = serde_json::to_string(&rows[..count]).unwrap_or_default();
        // No text has more tokens than bytes.
        text.len() as f64 * FACTOR <= limit as f64 || has_at_most(&text, limit)
    };
    if fits(rows.len()) {
        return rows.len();
    }
    let (mut fitting, mut exceeding) = (0, rows.len());
    while fitting + 1 < exceeding {
        let middle = usize::midpoint(fitting, exceeding);
        if fits(middle) { fitting = middle } else { exceeding = middle }
    }
    fitting
}

fn floor_boundary(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_text_fits_and_ends_at_a_line() {
        let text = "The lease of plot 12 ends on 31 March 2027.\n".repeat(2_000);
        let cut = cut_to_tokens(&text, 500);
        assert!(count_tokens(cut) <= 500 && count_tokens(cut) > 450 && cut.ends_with('\n'), "{}", count_tokens(cut));
        assert_eq!(cut_to_tokens("short", 500), "short");
        let dense = "ꙮ".repeat(4_000);
        let cut = cut_to_tokens(&dense, 300);
        assert!(count_tokens(cut) <= 300 && !cut.is_empty(), "{}", count_tokens(cut));
        assert_eq!(cut_to_tokens("é", 0), "");
    }

    #[test]
    fn a_list_fits_into_an_answer() {
        let row = "The lease of plot 12 ends on 31 March 2027. ".repeat(20);
        let kept = keep_rows(vec![row.clone(); 100]);
        let tokens = count_tokens(&serde_json::to_string(&kept).unwrap());
        assert!(tokens <= MAX_ROW_TOKENS && tokens > MAX_ROW_TOKENS / 2, "{tokens}");
        assert_eq!(keep_rows(vec![row.repeat(100)]).len(), 1);
        assert_eq!(keep_rows(vec!["a", "b"]), ["a", "b"]);
    }
}
