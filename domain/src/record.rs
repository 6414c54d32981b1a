//! Records: the Markdown files of a vault, as formats and edits.
//!
//! [`path`] names a record, [`link`] finds the note that a link names, [`frontmatter`] reads and edits its fields,
//! [`entity`] holds matters, tasks and instincts, and [`schema`] applies the [`mapping`] of a vault. [`unsupported`]
//! counts what is not read.
//! An edit of one field must leave every other byte as it was.

pub mod content_hash;
pub mod entity;
pub mod frontmatter;
pub mod link;
pub mod mapping;
pub mod moves;
pub mod path;
pub mod plain_text;
pub mod schema;
pub mod unlinked;
pub mod unsupported;
pub mod url;
