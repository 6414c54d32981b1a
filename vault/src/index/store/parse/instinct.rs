//! An instinct as a row: the source's key, how often it was right, and the settings of a person.
//!
//! An instinct that cannot be read becomes a row with the strictest ceiling. It must never be left out of the table.

use super::ParsedRecord;
use serde::Serialize;
use steward_domain::gates::mode::Ceiling;
use steward_domain::record::entity::Instinct;

#[derive(Debug, Serialize)]
pub(crate) struct InstinctData {
    path: String,
    source: String,
    observations: u32,
    ceiling: Option<u8>,
    /// The start value of the source's average confidence.
    start: Option<f64>,
}

/// The row of an instinct that cannot be read, for a file of any name.
pub(crate) fn unreadable_instinct(path: &str) -> ParsedRecord {
    let name = path.rsplit('/').next().unwrap_or_default();
    let stem = name.strip_suffix(".md").unwrap_or(name);
    instinct_row(path, stem, Instinct { ceiling: Some(Ceiling::Ask), ..Instinct::default() })
}

pub(super) fn instinct_row(path: &str, name: &str, instinct: Instinct) -> ParsedRecord {
    ParsedRecord::Instinct(InstinctData {
        path: path.to_owned(),
        source: instinct.source_key(name),
        observations: instinct.observations,
        start: instinct.start,
        ceiling: instinct.ceiling.map(|c| c as u8),
    })
}
