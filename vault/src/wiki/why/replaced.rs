//! What stood in the place of claims before, as far as the records of runs and the registry of the sources tell.
//!
//! A record names the claims that a run made and those that it removed, and not which stands for which. So what one run made and
//! removed on a page belongs together.

use super::{ExplainedClaim, RecordedClaim, WhyQuestion};
use crate::files::root::VaultRoot;
use crate::wiki::runs::read_run;
use chrono::{DateTime, Utc};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use steward_domain::action::plan::ContentHash;
use steward_domain::record::path::RecordPath;
use steward_domain::wiki::claims::read_claims;
use steward_domain::wiki::details::{ClaimChange, RecordedContent};
use steward_domain::wiki::page::read_page;
use steward_domain::wiki::registry::{WikiSource, list_replaced};
use steward_domain::wiki::run::RunId;

/// The most replaced claims that are listed: the newest.
const MAX_CLAIMS: usize = 60;

/// A claim or a source in whose place something else stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Replacement {
    /// The name of a claim, as in `plot-12#c6107d23f`, or the id of a source.
    pub old: String,
    /// What the claim said. `None` for a source, and if the record does not hold it.
    pub statement: Option<String>,
    /// The claims that the same run made, or the source. Empty for a claim that was only removed.
    pub new: Vec<String>,
    /// The run that removed the claim. `None` for a source.
    pub run: Option<RunId>,
    pub at: Option<DateTime<Utc>>,
    /// The run that took that run back.
    pub reverted_by: Option<RunId>,
}

/// A statement on a page: the slug, and the hash of the statement.
type StatementKey = (String, String);

impl RecordedClaim {
    fn page(&self) -> &str {
        self.claim.split_once('#').map_or(self.claim.as_str(), |(page, _)| page)
    }

    fn key(&self) -> StatementKey {
        (self.page().to_owned(), self.statement_sha256.as_str().to_owned())
    }

    /// Whether a question names the claim, with its page or without it.
    fn is_called(&self, what: &str) -> bool {
        self.claim == what || self.claim.split_once('#').is_some_and(|(_, id)| id == what)
    }
}

/// Lists what was replaced: the claims, oldest first, and then the sources.
pub(super) fn list_replacements(
    root: &VaultRoot,
    history: &[RecordedClaim],
    claims: &[ExplainedClaim],
    sources: &BTreeMap<String, WikiSource>,
    question: &WhyQuestion<'_>,
) -> Vec<Replacement> {
    let WhyQuestion { what, since, until, .. } = *question;
    let known: Vec<&RecordedClaim> =
        history.iter().filter(|known| until.is_none_or(|until| known.event.at <= until)).collect();
    let mut replaced = find_replaced_claims(root, &known, claims, what.trim());
    replaced.retain(|it| since.is_none_or(|since| it.at.is_none_or(|at| at >= since)));
    if let Some(until) = until {
        let reverts: BTreeMap<&RunId, DateTime<Utc>> =
            known.iter().filter_map(|known| Some((&known.event.run, known.event.reverted_at?))).collect();
        for it in &mut replaced {
            if it.run.as_ref().and_then(|run| reverts.get(run)).is_some_and(|at| *at > until) {
                it.reverted_by = None;
            }
        }
    }
    replaced.extend(list_replaced_sources(claims, sources));
    replaced
}

/// Goes back from the claims of an answer to those that stood there before, run by run.
fn find_replaced_claims(
    root: &VaultRoot,
    history: &[&RecordedClaim],
    claims: &[ExplainedClaim],
    what: &str,
) -> Vec<Replacement> {
    let page = |claim: &ExplainedClaim| claim.claim.split('#').next().unwrap_or_default().to_owned();
    let hash = |claim: &ExplainedClaim| ContentHash::hash_bytes(claim.statement.as_bytes()).as_str().to_owned();
    let pages: BTreeSet<String> = claims.iter().map(page).collect();
    let mut wanted: BTreeSet<StatementKey> = claims.iter().map(|claim| (page(claim), hash(claim))).collect();
    let mut replaced: Vec<Replacement> = Vec::new();
    for run in history.chunk_by(|a, b| a.event.run == b.event.run).rev() {
        let (made, gone): (Vec<&RecordedClaim>, Vec<&RecordedClaim>) =
            run.iter().copied().partition(|it| it.event.change == ClaimChange::Asserted);
        let mut statements: Option<BTreeMap<StatementKey, String>> = None;
        for old in gone {
            let beside: Vec<&RecordedClaim> = made.iter().copied().filter(|it| it.page() == old.page()).collect();
            let is_named = old.is_called(what);
            let is_meant = |it: &&RecordedClaim| is_named || wanted.contains(&it.key());
            let new: Vec<String> = beside.iter().copied().filter(is_meant).map(|it| it.claim.clone()).collect();
            let is_only_removed = beside.is_empty() && pages.contains(old.page());
            if new.is_empty() && !is_only_removed && !is_named {
                continue;
            }
            let key = old.key();
            let said = statements.get_or_insert_with(|| read_statements(root, &old.record));
            replaced.push(Replacement {
                old: old.claim.clone(),
                statement: said.get(&key).cloned(),
                new,
                run: Some(old.event.run.clone()),
                at: Some(old.event.at),
                reverted_by: old.event.reverted_by.clone(),
            });
            wanted.insert(key);
        }
        if replaced.len() >= MAX_CLAIMS {
            break;
        }
    }
    replaced.truncate(MAX_CLAIMS);
    replaced.reverse();
    replaced
}

/// What the pages that a run changed said before it.
fn read_statements(root: &VaultRoot, record: &RecordPath) -> BTreeMap<StatementKey, String> {
    let mut found = BTreeMap::new();
    for file in read_run(root, record).map(|details| details.files).unwrap_or_default() {
        let RecordedContent::Page { before, .. } = &file.content else { continue };
        let Some(page) = read_page(&file.file, before.as_bytes()).page else { continue };
        for claim in read_claims(page.document.body(), &page.body.disputed).claims {
            let hash = claim.hash_statement().as_str().to_owned();
            found.insert((page.slug.clone(), hash), claim.statement);
        }
    }
    found
}

/// The sources of claims with those that they replace, and those that replace them.
fn list_replaced_sources(claims: &[ExplainedClaim], sources: &BTreeMap<String, WikiSource>) -> Vec<Replacement> {
    let mut open: Vec<&str> =
        claims.iter().flat_map(|claim| &claim.anchors).map(|checked| checked.anchor.source.as_str()).collect();
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    let mut pairs: BTreeSet<(&str, &str)> = BTreeSet::new();
    while let Some(id) = open.pop() {
        if !seen.insert(id) {
            continue;
        }
        let newer = sources.get(id).and_then(|source| source.superseded_by.as_deref());
        pairs.extend(newer.map(|newer| (id, newer)));
        let older = list_replaced(sources, id);
        pairs.extend(older.iter().map(|older| (*older, id)));
        open.extend(newer.into_iter().chain(older));
    }
    let describe = |(old, new): (&str, &str)| Replacement {
        old: old.to_owned(),
        statement: None,
        new: vec![new.to_owned()],
        run: None,
        at: None,
        reverted_by: None,
    };
    pairs.into_iter().map(describe).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wiki::quotes::CheckedAnchor;
    use crate::wiki::why::ClaimEvent;
    use steward_domain::record::path::RecordKind;
    use steward_domain::wiki::quote::Anchor;

    fn record(second: u32, claim: &str, statement: &str, change: ClaimChange) -> RecordedClaim {
        let at: DateTime<Utc> = format!("2026-11-22T09:00:{second:02}Z").parse().unwrap();
        let run = RunId::derive(at, &[second.to_string().as_str()]);
        RecordedClaim {
            claim: claim.to_owned(),
            statement_sha256: ContentHash::hash_bytes(statement.as_bytes()),
            event: ClaimEvent { at, run, change, reverted_by: None, reverted_at: None, is_reworded: false },
            record: RecordPath::new(RecordKind::Event, "none").unwrap(),
        }
    }

    fn explain(claim: &str, statement: &str, source: &str) -> ExplainedClaim {
        let anchor = Anchor { label: "c1".to_owned(), source: source.to_owned(), quote: String::new() };
        let checked =
            CheckedAnchor { anchor, verified_against_source: false, offset: None, fault: None, superseded_by: None };
        ExplainedClaim {
            claim: claim.to_owned(),
            file: "concepts/plot.md".to_owned(),
            line: 1,
            statement: statement.to_owned(),
            is_disputed: false,
            anchors: vec![checked],
            history: Vec::new(),
        }
    }

    fn source(id: &str, superseded_by: Option<&str>) -> (String, WikiSource) {
        let source = WikiSource {
            id: id.to_owned(),
            path: format!("sources/{id}.md"),
            title: String::new(),
            captured_at: None,
            content_hash: String::new(),
            text_file: None,
            superseded_by: superseded_by.map(str::to_owned),
        };
        (id.to_owned(), source)
    }

    fn list(history: &[RecordedClaim], claims: &[ExplainedClaim], question: &WhyQuestion<'_>) -> Vec<Replacement> {
        let dir = tempfile::tempdir().unwrap();
        let root = VaultRoot::open(dir.path()).unwrap();
        let sources = [source("a", Some("b")), source("b", Some("c")), source("c", Some("a"))];
        list_replacements(&root, history, claims, &sources.into_iter().collect(), question)
    }

    #[test]
    fn claims_lead_back_to_what_stood_there_and_other_pages_are_left_out() {
        use ClaimChange::{Asserted, Removed};
        let history = [
            record(1, "plot#c1", "one", Asserted),
            record(2, "plot#c2", "two", Asserted),
            record(2, "plot#c1", "one", Removed),
            record(3, "plot#c3", "three", Asserted),
            record(3, "plot#c2", "two", Removed),
            record(3, "other#c9", "nine", Removed),
            record(4, "plot#c7", "seven", Removed),
        ];
        let claims = [explain("plot#c3", "three", "x")];
        let question = WhyQuestion { what: "plot", since: None, until: None, include_history: true };
        let shown = |question: &WhyQuestion<'_>, claims: &[ExplainedClaim]| -> Vec<String> {
            let replaced = list(&history, claims, question);
            replaced.iter().map(|it| format!("{} {}", it.old, it.new.join(","))).collect()
        };
        assert_eq!(shown(&question, &claims), ["plot#c1 plot#c2", "plot#c2 plot#c3", "plot#c7 "]);
        let third = history[3].event.at;
        let since = WhyQuestion { since: Some(third), ..question };
        assert_eq!(shown(&since, &claims), ["plot#c2 plot#c3", "plot#c7 "]);
        let until = WhyQuestion { until: Some(third), ..question };
        assert_eq!(shown(&until, &claims), ["plot#c1 plot#c2", "plot#c2 plot#c3"]);
        // A claim that is gone is found by its name.
        let gone = WhyQuestion { what: "plot#c2", ..question };
        assert_eq!(shown(&gone, &[]), ["plot#c1 plot#c2", "plot#c2 plot#c3"]);
    }

    #[test]
    fn sources_that_replace_each_other_in_a_circle_have_an_end() {
        let question = WhyQuestion { what: "plot", since: None, until: None, include_history: true };
        let replaced = list(&[], &[explain("plot#c3", "three", "b")], &question);
        let pairs: Vec<(&str, &str)> = replaced.iter().map(|it| (it.old.as_str(), it.new[0].as_str())).collect();
        assert_eq!(pairs, [("a", "b"), ("b", "c"), ("c", "a")]);
    }
}
