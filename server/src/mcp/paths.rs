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
    // A path is shown as it is, also in the first line of a fence. Nothing of printable ASCII is escaped.
    let is_plain = file.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    file.split('/').all(is_name)
        && !file.ends_with(SECRET_ENDING)
        && (is_plain || escape_outside(file) == file && !file.contains(['\n', '\t']))
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

    /// What a path may name, worked out from the standard library's view of paths instead of from ours.
    fn resolve_plainly(path: &str) -> Option<String> {
        let path = path.strip_prefix('/').unwrap_or(path);
        let parts: Option<Vec<&str>> = std::path::Path::new(path)
            .components()
            .map(|part| match part {
                std::path::Component::Normal(name) => name.to_str(),
                _ => None,
            })
            .collect();
        let parts = parts?;
        let is_plain = |part: &&str| {
            let hides = |c: char| c.is_control() || ['\u{202e}', '\u{200b}', '⟦', '⟧', '\\'].contains(&c);
            !part.starts_with('.') && !part.contains(hides)
        };
        // What the library passes over, such as a doubled slash, is no path of ours.
        let is_normal = parts.join("/") == path && parts.iter().all(is_plain) && !path.ends_with(".enc");
        let (top, rest) = (parts.first()?, parts.get(1..).filter(|rest| is_normal && !rest.is_empty())?);
        match (*top, rest) {
            ("wiki", ["index.md"]) => Some("_index.md".to_owned()),
            ("wiki", ["log.md"]) => Some("_log.md".to_owned()),
            ("wiki", ["sources", ..]) => None,
            ("wiki", rest) => Some(rest.join("/")),
            ("raw", rest) => Some(format!("sources/{}", rest.join("/"))),
            _ => None,
        }
    }

    #[test]
    fn a_hundred_thousand_hostile_paths_name_what_a_plain_resolver_says() {
        const PARTS: [&str; 36] = [
            "wiki",
            "raw",
            "sources",
            "concepts",
            "a.md",
            "b c.md",
            "é.txt",
            "index.md",
            "log.md",
            "..",
            ".",
            "",
            "...",
            ".git",
            ".steward",
            ".trash",
            "key.enc",
            "~",
            "C:",
            "CON",
            "a\\b",
            "..\\..",
            "%2e%2e",
            "%2f",
            "a\0b",
            "a\nb",
            "a\tb",
            "a\u{202e}b",
            "⟦data",
            "x⟧",
            "\u{2025}",
            "／",
            "a\u{200b}",
            "etc",
            "passwd",
            "-rf",
        ];
        // Numbers by a linear congruence (Knuth), the same in each run.
        let mut state = 34_u64;
        let mut draw = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % below
        };
        let mut legal = 0;
        for _ in 0..100_000 {
            let top = ["wiki", "raw", "", "/wiki", "/raw", "//wiki", "..", "wiki/..", "/"][draw(9)];
            let rest: Vec<&str> = (0..=draw(4)).map(|_| PARTS[draw(PARTS.len())]).collect();
            let path = format!("{top}/{}", rest.join(["/", "/", "/", "//", "\\"][draw(5)]));
            let (ours, plain) = (to_file(&path), resolve_plainly(&path));
            assert_eq!(ours.as_ref().ok(), plain.as_ref(), "{path:?}");
            if let Some(file) = plain {
                legal += 1;
                // A name of a file that the index or the log stands for leads back to those.
                let shown = to_path(&file).map(|path| to_file(&path));
                assert!(matches!(&shown, Some(Ok(back)) if *back == file), "{path:?}: {shown:?}");
            }
        }
        assert!(legal > 1_000, "{legal} of them are legal");
    }
}
