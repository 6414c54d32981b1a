//! What a record says was proposed, and who spoke for it.
//!
//! The same proposal made again on one record is one act, however many records it leaves, so each carries the same
//! hash of what it proposes. Who speaks for a proposal is told from the signals that it cites, not from what a clerk
//! says that a source contributed: a signal that says something else was weighed, too, and may have lowered nothing but
//! the confidence. Both go to the index, from which trust is told.

use super::ActionKind;
use super::AuditDraft;
use crate::action::mutation::Mutation;
use crate::action::plan::ContentHash;
use crate::record::frontmatter::member_name;
use crate::signals::signal::source_key;
use serde_json::{Value, json};
use std::collections::BTreeMap;

impl AuditDraft {
    /// The hash of what is proposed: the target, the field, its new value and the one that this replaces, of a set the
    /// member by what it names. Where somebody changed the field meanwhile it is another proposal.
    ///
    /// `None` in answers and where nothing is proposed.
    #[must_use]
    pub fn proposal_hash(&self) -> Option<ContentHash> {
        if self.kind != ActionKind::Action || self.class.is_none() {
            return None;
        }
        // Records of before there were other classes name the state alone.
        let of_the_state = self.proposed_state.map(|to| Mutation::StateChange { to });
        let mutation = self.proposal.as_ref().map(|p| p.mutation.clone()).or(of_the_state)?;
        let value = match &mutation {
            Mutation::StateChange { to } => json!(to.as_str()),
            Mutation::ContextEdit { to, .. } => json!(to.trim()),
            Mutation::ParentMatter { to } => json!(to.as_str()),
            Mutation::Related { member, present, .. } => {
                let named = Value::from(member.as_str());
                json!([member_name(&named).unwrap_or(member), present])
            }
        };
        let replaces = match &self.proposal {
            Some(proposal) => proposal.replaces.clone(),
            None => self.prior_state.clone().map(Value::from),
        };
        let said = json!([self.target.as_str(), mutation.class().as_str(), mutation.field(), value, replaces]);
        Some(ContentHash::hash_bytes(said.to_string().as_bytes()))
    }

    /// The sources that speak for what is proposed: their names as the record has them, by the key that trust goes by.
    ///
    /// Those of the cited signals that say it. A record that cites nothing is taken at its contributions.
    #[must_use]
    pub fn supporting_sources(&self) -> BTreeMap<String, String> {
        if self.evidence.is_empty() {
            let gave = self.source_contributions.iter().filter(|(_, part)| **part > 0.0);
            return gave.map(|(name, _)| (source_key(name), name.clone())).collect();
        }
        let said = self.evidence.iter().filter(|cited| cited.speaks);
        said.map(|cited| (source_key(&cited.source), cited.source.clone())).collect()
    }
}
