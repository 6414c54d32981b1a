//! Actions: changes that are decided, applied, recorded and undone.
//!
//! [`mutation`] lists the classes of change, [`plan`] holds one exact change, [`target`] names its file, [`audit`] is its
//! record, [`undo`] its reversal. Only the planners make a plan, and only the vault writer applies one.

pub mod acceptance;
pub mod audit;
pub mod moves;
pub mod mutation;
pub mod plan;
pub mod target;
pub mod undo;
