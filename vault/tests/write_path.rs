//! Tests of the one write path: crashes, people who edit at the same moment, full and read-only disks, and a tampered
//! audit chain.
#![cfg_attr(test, allow(clippy::unwrap_used))]
#![allow(clippy::print_stdout, reason = "tests print what they tried and counted")]

#[path = "write_path/answers.rs"]
mod answers;
#[path = "write_path/assistants.rs"]
mod assistants;
#[path = "write_path/backup.rs"]
mod backup;
#[path = "write_path/by_hand.rs"]
mod by_hand;
#[path = "write_path/ceiling.rs"]
mod ceiling;
#[path = "write_path/chain.rs"]
mod chain;
#[path = "write_path/changes.rs"]
mod changes;
#[path = "write_path/crash.rs"]
mod crash;
#[path = "write_path/desk.rs"]
mod desk;
#[path = "write_path/disk.rs"]
mod disk;
#[path = "write_path/editors.rs"]
mod editors;
#[path = "write_path/fixes.rs"]
mod fixes;
#[path = "write_path/graph.rs"]
mod graph;
#[path = "write_path/ingest.rs"]
mod ingest;
#[path = "write_path/lock.rs"]
mod lock;
#[path = "write_path/mapped.rs"]
mod mapped;
#[path = "write_path/merge_oracle.rs"]
mod merge_oracle;
#[path = "write_path/moved.rs"]
mod moved;
#[path = "write_path/names.rs"]
mod names;
#[path = "write_path/preview.rs"]
mod preview;
#[path = "write_path/rejected.rs"]
mod rejected;
#[path = "write_path/reverts.rs"]
mod reverts;
#[path = "write_path/runs.rs"]
mod runs;
#[path = "write_path/seen_chain.rs"]
mod seen_chain;
#[path = "write_path/sequences.rs"]
mod sequences;
#[path = "write_path/timestamps.rs"]
mod timestamps;
#[path = "write_path/wiki_desk.rs"]
mod wiki_desk;
#[path = "write_path/wiki_disk.rs"]
mod wiki_disk;
#[path = "write_path/wiki_kills.rs"]
mod wiki_kills;
