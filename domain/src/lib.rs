//! What is true: the types and decisions of Steward, pure and deterministic.
//!
//! Nothing here touches a file, the network, a clock or randomness: time is always an argument.
//! Reading order: [`path`] and [`record`] (what a vault holds), [`tick`] (what is due),
//! [`clerk`] (what is asked and answered), [`decide`] (what follows), [`plan`] (the exact change),
//! [`audit`] (what is remembered) and [`undo`] (how it is put back).
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod clerk;
pub mod guard;
pub mod mode;
pub mod path;
pub mod record;
pub mod time;
