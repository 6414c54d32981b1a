//! Reads a Markdown file as one message: its frontmatter, its title and its text.
//!
//! Frontmatter is optional. Invalid frontmatter is an error and must not become text, because people would wonder why
//! `from:` is part of it. Without a title, the file's name is the subject.

use super::super::FoundMessage;
use super::super::hash_id;
use super::super::source_pattern;
use serde_json::Value;
use steward_domain::record::frontmatter::{self, RecordFields};
use steward_domain::time;

pub(super) fn parse_note(bytes: &[u8], file_name: &str) -> Result<FoundMessage, String> {
    let text = std::str::from_utf8(bytes).map_err(|_| "not UTF-8: save it as UTF-8 and put it back".to_owned())?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if !text.starts_with("---\n") && !text.starts_with("---\r\n") {
        return build_found(&RecordFields::default(), text, file_name, bytes);
    }
    let document = frontmatter::read_document(text.as_bytes()).map_err(|e| format!("failed to {e}"))?;
    build_found(document.fields(), document.body(), file_name, bytes)
}

fn build_found(fields: &RecordFields, body: &str, file_name: &str, bytes: &[u8]) -> Result<FoundMessage, String> {
    let field = |names: &[&str]| {
        let text = |name: &&str| match fields.get(*name) {
            Some(Value::String(text)) if !text.trim().is_empty() => Some(text.trim().to_owned()),
            Some(Value::Number(number)) => Some(number.to_string()),
            Some(_) | None => None,
        };
        names.iter().find_map(text)
    };
    let from = field(&["from", "author"]);
    let at = field(&["at", "date", "created"]);
    let at = at
        .map(|at| time::parse(&at).ok_or_else(|| format!("`{}` is not a valid time", at.escape_debug())))
        .transpose()?;
    let heading = || body.lines().find_map(|line| line.strip_prefix("# ")).map(|title| title.trim().to_owned());
    let stem = || file_name.rsplit_once('.').map_or(file_name, |(stem, _)| stem).to_owned();
    Ok(FoundMessage {
        source_id: field(&["id"]).unwrap_or_else(|| hash_id(bytes)),
        pattern: source_pattern("note", from.as_deref()),
        origin_at: at,
        author: from,
        subject: Some(field(&["title", "subject", "name"]).or_else(heading).unwrap_or_else(stem)),
        text: body.to_owned(),
    })
}

#[cfg(test)]
mod tests;
