//! Gates: a change is made only when every gate is open.
//!
//! [`evaluate`] is the only place that evaluates the gates when a change is decided. [`landing`] is the only place that
//! evaluates them again when the plan is applied. [`closed`] turns a set of closed gates into a disposition. The other
//! modules hold one or two gates each.

pub mod closed;
pub mod evaluate;
pub mod evidence;
pub mod landing;
pub mod matter_policy;
pub mod mode;
pub mod result;
pub mod source_budget;
mod trust;
