//! Interfaces: the control API, gRPC, the dashboard, and tools for assistants.
//!
//! Every interface shows the same [`views`]. They are read from the vault's read side and hold the values that the
//! gates used. A change is requested from Temporal ([`temporal::resolve`]), and the process that holds the vault
//! carries it out. Only a stop is written here, as the command does. Activities are never called. [`access`]
//! authenticates and authorises a request before any handler sees it.
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod access;
mod api;
pub mod charts;
pub mod grpc;
pub mod http;
pub mod mcp;
mod pages;
pub mod temporal;
pub mod views;
