//! A lint that corrects pages because a person asked for it, on the real binary: what it changes, what it leaves, and that it goes back.

use crate::wiki_runs::{Desk, LEASE};
use serde_json::Value;

/// A page of a person, without any quote.
fn page(slug: &str, title: &str, more: &str, body: &str) -> String {
    format!(
        "---\nschema: knowledge.entry/v1\nslug: {slug}\nkind: entity\ntitle: {title}\nupdated_at: \"2026-11-22T09:15:04Z\"\n{more}---\n# {title}\n\n{body}"
    )
}

fn count(found: &Value, code: &str) -> usize {
    found["findings"].as_array().unwrap().iter().filter(|it| it["code"] == code).count()
}

#[tokio::test]
async fn a_person_has_links_and_older_forms_corrected_and_takes_that_back() {
    let desk = Desk::new().await;
    let _worker = desk.world.worker().await;
    desk.wiki(&["init", "allotment"]).await.expect(0);
    desk.ingest(&desk.write("2026-11-20-lease.md", LEASE)).await;
    let write = |file: &str, text: &str| desk.world.vault.write(&format!("wiki/allotment/{file}"), text);
    let pump = page(
        "pump",
        "The pump",
        "tags: [water]\nlinks: [Plot_12]\n",
        "Mine: the pump on [[Plot_12]] needs a gasket and a crank. See [[pumps]].\n",
    );
    let well = page(
        "well",
        "The well",
        "tags: [water]\n",
        "The crank and the gasket of the pump are worn.\n\nSee also: [[plot-12|Plot 12]]\n",
    );
    let old = page("shed", "The shed", "sources: [sources/2026-11-20-lease.md]\n", "It is green.\n")
        .replace("knowledge.entry/v1", "knowledge/v1")
        .replace("kind: entity", "type: entity");
    let before = [("entities/pump.md", &pump), ("entities/well.md", &well), ("entities/shed.md", &old)];
    for (file, text) in before {
        write(file, text);
    }
    let found = desk.wiki(&["lint", "allotment", "--json"]).await.expect(4).json();
    let counts =
        ["broken_ref", "see_also", "legacy_schema", "legacy_type", "source_path"].map(|code| count(&found, code));
    assert_eq!(counts, [3, 1, 1, 1, 1], "{found:#}");
    let fixed = desk.wiki(&["lint", "allotment", "--fix"]).await;
    for line in [
        "entities/pump.md: 2 links corrected (plot-12, plot-12); see also well",
        "entities/well.md: see also pump",
        "entities/shed.md: schema, sources, kind in the form of today",
    ] {
        assert!(fixed.err.contains(line), "{line}: {fixed}");
    }
    let pump_now = pump.replace("[[Plot_12]]", "[[plot-12|Plot_12]]").replace("links: [Plot_12]", "links: [plot-12]");
    assert_eq!(desk.read("entities/pump.md"), format!("{pump_now}\nSee also: [[well|The well]]\n"));
    assert_eq!(desk.read("entities/well.md"), well.replace("|Plot 12]]", "|Plot 12]], [[pump|The pump]]"));
    let shed_now = old
        .replace("knowledge/v1", "knowledge.entry/v1")
        .replace("type: entity", "kind: entity")
        .replace("[sources/2026-11-20-lease.md]", "[\"2026-11-20-lease\"]");
    assert_eq!(desk.read("entities/shed.md"), shed_now);
    assert!(desk.read("_index.md").contains("[[pump|The pump]]"));
    // What two pages could be meant by, or none, is a person's to correct.
    let left = desk.wiki(&["lint", "allotment", "--json"]).await.expect(4).json();
    assert_eq!(["broken_ref", "see_also", "legacy_type"].map(|code| count(&left, code)), [1, 0, 0], "{left:#}");
    let runs = desk.wiki(&["runs", "list", "allotment", "--json"]).await.expect(0).json();
    let is_fix = |run: &&Value| run["run_type"] == "lint" && run["what"].as_str().unwrap().contains("corrected");
    let run = runs.as_array().unwrap().iter().find(is_fix).unwrap_or_else(|| panic!("{runs:#}"));
    desk.wiki(&["runs", "revert", run["run"].as_str().unwrap()]).await.expect(0);
    for (file, text) in before {
        assert_eq!(&desk.read(file), text, "{file}");
    }
    let verified = desk.steward.run(&["audit", "verify"]).await.expect(0);
    assert!(verified.out.contains("the chain is intact"), "{verified}");
}
