//! The frontmatter of a record: read strictly and edited line by line.
//!
//! A record is a text file that begins with `---`, a YAML mapping and `---`. The rest is its Markdown body. People edit
//! these files at the same time as Steward. So [`edit_fields`] must replace only the lines of the named fields.
//! Two independent YAML parsers must agree before an edit and after it. Otherwise the record is refused.
//!
//! The format is the YAML 1.2 core schema without anchors, aliases and tags. Nothing here opens a file. The caller
//! reads the bytes, adds the path to errors and writes the result. Audit records keep the [`FieldUndo`]s.

mod closer;
mod edit;
mod emit;
mod error;
mod fence;
mod flow;
mod ours;
mod parse;
mod splice;

use crate::record::unlinked;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::OnceLock;

pub(crate) use edit::strip_link_markup;
pub use edit::{
    EditedDocument, FieldEdit, FieldUndo, SetHistoryStep, edit_fields, edit_fields_with_undo, edit_member, has_member,
    list_members, member_name, undo_fields, undo_member, undo_set_step,
};
pub use error::FrontmatterError;

/// The largest record, in bytes.
///
/// A long note has some 100 kB. A megabyte of text is a file in the wrong folder, and every byte is hashed,
/// indexed and compared on each change.
pub const MAX_RECORD_BYTES: usize = 1024 * 1024;
/// The largest frontmatter, in bytes.
///
/// It is a hundred times what people write, and small enough that no hostile text keeps the parsers busy for long.
pub const MAX_FRONTMATTER_BYTES: usize = 64 * 1024;
/// The deepest nesting of values. Records have two or three levels.
pub const MAX_DEPTH: usize = 32;
/// The most values and keys of one frontmatter. It bounds the parsers' memory.
pub const MAX_VALUES: usize = 10_000;

/// The fields of a record's frontmatter in file order.
pub type RecordFields = serde_json::Map<String, serde_json::Value>;

/// A record for which both parsers agree. It owns its text.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    text: String,
    yaml: Range<usize>,
    body: usize,
    fields: RecordFields,
    lines: KeyLines,
}

/// The lines of keys, found when somebody first asks for one. They follow from the text, so they make no document differ.
#[derive(Debug, Clone, Default)]
struct KeyLines(OnceLock<BTreeMap<Vec<String>, usize>>);

impl PartialEq for KeyLines {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Document {
    /// The fields in file order.
    #[must_use]
    pub fn fields(&self) -> &RecordFields {
        &self.fields
    }

    /// The body: every byte after the line of the closing fence.
    #[must_use]
    pub fn body(&self) -> &str {
        &self.text[self.body..]
    }

    /// The line of the file for a line of the body, both from 1.
    #[must_use]
    pub fn line_in_file(&self, line: usize) -> usize {
        self.text[..self.body].matches('\n').count() + line
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

    /// The line of the file, from 1, of the last key in a path of keys. In a list the key is a position from 0. Messages use it.
    #[must_use]
    pub fn line_of_key(&self, path: &[&str]) -> Option<usize> {
        let lines = self.lines.0.get_or_init(|| parse::list_key_lines(self.yaml_text()));
        let path: Vec<String> = path.iter().map(|&key| key.to_owned()).collect();
        lines.get(&path).copied()
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

    /// The line ending for new lines: that of the last line above the closing fence.
    fn line_ending(&self) -> &'static str {
        if self.text[..self.yaml.end].ends_with("\r\n") { "\r\n" } else { "\n" }
    }

    /// The same file with another YAML text, parsed again from the first byte.
    fn with_yaml(&self, yaml: &str) -> Result<Self, FrontmatterError> {
        let (above, below) = (&self.text[..self.yaml.start], &self.text[self.yaml.end..]);
        read_document(format!("{above}{yaml}{below}").as_bytes())
    }
}

/// Reads a record strictly.
///
/// A frontmatter without any field is an empty mapping. Timestamps, `yes` and
/// `12:30:45` are text. Numbers stay integers or floats.
///
/// # Errors
///
/// [`FrontmatterError`] for anything that two parsers could read differently.
pub fn read_document(bytes: &[u8]) -> Result<Document, FrontmatterError> {
    let text = fence::decode_text(bytes)?;
    let found = fence::find_fences(text)?;
    let fields = parse::parse_fields(&text[found.yaml.clone()])?;
    Ok(Document { text: text.to_owned(), yaml: found.yaml, body: found.body, fields, lines: KeyLines::default() })
}

/// Reads a note of a person's as [`read_document`] does. A note without frontmatter has no fields and only a body.
///
/// # Errors
///
/// The same as [`read_document`], except [`FrontmatterError::NoFrontmatter`].
pub fn read_note(bytes: &[u8]) -> Result<Document, FrontmatterError> {
    match read_document(bytes) {
        Err(FrontmatterError::NoFrontmatter) => {
            let text = fence::decode_text(bytes)?;
            let (fields, lines) = (RecordFields::new(), KeyLines::default());
            Ok(Document { text: text.to_owned(), yaml: 0..0, body: 0, fields, lines })
        }
        read => read,
    }
}

/// Reads a record as [`read_document`] does, but ten times as fast if [`render_document`] wrote its fields.
///
/// It is for reading many records that Steward wrote itself. An edit must use [`read_document`].
///
/// # Errors
///
/// The same as [`read_document`].
pub fn read_document_fast(bytes: &[u8]) -> Result<Document, FrontmatterError> {
    let text = fence::decode_text(bytes)?;
    let found = fence::find_fences(text)?;
    let yaml = &text[found.yaml.clone()];
    let fields = ours::read_emitted_fields(yaml).map_or_else(|| parse::parse_fields(yaml), Ok)?;
    Ok(Document { text: text.to_owned(), yaml: found.yaml, body: found.body, fields, lines: KeyLines::default() })
}

/// Reads a note as [`read_note`] does, and its fields as fast as [`read_document_fast`] does. An edit must use [`read_note`].
///
/// # Errors
///
/// The same as [`read_note`].
pub fn read_note_fast(bytes: &[u8]) -> Result<Document, FrontmatterError> {
    match read_document_fast(bytes) {
        Err(FrontmatterError::NoFrontmatter) => read_note(bytes),
        read => read,
    }
}

/// Renders a new record of Steward's own: the fences, one field after the other, and the given body.
///
/// No value holds a link ([`crate::record::unlinked`]). [`read_document`] and [`read_own_fields`] read it back with equal
/// fields, if it keeps within [`MAX_DEPTH`], [`MAX_VALUES`] and the size limits.
#[must_use]
pub fn render_document(fields: &RecordFields, body: &str) -> String {
    let mut fields = fields.clone();
    fields.values_mut().for_each(unlinked::unlink_value);
    render_note(&fields, body)
}

/// Renders a new note of a person's as [`render_document`] does, but every value as it is. [`read_note`] reads it back.
#[must_use]
pub fn render_note(fields: &RecordFields, body: &str) -> String {
    format!("---\n{}---\n{body}", emit::format_block_fields(fields, 0, "\n"))
}

/// The fields of a record of Steward's own, as they were given to [`render_document`].
#[must_use]
pub fn read_own_fields(fields: &RecordFields) -> RecordFields {
    let mut fields = fields.clone();
    fields.values_mut().for_each(unlinked::relink_value);
    fields
}
