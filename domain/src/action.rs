//! Actions: what is decided, carried out, recorded and undone.
//!
//! [`mutation`] lists what may change, [`plan`] is the exact change, [`audit`] is the record of it, [`undo`] is the way
//! back. Only the planners make a plan, and only the vault writer takes one.

pub mod audit;
pub mod mutation;
pub mod plan;
pub mod undo;
