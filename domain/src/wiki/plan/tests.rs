use super::*;
use crate::wiki::run::{RunEnd, RunId, RunRejection, WikiRunType};

fn run() -> WikiRun {
    let at = "2026-11-22T09:15:04Z".parse().unwrap();
    WikiRun {
        kind: ActionKind::Wiki,
        mark: WikiMark {
            wiki: "plot".into(),
            folder: "wiki/plot".into(),
            run: RunId::derive(at, &["a"]),
            run_type: WikiRunType::Manual,
            reverts: None,
            source: None,
            verifier: None,
            rejection: None,
        },
        at,
        reasoning: "Ann asked for [[it]].\n## Files\nNo".into(),
        workflow: WorkflowRef::default(),
        clerk: None,
        claims: Vec::new(),
        accepted: Vec::new(),
    }
}

fn file(name: &str, before: Option<&str>, after: Option<&str>) -> RunFile {
    let bytes = |text: Option<&str>| text.map(|text| text.as_bytes().to_vec());
    RunFile { path: PagePath::new("wiki/plot", name).unwrap(), before: bytes(before), after: bytes(after) }
}

#[test]
fn the_files_of_a_plan_are_in_the_order_of_their_exchange_and_its_record_reads_back() {
    let files = vec![
        file("_log.md", Some("# Log\n"), Some("# Log\n\n## [x] manual | a\n")),
        file("_index.md", Some("# Index\n"), Some("# Index\n- a\n")),
        file("entities/b.md", Some("b\n"), None),
        file("entities/a.md", None, Some("## Files\na")),
        file("entities/same.md", Some("same"), Some("same")),
        file("sources/a.md", None, Some("words")),
    ];
    let plan = close(run(), files).unwrap();
    let names: Vec<&str> = plan.files().iter().map(|file| file.path.file()).collect();
    assert_eq!(names, ["sources/a.md", "entities/a.md", "entities/b.md", "_index.md", "_log.md"]);
    let (record, text) = plan.render_record(ChainLink { seq: 1, prev: ContentHash::genesis() }).unwrap();
    let path = record.draft.record_path().unwrap();
    assert!(path.as_str().starts_with("event/steward-wiki-r-20261122T091504Z-"), "{path}");
    assert!(path.as_str().ends_with("-plot.md"), "{path}");
    assert!(text.contains("The wiki `plot`, run r-20261122T091504Z-"), "{text}");
    assert_eq!(
        WikiDetails::parse(&text).unwrap().files[4].content,
        RecordedContent::Entry("\n## [x] manual | a\n".into())
    );
}

#[test]
fn the_record_of_a_rejected_run_has_a_name_of_its_own_and_no_file() {
    let rejection = Some(RunRejection { end: RunEnd::Rejected, by: Some("Ann: [[x]]".into()) });
    let rejected = WikiRun { kind: ActionKind::WikiRejected, mark: WikiMark { rejection, ..run().mark }, ..run() };
    let plan = close(rejected, Vec::new()).unwrap();
    let own = run().draft_record().unwrap();
    assert_eq!(plan.draft().disposition, Disposition::Recorded);
    assert_ne!(plan.draft().id, own.id, "the run may still be committed against its verifier");
    let name = own.record_path().unwrap().as_str().replace("-plot.md", "-plot-rejected.md");
    assert_eq!(plan.draft().record_path().unwrap().as_str(), name);
    let (record, text) = plan.render_record(ChainLink { seq: 1, prev: ContentHash::genesis() }).unwrap();
    assert_eq!(record.draft.wiki.and_then(|mark| mark.rejection?.by), Some("Ann: [[x]]".into()));
    assert!(text.contains("(manual), rejected.") && !text.contains("[[x]]"), "{text}");
    assert_eq!(WikiDetails::parse(&text).unwrap(), WikiDetails::default());
}

#[test]
fn a_wiki_whose_records_could_be_those_of_another_one_has_no_run() {
    let named = WikiRun { mark: WikiMark { wiki: "plot-rejected".into(), ..run().mark }, ..run() };
    let message = named.draft_record().unwrap_err().to_string();
    assert!(message.contains("plot-rejected"), "{message}");
}

#[test]
fn what_no_run_may_do_is_refused() {
    let log = "# Log\n\n## [x] manual | a\n";
    let large = "x".repeat(super::super::MAX_PAGE_BYTES + 1);
    for (files, part) in [
        (vec![file("sources/a.md", Some("a"), Some("b"))], "a source is added once"),
        (vec![file("sources/a.md", Some("a"), None)], "a source is added once"),
        (vec![file("_index.md", Some("a"), None)], "no run removes it"),
        (vec![file("_log.md", Some(log), Some("# Log\n"))], "entries are added at its end"),
        (vec![file("_log.md", Some("# Log\n"), Some("# Log\nhalf a line"))], "entries are added at its end"),
        (vec![file("entities/a.md", None, Some(&large))], "more than such a file may have"),
        (vec![file("entities/a.md", None, Some("a\0"))], "not UTF-8 text"),
        (vec![file("entities/a.md", None, Some("a")), file("entities/A.md", None, Some("a"))], "named twice"),
    ] {
        let message = close(run(), files).unwrap_err().to_string();
        assert!(message.contains(part), "{message}");
    }
    let elsewhere =
        RunFile { path: PagePath::new("wiki/other", "entities/a.md").unwrap(), ..file("overview.md", None, Some("a")) };
    assert!(matches!(close(run(), vec![elsewhere]), Err(WikiPlanError::Elsewhere(_))));
    let nested = vec![file("sources/a", None, Some("a")), file("sources/a/b", None, Some("a"))];
    assert!(matches!(close(run(), nested), Err(WikiPlanError::Nested(_))));
    let many = (0..2_000).map(|n| file(&format!("entities/p{n}.md"), None, Some("a"))).collect();
    assert!(matches!(close(run(), many), Err(WikiPlanError::TooMany(_))));
    let page = "words \n".repeat(36_000);
    let many = (0..40).map(|n| file(&format!("entities/p{n}.md"), None, Some(&page))).collect();
    assert!(matches!(close(run(), many), Err(WikiPlanError::Record(_))));
}
