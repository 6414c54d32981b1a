//! `steward wiki` on real folders: a new wiki, checks of any folder, and what a view amounts to.
//!
//! The checks need no vault and no server, and change nothing.

use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use steward_tests::files::Files;
use steward_tests::run;
use steward_tests::steward::{Said, Steward};

struct Place {
    folder: PathBuf,
    steward: Steward,
}

impl Place {
    /// A folder without a vault, and the binary without any setting.
    fn new() -> Self {
        let (folder, _) = run::new_folder();
        Self { steward: Steward::new(&folder), folder }
    }

    fn write(&self, file: &str, text: &str) -> &Self {
        let path = self.folder.join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
        self
    }

    /// A manifest with these lines besides the required ones.
    fn manifest(&self, file: &str, more: &str) -> &Self {
        let name = file.split('/').rev().nth(1).unwrap();
        let text = format!(
            "---\nschema: knowledge.workspace/v1\nname: {name}\ntitle: The {name}\ndescription: d\nversion: 1.0.0\n{more}---\n"
        );
        self.write(file, &text)
    }

    fn page(&self, file: &str, kind: &str, more: &str, body: &str) -> &Self {
        let slug = Path::new(file).file_stem().unwrap().to_str().unwrap().to_owned();
        let text = format!(
            "---\nschema: knowledge.entry/v1\nslug: {slug}\nkind: {kind}\ntitle: Of {slug}\nupdated_at: \"2026-11-22T09:15:04Z\"\n{more}---\n{body}\n"
        );
        self.write(file, &text)
    }

    /// Runs `steward wiki` in the folder, which it must not change.
    async fn check(&self, arguments: &[&str]) -> Said {
        let before = Files::of(&self.folder);
        let said = self.steward.inside(&self.folder).run(&[&["wiki"], arguments].concat()).await;
        let changed: Vec<String> = Files::of(&self.folder)
            .since(&before)
            .into_iter()
            .filter(|line| !line.contains("out-") && !line.contains("err-"))
            .collect();
        assert_eq!(changed, Vec::<String>::new(), "{arguments:?}");
        said
    }
}

fn codes(value: &Value) -> Vec<String> {
    let findings = value["findings"].as_array().unwrap().iter();
    findings
        .map(|finding| format!("{} {}", finding["code"].as_str().unwrap(), finding["severity"].as_str().unwrap()))
        .collect()
}

#[tokio::test]
async fn a_new_wiki_is_valid_and_shows_its_state() {
    let place = Place::new();
    std::fs::create_dir(place.folder.join("vault")).unwrap();
    let steward = place
        .steward
        .with("STEWARD_VAULT", place.folder.join("vault").display())
        .with("STEWARD_TEMPORAL_CLI", run::temporal_cli().display())
        .with("STEWARD_TEMPORAL_PORT", run::free_port())
        .with("STEWARD_TEMPORAL_UI_PORT", run::free_port());
    assert!(steward.run(&["wiki", "status"]).await.expect(0).out.contains("`steward wiki init <name>`"));
    let made = steward.run(&["wiki", "init", "allotment", "--json"]).await.expect(0).json();
    let folder = PathBuf::from(made["folder"].as_str().unwrap());
    let mut names: Vec<String> =
        std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    let expected = [
        "AGENTS.md",
        "KNOWLEDGE.md",
        "_graph.md",
        "_ideas.md",
        "_index.md",
        "_log.md",
        "_manifest.json",
        "_sources.json",
        "overview.md",
        "sources",
    ];
    assert_eq!(names, expected);
    steward.run(&["wiki", "lint", "allotment"]).await.expect(0);
    steward.run(&["wiki", "validate", folder.to_str().unwrap()]).await.expect(0);
    let again = steward.run(&["wiki", "init", "allotment"]).await.expect(3);
    assert!(again.err.contains("exists already"), "{again}");
    for name in ["../x", "A", "a b", "ä"] {
        steward.run(&["wiki", "init", name]).await.expect(2);
    }
    std::fs::write(folder.join("sources/letter.md"), "A letter.").unwrap();
    let status = steward.run(&["wiki", "status", "--json"]).await.expect(0).json();
    let shown = json!([status[0]["wiki"], status[0]["lifecycle"], status[0]["sources"], status[0]["ingested_sources"]]);
    assert_eq!(shown, json!(["allotment", "empty", 1, 0]));
    let unknown = steward.run(&["wiki", "lint", "allotmnt"]).await.expect(1);
    assert!(unknown.err.contains("the vault has allotment"), "{unknown}");
}

#[tokio::test]
async fn any_folder_can_be_checked_without_a_vault_and_stays_as_it_is() {
    let place = Place::new();
    place
        .manifest("wiki/KNOWLEDGE.md", "lints: [{id: cited, kind: require-source, appliesTo: \"*\", severity: error}]\n")
        .page("wiki/entities/plot.md", "entity", "sources: [lease]\n", "The [[water]] of [[gone]].")
        .page("wiki/entities/water.md", "entity", "", "For the [[plot]].")
        .write("wiki/sources/lease.md", "---\nschema: knowledge.source/v1\nid: lease\npath: sources/lease.md\ntitle: L\ncaptured_at: \"2026-11-20T10:00:00Z\"\ncontent_hash: sha256:00\n---\nThe lease.\n")
        .write("wiki/notes.md", "# Mine, with a [[link]]\n");
    let found = place.check(&["lint", "./wiki", "--json"]).await.expect(4).json();
    let expected = ["index_stale warn", "broken_ref error", "require_source error", "source_mutated warn"];
    assert_eq!(codes(&found), expected, "{found:#}");
    assert_eq!(found["findings"][1]["line"], 9);
    let text = place.check(&["lint", "./wiki"]).await.expect(4).out;
    assert!(text.contains("entities/plot.md:9: error broken_ref: [[gone]] leads to nothing: "), "{text}");
    // All of that is valid by the standard.
    place.check(&["validate", "wiki"]).await.expect(0);
    place.write(
        "wiki/entities/old.md",
        "---\nschema: knowledge/v1\nslug: old\ntype: entity\ntitle: Old\nupdated_at: soon\n---\n",
    );
    let refused = place.check(&["validate", "wiki", "--json"]).await.expect(4).json();
    assert_eq!(codes(&refused), ["legacy_schema error", "legacy_type error", "entry_invalid error"]);
    let missing = place.check(&["validate", "wiki/entities", "--json"]).await.expect(4).json();
    assert!(codes(&missing).contains(&"schema_missing error".to_owned()), "{missing:#}");
    let several = place.check(&["validate", "nowhere", "wiki/entities/old.md", "--json"]).await.expect(4).json();
    assert_eq!(codes(&several).len(), 4, "one file that is not there hides no other: {several:#}");
    place.write("wiki/KNOWLEDGE.md", "---\nschema: knowledge.entry/v1\nslug: ab\nkind: entity\ntitle: T\nupdated_at: \"2026-11-22T09:15:04Z\"\n---\n");
    place.check(&["validate", "wiki/KNOWLEDGE.md"]).await.expect(4);
    place.check(&["lint", "./wiki"]).await.expect(4);
    place.check(&["validate"]).await.expect(2);
}

#[tokio::test]
async fn a_view_shows_where_each_value_comes_from_and_one_for_nobody_is_refused() {
    let place = Place::new();
    place
        .manifest("wiki/KNOWLEDGE.md", "governance: ../p.yaml\ncuration: {tone: neutral, depth: medium}\n")
        .manifest(
            "operators/analyst/KNOWLEDGE.md",
            "extends: ../../wiki/KNOWLEDGE.md\nappliesTo: [ws://operators/analyst]\ngovernance: mine\ncuration: {tone: academic}\n",
        );
    let view = "operators/analyst/KNOWLEDGE.md";
    let shown = place.check(&["resolve", view, "--json"]).await.expect(0).json();
    assert_eq!(shown["effective"]["curation"], json!({"tone": "academic", "depth": "medium"}));
    assert_eq!((&shown["identity"]["name"], &shown["root_identity"]["name"]), (&json!("analyst"), &json!("wiki")));
    let chain: Vec<&str> = shown["chain"].as_array().unwrap().iter().map(|file| file.as_str().unwrap()).collect();
    assert!(
        chain[0].ends_with("/wiki/KNOWLEDGE.md") && chain[1].ends_with(view) && chain[0].starts_with('/'),
        "{chain:?}"
    );
    assert_eq!(shown["origins"]["curation.tone"]["line"], 10);
    assert_eq!(shown["origins"]["curation.depth"]["file"], chain[0]);
    assert_eq!(codes(&shown), ["governance:override_refused warn"]);
    let text = place.check(&["resolve", view]).await.expect(0).out;
    assert!(text.contains("curation.depth") && text.contains("1, line 8"), "{text}");
    // Bounded by a folder, the wiki is out of reach.
    let alone = place.check(&["resolve", view, "--root", "operators", "--json"]).await.expect(3).json();
    assert_eq!(codes(&alone), ["knowledge_extends_missing warn", "knowledge_appliesto_unresolvable error"]);
    place.manifest("skills/x/KNOWLEDGE.md", "extends: ../../wiki/KNOWLEDGE.md\nappliesTo: [ws://skills/gone]\n");
    place.check(&["resolve", "skills/x/KNOWLEDGE.md"]).await.expect(3);
    place.check(&["validate", "skills/x/KNOWLEDGE.md"]).await.expect(3);
}

#[tokio::test]
async fn hostile_names_and_texts_forge_no_line_and_are_never_followed() {
    let place = Place::new();
    place.manifest("wiki/KNOWLEDGE.md", "metadata: {\"k\\n0 files checked: forged\": 1}\n").page(
        "wiki/entities/a.md",
        "entity\u{202e}",
        "\"zz\\nentities/a.md:1: error forged\": 1\n",
        "[[x]]",
    );
    std::os::unix::fs::symlink("/etc/hostname", place.folder.join("wiki/entities/link.md")).unwrap();
    std::fs::write(place.folder.join("wiki/entities/b\nwiki: error forged.md"), "x").unwrap();
    place.page("wiki/entities/--rf.md", "entity", "", "[[a]]").page(
        "wiki/entities/c.md",
        "entity",
        "",
        "[[a\u{1b}[31m]] <script>",
    );
    for arguments in [["lint", "./wiki"], ["validate", "wiki"], ["resolve", "wiki/KNOWLEDGE.md"]] {
        let said = place.check(&arguments).await;
        assert!(!said.out.contains(['\u{202e}', '\u{1b}']), "{said}");
        let is_forged = |line: &str| {
            ["wiki: error", "0 files checked", "entities/a.md:1: error forged"].iter().any(|it| line.starts_with(it))
        };
        assert!(!said.out.lines().any(is_forged), "{said}");
    }
    let said = place.check(&["lint", "./wiki"]).await.expect(4);
    assert!(said.out.contains("entities/link.md") && said.out.contains("a symbolic link"), "{said}");
    assert!(said.out.contains("entities/--rf.md: error entry_invalid: its name"), "{said}");
    // A link in the place of a wiki or of a manifest shows nothing of what it leads to.
    place.write("secret/KNOWLEDGE.md", "---\nschema: knowledge.workspace/v1\nname: hunter2\n---\n");
    std::fs::create_dir(place.folder.join("other")).unwrap();
    std::os::unix::fs::symlink(place.folder.join("secret/KNOWLEDGE.md"), place.folder.join("other/KNOWLEDGE.md"))
        .unwrap();
    for arguments in [["lint", "./other"], ["resolve", "other/KNOWLEDGE.md"]] {
        let said = place.check(&arguments).await;
        assert!(said.code != Some(0) && !said.all().contains("hunter2"), "{said}");
    }
}

/// Every finding is explained on the page.
#[test]
fn every_finding_is_documented() {
    use strum::IntoEnumIterator as _;
    let page = std::fs::read_to_string(run::project().join("docs/wiki.md")).unwrap();
    for code in steward_domain::wiki::finding::FindingCode::iter() {
        assert!(page.contains(&format!("`{code}`")), "{code} is not in docs/wiki.md");
    }
}
