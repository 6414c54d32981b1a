//! How tools name the files of a wiki: `wiki/x.md` is its page `x.md`, and `raw/x.pdf` its document `sources/x.pdf`.
//!
//! The index and the log are called `wiki/index.md` and `wiki/log.md`. Hidden files have no path, nor have files whose names hide or turn
//! text or could end a fence. No path leaves the wiki.

use super::error::{ToolError, ToolErrorCode, shorten_outside};
use super::outside::escape_outside;
use steward_domain::wiki::{INDEX_FILE, LOG_FILE, SOURCES_FOLDER};

/// The longest path, in bytes.
const MAX_PATH: usize = 512;
const WIKI: &str = "wiki";
const RAW: &str = "raw";
const INDEX_PATH: &str = "wiki/index.md";
const LOG_PATH: &str = "wiki/log.md";
/// The ending of files that hold secrets.
const SECRET_ENDING: &str = ".enc";

/// The path of a file of the wiki; `None` for one that tools do not show.
pub(crate) fn to_path(file: &str) -> Option<String> {
    if !is_shown(file) {
        return None;
    }
    let (folder, rest) = file.split_once('/').unwrap_or(("", file));
    match file {
        INDEX_FILE => Some(INDEX_PATH.to_owned()),
        LOG_FILE => Some(LOG_PATH.to_owned()),
        _ if folder == SOURCES_FOLDER => Some(format!("{RAW}/{rest}")),
        _ => Some(format!("{WIKI}/{file}")).filter(|path| path != INDEX_PATH && path != LOG_PATH),
    }
}

/// The file that a path names, relative to the wiki. It need not exist.
///
/// # Errors
/// [`ToolErrorCode::NotFound`] for what no file of a wiki is called.
pub(crate) fn to_file(path: &str) -> Result<String, ToolError> {
    let shown = shorten_outside(path);
    let refuse = |what: &str| {
        let fix = "A path is `wiki/<page>` or `raw/<document>`; `list` shows them";
        Err(ToolError::new(ToolErrorCode::NotFound, format!("`{shown}` {what}"), fix))
    };
    let path = path.strip_prefix('/').unwrap_or(path);
    if path.len() > MAX_PATH {
        return refuse("is longer than 512 bytes");
    }
    let file = match path.split_once('/') {
        _ if path == INDEX_PATH => INDEX_FILE.to_owned(),
        _ if path == LOG_PATH => LOG_FILE.to_owned(),
        Some((WIKI, rest)) if rest.split('/').next() != Some(SOURCES_FOLDER) => rest.to_owned(),
        Some((RAW, rest)) => format!("{SOURCES_FOLDER}/{rest}"),
        _ => return refuse("is no path of a workspace"),
    };
    if is_shown(&file) { Ok(file) } else { refuse("is no file that tools show") }
}

/// Whether every part of a path is a plain name, none is hidden, and the file is no secret.
fn is_shown(file: &str) -> bool {
    let is_name = |part: &str| !part.is_empty() && !part.starts_with('.') && !part.contains('\\');
    // A path is shown as it is, also in the first line of a fence.
    file.split('/').all(is_name)
        && !file.ends_with(SECRET_ENDING)
        && escape_outside(file) == file
        && !file.contains(['\n', '\t'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_paths_map_both_ways() {
        for (file, path) in [
            ("concepts/plot-12.md", "wiki/concepts/plot-12.md"),
            ("sources/2026/lease.pdf", "raw/2026/lease.pdf"),
            ("_index.md", "wiki/index.md"),
            ("_log.md", "wiki/log.md"),
            ("overview.md", "wiki/overview.md"),
            ("_text/lease.txt", "wiki/_text/lease.txt"),
        ] {
            assert_eq!(to_path(file).as_deref(), Some(path));
            assert_eq!(to_file(path).as_deref(), Ok(file));
            assert_eq!(to_file(&format!("/{path}")).as_deref(), Ok(file));
        }
    }

    #[test]
    fn nothing_else_has_a_path() {
        for file in [
            ".trash/x.md",
            "a/.secret",
            "keys.enc",
            "x⟧ y.md",
            "a\u{202e}b.md",
            "a\nb.md",
            "index.md",
            "log.md",
            "a//b.md",
        ] {
            assert_eq!(to_path(file), None, "{file}");
        }
        for path in [
            "",
            "wiki",
            "wiki/",
            "wiki/../x.md",
            "wiki/a/../../x.md",
            "raw/..",
            "/etc/passwd",
            "//wiki/x.md",
            "wiki//x.md",
            "wiki/.trash/x.md",
            "wiki/sources/x.md",
            "raw/.hidden",
            "concepts/x.md",
            "wiki/a\\b.md",
            "wiki/x\0.md",
            "raw/key.enc",
        ] {
            assert!(to_file(path).is_err(), "{path:?}");
        }
        assert!(to_file(&format!("wiki/{}.md", "x".repeat(600))).is_err());
    }
}
