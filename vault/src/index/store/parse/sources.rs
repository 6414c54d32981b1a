//! The sources of an action, as its record tells them.
//!
//! Pure: a record's evidence and contributions become rows, one a source. They go to [`crate::index::store::rows`].

use super::SourceContribution;
use std::collections::BTreeSet;
use steward_domain::action::audit::AuditDraft;
use steward_domain::signals::signal::source_key;

/// The sources that were weighed, and those that spoke. Of several names of one source the last counts.
pub(super) fn read_contributions(draft: &AuditDraft) -> Vec<SourceContribution> {
    let cited: BTreeSet<String> = draft.evidence.iter().map(|e| source_key(&e.source)).collect();
    let mut speaking = draft.supporting_sources();
    let weighed = draft.source_contributions.iter();
    let mut sources: Vec<SourceContribution> = weighed
        .map(|(name, part)| {
            let source = source_key(name);
            let speaks = speaking.contains_key(&source);
            SourceContribution {
                cited: cited.contains(&source),
                speaks,
                source,
                name: name.clone(),
                contribution: Some(*part),
            }
        })
        .collect();
    speaking.retain(|key, _| sources.iter().all(|known| known.source != *key));
    let silent = speaking.into_iter().map(|(source, name)| {
        let cited = cited.contains(&source);
        SourceContribution { source, name, contribution: None, cited, speaks: true }
    });
    sources.extend(silent);
    sources
}
