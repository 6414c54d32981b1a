//! The steward of a matter: when it looks, what it asks, what follows.
//!
//! [`tick`] says what is due, [`clerk`] what a model is asked and may answer, [`guard`] whether it may be asked now,
//! [`mod@decide`] what follows from a checked answer.

pub mod clerk;
pub mod decide;
pub mod guard;
pub mod tick;
pub mod timestamps;
