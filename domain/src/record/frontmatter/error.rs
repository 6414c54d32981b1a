//! What can be wrong with a record's frontmatter, in words for the person who
//! has to mend it.
//!
//! Every message reads after "failed to …", names the line of the file (the
//! opening `---` is line 1) and says the mend. The path is not known here: the
//! caller that read the file adds it.

use super::MAX_DEPTH;
use super::MAX_FRONTMATTER_BYTES;
use super::MAX_RECORD_BYTES;
use super::MAX_VALUES;

/// Why a record was refused, or why an edit of it was.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FrontmatterError {
    /// The whole file is over [`MAX_RECORD_BYTES`].
    #[error(
        "read the record: it has {bytes} bytes and the limit is {MAX_RECORD_BYTES}; move the long text into a file of its own and link it"
    )]
    RecordTooLarge {
        /// Size of the file, in bytes.
        bytes: usize,
    },
    /// The fields are over [`MAX_FRONTMATTER_BYTES`].
    #[error(
        "read the frontmatter: no closing `---` within {MAX_FRONTMATTER_BYTES} bytes; close it, or move long text below it"
    )]
    FrontmatterTooLarge,
    /// A byte that is not UTF-8, anywhere in the file.
    #[error("read line {line}: the byte at offset {offset} is not UTF-8; save the file as UTF-8")]
    NotUtf8 {
        /// Line of the file.
        line: usize,
        /// Offset of the first bad byte from the start of the file.
        offset: usize,
    },
    /// A NUL byte: this is no text file.
    #[error(
        "read line {line}: a NUL byte at offset {offset} says that this is a binary file; move it out of the records or replace it by text"
    )]
    Binary {
        /// Line of the file.
        line: usize,
        /// Offset of the NUL from the start of the file.
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
        /// Line of the file.
        line: usize,
    },
    /// A control character that YAML forbids.
    #[error("read line {line}: it holds the control character U+{code:04X}; remove it")]
    ControlCharacter {
        /// Line of the file.
        line: usize,
        /// Code point.
        code: u32,
    },
    /// A tab where YAML wants spaces.
    #[error("read line {line}: a tab indents it; indent with spaces")]
    Tab {
        /// Line of the file.
        line: usize,
    },
    /// Not YAML.
    #[error("read line {line}: {problem}; {mend}")]
    Syntax {
        /// Line of the file.
        line: usize,
        /// What the parser says.
        problem: String,
        /// What to do about it.
        mend: String,
    },
    /// A list or a bare text where the fields should be.
    #[error("read line {line}: the frontmatter is not a mapping; write `field: value` lines")]
    NotAMapping {
        /// Line of the file.
        line: usize,
    },
    /// The same field twice in one mapping.
    #[error("read line {line}: the field `{key}` appears a second time; remove one of the two")]
    DuplicateKey {
        /// Line of the second one.
        line: usize,
        /// The key as text.
        key: String,
    },
    /// A key that is a list, a mapping or null.
    #[error("read line {line}: a field's name must be text; put it in quotes")]
    BadKey {
        /// Line of the file.
        line: usize,
    },
    /// An anchor, an alias or a tag (`&x`, `*x`, `!x`).
    #[error(
        "read line {line}: `{text}` is an anchor, alias or tag, which records may not use; put the value in quotes or write it out"
    )]
    Indirection {
        /// Line of the file.
        line: usize,
        /// The construct, shortened.
        text: String,
    },
    /// Nested deeper than [`MAX_DEPTH`].
    #[error("read line {line}: values are nested deeper than {MAX_DEPTH} levels; flatten them")]
    TooDeep {
        /// Line of the file.
        line: usize,
    },
    /// More than [`MAX_VALUES`] values.
    #[error("read line {line}: the frontmatter holds more than {MAX_VALUES} values; move the list into the body")]
    TooManyValues {
        /// Line of the file.
        line: usize,
    },
    /// A number that JSON cannot carry unchanged.
    #[error("read line {line}: the number `{text}` is not finite or too large to keep exactly; put it in quotes")]
    BadNumber {
        /// Line of the file.
        line: usize,
        /// The number as written, shortened.
        text: String,
    },
    /// The two YAML readers do not understand the same thing.
    #[error("read line {line}: YAML readers disagree about it ({detail}); put the value of `{field}` in quotes")]
    Disagreement {
        /// Line of the file.
        line: usize,
        /// The top-level field.
        field: String,
        /// What differs.
        detail: String,
    },
    /// The field is written in a way that cannot be edited line by line.
    #[error("edit the field `{field}` in line {line}: {why}")]
    NotEditable {
        /// The field.
        field: String,
        /// Line of the file.
        line: usize,
        /// What is in the way, and the mend.
        why: &'static str,
    },
    /// The edit was made, read back, and was not what was wanted. Nothing is changed.
    #[error("edit the field `{field}` safely: {why}; edit this field by hand")]
    Unverified {
        /// The field.
        field: String,
        /// What differed.
        why: String,
    },
    /// A field to be put back was changed since.
    #[error("undo the change of the field `{field}`: it was edited since; decide by hand which value stays")]
    Conflict {
        /// The field.
        field: String,
    },
    /// Recorded lines that are not the lines of that field.
    #[error(
        "undo the change of the field `{field}`: the recorded lines are not lines of that field; put the value back by hand"
    )]
    BadUndo {
        /// The field.
        field: String,
    },
}
