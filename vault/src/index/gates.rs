//! The facts that gates need from the index.
//!
//! [`matter_policy`] reads the policies in the matters' notes. [`source_budget`] counts what a source changed in a day.
//! The gates themselves are evaluated in `steward_domain::gates`.

pub(crate) mod matter_policy;
pub(crate) mod source_budget;
