//! The frontmatter module from outside: bad input, edits, undo, properties over
//! generated records, and the public YAML test suite.
#![cfg_attr(test, allow(clippy::unwrap_used))]
#![allow(clippy::disallowed_methods, reason = "the suite is read from disk and hostile input is timed")]

mod edits;
mod generated;
mod hostile;
mod members;
mod properties;
mod reading;
mod suite;
mod undoing;
