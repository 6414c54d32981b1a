//! What is true: the types and decisions of Steward, pure and deterministic.
//!
//! Nothing here touches a file, the network, a clock or randomness: time is always an argument.
//! Reading order: [`path`], [`record`], [`stream`] and [`signal`] (what a vault holds), [`mutation`]
//! (what may change), [`frontmatter`] (how it is read and edited), [`tick`] (what is due), [`clerk`] and
//! [`extract`] (what is asked and answered, of signals and of raw events), [`note_policy`] (what a matter's own
//! note allows), [`mod@decide`] and [`mod@route`] (what follows), [`plan`] (the exact change), [`audit`] (what is remembered), [`undo`]
//! (the way back), [`tracker`] (a task's issue elsewhere), [`stamp`] (a look's marks in a task's file),
//! [`content`] (whether a record says something new).
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod audit;
pub mod budget;
pub mod clerk;
pub mod content;
pub mod decide;
pub mod extract;
pub mod frontmatter;
pub mod guard;
pub mod landing;
pub mod mode;
pub mod mutation;
pub mod note_policy;
pub mod path;
pub mod plain;
pub mod plan;
pub mod record;
pub mod route;
pub mod signal;
pub mod stamp;
pub mod stream;
pub mod tick;
pub mod time;
pub mod tracker;
pub mod trust;
pub mod undo;
