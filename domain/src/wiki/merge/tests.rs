use super::*;
use proptest::prelude::*;

const PAGE: &str = "---\nschema: knowledge.entry/v1\nslug: plot-12\nkind: entity\ntitle: Plot 12\nsources: [lease]\n\
    confidence: 0.7\ntags: [allotment]\nmetadata: {steward: {summary: A plot.}}\n---\n# Plot 12\n\nIt is small.\n\n\
    The lease ends in 2027.[^c1]\n\n[^c1]: lease — \"2027\"\n";

fn run_page() -> String {
    PAGE.replace("sources: [lease]", "sources: [lease, letter]")
        .replace("0.7", "0.9")
        .replace("The lease ends in 2027.[^c1]\n", "The lease ends in 2027.[^c1]\n\nThe water is free.[^c2]\n")
        .replace("\"2027\"\n", "\"2027\"\n[^c2]: letter — \"free water\"\n")
}

fn person_page(text: &str) -> String {
    text.replace("It is small.", "It is small, and sunny.")
        .replace("tags: [allotment]", "tags: [allotment, garden]  # mine")
        .replace("title: Plot 12", "title: \"Plot 12, ours\"")
}

#[test]
fn what_a_run_wants_and_what_a_person_wrote_stand_together() {
    let merged = merge_page(PAGE, &run_page(), &person_page(PAGE)).unwrap();
    assert_eq!(merged, person_page(&run_page()));
    let taken_back = merge_page(&run_page(), PAGE, &merged).unwrap();
    assert_eq!(taken_back, person_page(PAGE));
}

#[test]
fn of_a_field_that_both_changed_the_persons_value_stays() {
    let theirs = PAGE.replace("0.7", "0.2").replace("summary: A plot.", "summary: Mine.");
    let ours = run_page().replace("{summary: A plot.}", "{summary: Better., aliases: [p12]}");
    let merged = merge_page(PAGE, &ours, &theirs).unwrap();
    let fields = frontmatter::read_note(merged.as_bytes()).unwrap().into_fields();
    assert_eq!(fields["confidence"], 0.2);
    assert_eq!(fields["metadata"], serde_json::json!({"steward": {"summary": "Mine.", "aliases": ["p12"]}}));
    assert_eq!(fields["sources"], serde_json::json!(["lease", "letter"]));
}

#[test]
fn a_footnote_that_a_person_edited_or_removed_stays_so() {
    let edited = PAGE.replace("\"2027\"", "\"2028\"");
    assert!(merge_page(PAGE, &run_page(), &edited).unwrap().contains("[^c1]: lease — \"2028\"\n[^c2]:"));
    let removed = PAGE.replace("\n[^c1]: lease — \"2027\"\n", "");
    let merged = merge_page(PAGE, &run_page(), &removed).unwrap();
    assert!(!merged.contains("[^c1]: ") && merged.ends_with("\n\n[^c2]: letter — \"free water\"\n"), "{merged}");
}

#[test]
fn an_overlap_names_the_line_of_the_file() {
    let theirs = PAGE.replace("The lease ends in 2027.[^c1]", "It ends in spring.[^c1]");
    let ours = PAGE.replace("The lease ends in 2027.[^c1]", "The lease ends in 2029.[^c1]");
    let PageMergeError::Overlap(conflict) = merge_page(PAGE, &ours, &theirs).unwrap_err() else { panic!() };
    assert_eq!(theirs.lines().nth(conflict.line - 1), Some("It ends in spring.[^c1]"));
    assert_eq!(
        (conflict.ours.as_str(), conflict.theirs.as_str()),
        ("The lease ends in 2029.[^c1]\n", "It ends in spring.[^c1]\n",)
    );
    assert!(merge_page(PAGE, &ours, "---\nslug: [\n---\n").is_err());
}

#[test]
fn of_footnotes_that_exclude_each_other_the_persons_stays_or_nothing_is_merged() {
    let changed = PAGE.replace("\"2027\"", "\"2029\"");
    let removed = PAGE.replace("\n[^c1]: lease — \"2027\"\n", "");
    assert_eq!(merge_page(PAGE, &changed, &removed), Ok(removed), "a person removed what the run changed");
    let theirs = PAGE.replace("\"2027\"\n", "\"2027\"\n[^c2]: mine\n").replace("It is small.", "It is small.[^c2]");
    let error = merge_page(PAGE, &run_page(), &theirs).unwrap_err();
    assert_eq!(error, PageMergeError::Footnote("c2".into()));
}

#[test]
fn a_footnote_and_its_source_that_a_later_statement_cites_stay() {
    let later = run_page().replace("It is small.", "It is small, with free water.[^c2]");
    let taken_back = merge_page(&run_page(), PAGE, &later).unwrap();
    let expected = PAGE
        .replace("It is small.", "It is small, with free water.[^c2]")
        .replace("sources: [lease]", "sources: [lease, letter]")
        .replace("\"2027\"\n", "\"2027\"\n[^c2]: letter — \"free water\"\n");
    assert_eq!(taken_back, expected);
}

proptest! {
    /// A run that is merged under a person's words and taken back again leaves exactly these words.
    #[test]
    fn a_run_that_is_taken_back_below_a_persons_words_leaves_them_alone(
        above in "([a-d]\n){1,6}", below in "([e-h]\n){1,6}", ours in "([i-l]\n){0,4}", mine in "([m-p]\n){1,4}",
        notes in "(\\[\\^[xyz]\\]: q\n){0,1}", new_notes in "(\\[\\^w\\]: r\n){0,1}",
    ) {
        let page = |run: &str, person: &str, notes: &str| {
            format!("---\nslug: a\n---\n{person}\n{above}\nmiddle\n\n{run}{below}\n{notes}")
        };
        let all = format!("{notes}{new_notes}");
        let (base, with_run, with_person) = (page("", "", &notes), page(&ours, "", &all), page("", &mine, &notes));
        let merged = merge_page(&base, &with_run, &with_person).unwrap();
        prop_assert_eq!(&merged, &page(&ours, &mine, &all));
        prop_assert_eq!(merge_page(&with_run, &base, &merged).unwrap(), with_person);
    }
}
