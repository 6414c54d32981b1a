//! Settings written into `steward.toml`, with what they rest on.
//!
//! What was asked for is set, and what a person wrote into the file stays to the byte, line endings too. It is
//! refused where a file of a vault would set what a vault may not.

use crate::config::sources::ConfigFile;
use std::path::Path;
use toml_edit::{DocumentMut, Item};

/// How the lines begin that say what settings rest on; those of before are replaced.
const EVIDENCE: &str = "# backtest: ";
/// What some editors put before a text.
const BOM: &str = "\u{feff}";

/// The file's text with these keys set and the lines that say what they rest on, everything else as it was.
///
/// # Errors
/// The text is no TOML, or lies in the vault, which may not set how far its steward goes.
pub(crate) fn set_toml_values(
    (path, text): (&Path, &str),
    values: &[(&'static str, toml_edit::Value)],
    evidence: &[String],
    vault: &Path,
) -> anyhow::Result<String> {
    let (mark, old) = text.strip_prefix(BOM).map_or(("", text), |rest| (BOM, rest));
    let mut document: DocumentMut = old.parse()?;
    for (mut key, _) in document.iter_mut() {
        let before = key.leaf_decor().prefix().and_then(|prefix| prefix.as_str()).unwrap_or_default().to_owned();
        let kept: String = before.split_inclusive('\n').filter(|line| !line.starts_with(EVIDENCE)).collect();
        if kept != before {
            key.leaf_decor_mut().set_prefix(kept);
        }
    }
    for (key, value) in values {
        let mut value = value.clone();
        if let Some(old) = document.get(key).and_then(Item::as_value) {
            *value.decor_mut() = old.decor().clone();
        }
        document[*key] = Item::Value(value);
    }
    if let Some(mut key) = values.first().and_then(|(key, _)| document.key_mut(key)) {
        let before = key.leaf_decor().prefix().and_then(|prefix| prefix.as_str()).unwrap_or_default();
        let mut lines = before.to_owned();
        for line in evidence {
            lines.push_str(EVIDENCE);
            lines.extend(line.chars().map(|c| if c.is_control() { ' ' } else { c }));
            lines.push('\n');
        }
        key.leaf_decor_mut().set_prefix(lines);
    }
    let text = format!("{mark}{}", match_line_endings(old, &document.to_string()));
    ConfigFile { path: path.to_owned(), table: document.to_string().parse()?, named: false }
        .refuse_vault_overrides(vault)?;
    Ok(text)
}

/// New text with the line endings of the old: each line that stayed keeps its own, the others get that of the first.
pub(super) fn match_line_endings(old: &str, new: &str) -> String {
    if !old.contains("\r\n") {
        return new.to_owned();
    }
    let split = |line: &str| line.strip_suffix("\r\n").or(line.strip_suffix('\n')).unwrap_or(line).len();
    let usual = if old.find("\r\n").is_some_and(|at| old.find('\n') == Some(at + 1)) { "\r\n" } else { "\n" };
    let mut left: Vec<&str> = old.split_inclusive('\n').rev().collect();
    let mut out = String::with_capacity(new.len() + new.len() / 8);
    for line in new.split_inclusive('\n') {
        let (text, end) = line.split_at(split(line));
        out.push_str(text);
        let same = left.iter().rposition(|other| other[..split(other)] == *text);
        let end = match same {
            Some(at) => {
                let was = left[at];
                left.truncate(at);
                if end.is_empty() { "" } else { &was[split(was)..] }
            }
            None if end.is_empty() => "",
            None => usual,
        };
        out.push_str(if end.is_empty() && line.ends_with('\n') { usual } else { end });
    }
    out
}
