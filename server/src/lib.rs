//! What listens: the control API and the dashboard.
//!
//! Every face shows the same [`facts`], read from the vault's read side: the values that the gates used. What
//! changes anything is asked of Temporal ([`answer`]) and done in the process that holds the vault; the brake
//! alone is set here, as the command does. No activity is ever called. Who asks and what they may do is settled
//! before a request is looked at ([`access`]).
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod access;
mod acts;
pub mod answer;
mod api;
pub mod app;
mod beat;
pub mod charts;
pub mod facts;
pub mod grpc;
pub mod holder;
pub mod listen;
mod outside;
mod pages;
pub mod serving;
mod temporal;
