use crate::mcp::error::ToolErrorCode;
use crate::mcp::tests::TestWiki;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use steward_domain::wiki::writer::refusal::DraftFault;

const LEASE: &str =
    "# The lease\n\nThe lease of plot 12 ends on 31 March 2027. A stopcock is a valve that shuts off the water.\n";
const QUOTE: &str = "The lease of plot 12 ends on 31 March 2027.";

/// A wiki with a registered source and a page of a person.
fn desk() -> TestWiki {
    let wiki = TestWiki::accepted("allotment");
    wiki.write("sources/lease.md", LEASE);
    wiki.register("sources/lease.md");
    wiki.write("concepts/pump.md", &TestWiki::render_page("pump", "concept", "", "My own note.\n"));
    wiki
}

fn content(kind: &str, title: &str, quote: &str) -> String {
    format!("---\ntitle: {title}\nkind: {kind}\n---\nIt ends in March 2027.[^1]\n\n[^1]: lease — \"{quote}\"\n")
}

fn call(wiki: &TestWiki, tool: &str, arguments: Value) -> Value {
    wiki.call(tool, arguments).unwrap().structured_content.unwrap()
}

fn refuse(wiki: &TestWiki, tool: &str, arguments: Value) -> ToolErrorCode {
    wiki.call(tool, arguments).unwrap_err().code
}

#[test]
fn a_page_is_staged_and_the_wiki_stays_as_it_is() {
    let wiki = desk();
    let before = wiki.read_all();
    let create =
        json!({"op": "create", "path": "wiki/concepts/lease.md", "content": content("concept", "Lease", QUOTE)});
    let made = call(&wiki, "write", create);
    assert_eq!((made["state"].as_str(), made["path"].as_str()), (Some("open"), Some("wiki/concepts/lease.md")));
    assert_eq!(made["quotes"][0]["quote"], QUOTE, "{made:#}");
    let run = made["run"].as_str().unwrap();
    // Later text is that of the run, and the hash is that of what is staged.
    let old = "It ends in March 2027.";
    let more = json!({"op": "append", "path": "wiki/concepts/lease.md", "run_id": run, "base_sha256": made["staged_sha256"],
        "content": "A stopcock is a valve.[^2]\n\n[^2]: raw/lease.md — \"A stopcock is a valve that shuts off the water.\""});
    let second = call(&wiki, "write", more);
    assert!(second["diff"].as_str().unwrap().contains("+A stopcock is a valve.[^c"), "{second:#}");
    let stale = json!({"op": "str_replace", "path": "wiki/concepts/lease.md", "run_id": run, "base_sha256": made["staged_sha256"],
        "old_text": old, "new_text": old});
    assert_eq!(refuse(&wiki, "write", stale), ToolErrorCode::StaleBase);
    let shown = call(&wiki, "history", json!({"run_id": run, "mine": true}));
    assert_eq!(shown["entries"].as_array().unwrap().len(), 1, "{shown:#}");
    assert!(shown["run"]["files"][0]["diff"].as_str().unwrap().contains("+It ends in March 2027."), "{shown:#}");
    assert_eq!(wiki.read_all(), before);
    // Nobody holds the vault, so the run cannot be submitted, and stays open.
    let entry = "## [2026-11-24] manual | Lease | touched: concepts/lease.md";
    let submit = json!({"op": "append", "path": "wiki/log.md", "run_id": run, "content": entry});
    assert_eq!(refuse(&wiki, "write", submit.clone()), ToolErrorCode::EngineAway);
    assert_eq!(call(&wiki, "delete", json!({"path": format!("runs/{run}"), "reason": "a test"}))["state"], "abandoned");
    assert_eq!(refuse(&wiki, "write", submit), ToolErrorCode::RunClosed);
}

#[test]
fn every_guardrail_has_its_code() {
    let wiki = desk();
    let create = |path: &str, content: String| json!({"op": "create", "path": path, "content": content});
    let replace = |old: &str, new: &str| json!({"op": "str_replace", "path": "wiki/concepts/pump.md", "old_text": old, "new_text": new});
    let draft = ToolErrorCode::Draft;
    let good = || content("concept", "Lease", QUOTE);
    let cases: Vec<(Value, ToolErrorCode)> = vec![
        (create("raw/lease.md", good()), ToolErrorCode::RawIsReadOnly),
        (create("concepts/lease.md", good()), ToolErrorCode::PathNotWiki),
        (create("wiki/../lease.md", good()), ToolErrorCode::EscapesWorkspace),
        (create("wiki/concepts/../../x.md", good()), ToolErrorCode::EscapesWorkspace),
        (create("/etc/passwd", good()), ToolErrorCode::PathNotWiki),
        (create("wiki/.trash/x.md", good()), ToolErrorCode::NotFound),
        (create("wiki/index.md", good()), draft(DraftFault::ProtectedFile)),
        (create("wiki/overview.md", good()), draft(DraftFault::ProtectedFile)),
        (create("wiki/_manifest.json", good()), draft(DraftFault::ProtectedFile)),
        (create("wiki/a/b/lease.md", good()), draft(DraftFault::FolderTooDeep)),
        (create("wiki/entities/lease.md", good()), draft(DraftFault::KindUnknown)),
        (create("wiki/lint/report.md", content("lint", "A report", QUOTE)), draft(DraftFault::KindUnknown)),
        (create("wiki/concepts/Lease.md", good()), draft(DraftFault::BadArguments)),
        (create("wiki/concepts/pump.md", good()), draft(DraftFault::NameCollides)),
        (create("wiki/concepts/lease.md", "It ends.\n".to_owned()), draft(DraftFault::TemplateMissing)),
        (
            create("wiki/concepts/lease.md", content("concept", "Lease", "The lease never ends.")),
            draft(DraftFault::QuoteNotFound),
        ),
        (create("wiki/concepts/lease.md", content("concept", "Lease", "short")), draft(DraftFault::QuoteMissing)),
        (
            create("wiki/concepts/lease.md", "---\ntitle: A\nkind: concept\n---\nIt has no source.\n".to_owned()),
            draft(DraftFault::ClaimUnanchored),
        ),
        (
            create("wiki/concepts/lease.md", good().replace("It ends in March 2027.", &"Long words. ".repeat(40))),
            draft(DraftFault::StatementTooLong),
        ),
        (replace("nowhere", "x"), draft(DraftFault::NoMatch)),
        (replace("o", "x"), draft(DraftFault::ManyMatches)),
        (replace("My own note.", "Gone."), draft(DraftFault::PersonWroteThis)),
        (
            json!({"op": "append", "path": "wiki/log.md", "content": "## [2026-11-24] manual | X | touched: a"}),
            ToolErrorCode::RunIncomplete,
        ),
        (json!({"op": "append", "path": "wiki/log.md", "content": "hello"}), ToolErrorCode::LogHeaderUnparseable),
        (json!({"op": "create", "path": "wiki/concepts/x.md"}), ToolErrorCode::BadArguments),
        (
            json!({"op": "append", "path": "wiki/concepts/pump.md", "content": "x", "run_id": "00000000"}),
            ToolErrorCode::RunUnknown,
        ),
        (
            json!({"op": "append", "path": "wiki/concepts/pump.md", "content": "x", "source": "nobody"}),
            ToolErrorCode::SourceMissing,
        ),
    ];
    let before = wiki.read_all();
    for (arguments, code) in cases {
        assert_eq!(refuse(&wiki, "write", arguments.clone()), code, "{arguments}");
    }
    assert_eq!(
        refuse(&wiki, "delete", json!({"path": "wiki/log.md", "reason": "x"})),
        draft(DraftFault::ProtectedFile)
    );
    assert_eq!(
        refuse(&wiki, "delete", json!({"path": "wiki/concepts/none.md", "reason": "x"})),
        draft(DraftFault::NotFound)
    );
    assert_eq!(wiki.read_all(), before);
    let open = call(&wiki, "history", json!({"status": "pending"}));
    assert_eq!(open["entries"], json!([]), "a refused call leaves no open run: {open:#}");
}

#[test]
fn a_run_is_its_callers_alone() {
    let wiki = desk();
    let create = json!({"op": "create", "path": "wiki/lease.md", "content": content("concept", "Lease", QUOTE)});
    let made = call(&wiki, "write", create);
    assert_eq!(made["path"], "wiki/concepts/lease.md", "the folder is that of the kind");
    let run = made["run"].as_str().unwrap();
    let append = json!({"op": "append", "path": "wiki/concepts/lease.md", "run_id": run, "content": "x"});
    let other = wiki.call_as("eve via mcp", "write", append).unwrap_err();
    assert_eq!(other.code, ToolErrorCode::RunUnknown);
    let removed =
        wiki.call_as("eve via mcp", "delete", json!({"path": format!("runs/{run}"), "reason": "x"})).unwrap_err();
    assert_eq!(removed.code, ToolErrorCode::RunUnknown);
    let shown = wiki.call_as("eve via mcp", "history", json!({"run_id": run})).unwrap().structured_content.unwrap();
    assert_eq!(shown["run"]["files"], json!([]), "{shown:#}");
}

impl TestWiki {
    /// The files of the wiki with their bytes.
    fn read_all(&self) -> BTreeMap<String, Vec<u8>> {
        let folder = self.folder();
        let mut open = vec![folder.to_owned()];
        let mut files = BTreeMap::new();
        while let Some(dir) = open.pop() {
            for entry in std::fs::read_dir(&dir).unwrap() {
                let path = entry.unwrap().path();
                match path.is_dir() {
                    true => open.push(path),
                    false => drop(files.insert(path.display().to_string(), std::fs::read(&path).unwrap())),
                }
            }
        }
        files
    }
}
