//! How far a source is trusted, told from the audit records alone.
//!
//! Everything here is a fold over the records in the order of the chain, so that it comes out the same
//! however often, in whatever order and after whatever loss it is asked for: [`confidence`] moves with what
//! sources contribute and with every undo, [`outcome`] says what became of an action, and which of that counts as
//! an observation. [`report`] tells from that how right the steward is,
//! [`advice`] what a person may set, [`backtest`] what other settings would have done, and [`clearance`] whether that is
//! reason enough to set them.

pub mod backtest;
pub mod by_hand;
pub mod case;
pub mod confidence;
pub mod demotion;
pub mod mark;
pub mod outcome;
pub mod report;
pub mod tally;
pub mod wilson;
