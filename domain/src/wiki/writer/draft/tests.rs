use super::*;
use crate::wiki::claims::read_claims;
use serde_json::json;

const SOURCE: &str = "# Letter\n\nThe council extends the lease of plot 12 to 31 March 2029. Run `pump --off` in winter, see \
    https://council.example/pump. The fee is 40 pounds.\n";
const PLOT: &str = "---\nschema: knowledge.entry/v1\nslug: plot-12\nkind: entity\ntitle: Plot 12\nsources: [lease]\nconfidence: 0.7\n\
    updated_at: \"2026-11-22T09:15:04Z\"\n---\n# Plot 12\n\nThe lease ends on 31 March 2027.[^c6107d23f]\n\nMy own note.\n\n\
    [^c6107d23f]: 2024-03-02-lease — \"The lease of plot 12 ends on 31 March 2027.\"\n";
const QUOTE: &str = "The council extends the lease of plot 12 to 31 March 2029.";

/// A wiki with one page, and a source about it.
struct Desk {
    manifest: EffectiveManifest,
    pages: Vec<WikiPage>,
    texts: BTreeMap<String, QuoteFinder<'static>>,
    paths: BTreeMap<String, String>,
    files: BTreeSet<String>,
}

impl Desk {
    fn new() -> Self {
        Self {
            manifest: EffectiveManifest::default(),
            pages: vec![read_page("entities/plot-12.md", PLOT.as_bytes()).page.unwrap()],
            texts: [("letter".to_owned(), QuoteFinder::new(SOURCE))].into(),
            paths: BTreeMap::new(),
            files: ["entities/plot-12.md", "entities/council.md"].map(str::to_owned).into(),
        }
    }

    fn input(&self) -> DraftInput<'_> {
        DraftInput {
            folder: "wiki/allotment",
            manifest: &self.manifest,
            pages: &self.pages,
            source: Some("letter"),
            texts: &self.texts,
            paths: &self.paths,
            files: &self.files,
            began: "2026-11-23T09:15:04Z".parse().unwrap(),
            run_type: WikiRunType::Manual,
        }
    }
}

fn call(name: &str, arguments: Value) -> ToolCall {
    ToolCall { id: String::new(), name: name.to_owned(), arguments: arguments.as_object().cloned() }
}

fn write(kind: &str, title: &str, content: &str) -> ToolCall {
    call("write_wiki_page", json!({"page_type": kind, "title": title, "content": content, "summary": "About it."}))
}

fn run(draft: &mut RunDraft<'_>, call: &ToolCall) -> String {
    draft.run_call(call).text
}

fn read(draft: &RunDraft<'_>, file: &str) -> String {
    let files = draft.list_files();
    let found = files.iter().find(|found| found.path.file() == file).unwrap();
    String::from_utf8(found.after.clone().unwrap()).unwrap()
}

#[test]
fn a_new_page_has_typed_fields_and_quotes_with_labels() {
    let desk = Desk::new();
    let input = desk.input();
    let mut draft = RunDraft::new(&input);
    let content = "---\ntags: [water, Not A Tag]\naliases: [The fee]\nconfidence: 0.4\n---\nThe fee is 40 pounds.[^1]\n\n[^1]: \"The fee is 40 pounds.\"\n";
    assert_eq!(run(&mut draft, &write("concept", "Fee", content)), "Written: fee.md");
    let page = read_page("concepts/fee.md", read(&draft, "concepts/fee.md").as_bytes());
    assert_eq!(page.findings, []);
    let page = page.page.unwrap();
    let names = (page.tags.join(" "), page.aliases.join(" "), page.confidence);
    assert_eq!(names, ("water".to_owned(), "The fee".to_owned(), 0.4));
    assert!(page.document.body().starts_with("# Fee\n\nThe fee is 40 pounds.[^c"), "{}", page.document.body());
    assert!(!draft.has_summary());
    let summary = format!("It is longer.[^1]\n\n[^1]: \"{QUOTE}\"");
    assert_eq!(run(&mut draft, &write("Summary", "Anything", &summary)), "Written: summary-letter.md");
    assert!(draft.has_summary());
    assert_eq!(
        run(&mut draft, &call("update_ideas", json!({"ideas": ["Who pays?", " ", "Who pays?"]}))),
        "Added 1 ideas"
    );
}

#[test]
fn a_page_of_the_same_title_is_extended_and_keeps_every_byte() {
    let desk = Desk::new();
    let input = desk.input();
    let mut draft = RunDraft::new(&input);
    let content = format!(
        "# Plot 12\n\nThe lease ends on 31 March 2027.[^c6107d23f]\n\nMy own note.\n\nThe council extends it.[^1]\n\n[^1]: \"{QUOTE}\""
    );
    assert_eq!(run(&mut draft, &write("concept", "plot 12", &content)), "Written: plot-12.md");
    let text = read(&draft, "entities/plot-12.md");
    let kept = PLOT.lines().filter(|line| !line.starts_with("sources") && !line.starts_with("updated_at"));
    assert!(
        kept.clone().all(|line| line.starts_with("confidence") || text.lines().any(|other| other == line)),
        "{text}"
    );
    assert!(text.contains("sources: [lease, letter]\n") && text.contains("confidence: 0.7\n"), "{text}");
    let claims = read_claims(read_page("entities/plot-12.md", text.as_bytes()).page.unwrap().document.body(), &[]);
    assert_eq!((claims.claims.len(), claims.anchors.len()), (2, 2));
}

#[test]
fn a_page_that_a_person_pinned_stays_pinned_when_a_model_extends_it() {
    let mut desk = Desk::new();
    let pinned = PLOT.replace("confidence: 0.7\n", "confidence: 0.7\nmetadata:\n  steward:\n    pinned: true\n");
    desk.pages = vec![read_page("entities/plot-12.md", pinned.as_bytes()).page.unwrap()];
    assert!(desk.pages[0].is_pinned() && !Desk::new().pages[0].is_pinned());
    let input = desk.input();
    let mut draft = RunDraft::new(&input);
    let content = format!(
        "---\nmetadata: {{steward: {{pinned: false}}}}\n---\n# Plot 12\n\nThe lease ends on 31 March 2027.[^c6107d23f]\n\nMy own note.\n\nThe council extends it.[^1]\n\n[^1]: \"{QUOTE}\""
    );
    assert_eq!(run(&mut draft, &write("entity", "Plot 12", &content)), "Written: plot-12.md");
    let text = read(&draft, "entities/plot-12.md");
    assert!(read_page("entities/plot-12.md", text.as_bytes()).page.unwrap().is_pinned(), "{text}");
}

#[test]
fn what_stood_on_a_page_cannot_be_lost_or_reworded() {
    let desk = Desk::new();
    let input = desk.input();
    let mut draft = RunDraft::new(&input);
    let dropped = format!("# Plot 12\n\nMy own note.\n\nThe council extends it.[^1]\n\n[^1]: \"{QUOTE}\"");
    let reworded = format!("# Plot 12\n\nThe lease ends in 2029.[^c6107d23f]\n\nMy own note.\n\n[^1]: \"{QUOTE}\"");
    let rewritten = "# Plot 12\n\nThe lease ends on 31 March 2027.[^c6107d23f]\n\nHis note.\n";
    for content in [dropped.as_str(), &reworded, rewritten] {
        let reply = draft.run_call(&write("entity", "Plot 12", content));
        assert!(reply.is_error && (reply.text.contains("stays") || reply.text.contains("keep it")), "{reply:?}");
    }
    let edit = |old: &str, new: &str| call("edit_wiki_page", json!({"slug": "plot-12", "old": old, "new": new}));
    assert!(run(&mut draft, &edit("My own note.", "Gone.")).starts_with("error: what stands on the page stays"));
    assert_eq!(run(&mut draft, &edit("nowhere", "x")), "error: no match");
    assert_eq!(run(&mut draft, &edit("e", "x")), "error: 5 matches");
    assert_eq!(draft.list_files(), []);
    let beside = format!("My own note.\n\nThe council extends it.[^1]\n\n[^1]: \"{QUOTE}\"");
    assert_eq!(run(&mut draft, &edit("My own note.", &beside)), "Written: plot-12.md");
    assert!(read(&draft, "entities/plot-12.md").contains("\nMy own note.\n\nThe council extends it.[^c"));
}

#[test]
fn a_contradiction_shows_both_sides() {
    let desk = Desk::new();
    let input = desk.input();
    let mut draft = RunDraft::new(&input);
    let dispute = call(
        "mark_disputed",
        json!({"slug": "plot-12", "claim": "c6107d23f", "statement": "It ends on 31 March 2029.", "quote": QUOTE}),
    );
    assert_eq!(run(&mut draft, &dispute), "Written: plot-12.md");
    let summary = format!("It is longer.[^1]\n\n[^1]: \"{QUOTE}\"");
    run(&mut draft, &write("summary", "Letter", &summary));
    draft.finish(true).unwrap();
    assert!(read(&draft, "summaries/summary-letter.md").contains("\nSee also: [[plot-12|Plot 12]]\n"));
    let text = read(&draft, "entities/plot-12.md");
    let page = read_page("entities/plot-12.md", text.as_bytes()).page.unwrap();
    assert_eq!((page.body.disputed.len(), page.body.callouts.len(), page.confidence), (1, 1, 0.5));
    assert_eq!(page.contradicts, ["summary-letter"]);
    assert!(text.contains("\n**Updated 2026-11-23 per letter:** It ends on 31 March 2029.[^c"), "{text}");
    assert!(text.contains("\nMy own note.\n\nSee also: [[summary-letter|Letter]]\n\n[^c6107d23f]: "), "{text}");
    let again = read(&draft, "entities/plot-12.md");
    draft.finish(true).unwrap();
    assert_eq!(read(&draft, "entities/plot-12.md"), again, "finished once");
}

#[test]
fn nothing_that_is_not_in_the_source_is_written() {
    let desk = Desk::new();
    let input = desk.input();
    let mut draft = RunDraft::new(&input);
    let quoted = |text: &str| format!("{text}[^1]\n\n[^1]: \"{QUOTE}\"");
    for (content, part) in [
        ("It never ends.[^1]\n\n[^1]: \"The lease never ends at all.\"".to_owned(), "quote not in source"),
        ("It has no source.".to_owned(), "has no source"),
        (quoted("Run `pump --on` now."), "not in source: say it in prose or leave it out: pump --on"),
        (
            quoted("See https://evil.example/pay now."),
            "not in source: say it in prose or leave it out: https://evil.example/pay",
        ),
        (quoted("It needs v2.1 of it."), "v2.1"),
        (quoted("<b>Bold</b> words."), "raw HTML"),
        (quoted("[Pay](javascript:alert) now."), "link"),
        (quoted(&"Long words. ".repeat(40)), "280"),
    ] {
        let reply = draft.run_call(&write("concept", "Thing", &content));
        assert!(reply.is_error && reply.text.contains(part), "{part}: {reply:?}");
    }
    assert_eq!(draft.list_files(), []);
    assert_eq!(
        run(&mut draft, &write("concept", "Thing", &quoted("Run `pump --off`, see https://council.example/pump."))),
        "Written: thing.md"
    );
}

#[test]
fn kinds_and_names_that_are_not_a_writers_are_refused() {
    let desk = Desk::new();
    let input = desk.input();
    let mut draft = RunDraft::new(&input);
    let content = format!("It is.[^1]\n\n[^1]: \"{QUOTE}\"");
    for kind in ["overview", "lint", "qa", "archive", "../x", "unknown"] {
        assert!(draft.run_call(&write(kind, "A title", &content)).text.contains("no page_type of this wiki"), "{kind}");
    }
    for (title, file) in [
        ("Overview", "concepts/overview-page.md"),
        ("KNOWLEDGE", "concepts/knowledge-page.md"),
        ("../../etc", "concepts/etc.md"),
    ] {
        assert!(draft.run_call(&write("concept", title, &content)).text.starts_with("Written: "), "{title}");
        read(&draft, file);
    }
    assert!(draft.run_call(&call("read_page", json!({"slug": "../secret"}))).is_error);
}

#[test]
fn accepted_calls_give_the_same_pages_again() {
    let desk = Desk::new();
    let input = desk.input();
    let calls = [
        write("summary", "Letter", &format!("It is longer.[^1]\n\n[^1]: \"{QUOTE}\"")),
        call(
            "mark_disputed",
            json!({"slug": "plot-12", "claim": "c6107d23f", "statement": "It ends later.", "quote": QUOTE}),
        ),
        write("concept", "Fee", "The fee is 40 pounds.[^1]\n\n[^1]: \"The fee is 40 pounds.\""),
        call("no_change", json!({"slug": "fee", "reason": "just written"})),
    ];
    let (mut first, mut again) = (RunDraft::new(&input), RunDraft::new(&input));
    for call in &calls {
        assert!(!first.run_call(call).is_error);
        assert_eq!(again.replay_call(call, false), Ok(()));
    }
    assert_eq!(first.list_files(), again.list_files());
    assert_eq!(first.state.unchanged, again.state.unchanged);
    // The page is gone meanwhile.
    let gone = Desk { pages: Vec::new(), ..Desk::new() };
    let input = gone.input();
    assert!(RunDraft::new(&input).replay_call(&calls[1], true).is_err());
}

#[test]
fn a_link_that_leads_nowhere_at_the_end_is_its_words() {
    let desk = Desk::new();
    let input = desk.input();
    let mut draft = RunDraft::new(&input);
    let text = format!(
        "The [[council|Council]] extends the lease of [[plot-12]] for the [[mayor|lady mayor]] and [[nobody]].[^1]\n\n[^1]: \"{QUOTE}\"\n"
    );
    // The page of the council is written only later.
    run(&mut draft, &write("summary", "Letter", &text));
    run(&mut draft, &write("entity", "Council", &format!("It extends leases.[^1]\n\n[^1]: \"{QUOTE}\"\n")));
    draft.finish(false).unwrap();
    let page = read(&draft, "summaries/summary-letter.md");
    assert!(page.contains("of [[plot-12]] for the lady mayor and nobody.[^c"), "{page}");
    assert!(
        page.contains("The [[council|Council]] extends"),
        "a link may name the title of a page that came later: {page}"
    );
}

#[test]
fn relations_join_pages_by_slug_title_or_alias_and_are_never_an_error() {
    let desk = Desk::new();
    let input = desk.input();
    let mut draft = RunDraft::new(&input);
    let triple = |subject: &str, relation: &str, object: &str| json!({"subject": subject, "relation": relation, "object": object});
    let note = |triples: Value| call("note_relations", json!({"triples": triples}));
    // The page comes after its relations, and some of what is noted is not a triple.
    let first = note(json!([
        triple("plot 12", "Governed by", "[[the-fee|Fee]]"),
        triple("plot-12", "lies_in", "Nowhere"),
        triple("plot-12", "same_as", "Plot 12"),
        triple("plot-12", "<b>", "the-fee"),
        "plot-12 costs the-fee",
        {"subject": "plot-12"},
    ]));
    let reply = draft.run_call(&first);
    assert!(!reply.is_error && reply.text.starts_with("Noted 0 relations; 4 more"), "{reply:?}");
    let content = "---\naliases: [The charge]\n---\nThe fee is 40 pounds.[^1]\n\n[^1]: \"The fee is 40 pounds.\"\n";
    assert_eq!(run(&mut draft, &write("concept", "The fee", content)), "Written: the-fee.md");
    let again = note(json!([triple("The charge", "paid-for", "plot-12"), triple("plot-12", "governed_by", "the-fee")]));
    assert_eq!(run(&mut draft, &again), "Noted 2 relations");
    let lines = |draft: &RunDraft<'_>| draft.list_relations().iter().map(ToString::to_string).collect::<Vec<_>>();
    let expected = ["[[plot-12]] --governed_by--> [[the-fee]]", "[[the-fee]] --paid_for--> [[plot-12]]"];
    assert_eq!(lines(&draft), expected);
    for unreadable in [json!({}), json!({"triples": "plot-12 owns"}), json!(7)] {
        assert!(!draft.run_call(&call("note_relations", unreadable)).is_error);
    }
    let many = (0..200).map(|n| triple("plot-12", &format!("r{n}"), "the-fee")).collect();
    draft.run_call(&note(many));
    assert!(lines(&draft).len() <= 50, "{}", lines(&draft).len());
    // The same calls on the same wiki give the same relations.
    let mut replayed = RunDraft::new(&input);
    for call in [first, write("concept", "The fee", content), again] {
        replayed.replay_call(&call, true).unwrap();
    }
    assert_eq!(lines(&replayed), expected);
}
