//! Searches the files of a wiki by a regular expression: pages, sources, their texts and what code writes.
//!
//! Every file is read, with or without an index. A file that is no UTF-8 text is left out; the text of a PDF or a web page lies in
//! `_text/`.

use crate::wiki::folder::WikiFolder;
use crate::wiki::threads::map_in_threads;
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};
use steward_domain::wiki::MAX_SOURCE_BYTES;
use steward_domain::wiki::grep::{LineHit, LinePattern};

/// How long a search may take. What was found until then is shown.
pub const MAX_GREP_TIME: Duration = Duration::from_secs(2);
/// The most lines that are shown.
pub const MAX_GREP_HITS: usize = 200;
/// The most lines around each.
pub const MAX_GREP_CONTEXT: usize = 5;

/// What is searched for.
#[derive(Clone, Debug)]
pub struct GrepRequest {
    pub pattern: LinePattern,
    /// How many lines above and below a hit are shown, at most [`MAX_GREP_CONTEXT`].
    pub context: usize,
    /// How many lines are shown, at most [`MAX_GREP_HITS`].
    pub limit: usize,
    /// The search goes on after this line.
    pub after: Option<GrepPosition>,
}

/// A line of a file. Files are searched in the order of their paths.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GrepPosition {
    /// Relative to the wiki.
    pub path: String,
    /// From 1.
    pub line: usize,
}

/// A line that was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GrepHit {
    /// Relative to the wiki.
    pub path: String,
    #[serde(flatten)]
    pub hit: LineHit,
}

/// What a search came to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GrepOutcome {
    /// By path and line.
    pub hits: Vec<GrepHit>,
    /// How many files were searched.
    pub files: usize,
    /// Whether there may be more lines: the limit was reached, or the time was up.
    pub is_cut: bool,
    /// Where the search goes on if it was cut.
    #[serde(skip)]
    pub next: Option<GrepPosition>,
}

/// Searches files of a wiki, given by their paths in it in their order, until a moment. Call it on a blocking thread.
pub fn grep_wiki(folder: &WikiFolder, mut files: Vec<String>, request: &GrepRequest, until: Instant) -> GrepOutcome {
    let (context, limit) = (request.context.min(MAX_GREP_CONTEXT), request.limit.min(MAX_GREP_HITS));
    if let Some(after) = &request.after {
        files.retain(|file| *file >= after.path);
    }
    let in_time = || Instant::now() < until;
    // One more than is shown, so that it is known whether there are more.
    let search = |file: &String| -> Option<SearchedFile> {
        if !in_time() {
            return None;
        }
        let Ok(bytes) = folder.read_bytes(file, MAX_SOURCE_BYTES) else { return Some(SearchedFile::default()) };
        let text = std::str::from_utf8(&bytes).ok().filter(|text| !text.contains('\0'));
        let shown = request.after.as_ref().filter(|after| after.path == *file).map_or(0, |after| after.line);
        let find = |text| {
            let mut hits = request.pattern.find_lines(text, context, shown.saturating_add(limit + 1), in_time);
            hits.retain(|hit| hit.line > shown);
            hits
        };
        let hits = text.map_or_else(Vec::new, find);
        Some(SearchedFile { is_cut: hits.len() <= limit && !in_time(), hits })
    };
    let found = map_in_threads(&files, search);
    // Files are divided among threads, so later ones may be done when an earlier one is not. What follows that one is for the next part.
    let (mut hits, mut next, mut searched) = (Vec::new(), None, 0);
    for (path, found) in files.iter().zip(found) {
        let Some(found) = found else {
            next = Some(GrepPosition { path: path.clone(), line: 0 });
            break;
        };
        searched += 1;
        let last = found.hits.last().map(|hit| hit.line);
        hits.extend(found.hits.into_iter().map(|hit| GrepHit { path: path.clone(), hit }));
        if found.is_cut {
            // A file that alone takes all the time would never end, so it is not begun again.
            next = Some(GrepPosition { path: path.clone(), line: last.unwrap_or(usize::MAX) });
        }
        if found.is_cut || hits.len() > limit {
            break;
        }
    }
    if hits.len() > limit {
        hits.truncate(limit);
        next = hits.last().map(|hit| GrepPosition { path: hit.path.clone(), line: hit.hit.line });
    }
    GrepOutcome { hits, files: searched, is_cut: next.is_some(), next }
}

/// The lines of one file.
#[derive(Default)]
struct SearchedFile {
    hits: Vec<LineHit>,
    /// Whether the time was up before its end.
    is_cut: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use steward_domain::wiki::grep::PathGlob;

    fn grep(folder: &WikiFolder, pattern: &str, glob: Option<&str>, limit: usize) -> GrepOutcome {
        let pattern = LinePattern::new(pattern, false, false).unwrap();
        let glob = glob.map(|glob| PathGlob::new(glob).unwrap());
        let until = Instant::now() + Duration::from_secs(60);
        let mut files = folder.list_all_files();
        files.retain(|file| glob.as_ref().is_none_or(|glob| glob.matches(file)));
        grep_wiki(folder, files, &GrepRequest { pattern, context: 0, limit, after: None }, until)
    }

    #[test]
    fn pages_sources_and_kept_texts_are_searched_and_hidden_files_are_not() {
        let dir = tempfile::tempdir().unwrap();
        for (file, text) in [
            ("overview.md", "# Overview\nthe lease\n"),
            ("entities/plot-12.md", "The lease ends.\nThe lease is long.\n"),
            ("sources/lease.md", "A lease.\n"),
            ("sources/scan.pdf", "lease\0"),
            ("_text/scan.txt", "the words of the lease\n"),
            (".trash/old.md", "lease\n"),
            (".secret", "lease\n"),
        ] {
            std::fs::create_dir_all(dir.path().join(file).parent().unwrap()).unwrap();
            std::fs::write(dir.path().join(file), text).unwrap();
        }
        std::fs::write(dir.path().join("sources/latin.txt"), b"lease \xe9\n").unwrap();
        let folder = WikiFolder::open(dir.path()).unwrap();
        let found = |outcome: &GrepOutcome| -> Vec<String> {
            outcome.hits.iter().map(|hit| format!("{}:{}", hit.path, hit.hit.line)).collect()
        };
        let all = grep(&folder, "lease", None, 50);
        assert_eq!(
            found(&all),
            [
                "_text/scan.txt:1",
                "entities/plot-12.md:1",
                "entities/plot-12.md:2",
                "overview.md:2",
                "sources/lease.md:1"
            ]
        );
        assert_eq!((all.files, all.is_cut), (6, false));
        let some = grep(&folder, "lease", Some("**/*.md"), 2);
        assert_eq!(
            (found(&some), some.is_cut),
            (vec!["entities/plot-12.md:1".into(), "entities/plot-12.md:2".into()], true)
        );
        let pattern = LinePattern::new("lease", false, false).unwrap();
        let request = GrepRequest { pattern, context: 0, limit: 9, after: None };
        let none = grep_wiki(&folder, folder.list_all_files(), &request, Instant::now());
        // What was not read is for the next part, and nothing before it is left out.
        let begin = Some(GrepPosition { path: "_text/scan.txt".to_owned(), line: 0 });
        assert_eq!((none.next.clone(), none.is_cut), (begin, true));
        assert_eq!((none.hits.len(), none.files, none.is_cut), (0, 0, true), "no time is left");
    }
}
