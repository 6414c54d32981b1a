//! Gates: a change is made only when every gate is open.
//!
//! [`mode`] holds modes and ceilings, [`matter_policy`] reads what a matter's own note allows, [`mod@source_budget`] limits
//! what a source may change in a day. [`closed`] says how a change lands behind a set of closed gates.

pub(crate) mod closed;
pub mod landing;
pub mod matter_policy;
pub mod mode;
pub mod source_budget;
