//! Signals: facts from outside that point at a task or a matter.
//!
//! A [`stream`] event is raw text from outside. [`extract`] turns it into [`signal`]s, and [`mod@route`] acts on those
//! that no steward judges. All of this is untrusted data.

pub mod extract;
pub mod references;
pub mod route;
pub mod signal;
pub mod stance;
pub mod stream;
