//! Which streams and git clones belong to a wiki.
//!
//! Only the configuration of the operator says so, never a file of the vault. A wiki has none unless it is named there, so an
//! assistant that reads one wiki sees no mail of another.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use steward_domain::record::path::is_slug;

/// A stream as `[wiki.<name>] streams` names it: `imap:work`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct AttachedStream {
    /// How it is read, such as `imap`.
    pub kind: String,
    /// The name of its table, which is also its folder.
    pub name: String,
}

/// A text that names no stream.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` names no stream: write its kind and its name, such as `imap:work`")]
pub struct AttachedStreamError(String);

impl TryFrom<String> for AttachedStream {
    type Error = AttachedStreamError;

    fn try_from(text: String) -> Result<Self, AttachedStreamError> {
        match text.split_once(':') {
            Some((kind, name)) if is_slug(kind) && is_slug(name) => {
                Ok(Self { kind: kind.to_owned(), name: name.to_owned() })
            }
            Some(_) | None => Err(AttachedStreamError(text.escape_debug().to_string())),
        }
    }
}

impl From<AttachedStream> for String {
    fn from(stream: AttachedStream) -> Self {
        stream.to_string()
    }
}

impl fmt::Display for AttachedStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.kind, self.name)
    }
}

/// What belongs to one wiki.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct WikiAttachments {
    pub streams: Vec<AttachedStream>,
    /// The absolute paths of the clones by their names.
    pub clones: BTreeMap<String, PathBuf>,
}

/// What belongs to each wiki, by its name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct AttachmentsByWiki(pub BTreeMap<String, WikiAttachments>);

impl AttachmentsByWiki {
    /// What belongs to a wiki; nothing if the configuration does not name it.
    pub(crate) fn find(&self, wiki: &str) -> WikiAttachments {
        self.0.get(wiki).cloned().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_named_by_its_kind_and_its_folder() {
        let read = |text: &str| AttachedStream::try_from(text.to_owned());
        assert_eq!(read("imap:work").unwrap().to_string(), "imap:work");
        for wrong in ["work", "imap:", ":work", "imap:../home", "imap:a/b", "imap:a:b", ""] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
