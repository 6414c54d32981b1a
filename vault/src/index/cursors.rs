//! The stewards' cursors: what they have seen, and which task or source comes next.
//!
//! [`observe`] is one check of one matter. A cursor moves only when the result of the check is safe on disk.

pub(crate) mod clerk_answers;
pub(crate) mod lease;
pub(crate) mod look;
pub(crate) mod news;
pub(crate) mod observe;
pub(crate) mod state;
pub(crate) mod timestamps;
pub(crate) mod turns;
pub(crate) mod unfinished;
pub(crate) mod wake;
