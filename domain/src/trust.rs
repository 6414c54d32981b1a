//! Trust: how far a source may act, computed from the audit records alone.
//!
//! Everything here is a fold over the records in the order of the chain. So the result is the same after a repetition
//! or a loss of state. [`confidence`] moves with the contributions of a source and with every undo. [`outcome`] and
//! [`tally`] classify how an action turned out, and which outcomes count as observations. [`demotion`] takes rights
//! away. [`report`] measures how often the steward was right and recommends settings. [`backtest`] replays the recorded
//! decisions under other settings.

pub mod backtest;
pub mod by_hand;
pub mod case;
pub mod ceiling;
pub mod confidence;
pub mod demotion;
pub mod mark;
pub mod outcome;
pub mod report;
pub mod tally;
pub mod wilson;
