//! All faults of one record, so that its person can fix them in one go.
//!
//! A reader checks every field and keeps what is wrong. A record with a fault must never be returned.

use super::RecordError;
use std::fmt;

/// What is wrong with one record: at least one fault.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecordFaults(Vec<RecordError>);

impl RecordFaults {
    /// The faults, in the order in which the fields were read.
    pub fn iter(&self) -> impl Iterator<Item = &RecordError> {
        self.0.iter()
    }

    /// Adds a fault that only the caller can see.
    #[must_use]
    pub fn with_fault(mut self, fault: RecordError) -> Self {
        self.0.push(fault);
        self
    }

    /// Keeps the fault of a field, or returns its value.
    pub(crate) fn check_field<T>(&mut self, read: Result<T, RecordError>) -> Option<T> {
        read.map_err(|fault| self.0.push(fault)).ok()
    }

    /// The record, unless a field had a fault. `record` is `None` only then.
    pub(crate) fn finish_record<T>(self, record: Option<T>) -> Result<T, Self> {
        record.filter(|_| self.0.is_empty()).ok_or(self)
    }
}

impl From<RecordError> for RecordFaults {
    fn from(fault: RecordError) -> Self {
        Self(vec![fault])
    }
}

impl fmt::Display for RecordFaults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let faults: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        f.write_str(&faults.join("; "))
    }
}

impl std::error::Error for RecordFaults {}
