//! Gates: a change is made only when every gate is open.
//!
//! [`evaluate`] is the one place where a change meets its gates before it lands, [`landing`] the one place where it meets
//! them when it lands. [`closed`] says how a change lands behind a set of closed gates. The other modules hold one gate
//! or two each.

pub mod closed;
pub mod evaluate;
pub mod evidence;
pub mod landing;
pub mod matter_policy;
pub mod mode;
pub mod result;
pub mod source_budget;
mod trust;
