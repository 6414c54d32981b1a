//! The proposal of an audit record: its hash, and the sources that support it.
//!
//! A proposal that is repeated for one record counts as one case, so all its records have the same proposal hash. The
//! supporting sources come from the cited signals and must not come from the clerk's contributions. A clerk also
//! weighs a signal that says something else, and such a signal may only have reduced the confidence. Both values go to
//! the index, and trust is computed from there.

use super::ActionKind;
use super::{AuditDraft, MutationProposal};
use crate::action::mutation::Mutation;
use crate::action::plan::ContentHash;
use crate::record::frontmatter::member_name;
use crate::signals::signal::source_key;
use serde_json::{Value, json};
use std::collections::BTreeMap;

impl AuditDraft {
    /// The hash of the proposal: the target, the field, its new value and the replaced value.
    ///
    /// For a set it covers the name of the member. If somebody changed the field meanwhile, it is another proposal.
    /// `None` for a resolution and for a record without a proposal.
    #[must_use]
    pub fn proposal_hash(&self) -> Option<ContentHash> {
        if self.kind != ActionKind::Action || self.class.is_none() {
            return None;
        }
        let MutationProposal { mutation, replaces, .. } = self.proposal.as_ref()?;
        let value = match mutation {
            Mutation::StateChange { to } => json!(to.as_str()),
            Mutation::ContextEdit { to, .. } => json!(to.trim()),
            Mutation::ParentMatter { to } => json!(to.as_str()),
            Mutation::Related { member, present, .. } => {
                let item = Value::from(member.as_str());
                json!([member_name(&item).unwrap_or(member), present])
            }
        };
        let parts = json!([self.target.as_str(), mutation.class().as_str(), mutation.field(), value, replaces]);
        Some(ContentHash::hash_bytes(parts.to_string().as_bytes()))
    }

    /// The sources that support the proposal: their names in the record, by their [`source_key`].
    ///
    /// These are the sources of the cited signals that support it. For a record without cited signals, they are the
    /// sources with a contribution.
    #[must_use]
    pub fn supporting_sources(&self) -> BTreeMap<String, String> {
        if self.evidence.is_empty() {
            let contributing = self.source_contributions.iter().filter(|(_, share)| **share > 0.0);
            return contributing.map(|(name, _)| (source_key(name), name.clone())).collect();
        }
        let supporting = self.evidence.iter().filter(|cited| cited.supports);
        supporting.map(|cited| (source_key(&cited.source), cited.source.clone())).collect()
    }
}
