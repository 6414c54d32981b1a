//! The real binary on a real Temporal server.
#![allow(clippy::unwrap_used, reason = "tests")]

mod access;
mod answers;
mod api;
mod arrival;
mod bad_input;
mod clerks;
mod commands;
mod containment;
mod crash;
mod extract;
mod fleet;
mod full_disk;
mod grpc;
mod idle;
mod machine;
mod modes;
mod policy;
mod purge;
mod remote;
mod router;
mod schedules;
mod serve;
mod short_waits;
mod stamps;
mod tracker;
mod trouble;
mod trust;
mod trust_report;
mod up;
mod wake;
