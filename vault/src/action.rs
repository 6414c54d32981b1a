//! The one write path: journal, compare-and-swap, audit record, undo recipe.
//!
//! [`writer`] has the only type that writes records. [`apply`] takes a plan through all steps, [`transaction`] puts
//! its files in place, and [`exchange`] and [`swap`] move the bytes. [`resolve`] takes a person's resolution, and [`answers`] reads which one holds. [`preview`] shows what an undo
//! would do. [`moves`] records notes that people renamed. A crash at any point loses no change and makes no change twice.

pub mod answers;
pub(crate) mod apply;
pub mod ceiling;
pub mod chain;
pub mod create;
pub(crate) mod exchange;
pub(crate) mod history;
pub(crate) mod journal;
pub mod moves;
pub(crate) mod new_content;
pub mod ownership;
pub mod preview;
pub mod resolve;
pub(crate) mod swap;
pub(crate) mod transaction;
pub mod writer;
