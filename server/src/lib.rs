//! Interfaces: the control API, gRPC and the dashboard.
//!
//! Every interface shows the same [`views`], read from the vault's read side: the values that the gates used. A change
//! is requested from Temporal ([`temporal::resolve`]) and carried out by the process that holds the vault; only a stop
//! is set here, as the command does. Activities are never called. [`access`] authenticates and authorises a request
//! before anything else looks at it.
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod access;
mod api;
pub mod charts;
pub mod grpc;
pub mod http;
mod pages;
pub mod temporal;
pub mod views;
