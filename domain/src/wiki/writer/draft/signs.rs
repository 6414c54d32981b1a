//! Signs that only code writes: callouts, containers and links at the end.
//!
//! A text of a model must not hold them, because readers take them for what code says of a page.

use super::super::refusal::DraftRefusal;
use std::collections::BTreeSet;

/// Lines that only code writes: callouts, containers and links at the end. Those that stand on the page may be repeated.
pub(super) fn refuse_signs(old: &str, new: &str) -> Result<(), DraftRefusal> {
    let known: BTreeSet<&str> = old.lines().map(str::trim).collect();
    match list_signed_lines(new).find(|line| !known.contains(line.trim())) {
        Some(line) => Err(format!(
            "error: leave this out, code writes such lines: {}",
            line.trim().chars().take(60).collect::<String>()
        )
        .into()),
        None => Ok(()),
    }
}

/// The lines of a text that only code writes, also in a list.
pub fn list_signed_lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| {
        let inner = line.trim_start_matches(|c: char| matches!(c, '>' | '-' | '*' | '+') || c.is_whitespace());
        inner.starts_with(":::")
            || inner.starts_with("See also:")
            || line.trim_start().starts_with('>') && line.contains('⚠')
    })
}
