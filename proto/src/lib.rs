//! What is said: the gRPC contract `steward.v1`, as clients and servers in Rust.
//!
//! The contract itself is `steward/v1/*.proto`; what all services share (scopes, pages, errors, words of others) stands
//! at the head of `refusals.proto`. Nothing is decided here, and no crate of ours is seen. Every number that was
//! released stands in `released.txt`, and stays what it was: after an addition,
//! `STEWARD_RELEASE=1 cargo test -p steward-proto` writes the new lines there. Old ones are never edited; what goes is
//! `reserved`, its number and its name.

/// Messages, clients and servers of `steward.v1`.
#[allow(clippy::all, clippy::pedantic, missing_docs, rustdoc::all, unreachable_pub)]
pub mod v1 {
    tonic::include_proto!("steward.v1");
}

/// The descriptors of the contract and of what it imports, for reflection: an encoded `FileDescriptorSet`.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));

/// Trailing metadata of a refusal: its HTTP status, three digits.
pub const STATUS_TRAILER: &str = "steward-status";
/// Trailing metadata of a refusal: a [`v1::RefusalReason`] in lower case without its prefix.
pub const REASON_TRAILER: &str = "steward-reason";
/// Trailing metadata of a refusal: the names of the fields in the way, joined by `,`.
pub const FIELDS_TRAILER: &str = "steward-fields";
/// Trailing metadata of a refusal: the id of the action to be undone first.
pub const NEWER_TRAILER: &str = "steward-newer";
/// Trailing metadata of a refusal: the path of the record that was filed in spite of it.
pub const RECORD_TRAILER: &str = "steward-record";
/// Trailing metadata of a refusal: all that the rule says, as the JSON of `steward undo --json` under `refusal`.
pub const REFUSAL_TRAILER: &str = "steward-refusal-bin";
