//! Activities of a tick that concern the clerk.
//!
//! [`clerks`] are the models that may be asked, [`judge`] is the one activity that may leave the machine. An answer about the
//! same evidence is remembered and costs no second call.

pub(crate) mod clerk_answers;
pub mod clerks;
pub mod judge;
