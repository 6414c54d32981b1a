//! The files of a vault and of its state folder.
//!
//! [`root`] opens the vault once and never leaves its folder. [`watch`] hints that files changed. The other modules
//! write files that survive a power cut and that only their owner may read.

pub mod copy_id;
pub mod crash;
pub mod day_log;
pub mod disk;
pub(crate) mod durable;
pub mod identity;
pub(crate) mod json_lines;
pub mod operator_log;
pub mod private;
pub(crate) mod read_cache;
pub mod root;
pub mod steward_folder;
pub mod storage;
pub(crate) mod target;
pub mod watch;
