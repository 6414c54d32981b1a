//! The list of a backup's files, in the format of `sha256sum --check`.
//!
//! A line is a hash, two spaces and a path below the backup's folder. A path with a line break or a backslash has these
//! escaped, and its line begins with a backslash. A path may hold bytes that are no text.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use steward_domain::action::plan::ContentHash;

/// The hex digits of a hash.
const DIGITS: usize = 64;

/// The files of a backup and their hashes, by their paths below its folder.
pub(super) type FileHashes = BTreeMap<PathBuf, ContentHash>;

/// Writes the list, in the order of paths.
pub(super) fn format_manifest(files: &FileHashes) -> Vec<u8> {
    let mut text = Vec::new();
    for (path, hash) in files {
        let path = path.as_os_str().as_bytes();
        let is_escaped = path.iter().any(|byte| matches!(byte, b'\\' | b'\n' | b'\r'));
        if is_escaped {
            text.push(b'\\');
        }
        text.extend_from_slice(hash.as_str().as_bytes());
        text.extend_from_slice(b"  ");
        for byte in path {
            match byte {
                b'\\' => text.extend_from_slice(b"\\\\"),
                b'\n' => text.extend_from_slice(b"\\n"),
                b'\r' => text.extend_from_slice(b"\\r"),
                byte => text.push(*byte),
            }
        }
        text.push(b'\n');
    }
    text
}

/// Reads the list.
///
/// # Errors
/// The number of the first line that cannot be read.
pub(super) fn parse_manifest(text: &[u8]) -> Result<FileHashes, usize> {
    let lines = text.split(|byte| *byte == b'\n').enumerate().filter(|(_, line)| !line.is_empty());
    lines.map(|(number, line)| parse_line(line).ok_or(number + 1)).collect()
}

fn parse_line(line: &[u8]) -> Option<(PathBuf, ContentHash)> {
    let (is_escaped, line) = line.strip_prefix(b"\\").map_or((false, line), |rest| (true, rest));
    let (hash, path) = line.split_at_checked(DIGITS)?;
    let hash = std::str::from_utf8(hash).ok().filter(|hash| hash.bytes().all(|digit| digit.is_ascii_hexdigit()))?;
    let hash: ContentHash = serde_json::from_value(hash.into()).ok()?;
    let path = path.strip_prefix(b"  ").filter(|path| !path.is_empty())?;
    let path = if is_escaped { unescape(path)? } else { path.to_vec() };
    Some((PathBuf::from(OsStr::from_bytes(&path)), hash))
}

fn unescape(path: &[u8]) -> Option<Vec<u8>> {
    let (mut plain, mut bytes) = (Vec::with_capacity(path.len()), path.iter());
    while let Some(byte) = bytes.next() {
        plain.push(match byte {
            b'\\' => match bytes.next()? {
                b'n' => b'\n',
                b'r' => b'\r',
                b'\\' => b'\\',
                _ => return None,
            },
            byte => *byte,
        });
    }
    Some(plain)
}
