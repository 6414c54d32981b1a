//! The fixture of the tests of runs: a wiki, and a run that changes 12 pages, removes 3 and makes 2, with a source, the index
//! and the log.

use super::desk::{Desk, names, noon};
use std::collections::BTreeMap;
use steward_domain::action::audit::{ActionKind, AuditRecord, WorkflowRef};
use steward_domain::wiki::path::PagePath;
use steward_domain::wiki::plan::{RunFile, WikiPlan, WikiRun, close};
use steward_domain::wiki::run::{RunId, WikiMark, WikiRunType};
use steward_vault::action::writer::{ApplyError, VaultWriter};

pub(crate) const WIKI: &str = "wiki/plot";
/// Pages that the run changes, besides those that it creates and removes.
const CHANGED: usize = 12;

pub(crate) type Contents = BTreeMap<String, String>;

/// A wiki with a log, an index and some pages.
pub(crate) fn wiki() -> Desk {
    let desk = Desk::new();
    for folder in ["entities", "sources"] {
        std::fs::create_dir_all(desk.file(&format!("{WIKI}/{folder}"))).unwrap();
    }
    for (file, text) in before() {
        desk.write(&format!("{WIKI}/{file}"), text.as_bytes());
    }
    desk
}

pub(crate) fn before() -> Contents {
    let page = |n: usize| (format!("entities/page-{n:02}.md"), format!("# Page {n}\n\nOld words {n}.\n"));
    let mut files: Contents = (0..CHANGED).map(page).collect();
    for n in 0..3 {
        files.insert(format!("entities/old-{n}.md"), format!("# Old {n}\n"));
    }
    files.insert("_index.md".into(), "# Index\n".into());
    files.insert("_log.md".into(), "# Log\n".into());
    files
}

/// The files as the run leaves them: 12 pages changed, 3 removed, 2 new, a source, the index and the log.
pub(crate) fn after() -> Contents {
    let mut files: Contents = before()
        .into_iter()
        .filter(|(file, _)| !file.contains("old-"))
        .map(|(file, text)| (file, text.replace("Old", "New")))
        .collect();
    for n in 0..2 {
        files.insert(format!("entities/new-{n}.md"), format!("# New {n}\n"));
    }
    files.insert("sources/letter.md".into(), "The letter.\n".into());
    files.insert("_index.md".into(), "# Index\n- new\n".into());
    files.insert("_log.md".into(), "# Log\n\n## [2026-11-21T12:00:00Z] manual | A run\n".into());
    files
}

pub(crate) fn run(kind: WikiRunType, name: &str) -> WikiRun {
    let mark = WikiMark {
        wiki: "plot".into(),
        folder: WIKI.into(),
        run: RunId::derive(noon(), &[name]),
        run_type: kind,
        reverts: None,
        source: None,
        verifier: None,
        rejection: None,
    };
    WikiRun {
        kind: ActionKind::Wiki,
        mark,
        at: noon(),
        reasoning: "Ann asked.".into(),
        workflow: WorkflowRef::default(),
        clerk: None,
        claims: Vec::new(),
        accepted: Vec::new(),
    }
}

pub(crate) fn plan(run: WikiRun, before: &Contents, after: &Contents) -> WikiPlan {
    let files = before.keys().chain(after.keys().filter(|file| !before.contains_key(*file)));
    let bytes = |files: &Contents, file: &str| files.get(file).map(|text| text.clone().into_bytes());
    let files = files.map(|file| RunFile {
        path: PagePath::new(WIKI, file).unwrap(),
        before: bytes(before, file),
        after: bytes(after, file),
    });
    close(run, files.collect()).unwrap()
}

/// Every file of the wiki but the trash.
pub(crate) fn read_wiki(desk: &Desk) -> Contents {
    let mut files = Contents::new();
    for folder in ["", "entities/", "sources/"] {
        for name in names(&desk.file(&format!("{WIKI}/{folder}"))) {
            // A person may be saving at this moment.
            let text = std::fs::read_to_string(desk.file(&format!("{WIKI}/{folder}{name}")));
            if let Ok(text) = text
                && !name.ends_with(".new")
            {
                files.insert(format!("{folder}{name}"), text);
            }
        }
    }
    files
}

pub(crate) fn trash(desk: &Desk) -> Vec<String> {
    let run = run(WikiRunType::Manual, "a").mark.run;
    names(&desk.file(&format!("{WIKI}/.trash/{run}/entities")))
}

pub(crate) fn wiki_records(desk: &Desk) -> Vec<AuditRecord> {
    let files = names(&desk.file("event"));
    let wiki = files.iter().filter(|name| name.starts_with("steward-wiki"));
    wiki.map(|name| AuditRecord::parse(desk.read(&format!("event/{name}")).as_bytes()).unwrap()).collect()
}

/// The file of the run's record.
pub(crate) fn record_path() -> String {
    let run = run(WikiRunType::Manual, "a").mark.run;
    format!("event/steward-wiki-{run}-plot.md")
}

/// Commits the run; returns whether it had been committed before.
pub(crate) fn commit(writer: &VaultWriter) -> Result<bool, ApplyError> {
    writer.commit_run(&plan(run(WikiRunType::Manual, "a"), &before(), &after())).map(|receipt| receipt.repeated)
}
