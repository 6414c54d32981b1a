//! Carries out the changes of a run again, on the wiki as it is, and stages what they give.
//!
//! A change that does not fit any more ends that, and names the page.

use super::{GuardianError, GuardianLine, GuardianSession, KeptDraft};
use crate::wiki::ingest::{describe_findings, judge_run, read_source};
use crate::wiki::staged::StagedPlan;
use std::collections::{BTreeMap, BTreeSet};
use steward_domain::wiki::registry::{WikiSource, to_source_file};
use steward_domain::wiki::run::{RunSource, WikiRunType};
use steward_domain::wiki::source_text::SourceText;
use steward_domain::wiki::verify::Verdict;
use steward_domain::wiki::writer::draft::{DraftInput, DraftState, PageChange, RunDraft, UnchangedPage};
use steward_domain::wiki::writer::refusal::{DraftFault, DraftRefusal};

impl GuardianSession {
    /// Stages what the changes give on the wiki as it is, if the rules find no fault.
    ///
    /// # Errors
    /// [`GuardianError`].
    pub fn stage(&self) -> Result<(), GuardianError> {
        let links = self.wiki.state.manifest.find_text(&["curation", "autoLink"]) == Some("byName");
        let (subject, keeps) = self.last_submission().unzip();
        // All of it is made anew.
        drop(self.take_draft());
        let (made, _) = self.replay(None, |draft| -> Result<_, GuardianError> {
            // A page that went since the run was submitted needs no change any more.
            for keep in keeps.unwrap_or_default().iter().filter(|keep| self.has_page(keep)) {
                draft.apply_change(keep, true)?;
            }
            draft.finish(links).map_err(GuardianError::refuse)?;
            Ok((draft.list_files(), describe_plan(draft)))
        })?;
        let (files, plan) = made?;
        let slug = |file: &String| Some(self.wiki.state.pages.iter().find(|it| it.file == *file)?.slug.clone());
        let offered: Vec<String> = self.list_related()?.iter().filter_map(slug).collect();
        let verdict = judge_run(&self.root, &self.wiki, &self.run.meta, &files)?;
        if verdict.verdict != Verdict::Commit {
            self.run.write_verdict(&verdict)?;
            let text = format!("error: the rules find a fault: {}", describe_findings(&verdict));
            return Err(DraftRefusal::new(DraftFault::RulesFault, text).into());
        }
        Ok(self.run.stage(&files, StagedPlan { subject: subject.map(str::to_owned), offered, ..plan })?)
    }

    /// Whether the page of a change is in the wiki as it is.
    pub(super) fn has_page(&self, change: &PageChange) -> bool {
        self.wiki.state.pages.iter().any(|page| page.file == change.file())
    }

    pub(super) fn list_changes(&self) -> impl Iterator<Item = &PageChange> {
        self.lines.iter().filter_map(|line| match line {
            GuardianLine::Change { change } => Some(change),
            GuardianLine::Submitted { .. } | GuardianLine::Reopened { .. } => None,
        })
    }

    /// Carries out the changes on the wiki as it is, and looks at the draft, which is kept.
    pub(super) fn inspect<T>(&self, work: impl FnOnce(&RunDraft<'_>) -> T) -> Result<T, GuardianError> {
        let (result, draft) = self.replay(None, |draft| work(draft))?;
        self.keep_draft(draft);
        Ok(result)
    }

    /// Carries out the changes on the wiki as it is, and then something with the draft. Returns what the draft came to. `more` is what may be changed
    /// then.
    pub(super) fn replay<T>(
        &self,
        more: Option<&PageChange>,
        work: impl FnOnce(&mut RunDraft<'_>) -> T,
    ) -> Result<(T, DraftState), GuardianError> {
        let kept = self.take_draft();
        let texts = self.read_texts(kept.as_ref(), more)?;
        let finders = texts.iter().map(|(id, text)| (id.clone(), text.finder())).collect();
        let sources = self.wiki.contents.sources.values();
        let paths = sources.map(|source| (source.path.clone(), source.id.clone())).collect();
        let input = DraftInput {
            folder: &self.run.meta.folder,
            manifest: &self.wiki.state.manifest,
            pages: &self.wiki.state.pages,
            source: self.run.meta.source.as_ref().map(|source| source.id.as_str()),
            texts: &finders,
            paths: &paths,
            files: &self.wiki.contents.files,
            began: self.run.meta.began,
            run_type: match self.run.meta.run_type {
                // The summary may still come.
                WikiRunType::Ingest => WikiRunType::Manual,
                run_type => run_type,
            },
        };
        let (mut draft, done) = match kept {
            Some(kept) => (RunDraft::resume(&input, kept.state), kept.changes.len()),
            None => (RunDraft::new(&input), 0),
        };
        for change in self.list_changes().skip(done) {
            if let Err(refusal) = draft.apply_change(change, false) {
                let file = change.file().to_owned();
                return Err(GuardianError::Stale { file, reason: refusal.text });
            }
        }
        let result = work(&mut draft);
        Ok((result, draft.into_state()))
    }

    /// The texts of the sources that the changes name. Of a page that was judged before, those that it quotes since the run began.
    fn read_texts(
        &self,
        kept: Option<&KeptDraft>,
        more: Option<&PageChange>,
    ) -> Result<BTreeMap<String, SourceText>, GuardianError> {
        let known = &self.wiki.contents.sources;
        let read = |source: &WikiSource| {
            let (id, path, content_hash) = (source.id.clone(), source.path.clone(), source.content_hash.clone());
            let text = read_source(&self.root, &self.wiki, &RunSource { id, path, content_hash })?;
            Ok::<_, GuardianError>((source.id.clone(), text))
        };
        if let Some(source) = &self.run.meta.source {
            let text = read_source(&self.root, &self.wiki, source)?;
            return Ok(BTreeMap::from([(source.id.clone(), text)]));
        }
        let done = kept.map_or(0, |kept| kept.changes.len());
        let named = self.list_changes().skip(done).chain(more).flat_map(PageChange::list_named_sources);
        let live = &self.wiki.state.pages;
        let on_page = kept.zip(more).map(|(kept, more)| kept.state.list_added_sources(more.file(), live));
        let named: BTreeSet<String> = named.chain(on_page.into_iter().flatten()).collect();
        let find = |name: &String| {
            let path = to_source_file(name);
            known.get(name).or_else(|| known.values().find(|source| source.path == path))
        };
        named.iter().filter_map(find).map(read).collect()
    }
}

/// What a draft does beside its files.
fn describe_plan(draft: &RunDraft<'_>) -> StagedPlan {
    let note = |page: &UnchangedPage| format!("{} needs no change: {}", page.slug, page.reason);
    let mut notes: Vec<String> = draft.state().unchanged.iter().map(note).collect();
    notes.extend(draft.list_removed().iter().map(|page| format!("{} is removed: {}", page.slug, page.reason)));
    let unchanged = draft.state().unchanged.iter().map(|page| page.slug.clone()).collect();
    StagedPlan { notes, unchanged, ..StagedPlan::default() }
}
