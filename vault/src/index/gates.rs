//! The facts that gates need from the index.
//!
//! [`landing`] gathers all of them when a plan lands: what the notes of the matters allow, what each source changed in a
//! day, who is demoted. The gates themselves are evaluated in `steward_domain::gates`.

mod landing;
pub(crate) mod matter_policy;
pub(crate) mod source_budget;
