//! An instinct as a row: whose it is, how often they were right, and what a human set.
//!
//! An instinct that cannot be read stands for the strictest ceiling; it is never left out of the table.

use super::ParsedRecord;
use serde::Serialize;
use steward_domain::gates::mode::Ceiling;
use steward_domain::record::entity::Instinct;
use steward_domain::signals::signal::source_key;

#[derive(Debug, Serialize)]
pub(crate) struct InstinctData {
    path: String,
    source: String,
    observations: u32,
    ceiling: Option<u8>,
    /// Where the average of its confidence starts.
    start: Option<f64>,
}

/// What stands for an instinct that cannot be read, under whatever name.
pub(crate) fn unreadable_instinct(path: &str) -> ParsedRecord {
    let name = path.rsplit('/').next().unwrap_or_default();
    let stem = name.strip_suffix(".md").unwrap_or(name);
    instinct_row(path, stem, Instinct { ceiling: Some(Ceiling::Ask), ..Instinct::default() })
}

pub(super) fn instinct_row(path: &str, name: &str, instinct: Instinct) -> ParsedRecord {
    ParsedRecord::Instinct(InstinctData {
        path: path.to_owned(),
        // A name that is no source's own stands for itself, as it did when a human chose it.
        source: instinct.source.map_or_else(|| name.trim().to_lowercase(), |source| source_key(&source)),
        observations: instinct.observations,
        start: instinct.start,
        ceiling: instinct.ceiling.map(|c| c as u8),
    })
}
