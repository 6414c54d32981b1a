//! The gRPC contract `steward.v1`, as clients and servers in Rust.
//!
//! The contract itself is `steward/v1/*.proto`. The head of `refusals.proto` describes what all services share: scopes,
//! pages, errors and untrusted text. This crate decides nothing and uses no other crate of Steward.
//!
//! `released.txt` lists every released number. After an addition, `STEWARD_RELEASE=1 cargo test --workspace --test
//! contract` writes the new lines. Existing lines are never edited: a field that is removed becomes `reserved`, with its
//! number and its name.

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
