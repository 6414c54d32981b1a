//! Rules: the types and decisions of Steward, pure and deterministic.
//!
//! Nothing here touches a file, the network, a clock or randomness. Time is always an argument. Each folder is one
//! concept: [`record`] (the files of a vault), [`action`] (decisions, audit records and undo), [`gates`] (the
//! conditions of a change), [`steward`] (tick, clerk, rate guard), [`signals`] (events and the facts in them), [`trust`]
//! (how far a source is trusted), [`tracker`] (the issue of a task in an external tracker), [`fleet`] (vaults that share a
//! namespace), [`wiki`] (pages compiled from sources). `vault`, `workflows` and `activities` use the same names for their part of a concept, where they have one.
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod action;
pub mod fleet;
pub mod gates;
pub mod record;
pub mod signals;
pub mod steward;
pub mod time;
pub mod tracker;
pub mod trust;
pub mod wiki;
