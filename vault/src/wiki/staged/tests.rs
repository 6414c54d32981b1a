use super::*;
use chrono::TimeDelta;
use steward_domain::wiki::run::WikiRunType;
use steward_domain::wiki::writer::budget::RunLimits;

fn meta() -> RunMeta {
    let began = "2026-11-22T09:15:04Z".parse().unwrap();
    RunMeta {
        run: RunId::derive(began, &["a"]),
        wiki: "plot".into(),
        folder: "wiki/plot".into(),
        run_type: WikiRunType::Ingest,
        by: "ann".into(),
        began,
        source: None,
        answer: None,
        review: None,
        writer: "rules".into(),
        unattended: false,
        limits: RunLimits::default(),
    }
}

fn file(name: &str, before: Option<&str>, after: Option<&str>) -> RunFile {
    let bytes = |text: Option<&str>| text.map(|text| text.as_bytes().to_vec());
    RunFile { path: PagePath::new("wiki/plot", name).unwrap(), before: bytes(before), after: bytes(after) }
}

#[test]
fn what_is_staged_reads_back_and_is_replaced_whole() {
    let dir = tempfile::tempdir().unwrap();
    let runs = StagedRuns::new(&VaultRoot::open(dir.path()).unwrap());
    let run = runs.begin(&meta()).unwrap();
    assert!(matches!(runs.begin(&meta()), Err(StagedRunError::Busy(_))));
    assert_eq!(run.read_staged().unwrap(), None);
    run.stage(&[file("entities/old.md", Some("a"), None)], StagedPlan::default()).unwrap();
    let files = [file("entities/a.md", Some("a"), Some("b")), file("summaries/deep/b.md", None, Some("c"))];
    let plan = StagedPlan { ideas: vec!["- idea".into()], notes: vec!["note".into()], ..StagedPlan::default() };
    run.stage(&files, plan).unwrap();
    drop(run);
    let run = runs.open(&meta().run).unwrap();
    let (plan, read) = run.read_staged().unwrap().unwrap();
    assert_eq!((read.as_slice(), plan.ideas.len(), plan.notes.len()), (&files[..], 1, 1));
    run.set_status(RunState::Committed, meta().began, "done").unwrap();
    assert_eq!(runs.list().unwrap()[0].status.state, RunState::Committed);
    let folder = dir.path().join(".steward/runs").join(meta().run.as_str());
    std::fs::write(folder.join("staged/entities/a.md"), "forged").unwrap();
    assert!(matches!(run.read_staged(), Err(StagedRunError::Edited { .. })));
    drop(run);
    let later = |days| meta().began + TimeDelta::days(days);
    runs.remove_old(later(29), |_| true).unwrap();
    assert_eq!(runs.list().unwrap().len(), 1);
    runs.remove_old(later(31), |_| true).unwrap();
    assert_eq!(runs.list().unwrap().len(), 0);
    assert!(matches!(runs.open(&meta().run), Err(StagedRunError::Unknown(_))));
}

#[test]
fn a_forged_plan_names_no_file_outside_of_the_wiki() {
    let dir = tempfile::tempdir().unwrap();
    let runs = StagedRuns::new(&VaultRoot::open(dir.path()).unwrap());
    let run = runs.begin(&meta()).unwrap();
    let folder = dir.path().join(".steward/runs").join(meta().run.as_str());
    let plan = r#"{"files":[{"path":"../../task/pay.md","before":null,"after":null}],"ideas":[],"notes":[]}"#;
    std::fs::write(folder.join("plan.json"), plan).unwrap();
    assert!(run.read_staged().is_err());
}

#[test]
fn an_upload_is_kept_until_it_is_old() {
    let dir = tempfile::tempdir().unwrap();
    let runs = StagedRuns::new(&VaultRoot::open(dir.path()).unwrap());
    assert_eq!(runs.read_upload(&meta().run).unwrap(), None);
    runs.upload_source(&meta().run, b"a\0b").unwrap();
    assert_eq!(runs.read_upload(&meta().run).unwrap(), Some(b"a\0b".to_vec()));
    runs.remove_old(meta().began + TimeDelta::days(31), |_| true).unwrap();
    assert_eq!(runs.read_upload(&meta().run).unwrap(), None);
}
