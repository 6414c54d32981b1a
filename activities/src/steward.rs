//! Activities of a tick that concern the clerk.
//!
//! [`clerks`] are the judges that may be asked. [`judge`] is the only activity of a tick that may leave the machine. An
//! answer about the same evidence is remembered, so it costs no second call.

pub(crate) mod clerk_answers;
pub mod clerks;
pub mod judge;
pub mod tick;
