//! Stream events and signals as files.
//!
//! [`inbox`] is the drop folder. The status of an event or of a signal is written into its own fields. That takes the
//! one write path, without an audit record.

pub mod inbox;
pub(crate) mod status;
