//! The entry for the log that submits a run: `## [2026-11-24] ingest | RFC 34 | touched: summaries/summary-rfc-34.md`.
//!
//! The date and everything below the header are left out: code writes the entry with the moment of the commit.

use crate::mcp::error::{ToolError, ToolErrorCode};
use steward_domain::wiki::run::WikiRunType;

/// What an entry says.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct LogHeader {
    pub(super) run_type: WikiRunType,
    pub(super) subject: String,
    /// Paths or slugs, as they are written.
    pub(super) touched: Vec<String>,
}

/// Reads the header of an entry.
///
/// # Errors
/// [`ToolErrorCode::LogHeaderUnparseable`] with the form.
pub(super) fn read_header(content: &str) -> Result<LogHeader, ToolError> {
    let refuse = || {
        let form =
            "Write `## [YYYY-MM-DD] ingest | <subject> | touched: <page>, <page>`, with ingest, query, lint or manual";
        ToolError::new(ToolErrorCode::LogHeaderUnparseable, "the entry has another form", form)
    };
    let line = content.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim();
    let rest = line.strip_prefix("## [").and_then(|rest| rest.split_once(']')).ok_or_else(refuse)?;
    let (date, rest) = rest;
    let day = date.get(..10).unwrap_or_default();
    if day.parse::<chrono::NaiveDate>().is_err() {
        return Err(refuse());
    }
    let parts: Vec<&str> = rest.split('|').map(str::trim).collect();
    let [op, subject @ .., touched] = parts.as_slice() else { return Err(refuse()) };
    let run_type = match op.to_lowercase().as_str() {
        "ingest" => WikiRunType::Ingest,
        "query" => WikiRunType::Archive,
        "lint" => WikiRunType::Lint,
        "manual" => WikiRunType::Manual,
        _ => return Err(refuse()),
    };
    let touched = touched.strip_prefix("touched:").ok_or_else(refuse)?;
    let subject = subject.join(" | ");
    if subject.is_empty() {
        return Err(refuse());
    }
    let name = |part: &str| part.trim().trim_start_matches("[[").trim_end_matches("]]").to_owned();
    let touched = touched.split(',').map(name).filter(|name| !name.is_empty()).collect();
    Ok(LogHeader { run_type, subject, touched })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_form_of_the_seed_is_read() {
        let read = read_header(
            "\n## [2026-11-24] ingest | RFC 34 | touched: summaries/summary-rfc-34.md, [[token-lifetime]]\n- more",
        )
        .unwrap();
        assert_eq!(read.run_type, WikiRunType::Ingest);
        assert_eq!((read.subject.as_str(), read.touched.len()), ("RFC 34", 2));
        assert_eq!(read.touched[1], "token-lifetime");
        let query = read_header("## [2026-11-24T10:00:00Z] query | a | b | touched:").unwrap();
        assert_eq!((query.run_type, query.subject.as_str(), query.touched.len()), (WikiRunType::Archive, "a | b", 0));
    }

    #[test]
    fn anything_else_is_refused_with_the_form() {
        for content in [
            "",
            "ingest | RFC 34 | touched: a",
            "## [today] ingest | RFC 34 | touched: a",
            "## [2026-11-24] deploy | RFC 34 | touched: a",
            "## [2026-11-24] ingest | RFC 34",
            "## [2026-11-24] ingest | touched: a",
        ] {
            let refused = read_header(content).unwrap_err();
            assert!(refused.code == ToolErrorCode::LogHeaderUnparseable && refused.to_string().contains("touched:"));
        }
    }
}
