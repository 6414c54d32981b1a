//! The errors of a record's frontmatter, in words for the person who has to fix it.
//!
//! Every message reads after "failed to …". It names the line of the file (the opening `---` is line 1) and the fix.
//! The path is not known here. The caller that read the file adds it.

use super::MAX_DEPTH;
use super::MAX_FRONTMATTER_BYTES;
use super::MAX_RECORD_BYTES;
use super::MAX_VALUES;

/// Why a record was refused, or why an edit of it was.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FrontmatterError {
    /// The whole file is larger than [`MAX_RECORD_BYTES`].
    #[error(
        "read the record: it has {bytes} bytes and the limit is {MAX_RECORD_BYTES}; \
         move the long text into a file of its own and link it"
    )]
    RecordTooLarge {
        /// The size of the file, in bytes.
        bytes: usize,
    },
    /// The fields are larger than [`MAX_FRONTMATTER_BYTES`].
    #[error(
        "read the frontmatter: no closing `---` within {MAX_FRONTMATTER_BYTES} bytes; \
         close it, or move long text below it"
    )]
    FrontmatterTooLarge,
    /// A byte that is not UTF-8, anywhere in the file.
    #[error("read line {line}: the byte at offset {offset} is not UTF-8; save the file as UTF-8")]
    NotUtf8 {
        /// The line of the file.
        line: usize,
        /// The offset of the first invalid byte from the start of the file.
        offset: usize,
    },
    /// The file has a NUL byte, so it is not a text file.
    #[error(
        "read line {line}: a NUL byte at offset {offset} shows that this is a binary file; \
         move it out of the vault's folders or replace it by text"
    )]
    Binary {
        /// The line of the file.
        line: usize,
        /// The offset of the NUL byte from the start of the file.
        offset: usize,
    },
    /// The file does not begin with a fence.
    #[error("read line 1: it is not `---`; begin the file with `---`, the fields, and a closing `---`")]
    NoFrontmatter,
    /// No closing fence.
    #[error("read the frontmatter: no closing `---` follows line 1; put one on a line of its own after the last field")]
    Unterminated,
    /// A carriage return that is not part of CRLF.
    #[error("read line {line}: it holds a lone carriage return; save the file with LF or CRLF")]
    LoneCarriageReturn {
        /// The line of the file.
        line: usize,
    },
    /// A control character that YAML forbids.
    #[error("read line {line}: it holds the control character U+{code:04X}; remove it")]
    ControlCharacter {
        /// The line of the file.
        line: usize,
        /// Code point.
        code: u32,
    },
    /// A tab where YAML wants spaces.
    #[error("read line {line}: it is indented with a tab; indent with spaces")]
    Tab {
        /// The line of the file.
        line: usize,
    },
    /// Invalid YAML.
    #[error("read line {line}: {problem}; {fix}")]
    Syntax {
        /// The line of the file.
        line: usize,
        /// The parser's message.
        problem: String,
        /// The fix.
        fix: String,
    },
    /// A list or a text in the place of the fields.
    #[error("read line {line}: the frontmatter is not a mapping; write `field: value` lines")]
    NotAMapping {
        /// The line of the file.
        line: usize,
    },
    /// The same field twice in one mapping.
    #[error("read line {line}: the field `{key}` appears a second time; remove one of the two")]
    DuplicateKey {
        /// The line of the second one.
        line: usize,
        /// The key as text.
        key: String,
    },
    /// A key that is a list, a mapping or null.
    #[error("read line {line}: a field's name must be text; put it in quotes")]
    BadKey {
        /// The line of the file.
        line: usize,
    },
    /// An anchor, an alias or a tag (`&x`, `*x`, `!x`).
    #[error(
        "read line {line}: `{text}` is an anchor, alias or tag, which records must not use; \
         put the value in quotes or write it out"
    )]
    Indirection {
        /// The line of the file.
        line: usize,
        /// The construct, shortened.
        text: String,
    },
    /// Nested deeper than [`MAX_DEPTH`].
    #[error("read line {line}: values are nested deeper than {MAX_DEPTH} levels; flatten them")]
    TooDeep {
        /// The line of the file.
        line: usize,
    },
    /// More than [`MAX_VALUES`] values.
    #[error("read line {line}: the frontmatter holds more than {MAX_VALUES} values; move the list into the body")]
    TooManyValues {
        /// The line of the file.
        line: usize,
    },
    /// A number that JSON cannot carry unchanged.
    #[error("read line {line}: the number `{text}` is not finite or too large to keep exactly; put it in quotes")]
    BadNumber {
        /// The line of the file.
        line: usize,
        /// The number as written, shortened.
        text: String,
    },
    /// The two YAML parsers read different values.
    #[error("read line {line}: YAML parsers disagree about it ({detail}); put the value of `{field}` in quotes")]
    Disagreement {
        /// The line of the file.
        line: usize,
        /// The top-level field.
        field: String,
        /// The difference.
        detail: String,
    },
    /// The field is written in a way that cannot be edited line by line.
    #[error("edit the field `{field}` in line {line}: {why}")]
    NotEditable {
        /// The field.
        field: String,
        /// The line of the file.
        line: usize,
        /// The obstacle and the fix.
        why: &'static str,
    },
    /// The edit did not read back as wanted. Nothing is changed.
    #[error("edit the field `{field}` safely: {why}; edit this field by hand")]
    Unverified {
        /// The field.
        field: String,
        /// The difference.
        why: String,
    },
    /// A field to be restored was edited since.
    #[error("undo the change of the field `{field}`: it was edited since; set the right value by hand")]
    Conflict {
        /// The field.
        field: String,
    },
    /// The recorded lines are not lines of that field.
    #[error(
        "undo the change of the field `{field}`: the recorded lines are not lines of that field; \
         restore the value by hand"
    )]
    BadUndo {
        /// The field.
        field: String,
    },
}
