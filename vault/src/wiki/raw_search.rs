//! Finds the documents of a wiki by their words, best first.
//!
//! Every document that is meant is read, registered or not, as no index holds their words. Of a PDF or a web page the text is searched
//! that was taken out of it. The rank is that of pages, over the documents that were read.

use crate::wiki::folder::WikiFolder;
use crate::wiki::quotes::read_text;
use crate::wiki::threads::map_in_threads;
use std::collections::BTreeMap;
use std::time::Instant;
use steward_domain::wiki::registry::WikiSource;
use steward_domain::wiki::search::{WordCounts, WordMatch, find_line, list_query_words, rank_texts, split_words};
use steward_domain::wiki::{MAX_SOURCE_BYTES, SOURCES_FOLDER};

/// A document that was found.
#[derive(Clone, Debug, PartialEq)]
pub struct DocumentHit {
    /// Relative to the wiki.
    pub path: String,
    /// That of its source; empty for a file that is not registered.
    pub title: String,
    /// Higher is better.
    pub score: f64,
    /// The first line that holds a word of the query.
    pub passage: String,
}

/// What a search came to.
#[derive(Clone, Debug, PartialEq)]
pub struct DocumentSearch {
    pub hits: Vec<DocumentHit>,
    /// Whether the time was up before all documents were read.
    pub is_cut: bool,
}

/// What is kept of a document that was read.
struct ReadDocument {
    path: String,
    /// The first line that holds a word of the query.
    passage: String,
    fits: bool,
}

/// Finds the best documents for a query among those that are meant, until a moment. Call it on a blocking thread.
pub fn search_documents(
    folder: &WikiFolder,
    query: &str,
    matching: WordMatch,
    until: Instant,
    is_meant: impl Fn(&str) -> bool,
) -> DocumentSearch {
    let words = list_query_words(query);
    let contents = folder.read_some(&[]);
    let registered: BTreeMap<&str, &WikiSource> =
        contents.sources.values().map(|source| (source.path.as_str(), source)).collect();
    let mut files = folder.list_all_files();
    files.retain(|file| file.split('/').next() == Some(SOURCES_FOLDER) && is_meant(file));
    let read = |file: &String| -> Option<(ReadDocument, WordCounts)> {
        if Instant::now() >= until {
            return None;
        }
        let text = read_document(folder, file, registered.get(file.as_str()).copied()).unwrap_or_default();
        let fits = matching == WordMatch::Any || matching.fits(split_words(&text), query);
        let document = ReadDocument { path: file.clone(), passage: find_line(&text, &words), fits };
        Some((document, WordCounts::new(split_words(&text), &words)))
    };
    let found = map_in_threads(&files, read);
    let is_cut = found.iter().any(Option::is_none);
    let (read, counts): (Vec<ReadDocument>, Vec<WordCounts>) = found.into_iter().flatten().unzip();
    let ranked = read.into_iter().zip(rank_texts(&counts, &words)).filter(|(document, _)| document.fits);
    let hits = ranked.filter_map(|(ReadDocument { path, passage, .. }, score)| {
        let title = registered.get(path.as_str()).map(|source| source.title.clone()).unwrap_or_default();
        Some(DocumentHit { path, title, score: score?, passage })
    });
    let mut hits: Vec<DocumentHit> = hits.collect();
    hits.sort_by(|a, b| b.score.total_cmp(&a.score).then_with(|| a.path.cmp(&b.path)));
    DocumentSearch { hits, is_cut }
}

/// The text of a document; `None` if it has none, or if it cannot be read.
fn read_document(folder: &WikiFolder, file: &str, source: Option<&WikiSource>) -> Option<String> {
    if let Some(source) = source.filter(|source| source.text_file.is_some()) {
        return Some(read_text(folder, source).ok()?.as_str().to_owned());
    }
    let bytes = folder.read_bytes(file, MAX_SOURCE_BYTES).ok()?;
    String::from_utf8(bytes).ok().filter(|text| !text.contains('\0'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn documents_are_found_best_first_and_pages_are_not() {
        let dir = tempfile::tempdir().unwrap();
        for (file, text) in [
            ("entities/water.md", "water water water\n"),
            ("sources/a.txt", "Rent is due.\nThe water is shut, and water costs.\n"),
            ("sources/deep/b.txt", "Water and many other words that make this one long, long, long.\n"),
            ("sources/c.txt", "nothing\n"),
            ("sources/d.txt", "none either\n"),
            ("sources/.hidden", "water\n"),
        ] {
            std::fs::create_dir_all(dir.path().join(file).parent().unwrap()).unwrap();
            std::fs::write(dir.path().join(file), text).unwrap();
        }
        std::fs::write(dir.path().join("sources/e.pdf"), b"water \0").unwrap();
        let folder = WikiFolder::open(dir.path()).unwrap();
        let until = Instant::now() + Duration::from_secs(60);
        let found = search_documents(&folder, "WATER", WordMatch::Any, until, |_| true);
        let paths: Vec<&str> = found.hits.iter().map(|hit| hit.path.as_str()).collect();
        assert_eq!((paths.as_slice(), found.is_cut), (["sources/a.txt", "sources/deep/b.txt"].as_slice(), false));
        assert_eq!(found.hits[0].passage, "The water is shut, and water costs.");
        let narrow =
            search_documents(&folder, "water", WordMatch::Any, until, |file| file.starts_with("sources/deep/"));
        assert_eq!(narrow.hits.len(), 1);
        assert!(search_documents(&folder, "water", WordMatch::Any, Instant::now(), |_| true).is_cut);
    }
}
