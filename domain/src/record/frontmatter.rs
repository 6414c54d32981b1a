//! The fields of a record: read strictly, edited line by line.
//!
//! A record is a text file that begins with `---`, a YAML mapping and `---`;
//! the rest is its Markdown body. People edit these files at the same time as
//! we do, so [`edit()`] replaces nothing but the lines of the named fields, and
//! whatever is not understood beyond doubt is refused: two independent YAML
//! parsers must agree before an edit and after it.
//!
//! YAML 1.2 core schema without anchors, aliases and tags. Nothing here opens a
//! file; the caller brings the bytes, adds the path to errors and writes the
//! result. Fields go to the record types, [`FieldUndo`]s into audit records.

mod closer;
mod edit;
mod emit;
mod error;
mod fence;
mod flow;
mod ours;
mod parse;
mod splice;

use std::ops::Range;

pub(crate) use edit::strip_link_markup;
pub use edit::{
    EditedDocument, FieldEdit, FieldUndo, SetHistoryStep, edit_fields, edit_fields_with_undo, edit_member, has_member,
    list_members, member_name, undo_fields, undo_member, undo_set_step,
};
pub use error::FrontmatterError;

/// Largest record, in bytes. A long note is some 100 kB; a megabyte of text is
/// no record but a file that strayed in, and every byte here is hashed,
/// indexed and compared on each change.
pub const MAX_RECORD_BYTES: usize = 1024 * 1024;
/// Largest frontmatter, in bytes: a hundred times what people write, and small
/// enough that no hostile text of that size takes the parsers long.
pub const MAX_FRONTMATTER_BYTES: usize = 64 * 1024;
/// Deepest nesting of values; records have two or three levels.
pub const MAX_DEPTH: usize = 32;
/// Most values (and keys) of one frontmatter; bounds the parsers' memory.
pub const MAX_VALUES: usize = 10_000;

/// Fields of a record's frontmatter in file order.
pub type RecordFields = serde_json::Map<String, serde_json::Value>;

/// A record that both parsers understood alike; owns its text.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    text: String,
    yaml: Range<usize>,
    body: usize,
    fields: RecordFields,
}

impl Document {
    /// The fields in file order.
    #[must_use]
    pub fn fields(&self) -> &RecordFields {
        &self.fields
    }

    /// What follows the closing fence's line, byte for byte.
    #[must_use]
    pub fn body(&self) -> &str {
        &self.text[self.body..]
    }

    /// The whole file as text, BOM included.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The whole file as bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.text.as_bytes()
    }

    /// The line of the file, from 1, on which the key at the end of a path of keys stands; for what is told about it.
    #[must_use]
    pub fn line_of_key(&self, path: &[&str]) -> Option<usize> {
        parse::line_of_path(self.yaml_text(), path)
    }

    /// The fields alone.
    #[must_use]
    pub fn into_fields(self) -> RecordFields {
        self.fields
    }

    fn into_bytes(self) -> Vec<u8> {
        self.text.into_bytes()
    }

    /// The lines between the fences.
    fn yaml_text(&self) -> &str {
        &self.text[self.yaml.clone()]
    }

    /// The line ending of new lines: that of the last line above the closing fence.
    fn line_ending(&self) -> &'static str {
        if self.text[..self.yaml.end].ends_with("\r\n") { "\r\n" } else { "\n" }
    }

    /// The same file with another YAML text, read anew from the first byte.
    fn with_yaml(&self, yaml: &str) -> Result<Self, FrontmatterError> {
        let (above, below) = (&self.text[..self.yaml.start], &self.text[self.yaml.end..]);
        read_document(format!("{above}{yaml}{below}").as_bytes())
    }
}

/// Reads a record strictly.
///
/// A frontmatter without any field is an empty mapping. Timestamps, `yes` and
/// `12:30:45` are text; numbers stay integers or floats.
///
/// # Errors
///
/// Anything that is not beyond doubt: see [`FrontmatterError`].
pub fn read_document(bytes: &[u8]) -> Result<Document, FrontmatterError> {
    let text = fence::decode_text(bytes)?;
    let found = fence::find_fences(text)?;
    let fields = parse::parse_fields(&text[found.yaml.clone()])?;
    Ok(Document { text: text.to_owned(), yaml: found.yaml, body: found.body, fields })
}

/// Reads a record as [`read`] does, and one whose fields stand as [`render`] writes them in a tenth of the time.
///
/// For who reads many records that we wrote ourselves; who edits one reads it with [`read`].
///
/// # Errors
///
/// As [`read`].
pub fn read_document_fast(bytes: &[u8]) -> Result<Document, FrontmatterError> {
    let text = fence::decode_text(bytes)?;
    let found = fence::find_fences(text)?;
    let yaml = &text[found.yaml.clone()];
    let fields = ours::read_emitted_fields(yaml).map_or_else(|| parse::parse_fields(yaml), Ok)?;
    Ok(Document { text: text.to_owned(), yaml: found.yaml, body: found.body, fields })
}

/// Writes a new record: fences, one field after the other, the body as given.
///
/// [`read`] takes it back with equal fields, as long as it keeps within
/// [`MAX_DEPTH`], [`MAX_VALUES`] and the size limits.
#[must_use]
pub fn render_document(fields: &RecordFields, body: &str) -> String {
    format!("---\n{}---\n{body}", emit::format_block_fields(fields, 0, "\n"))
}
