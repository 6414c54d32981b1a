use super::*;
use crate::wiki::quote::Anchor;

fn anchors() -> [Anchor; 3] {
    [
        Anchor::new("lease", "The lease of plot 12 ends on 31 March 2027."),
        Anchor::new("letter", "The council extends the lease of plot 12 to 31 March 2029."),
        Anchor::new("lease", "Plot 12 lies by the river."),
    ]
}

fn page(block: &str) -> WikiPage {
    let [old, new, other] = anchors();
    let head = "---\nschema: knowledge.entry/v1\nslug: plot-12\nkind: entity\ntitle: Plot 12\nsources: [lease, letter]\n\
        confidence: 0.5\nupdated_at: \"2026-11-22T09:15:04Z\"\ncontradicts: [summary-letter]\nmine: 1 # kept\n---\n";
    let notes = format!("{}\n{}\n{}\n", old.render(), new.render(), other.render());
    let text = format!("{head}# Plot 12\n\n{block}\n\nIt lies by the river.[^{}]\n\n{notes}", other.label);
    read_page("entities/plot-12.md", text.as_bytes()).page.unwrap()
}

fn block() -> String {
    let [old, new, _] = anchors();
    format!(
        "::: disputed\n> ⚠️ Contradiction: 2027 vs 2029 (letter)\n\nThe lease ends\nin 2027.[^{}]\n\nI must ask.\n\n**Updated 2026-11-22 \
         per letter:** it ends in 2029.[^{}]\n:::",
        old.label, new.label
    )
}

fn settle(page: &WikiPage, claim: &str, keep: &str) -> Result<SettledPage, SettleError> {
    settle_dispute(page, claim, keep, "2026-11-23T10:00:00Z".parse().unwrap())
}

#[test]
fn one_side_stays_and_everything_else_keeps_its_bytes() {
    let ([old, new, other], page) = (anchors(), page(&block()));
    let settled = settle(&page, &old.label, &new.label).unwrap();
    let expected = page
        .document
        .as_str()
        .replace(
            &block(),
            &format!("I must ask.\n\n**Updated 2026-11-22 per letter:** it ends in 2029.[^{}]", new.label),
        )
        .replace(&format!("{}\n", old.render()), "")
        .replace("contradicts: [summary-letter]\n", "")
        .replace("2026-11-22T09:15:04Z", "2026-11-23T10:00:00Z");
    assert_eq!(settled.text, expected);
    assert_eq!(settled.removed[0].claim, format!("plot-12#{}", old.label));
    // The other way round, the letter is cited nowhere any more.
    let settled = settle(&page, &new.label, &old.label).unwrap();
    let read = read_page("entities/plot-12.md", settled.text.as_bytes()).page.unwrap();
    assert_eq!((read.sources.as_slice(), read.body.disputed.len()), (&["lease".to_owned()][..], 0));
    assert!(settled.text.contains(&other.render()) && !settled.text.contains("2029"), "{}", settled.text);
}

#[test]
fn the_index_does_not_show_the_side_that_is_gone() {
    let [old, new, _] = anchors();
    let summed = |summary: &str| {
        let text = page(&block()).document.as_str().replace(
            "mine: 1 # kept\n",
            &format!("metadata: {{steward: {{summary: \"{summary}\", aliases: [twelve]}}}}\n"),
        );
        read_page("entities/plot-12.md", text.as_bytes()).page.unwrap()
    };
    let summary = |page: &WikiPage, keep: &str| {
        let settled = settle(page, &old.label, keep).unwrap();
        let read = read_page("entities/plot-12.md", settled.text.as_bytes()).page.unwrap();
        assert_eq!(read.aliases, ["twelve"]);
        read.summary.clone()
    };
    let page = summed("The lease ends in 2027.");
    assert_eq!(summary(&page, &new.label), "it ends in 2029.");
    assert_eq!(summary(&page, &old.label), "The lease ends in 2027.");
    assert_eq!(summary(&summed("Plot 12 and its lease."), &new.label), "Plot 12 and its lease.");
}

fn unwrap(before: &str, now: &str, left: &str) -> String {
    let pages = RolledBackPage { before, now: now.as_bytes() };
    let at = "2026-11-23T10:00:00Z".parse().unwrap();
    String::from_utf8(unwrap_single_sides("entities/plot-12.md", pages, left.as_bytes().to_vec(), at)).unwrap()
}

#[test]
fn a_dispute_of_which_a_rollback_leaves_one_side_is_unwrapped_and_nothing_else_changes() {
    let ([old, new, _], page) = (anchors(), page(&block()));
    let now = page.document.as_str();
    let left = now.replace(&format!("The lease ends\nin 2027.[^{}]\n\n", old.label), "");
    let expected = left
        .replace("::: disputed\n> ⚠️ Contradiction: 2027 vs 2029 (letter)\n\n", "")
        .replace(&format!("[^{}]\n:::\n", new.label), &format!("[^{}]\n", new.label))
        .replace("contradicts: [summary-letter]\n", "")
        .replace("2026-11-22T09:15:04Z", "2026-11-23T10:00:00Z");
    assert_eq!(unwrap("", now, &left), expected);
}

#[test]
fn a_block_of_a_person_stays_whatever_goes_back() {
    let ([old, new, _], page) = (anchors(), page(&block()));
    let now = page.document.as_str();
    let left = now.replace(&format!("The lease ends\nin 2027.[^{}]\n\n", old.label), "");
    // It had one side before the run, two sides never, or is what stood there before the run.
    for (before, now) in [(left.as_str(), now), ("", left.as_str())] {
        assert_eq!(unwrap(before, now, &left), left);
    }
    for (form, other) in [
        ("\n:::\n", "\n"),
        ("(letter)\n", "(letter)\n> My note: ask Bob.\n"),
        ("> ⚠️ Contradiction: 2027 vs 2029 (letter)\n\n", ""),
        ("**Updated 2026-11-22 per letter:** it", "It"),
    ] {
        let (now, left) = (now.replace(form, other), left.replace(form, other));
        assert_eq!(unwrap("", &now, &left), left, "{other}");
    }
    assert!(left.contains(&new.label));
}

#[test]
fn a_person_keeps_their_lines_in_and_around_a_settled_dispute() {
    let [old, new, other] = anchors();
    let own = format!(
        "::: disputed\n> ⚠️ Contradiction: 2027 vs 2029\n> My note: ask Bob.\n\nThe lease ends in 2027.[^{}]\n\n```\na\n\n\nb\n```\n\nIt ends in \
         2029.[^{}]\n:::",
        old.label, new.label
    );
    let page = self::page(&own);
    let text =
        page.document.as_str().replace(&other.render(), &format!("{}\n[^todo]: call the council", other.render()));
    let page = read_page("entities/plot-12.md", text.as_bytes()).page.unwrap();
    let settled = settle(&page, &old.label, &new.label).unwrap().text;
    let stays = format!("> My note: ask Bob.\n\n```\na\n\n\nb\n```\n\nIt ends in 2029.[^{}]\n\nIt lies", new.label);
    assert!(settled.contains(&stays) && settled.contains("[^todo]: call the council"), "{settled}");
    let open = self::page(&own.replace("\n:::", ""));
    assert_eq!(settle(&open, &old.label, &new.label), Err(SettleError::NotClosed));
}

#[test]
fn the_exact_name_of_a_claim_comes_before_the_labels_of_others() {
    let [old, new, other] = anchors();
    let body = format!(
        "::: disputed\n> ⚠️ Contradiction: a vs b\n\nOpen.[^{}][^{}]\n\nShut.[^{}]\n:::\n\nNot disputed.[^{}]",
        other.label, old.label, new.label, old.label
    );
    assert_eq!(settle(&page(&body), &old.label, &old.label), Err(SettleError::NotDisputed(old.label)));
}

#[test]
fn what_is_no_dispute_or_cannot_be_divided_is_refused() {
    let ([old, new, other], page) = (anchors(), page(&block()));
    assert_eq!(settle(&page, &other.label, &other.label), Err(SettleError::NotDisputed(other.label.clone())));
    assert!(
        matches!(settle(&page, &old.label, &other.label), Err(SettleError::NotInBlock { sides, .. }) if sides.len() == 2)
    );
    assert!(
        matches!(settle(&page, "c00000000", &old.label), Err(SettleError::NoClaim { known, .. }) if known.len() == 3)
    );
    let joined = self::page(&format!(
        "::: disputed\n> ⚠️ Contradiction: a vs b\n\nThe lease ends in 2027.[^{}] It ends in 2029.[^{}]\n:::",
        old.label, new.label
    ));
    assert_eq!(settle(&joined, &old.label, &new.label), Err(SettleError::OneParagraph));
}
