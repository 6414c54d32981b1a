//! The message about a record that cannot be used: each fault with its line, in the order of the file.
//!
//! A person fixes them all in one go. It reads no file.

use steward_domain::gates::matter_policy::read::MatterPolicyFault;
use steward_domain::record::entity::{RecordError, RecordFaults};
use steward_domain::record::frontmatter::Document;
use steward_domain::record::path::RecordKind;
use steward_domain::record::schema::NoteSchema;

/// The faults of one record, found so far.
#[derive(Debug)]
pub(super) struct FaultMessages(Vec<FaultMessage>);

#[derive(Debug)]
struct FaultMessage {
    /// `None` for a fault without a line, such as a missing field. Such faults come last.
    line: Option<usize>,
    text: String,
}

impl FaultMessages {
    /// Finds the lines of a record's faults. The schema says how the note spells its fields.
    pub(super) fn locate_faults(
        faults: &RecordFaults,
        kind: RecordKind,
        document: &Document,
        schema: &NoteSchema,
    ) -> Self {
        let locate = |field: &'static str| {
            let property = schema.property_in(kind, field, document.fields());
            document.line_of_key(&[property.as_deref().unwrap_or(field)])
        };
        let describe = |fault: &RecordError| {
            let line = locate(fault.field());
            FaultMessage { line, text: line.map_or_else(|| fault.to_string(), |line| format!("line {line}: {fault}")) }
        };
        Self(faults.iter().map(describe).collect())
    }

    /// Adds the faults of a matter's policy.
    pub(super) fn with_policy_faults(mut self, faults: &[MatterPolicyFault]) -> Self {
        self.0.extend(faults.iter().map(|fault| FaultMessage { line: Some(fault.line), text: fault.to_string() }));
        self
    }

    /// All faults as one line of text.
    pub(super) fn join(mut self) -> String {
        self.0.sort_by_key(|fault| fault.line.unwrap_or(usize::MAX));
        let texts: Vec<String> = self.0.into_iter().map(|fault| fault.text).collect();
        texts.join("; ")
    }
}
