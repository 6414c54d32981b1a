//! Stream events and signals that wait.
//!
//! [`streams`] keeps the progress of each stream, [`events`] lists their events, and [`route`] lists the signals for the router. An open question
//! withholds signals about its record; [`doubt`] finds it.

pub(crate) mod doubt;
pub(crate) mod events;
pub(crate) mod extract;
pub(crate) mod route;
pub(crate) mod streams;

use crate::index::Index;

/// Stream events and signals that wait.
///
/// Borrowed from an index by [`Index::signals`].
#[derive(Clone, Copy, Debug)]
pub struct SignalsView<'a> {
    index: &'a Index,
}

impl Index {
    #[must_use]
    pub fn signals(&self) -> SignalsView<'_> {
        SignalsView { index: self }
    }
}
