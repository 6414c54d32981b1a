//! Pages that are staged call by call, found after the commit, and checked: what llmwiki tests of its tools that write, and of its check.

use super::{
    Case, PLOT, STOPCOCK, add_verifier, case, create, has_text, is_equal, is_refused, list_rows, play, read_text,
    submit,
};
use crate::mcp::{Client, ingested};
use crate::wiki_runs::Desk;
use crate::wiki_writer::{QUOTE, report};
use serde_json::{Value, json};
use steward_tests::clerk::Clerk;

const PAGE: &str = "wiki/concepts/meadow.md";

/// The calls of one run, in their order.
fn list_editing_cases(run: &Value) -> Vec<Case> {
    let within = |mut arguments: Value| {
        arguments["run_id"] = run.clone();
        arguments
    };
    let read = || within(json!({"path": PAGE}));
    let replace =
        |old: &str, new: &str| within(json!({"op": "str_replace", "path": PAGE, "old_text": old, "new_text": new}));
    let append = |path: &str| {
        let content = "## Place\n\nIt lies there.[^1]\n\n[^1]: 2026-11-20-lease — \"Plot 12 lies by the river.\"\n";
        within(json!({"op": "append", "path": path, "content": content}))
    };
    let untitled = create("wiki/concepts/untitled.md", "Untitled", "It ends in 2027.");
    let untitled = json!({"op": "create", "path": untitled["path"], "content": untitled["content"].as_str().unwrap().replace("title: Untitled\n", "")});
    vec![
        case("what was staged is read in its run, with the fields that each page has", "read", read(), |it| {
            let fields = [
                "schema: knowledge.entry/v1\n",
                "slug: meadow\n",
                "title: Meadow\n",
                "updated_at: ",
                "  - lease-end\n",
                ", staged\n",
            ];
            fields.into_iter().all(|field| has_text(it, field))
        }),
        case("what was staged is read nowhere else", "read", json!({"path": PAGE}), |it| is_refused(it, "not_found")),
        case("text is added above the footnotes", "write", append(PAGE), |it| is_equal(it, "state", &json!("open"))),
        case("two footnotes with the same mark both stand", "read", read(), |it| {
            let text = read_text(it);
            let (body, notes) = text.split_once("\n\n[^c").unwrap_or_default();
            body.contains("\n## Place\n\nIt lies there.[^c")
                && notes.contains(QUOTE)
                && notes.contains("Plot 12 lies by the river.")
        }),
        case("text is replaced where it stands once", "write", replace("The meadow ends", "The field ends"), |it| {
            has_text(it, "+The field ends in 2027.") && !has_text(it, "The meadow ends")
        }),
        case("text that stands nowhere is not replaced", "write", replace("The moor", "x"), |it| {
            is_refused(it, "no_match")
        }),
        case("text that stands twice is not replaced, and its lines are named", "write", replace("e", "x"), |it| {
            is_refused(it, "many_matches") && has_text(it, ", in lines ")
        }),
        case("nothing is added to a page that there is not", "write", append("wiki/concepts/moor.md"), |it| {
            is_refused(it, "not_found")
        }),
        case("a page has a title", "write", within(untitled), |it| is_refused(it, "template_missing")),
        case("a page is made once", "write", within(create(PAGE, "Field", "It ends in 2027.")), |it| {
            is_refused(it, "name_collides")
        }),
        case(
            "a link that leads nowhere is a warning",
            "write",
            replace("in 2027.", "in 2027, as [[nobody]] says."),
            |it| list_rows(it, "warnings") == [json!("the link [[nobody]] leads to no page")],
        ),
        case("a link that is corrected is no warning", "write", replace("[[nobody]]", "[[stopcock]]"), |it| {
            list_rows(it, "warnings").is_empty()
        }),
    ]
}

/// The cases of a page that was committed.
fn list_committed_cases() -> Vec<Case> {
    let search = |tag: &str| json!({"query": "field", "tags": [tag]});
    vec![
        case("a committed page is read", "read", json!({"path": PAGE}), |it| {
            has_text(it, ", live\n") && has_text(it, "The field ends in 2027,")
        }),
        case("a committed page is found by its tag", "search", search("lease-end"), |it| {
            list_rows(it, "hits").iter().any(|hit| hit["path"] == PAGE)
        }),
        case("a committed page is not found by another tag", "search", search("water"), |it| {
            list_rows(it, "hits").is_empty()
        }),
        case("a check finds nothing wrong with it", "overview", json!({"include": ["findings"]}), |it| {
            !list_rows(it, "findings")
                .iter()
                .any(|finding| finding["severity"] == "error" || finding["code"] == "broken_ref")
        }),
        case(
            "its removal names the pages that link to it",
            "delete",
            json!({"path": STOPCOCK, "reason": "a test"}),
            |it| has_text(it, "concepts/meadow.md links to the page that is removed"),
        ),
        case("a staged removal removes nothing", "read", json!({"path": STOPCOCK}), |it| has_text(it, "# Stopcock\n")),
    ]
}

/// Puts a page there as a person does.
fn write_by_hand(desk: &Desk, slug: &str, source: &str, body: &str) {
    let text = format!(
        "---\nschema: knowledge.entry/v1\nslug: {slug}\nkind: concept\ntitle: The {slug}\nsources: [\"{source}\"]\nupdated_at: \"2026-11-22T09:15:04Z\"\n---\n\
         # The {slug}\n\n{body}\n"
    );
    desk.world.vault.write(&format!("wiki/allotment/concepts/{slug}.md"), text);
}

/// What a check finds on pages that people wrote.
async fn check_findings(desk: &Desk, client: &mut Client) {
    let lease = "2026-11-20-lease";
    // Its label is that of other words.
    let edited = desk.read("concepts/plot-12.md").replace("31 March 2027.\"", "1 April 2027.\"");
    desk.world.vault.write("wiki/allotment/concepts/plot-12.md", edited);
    write_by_hand(desk, "lonely", lease, "Nobody links here.");
    write_by_hand(desk, "dangling", lease, "It says so.[^c00000001] See [[stopcock]].");
    write_by_hand(desk, "linking", lease, "See [[moor]].");
    write_by_hand(desk, "unsourced", "nobody", "See [[stopcock]].");
    let found = client.value("overview", json!({"include": ["findings"]})).await;
    for (name, path, code) in [
        ("words of a footnote that were changed", PLOT, "quote_edited"),
        ("a page that nothing links to", "wiki/concepts/lonely.md", "orphan"),
        ("a mark without a footnote", "wiki/concepts/dangling.md", "claim_unanchored"),
        ("a link that leads nowhere", "wiki/concepts/linking.md", "broken_ref"),
        ("a source that there is not", "wiki/concepts/unsourced.md", "source_missing"),
    ] {
        let is_meant = |finding: &&Value| finding["path"] == path && finding["code"] == code;
        let finding = found["findings"].as_array().unwrap().iter().find(is_meant);
        let finding = finding.unwrap_or_else(|| panic!("{name}: {found:#}"));
        assert_ne!(finding["fix"], "", "{name}: {finding:#}");
    }
    // The log has no fields, and needs none.
    let of_log = found["findings"].as_array().unwrap().iter().find(|finding| finding["path"] == "wiki/log.md");
    assert_eq!(of_log, None);
}

#[tokio::test]
async fn pages_are_written_and_checked_as_those_of_others() {
    let verifier = Clerk::start(|asked| report(asked, "nothing of this")).await;
    let desk = ingested().await;
    let _worker = desk.world.worker_with(&add_verifier(&desk.steward, &verifier)).await;
    let mut client = Client::start(&desk, &["--workspace", "allotment"]).await;
    let mut page = create(PAGE, "Meadow", "The meadow ends in 2027.");
    page["content"] = json!(page["content"].as_str().unwrap().replacen(
        "\nkind: concept\n",
        "\nkind: concept\ntags: [lease-end]\n",
        1
    ));
    let run = client.value("write", page).await["run"].clone();
    play(&mut client, list_editing_cases(&run)).await;
    let done = client.value("write", submit(&run, "meadow")).await;
    assert_eq!(done["state"], "committed", "{done:#}");
    play(&mut client, list_committed_cases()).await;
    check_findings(&desk, &mut client).await;
    client.end().await;
}
