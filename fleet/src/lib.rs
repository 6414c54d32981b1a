//! The database that the machines of a fleet share: tenants, the owner of each vault, and stops.
//!
//! It holds what machines must agree on and nothing of a vault: no note, no quote, no key. The rules are in
//! `steward_domain::fleet`; this crate stores and asks. It must not touch Temporal or a vault. Every call has a deadline
//! here, because the server's own limits do not bound a commit. An error is a refusal: without the database nothing is
//! reserved and nothing lands.
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod admin;
pub mod buckets;
pub mod events;
pub mod gate;
pub mod overview;
pub mod owner;
mod ownership;
pub mod stops;
mod store;
pub mod tenants;

pub use events::Operator;
pub use gate::BucketGate;
pub use owner::{OwnerPermit, Permit, PermitRefusal};
pub use ownership::VaultOwnership;
pub use store::{ConnectedRole, FleetError, FleetStore, read_boot_instant};
