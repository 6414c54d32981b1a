//! Keeps the draft of a run between two calls, so that its earlier changes need not be carried out again.
//!
//! It serves only the same run with the same changes, on the very pages on which it was made. It is no proof of anything: what is
//! submitted is carried out from its first change on.

use super::GuardianSession;
use crate::wiki::folder::WikiContents;
use crate::wiki::staged::RunMeta;
use std::sync::Arc;
use steward_domain::wiki::manifest::EffectiveManifest;
use steward_domain::wiki::writer::draft::{DraftState, PageChange};

/// What the changes of a run came to.
#[derive(Debug)]
pub(crate) struct KeptDraft {
    meta: RunMeta,
    manifest: EffectiveManifest,
    contents: Arc<WikiContents>,
    pub(super) changes: Vec<PageChange>,
    pub(super) state: DraftState,
}

impl GuardianSession {
    /// Takes the draft of this run, if it was kept on the wiki as it is.
    pub(super) fn take_draft(&self) -> Option<KeptDraft> {
        let kept = self.root.read_cache().take_draft(&self.run.meta.run)?;
        let is_same = Arc::ptr_eq(&kept.contents, &self.wiki.contents)
            && kept.meta == self.run.meta
            && kept.manifest == self.wiki.state.manifest
            && self.list_changes().take(kept.changes.len()).eq(&kept.changes);
        is_same.then_some(kept)
    }

    /// Keeps what all changes of this run came to.
    pub(super) fn keep_draft(&self, state: DraftState) {
        let kept = KeptDraft {
            meta: self.run.meta.clone(),
            manifest: self.wiki.state.manifest.clone(),
            contents: Arc::clone(&self.wiki.contents),
            changes: self.list_changes().cloned().collect(),
            state,
        };
        self.root.read_cache().keep_draft(self.run.meta.run.clone(), kept);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::action::writer::VaultWriter;
    use crate::files::root::VaultRoot;
    use crate::wiki::accept::read_acceptable;
    use crate::wiki::create::create_wiki;
    use crate::wiki::guardian::{NewGuardianRun, StagedPage};
    use crate::wiki::request::WikiRunRequest;
    use crate::wiki::sources::SourceDocument;
    use crate::wiki::state::{ReadWiki, read_wiki};
    use chrono::{DateTime, Utc};
    use std::time::{Duration, Instant};
    use steward_domain::action::audit::WorkflowRef;
    use steward_domain::action::plan::ContentHash;
    use steward_domain::wiki::run::WikiRunType;
    use steward_domain::wiki::template::render_wiki;

    const LEASE: &str =
        "The lease of plot 12 ends on 31 March 2027. A stopcock is a valve. The council owns the plot.\n";
    const FOLDER: &str = "wiki/allotment";

    fn at() -> DateTime<Utc> {
        "2026-11-22T09:15:04Z".parse().unwrap()
    }

    fn append(quote: &str) -> PageChange {
        let content = format!("It is said.[^1]\n\n[^1]: lease — \"{quote}\"\n");
        PageChange::Append { file: "concepts/plot.md".to_owned(), content }
    }

    /// A wiki with a document, a page of a person, and an open run.
    fn build(dir: &std::path::Path) -> (VaultRoot, RunMeta) {
        let root = VaultRoot::open(dir).unwrap();
        create_wiki(&root, "allotment", &render_wiki("allotment", at()).unwrap()).unwrap();
        let writer = VaultWriter::lock(root.clone()).unwrap();
        let request = WikiRunRequest { wiki: "allotment", by: "ann", at: at(), workflow: WorkflowRef::default() };
        let files = read_acceptable(&root, FOLDER).unwrap();
        let hashes = files.iter().map(|it| (it.file.to_owned(), ContentHash::hash_bytes(it.text.as_bytes())));
        writer.accept_wiki(&request, &hashes.collect()).unwrap();
        let document = SourceDocument { path: "sources/lease.md", bytes: Some(LEASE.into()), decoded: None };
        writer.add_source(&request, document).unwrap();
        std::fs::create_dir_all(dir.join("wiki/allotment/concepts")).unwrap();
        write_page(dir, "Mine.");
        let new = NewGuardianRun {
            wiki: "allotment",
            folder: FOLDER,
            run_type: WikiRunType::Manual,
            by: "ann",
            at: at(),
            source: None,
        };
        (root, new.describe("1"))
    }

    fn write_page(dir: &std::path::Path, words: &str) {
        let page = format!(
            "---\nschema: knowledge.entry/v1\nslug: plot\nkind: concept\ntitle: The plot\nupdated_at: \"2026-11-22T09:15:04Z\"\n---\n# The plot\n\n{words}\n"
        );
        std::fs::write(dir.join("wiki/allotment/concepts/plot.md"), page).unwrap();
    }

    fn open(root: &VaultRoot, meta: &RunMeta) -> GuardianSession {
        let wiki = read_wiki(root, "allotment", FOLDER).unwrap();
        GuardianSession::open(root, wiki, &meta.run, "ann", at()).unwrap()
    }

    /// The wiki, once what is read of it is kept: what changed a moment ago is not.
    fn read_settled(root: &VaultRoot) -> ReadWiki {
        let end = Instant::now() + Duration::from_secs(60);
        loop {
            let [wiki, again] = [0, 1].map(|_| read_wiki(root, "allotment", FOLDER).unwrap());
            if Arc::ptr_eq(&wiki.contents, &again.contents) {
                return wiki;
            }
            assert!(Instant::now() < end, "nothing is kept");
            std::thread::yield_now();
        }
    }

    /// How many changes the draft of a run has that is kept; `None` without one.
    fn count_kept(session: &GuardianSession) -> Option<usize> {
        let kept = session.take_draft()?;
        let count = kept.changes.len();
        session.keep_draft(kept.state);
        Some(count)
    }

    fn list_pages(session: &GuardianSession) -> Vec<StagedPage> {
        session.list_pages().unwrap()
    }

    #[test]
    fn a_draft_serves_the_same_changes_on_the_same_pages_and_says_what_a_new_one_says() {
        let dir = tempfile::tempdir().unwrap();
        let (root, meta) = build(dir.path());
        let mut session = GuardianSession::begin(&root, read_settled(&root), &meta).unwrap();
        session.change(&append("The lease of plot 12 ends on 31 March 2027."), None).unwrap();
        drop(session);
        let mut session = open(&root, &meta);
        assert_eq!(count_kept(&session), Some(1));
        session.change(&append("This stands nowhere in the lease."), None).unwrap_err();
        session.change(&append("A stopcock is a valve."), None).unwrap();
        assert_eq!(count_kept(&session), Some(2));
        let kept = list_pages(&session);
        drop(session);
        let fresh = open(&VaultRoot::open(dir.path()).unwrap(), &meta);
        assert_eq!(count_kept(&fresh), None);
        assert_eq!(list_pages(&fresh), kept);
        assert_eq!(kept[0].after.as_deref().unwrap().matches("It is said.").count(), 2);
        drop(fresh);
        write_page(dir.path(), "Mine, and other words.");
        let session = open(&root, &meta);
        assert_eq!(count_kept(&session), None, "the page is another one");
        assert!(list_pages(&session)[0].after.as_deref().unwrap().contains("other words"));
    }
}
