//! The sources of an action, read from its audit record.
//!
//! Pure: the record's evidence and contributions become one row for each source. [`crate::index::store::rows`] writes
//! them.

use super::SourceContribution;
use std::collections::BTreeSet;
use steward_domain::action::audit::AuditDraft;
use steward_domain::signals::signal::source_key;

/// The sources that were weighed and those that supported the change. If a source has several names, the last one
/// counts.
pub(super) fn read_contributions(draft: &AuditDraft) -> Vec<SourceContribution> {
    let cited: BTreeSet<String> = draft.evidence.iter().map(|e| source_key(&e.source)).collect();
    let mut supporting = draft.supporting_sources();
    let weighed = draft.source_contributions.iter();
    let mut sources: Vec<SourceContribution> = weighed
        .map(|(name, contribution)| {
            let source = source_key(name);
            let supports = supporting.contains_key(&source);
            SourceContribution {
                cited: cited.contains(&source),
                supports,
                source,
                name: name.clone(),
                contribution: Some(*contribution),
            }
        })
        .collect();
    supporting.retain(|key, _| sources.iter().all(|known| known.source != *key));
    let unweighed = supporting.into_iter().map(|(source, name)| {
        let cited = cited.contains(&source);
        SourceContribution { source, name, contribution: None, cited, supports: true }
    });
    sources.extend(unweighed);
    sources
}
