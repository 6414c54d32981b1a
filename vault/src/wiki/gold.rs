//! The gold queries of a wiki: questions whose answer a person found good.
//!
//! They are kept for ever below `.steward/wiki/<name>/`, one for each question, until a person removes one. Nothing of the wiki is
//! changed.

use crate::files::root::VaultRoot;
use crate::wiki::evals::{EvalReport, read_evals};
use crate::wiki::folder::WikiFolder;
use crate::wiki::kept::{change_log, read_log};
use crate::wiki::metrics::read_acknowledged;
use crate::wiki::state::{ReadWikiError, find_wiki_folder};
use chrono::{DateTime, Utc};
use steward_domain::wiki::gold::{GoldQuery, find_reference};
use steward_domain::wiki::metrics::WikiMetric;
use steward_domain::wiki::query::WikiAnswer;
use steward_domain::wiki::quote::collapse_blanks;

const GOLD: &str = "gold.jsonl";

/// All gold queries of a wiki, in the order in which they were kept.
///
/// # Errors
/// [`ReadWikiError`].
pub fn read_gold(root: &VaultRoot, wiki: &str) -> Result<Vec<GoldQuery>, ReadWikiError> {
    read_log(root, wiki, GOLD)
}

/// Keeps an answer as a gold query, in the place of an earlier one of the same question. Returns `None` if it cites nothing.
///
/// # Errors
/// [`ReadWikiError`].
pub fn keep_gold(
    root: &VaultRoot,
    answer: &WikiAnswer,
    by: &str,
    at: DateTime<Utc>,
) -> Result<Option<GoldQuery>, ReadWikiError> {
    let path = find_wiki_folder(root, &answer.wiki)?;
    let folder = WikiFolder::open(&root.path().join(&path)).map_err(|source| ReadWikiError::Io { path, source })?;
    let pages = folder.read_some(&answer.pages).pages;
    let Some(gold) = GoldQuery::new(answer, &pages, by.to_owned(), at) else { return Ok(None) };
    change_log(root, &answer.wiki, GOLD, |queries: &mut Vec<GoldQuery>| {
        queries.retain(|known| collapse_blanks(&known.question) != collapse_blanks(&gold.question));
        queries.push(gold.clone());
    })?;
    Ok(Some(gold))
}

/// Removes a gold query. Returns whether there was one with this id.
///
/// # Errors
/// [`ReadWikiError`].
pub fn remove_gold(root: &VaultRoot, wiki: &str, id: &str) -> Result<bool, ReadWikiError> {
    let mut is_known = false;
    change_log(root, wiki, GOLD, |queries: &mut Vec<GoldQuery>| {
        is_known = queries.iter().any(|known| known.id == id);
        queries.retain(|known| known.id != id);
    })?;
    Ok(is_known)
}

/// The score with which the next measurement of gold queries by a writer is compared. What a person acknowledged does not count.
///
/// # Errors
/// [`ReadWikiError`].
pub(super) fn read_reference(root: &VaultRoot, wiki: &str, model: &str) -> Result<Option<f64>, ReadWikiError> {
    let since = read_acknowledged(root, wiki, WikiMetric::Retroactive)?;
    let reports = read_evals(root, wiki)?;
    let measured = reports.iter().filter_map(|report| match report {
        EvalReport::Gold(report) if since.is_none_or(|since| report.at > since) => Some(report),
        _ => None,
    });
    Ok(find_reference(measured, model))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wiki::create::create_wiki;
    use steward_domain::wiki::MANIFEST_FILE;
    use steward_domain::wiki::query::Citation;
    use steward_domain::wiki::quote::Anchor;
    use steward_domain::wiki::template::NewFile;

    fn answer(id: &str, question: &str, quotes: &[&str]) -> WikiAnswer {
        let cite = |quote: &&str| Citation {
            page: "plot-12".into(),
            anchor: Anchor::new("letter", quote),
            is_disputed: false,
            fault: None,
            superseded_by: None,
        };
        WikiAnswer {
            id: id.into(),
            wiki: "plot".into(),
            by: "ann".into(),
            at: "2026-11-22T09:15:04Z".parse().unwrap(),
            question: question.into(),
            text: String::new(),
            writer: "rules".into(),
            pages: vec!["entities/plot-12.md".into(), "entities/gone.md".into()],
            sources: Vec::new(),
            citations: quotes.iter().map(cite).collect(),
            unknown: Vec::new(),
            clerk: None,
        }
    }

    #[test]
    fn a_question_is_kept_once_with_the_topics_of_its_pages_until_it_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let root = VaultRoot::open(dir.path()).unwrap();
        create_wiki(&root, "plot", &[NewFile { name: MANIFEST_FILE, text: String::new() }]).unwrap();
        let folder = dir.path().join("wiki/plot/entities");
        std::fs::create_dir_all(&folder).unwrap();
        let page = "---\nschema: knowledge.entry/v1\nslug: plot-12\nkind: entity\ntitle: Plot 12\ntags: [lease]\nupdated_at: \"2026-11-22T09:15:04Z\"\n---\n# Plot 12\n";
        std::fs::write(folder.join("plot-12.md"), page).unwrap();
        let at = "2026-12-01T09:15:04Z".parse().unwrap();
        let keep = |answer: &WikiAnswer| keep_gold(&root, answer, "ann", at).unwrap();
        assert_eq!(keep(&answer("00000001", "Why?", &[])), None);
        keep(&answer("00000002", "When does it end?", &["It ends in March."])).unwrap();
        keep(&answer("00000003", "Who pays?", &["Ann pays."])).unwrap();
        let newer = keep(&answer("00000004", "When  does it end?", &["It ends in May."])).unwrap();
        assert_eq!(newer.topics.iter().collect::<Vec<_>>(), ["lease"], "a page that is gone has none");
        let list = || read_gold(&root, "plot").unwrap().into_iter().map(|gold| gold.id).collect::<Vec<_>>();
        assert_eq!(list(), ["00000003", "00000004"]);
        assert!(remove_gold(&root, "plot", "00000003").unwrap());
        assert!(!remove_gold(&root, "plot", "00000003").unwrap());
        assert_eq!(list(), ["00000004"]);
        assert!(matches!(read_gold(&root, "../plot"), Err(ReadWikiError::Unknown { .. })));
    }
}
