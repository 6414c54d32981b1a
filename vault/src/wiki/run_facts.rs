//! What is known of a run beside its summary: who asked for it, the pages that it changes, its verdict, and how often it was judged.
//!
//! A committed run says it by its record, any other by its folder. Some time after its end the folder is removed, and then what the record
//! does not hold is not known any more.

use crate::files::root::VaultRoot;
use crate::wiki::guardian::{GuardianLine, count_judged_submissions, find_asker};
use crate::wiki::runs::{RunDetails, find_rejected_runs, read_run};
use crate::wiki::staged::{RunState, RunStatus, StagedRun, StagedRunSummary, StagedRuns};
use steward_domain::action::audit::ActionKind;
use steward_domain::record::path::{RecordKind, RecordPath};
use steward_domain::wiki::OVERVIEW_FILE;
use steward_domain::wiki::page::may_be_page;
use steward_domain::wiki::run::{RunEnd, RunId};
use steward_domain::wiki::verify::Verdict;

/// What is known of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunFacts {
    /// Who asked for it. Untrusted.
    pub by: Option<String>,
    /// The pages that it changes, relative to the wiki. The overview, the index and the log do not count.
    pub touched: Vec<String>,
    /// The last verdict; `None` while there is none.
    pub verdict: Option<Verdict>,
}

/// Reads what is known of a run of a wiki. `staged` is the run if its folder is still there.
#[must_use]
pub fn read_run_facts(root: &VaultRoot, wiki: &str, run: &RunId, staged: Option<&StagedRunSummary>) -> RunFacts {
    let committed = read_committed(root, wiki, run);
    let folder = staged.and_then(|staged| StagedRuns::new(root).peek(&staged.meta.run).ok());
    let by = staged.map(|staged| staged.meta.by.clone());
    match (&committed, staged, &folder) {
        (Some(details), ..) => RunFacts {
            by: by.or_else(|| find_asker(&details.summary.reasoning)),
            touched: keep_pages(details.files.iter().map(|file| file.file.as_str())),
            verdict: folder.as_ref().and_then(read_last_verdict),
        },
        (None, Some(staged), Some(folder)) => RunFacts {
            by,
            touched: list_staged_pages(folder),
            verdict: judge_state(&staged.status, read_last_verdict(folder)),
        },
        (None, Some(_), None) => RunFacts { by, ..RunFacts::default() },
        (None, None, _) => read_ended(root, wiki, run),
    }
}

/// How often a run was submitted to somebody who could judge it, or how often its writer made it.
#[must_use]
pub fn count_loops(run: &StagedRun) -> u64 {
    if run.meta.is_by_assistant() {
        let lines: Vec<GuardianLine> = run.read_changes().unwrap_or_default();
        return count_judged_submissions(&lines) as u64;
    }
    let revisions = run.read_transcript().map_or(0, |transcript| transcript.count_revisions());
    u64::from(revisions) + u64::from(run.read_staged().is_ok_and(|staged| staged.is_some()))
}

/// The record of a committed run, by the name that it has.
fn read_committed(root: &VaultRoot, wiki: &str, run: &RunId) -> Option<RunDetails> {
    let name = format!("{}-{run}-{wiki}", ActionKind::Wiki.as_str());
    let path = RecordPath::new(RecordKind::Event, &name).ok()?;
    if root.exists(&path) { read_run(root, &path) } else { None }
}

/// What the record of a run says that committed nothing.
fn read_ended(root: &VaultRoot, wiki: &str, run: &RunId) -> RunFacts {
    let ended = find_rejected_runs(root, run.as_str()).unwrap_or_default();
    let Some(summary) = ended.into_iter().find(|ended| ended.wiki == wiki) else { return RunFacts::default() };
    let is_refused = summary.rejection.as_ref().is_some_and(|it| it.end == RunEnd::Rejected && it.by.is_none());
    RunFacts { by: find_asker(&summary.reasoning), touched: Vec::new(), verdict: is_refused.then_some(Verdict::Reject) }
}

fn read_last_verdict(run: &StagedRun) -> Option<Verdict> {
    run.read_verdict().ok().flatten().map(|found| found.verdict)
}

/// The verdict that a run has in its state. What was found last is also the verdict about a run that ended after it.
fn judge_state(status: &RunStatus, last: Option<Verdict>) -> Option<Verdict> {
    match status.state {
        // It is judged anew.
        RunState::Verifying => None,
        RunState::Rejected if status.rejected_by.is_none() => last.map(|_| Verdict::Reject),
        RunState::Pending | RunState::Committed | RunState::Rejected | RunState::Abandoned => last,
    }
}

fn list_staged_pages(run: &StagedRun) -> Vec<String> {
    let plan = run.read_staged().ok().flatten().map(|(plan, _)| plan).unwrap_or_default();
    keep_pages(plan.files.iter().map(|file| file.path.as_str()))
}

fn keep_pages<'f>(files: impl Iterator<Item = &'f str>) -> Vec<String> {
    files.filter(|file| may_be_page(file) && *file != OVERVIEW_FILE).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wiki::staged::{ASSISTANT_WRITER, RULES_WRITER, RunMeta, StagedPlan};
    use chrono::{DateTime, Utc};
    use steward_domain::wiki::path::PagePath;
    use steward_domain::wiki::plan::RunFile;
    use steward_domain::wiki::run::WikiRunType;
    use steward_domain::wiki::verify::RulesVerdict;
    use steward_domain::wiki::writer::budget::RunLimits;

    fn meta(writer: &str) -> RunMeta {
        let began: DateTime<Utc> = "2026-11-22T09:15:04Z".parse().unwrap();
        RunMeta {
            run: RunId::derive(began, &[writer]),
            wiki: "plot".into(),
            folder: "wiki/plot".into(),
            run_type: WikiRunType::Manual,
            by: "ann via mcp".into(),
            began,
            source: None,
            answer: None,
            review: None,
            writer: writer.into(),
            unattended: false,
            limits: RunLimits::default(),
        }
    }

    #[test]
    fn a_staged_run_says_what_it_touches_and_its_last_verdict() {
        let dir = tempfile::tempdir().unwrap();
        let root = VaultRoot::open(dir.path()).unwrap();
        let runs = StagedRuns::new(&root);
        let run = runs.begin(&meta(RULES_WRITER)).unwrap();
        let find = |name: &RunMeta| {
            let listed = runs.list().unwrap();
            let staged = listed.iter().find(|run| run.meta.run == name.run);
            read_run_facts(&root, "plot", &name.run, staged)
        };
        assert_eq!(find(&run.meta), RunFacts { by: Some("ann via mcp".to_owned()), ..RunFacts::default() });
        let file = |name: &str| {
            let path = PagePath::new("wiki/plot", name).unwrap();
            RunFile { path, before: None, after: Some(b"x".to_vec()) }
        };
        run.stage(&[file("concepts/lease.md"), file("overview.md")], StagedPlan::default()).unwrap();
        let verdict = |verdict| RulesVerdict { verdict, findings: Vec::new(), claims: Vec::new() };
        run.write_verdict(&verdict(Verdict::Revise)).unwrap();
        let facts = find(&run.meta);
        assert_eq!(
            (facts.touched.as_slice(), facts.verdict),
            (&["concepts/lease.md".to_owned()][..], Some(Verdict::Revise))
        );
        assert_eq!(count_loops(&run), 1);
        run.set_status(RunState::Verifying, run.meta.began, "a model checks it").unwrap();
        assert_eq!(find(&run.meta).verdict, None);
        run.set_status(RunState::Rejected, run.meta.began, "a third time").unwrap();
        assert_eq!(find(&run.meta).verdict, Some(Verdict::Reject));
        assert_eq!(find(&meta("nobody")), RunFacts::default());
        assert_eq!(count_loops(&runs.begin(&meta(ASSISTANT_WRITER)).unwrap()), 0);
    }
}
