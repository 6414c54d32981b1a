//! The frontmatter module from outside: bad input, edits, undo, properties over
//! generated records, and the public YAML test suite.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod edits;
mod generated;
mod hostile;
mod properties;
mod reading;
mod suite;
mod undoing;
