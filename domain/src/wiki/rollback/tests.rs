use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

const FOLDER: &str = "wiki/plot";

type Files = BTreeMap<String, String>;

fn page(body: &str) -> String {
    format!("---\nschema: knowledge.entry/v1\nslug: a\n---\n{body}")
}

fn record(file: &str, before: Option<&str>, after: Option<&str>) -> FileRecord {
    FileRecord::of_page(file, before, after)
}

/// A file that cannot be read has this content.
const UNREADABLE: &str = "unreadable";

fn read(files: &Files, path: &PagePath) -> Result<Option<Vec<u8>>, String> {
    match files.get(path.file()) {
        Some(text) if text == UNREADABLE => Err("no permission".to_owned()),
        found => Ok(found.map(|text| text.clone().into_bytes())),
    }
}

fn rollback(files: Vec<FileRecord>, now: &Files, edited: EditedPages) -> RollbackPlan {
    invert(&WikiDetails { files, claims: Vec::new() }, FOLDER, &[], edited, moment(), |path| read(now, path)).unwrap()
}

fn moment() -> DateTime<Utc> {
    "2026-11-23T10:00:00Z".parse().unwrap()
}

fn now(files: &[(&str, &str)]) -> Files {
    files.iter().map(|(file, text)| ((*file).to_owned(), (*text).to_owned())).collect()
}

fn wanted(plan: &RollbackPlan) -> Vec<(&str, Option<&str>)> {
    plan.files
        .iter()
        .map(|file| (file.path.file(), file.after.as_deref().map(|bytes| std::str::from_utf8(bytes).unwrap())))
        .collect()
}

const OLD: &str = "entities/old.md";
const NEW: &str = "entities/new.md";

#[test]
fn untouched_pages_go_back_to_the_byte() {
    let (before, after) = (page("one\ntwo\n"), page("one\n2\n"));
    let files = vec![
        record("entities/a.md", Some(&before), Some(&after)),
        record(NEW, None, Some("new")),
        record(OLD, Some("old"), None),
    ];
    let now = now(&[("entities/a.md", &after), (NEW, "new")]);
    let plan = rollback(files, &now, EditedPages::Refuse);
    assert_eq!(wanted(&plan), [("entities/a.md", Some(before.as_str())), (NEW, None), (OLD, Some("old"))]);
    assert_eq!((plan.kept, plan.conflicts), (vec![], vec![]));
}

#[test]
fn what_people_and_later_runs_wrote_stays() {
    let (before, after) = (page("one\n\ntwo\n\nthree\n"), page("one\n\n2\n\nthree\n"));
    let later = page("one, mine\n\n2\n\nthree\n\nfour by a later run\n");
    let files = vec![record("entities/a.md", Some(&before), Some(&after))];
    let plan = rollback(files, &now(&[("entities/a.md", &later)]), EditedPages::Refuse);
    let expected = page("one, mine\n\ntwo\n\nthree\n\nfour by a later run\n");
    assert_eq!(wanted(&plan), [("entities/a.md", Some(expected.as_str()))]);
}

#[test]
fn a_page_that_somebody_edited_since_stays() {
    let files = || vec![record(NEW, None, Some("new"))];
    let edited = rollback(files(), &now(&[(NEW, "new, and mine")]), EditedPages::Refuse);
    assert_eq!(edited.kept, [KeptPage { file: NEW.into(), reason: KeptReason::Edited }]);
    assert_eq!(edited.files, []);
    let mut gone = rollback(files(), &now(&[]), EditedPages::Refuse);
    gone.settle_names(&[], &[], EditedPages::Refuse);
    assert_eq!(gone, RollbackPlan::default(), "it is gone already");
}

fn entity(slug: &str, body: &str) -> String {
    format!("---\nschema: knowledge.entry/v1\nslug: {slug}\nkind: entity\ntitle: {slug}\n---\n{body}\n")
}

fn read_pages(wiki: &Files) -> Vec<WikiPage> {
    wiki.iter().filter_map(|(file, text)| read_page(file, text.as_bytes()).page).collect()
}

#[test]
fn a_move_is_taken_back_and_a_page_that_a_person_moved_is_named() {
    let (old, water) = (entity("plot", "Words."), entity("water", "[[plot]]"));
    let moved = vec![record("concepts/plot.md", None, Some(&old)), record("entities/plot.md", Some(&old), None)];
    let mut wiki = now(&[("concepts/plot.md", &old), ("entities/water.md", &water)]);
    let mut plan = rollback(moved.clone(), &wiki, EditedPages::Refuse);
    plan.settle_names(&read_pages(&wiki), &[], EditedPages::Refuse);
    assert_eq!(
        (plan.files.len(), plan.kept.len(), plan.conflicts.len()),
        (2, 0, 0),
        "the link means the old page then"
    );
    // A person edits the moved page, so it stays, and two pages must not have one slug.
    wiki.insert("concepts/plot.md".into(), entity("plot", "Mine."));
    let mut plan = rollback(moved, &wiki, EditedPages::Refuse);
    plan.settle_names(&read_pages(&wiki), &[], EditedPages::Refuse);
    let conflicts: Vec<String> = plan.conflicts.iter().map(ToString::to_string).collect();
    assert_eq!(conflicts, ["entities/plot.md: concepts/plot.md has its slug by now"]);
    // A page that the run changed and a person moved.
    let changed = vec![record("entities/plot.md", Some(&old), Some(&entity("plot", "Run.")))];
    let mut plan = rollback(changed, &wiki, EditedPages::Refuse);
    plan.settle_names(&read_pages(&wiki), &[], EditedPages::Refuse);
    assert_eq!(plan.kept[0].reason.to_string(), "it is concepts/plot.md now");
}

#[test]
fn a_page_that_cannot_be_read_may_use_others() {
    let files = vec![record(NEW, None, Some(&entity("new", "x")))];
    let wiki = now(&[(NEW, &entity("new", "x"))]);
    let broken = UnreadablePage { file: "entities/broken.md".into(), text: "---\n: [\n---\nSee [[new|it]].".into() };
    let mut plan = rollback(files, &wiki, EditedPages::Refuse);
    plan.settle_names(&read_pages(&wiki), &[broken], EditedPages::Refuse);
    assert_eq!(plan.kept[0].reason.to_string(), "entities/broken.md links to it");
}

#[test]
fn links_that_code_renders_keep_no_page() {
    let text = |marks: bool| {
        let (open, close) = if marks { ("<!-- steward -->\n", "<!-- /steward -->\n") } else { ("", "") };
        format!(
            "---\nschema: knowledge.entry/v1\nslug: overview\nkind: overview\ntitle: All\n---\n{open}- [[new]]\n{close}"
        )
    };
    for marks in [true, false] {
        let wiki = now(&[(NEW, &entity("new", "x")), ("overview.md", &text(marks))]);
        let mut plan = rollback(vec![record(NEW, None, Some(&entity("new", "x")))], &wiki, EditedPages::Refuse);
        plan.settle_names(&read_pages(&wiki), &[], EditedPages::Refuse);
        assert_eq!(plan.kept.is_empty(), marks);
    }
}

#[test]
fn a_page_that_another_one_uses_after_the_rollback_stays_and_what_it_uses_too() {
    let text = |slug: &str, body: &str| {
        format!("---\nschema: knowledge.entry/v1\nslug: {slug}\nkind: entity\ntitle: {slug}\n---\n{body}\n")
    };
    let (old, linked) = (text("old", "Words."), text("old", "Words.\n\n[[n1]]"));
    let new = [("n1", "[[n2]]"), ("n2", "[[n1]]"), ("n3", "See [here](n4.md)."), ("n4", "x")];
    let new: Vec<(String, String)> =
        new.iter().map(|(slug, body)| (format!("entities/{slug}.md"), text(slug, body))).collect();
    let mut files: Vec<FileRecord> = new.iter().map(|(file, text)| record(file, None, Some(text))).collect();
    files.push(record(OLD, Some(&old), Some(&linked)));
    let mut wiki: Files = new.iter().cloned().collect();
    wiki.insert(OLD.into(), linked);
    let plan_with = |wiki: &Files| {
        let pages: Vec<WikiPage> =
            wiki.iter().filter_map(|(file, text)| read_page(file, text.as_bytes()).page).collect();
        let mut plan = rollback(files.clone(), wiki, EditedPages::Refuse);
        plan.settle_names(&pages, &[], EditedPages::Refuse);
        plan
    };
    let all = plan_with(&wiki);
    assert_eq!(
        (all.files.len(), all.kept.len()),
        (5, 0),
        "they use each other, and the link from the old page goes too"
    );
    wiki.insert("entities/mine.md".into(), text("mine", "I use [[n3]]."));
    let plan = plan_with(&wiki);
    let kept: Vec<String> = plan.kept.iter().map(|page| format!("{}: {}", page.file, page.reason)).collect();
    assert_eq!(kept, ["entities/n3.md: entities/mine.md links to it", "entities/n4.md: entities/n3.md links to it"]);
    assert_eq!(plan.files.len(), 3);
}

#[test]
fn what_stands_in_the_way_is_named_and_kept_only_on_request() {
    let (before, after) = (page("one\n"), page("1\n"));
    let theirs = page("one or 1?\n");
    let files = || {
        vec![
            record("entities/a.md", Some(&before), Some(&after)),
            record("entities/b.md", Some(&before), Some(&after)),
            record(OLD, Some("old"), None),
        ]
    };
    let wiki = now(&[("entities/a.md", &theirs), ("entities/b.md", &after), (OLD, "another")]);
    let refused = rollback(vec![record(NEW, None, Some("new"))], &now(&[(NEW, UNREADABLE)]), EditedPages::Refuse);
    assert_eq!(refused.conflicts[0].to_string(), "entities/new.md: no permission");
    let refused = rollback(files(), &wiki, EditedPages::Refuse);
    let reasons: Vec<String> = refused.conflicts.iter().map(ToString::to_string).collect();
    assert_eq!(
        reasons,
        ["entities/a.md: line 5 was changed since: one or 1?", "entities/old.md: another page stands there by now",]
    );
    let kept = rollback(files(), &wiki, EditedPages::Keep);
    assert_eq!((kept.conflicts.len(), kept.kept.len()), (0, 2));
    assert_eq!(wanted(&kept), [("entities/b.md", Some(before.as_str()))]);
}

#[test]
fn files_that_the_run_did_not_reach_and_other_kinds_are_left_alone() {
    let files = vec![
        record("entities/a.md", Some("old"), Some("new")),
        FileRecord { file: "_index.md".into(), before: None, after: None, content: RecordedContent::Hashes },
        FileRecord { file: "_log.md".into(), before: None, after: None, content: RecordedContent::Entry("x\n".into()) },
    ];
    let details = WikiDetails { files, claims: Vec::new() };
    let missing = ["wiki/plot/entities/a.md".to_owned()];
    let wiki = now(&[("entities/a.md", "new")]);
    let plan = invert(&details, FOLDER, &missing, EditedPages::Refuse, moment(), |path| read(&wiki, path)).unwrap();
    assert_eq!(plan, RollbackPlan::default());
    let edited = WikiDetails { files: vec![record("../task/pay.md", Some("a"), Some("b"))], claims: Vec::new() };
    assert!(invert(&edited, FOLDER, &[], EditedPages::Refuse, moment(), |path| read(&wiki, path)).is_err());
}

/// A body whose lines are all different, as those of real pages nearly are.
fn bodies() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 3..20)
}

proptest! {
    /// A later run or person adds lines far from the run's; the rollback removes the run's lines and nothing else.
    #[test]
    fn a_rollback_takes_exactly_its_own_lines(body in bodies(), at in any::<usize>(), later in any::<usize>()) {
        let lines: Vec<String> = body.iter().enumerate().map(|(n, byte)| format!("line {n} {byte}\n")).collect();
        let insert = |lines: &[String], at: usize, text: &str| {
            let mut lines = lines.to_vec();
            lines.insert(at, text.to_owned());
            lines
        };
        let (at, later) = (at % (lines.len() + 1), later % (lines.len() + 1));
        // With an unchanged line between them, as git wants it.
        prop_assume!(at.abs_diff(later) > 0);
        let before = page(&lines.concat());
        let after = page(&insert(&lines, at, "of the run\n").concat());
        let of_both = {
            let (first, second) = if at > later { (at, later) } else { (later, at) };
            let text = |place: usize| if place == at { "of the run\n" } else { "of a person\n" };
            insert(&insert(&lines, first, text(first)), second, text(second))
        };
        let wiki = now(&[("entities/a.md", &page(&of_both.concat()))]);
        let plan = rollback(vec![record("entities/a.md", Some(&before), Some(&after))], &wiki, EditedPages::Refuse);
        let expected = page(&insert(&lines, later, "of a person\n").concat());
        prop_assert_eq!(wanted(&plan), vec![("entities/a.md", Some(expected.as_str()))]);
    }
}
