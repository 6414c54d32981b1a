use super::*;
use crate::wiki::body::read_body;

fn read(body: &str) -> PageClaims {
    read_claims(body, &read_body(body).disputed)
}

fn statements(body: &str) -> Vec<(String, String)> {
    read(body).claims.into_iter().map(|claim| (claim.id, claim.statement)).collect()
}

fn expect(found: &[(String, String)], expected: &[(&str, &str)]) {
    let expected: Vec<(String, String)> = expected.iter().map(|(id, text)| ((*id).into(), (*text).into())).collect();
    assert_eq!(found, expected);
}

const PAGE: &str = "# Plot 12

::: disputed
> ⚠️ Contradiction: the lease ends on 31 March 2027 vs 31 March 2029 (letter)

The lease ends on 31 March 2027.[^c6107d23f]

**Updated 2026-11-22 per letter:** it ends on
31 March 2029.[^c4dc23754]
:::

See also: [[letter|Letter]]

[^c6107d23f]: lease — \"The lease of plot 12 ends on 31 March 2027.\"
[^c4dc23754]: letter — \"The council extends the lease of plot 12 to 31 March 2029.\"
";

#[test]
fn a_statement_is_what_stands_before_its_mark() {
    let page = read(PAGE);
    expect(
        &statements(PAGE),
        &[
            ("c6107d23f", "The lease ends on 31 March 2027."),
            ("c4dc23754", "**Updated 2026-11-22 per letter:** it ends on 31 March 2029."),
        ],
    );
    assert!(page.claims.iter().all(|claim| claim.is_disputed));
    assert_eq!(page.claims.iter().map(|claim| claim.line).collect::<Vec<_>>(), [6, 8]);
    assert_eq!(page.anchors.len(), 2);
    assert_eq!(page.anchors["c4dc23754"].source, "letter");
    assert_eq!(page.footnotes["c6107d23f"], 14);
    assert_eq!(page.list_unanchored().count(), 0, "{:?}", page.blocks);
    assert_eq!(page.claims[0].name("plot-12"), "plot-12#c6107d23f");
}

#[test]
fn several_statements_of_a_block_and_several_marks_of_a_statement() {
    let notes = "\n\n[^a]: x\n[^b]: y\n[^c]: z\n";
    let body = format!("One.[^a] Two\nlines.[^b][^c] Then *three*.[^a]{notes}");
    expect(&statements(&body), &[("a", "One."), ("b", "Two lines."), ("a~2", "Then *three*.")]);
    assert_eq!(read(&body).claims[1].labels, ["b", "c"]);
    let body = format!("- one[^a]\n- two\n  more.[^b]\n\n  Below.[^c]\n  - inner[^a]\n\n> Quoted\n> text.[^b]{notes}");
    let expected = [("a", "one"), ("b", "two more."), ("c", "Below."), ("a~2", "inner"), ("b~2", "Quoted text.")];
    expect(&statements(&body), &expected);
    let body = format!("| Plot | Ends |\n|---|---|\n| 12 | 2027[^a] |\n| 13 | 2028[^b] |{notes}");
    expect(&statements(&body), &[("a", "Plot: 12 | Ends: 2027"), ("b", "Plot: 13 | Ends: 2028")]);
}

#[test]
fn a_reflowed_or_moved_statement_is_the_same() {
    let notes = "\n\n[^a]: x\n[^b]: y\n";
    let one = read(&format!("The lease ends\non 31 March.[^a]\n\nWater is shut off.[^b]{notes}"));
    let other = read(&format!("> Water is  shut\n> off.[^b]\n\n- The lease ends on 31\n  March.[^a]{notes}"));
    assert_eq!(find_dropped_claims(std::slice::from_ref(&one), std::slice::from_ref(&other)), Vec::<String>::new());
    let reworded = read(&format!("The lease ended on 31 March.[^a]\n\nWater is shut off.[^b]{notes}"));
    assert_eq!(find_dropped_claims(&[one], &[reworded]), ["a"]);
}

#[test]
fn what_lacks_a_mark_is_found() {
    let body = "# Heading\n\nSaid.[^a]\n\nUnsaid.\n\n- said[^a].\n- unsaid\n\n::: note\nUnsaid too\n:::\n\n```\ncode[^a]\n```\n\nSee also: [[x]]\n\n---\n\n*Said.[^a]*\n\n[^a]: x\n";
    let page = read(body);
    let found: Vec<(usize, String)> = page.list_unanchored().map(|block| (block.line, block.text())).collect();
    assert_eq!(found, [(5, "Unsaid.".to_owned()), (8, "unsaid".to_owned()), (10, "Unsaid too".to_owned())]);
    assert_eq!(page.claims.len(), 3);
}

#[test]
fn a_mark_without_a_footnote_is_text() {
    assert_eq!(statements("Said.[^c6107d23f]\n"), []);
    let page = read("One.\n\nSaid.[^c6107d23f] `[^c6107d24f]` [^1]\n\n```\n[^c6107d25f]\n```\n");
    assert_eq!(page.list_dangling_marks(), [DanglingMark { label: "c6107d23f".into(), line: 3 }]);
}
