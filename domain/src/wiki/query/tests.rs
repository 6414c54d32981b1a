use super::*;
use crate::wiki::path::PagePath;
use crate::wiki::plan::RunFile;
use crate::wiki::quote::QuoteFinder;
use crate::wiki::run::WikiRunType;
use crate::wiki::verify::{RulesVerdict, RunFault, Verdict, VerifyInput, verify_run};
use std::collections::{BTreeMap, BTreeSet};

const SOURCE: &str = "The lease of plot 12 ends on 31 March 2027. The water is turned off in winter. The plot is dry.";

fn page(slug: &str, title: &str, statements: &[(&str, &str)]) -> WikiPage {
    let mut body = crate::wiki::page_text::AnchoredText::default();
    for (statement, quote) in statements {
        body.add_statement(statement, Anchor::new("lease", quote));
    }
    let marks: String = body.anchors.values().map(|anchor| format!("{}\n", anchor.render())).collect();
    let text = format!(
        "---\nschema: knowledge.entry/v1\nslug: {slug}\nkind: entity\ntitle: {title}\nupdated_at: \"2026-11-22T09:15:04Z\"\n---\n{}\n{marks}",
        body.text
    );
    crate::wiki::page::read_page(&format!("entities/{slug}.md"), text.as_bytes()).page.unwrap()
}

fn pages() -> Vec<WikiPage> {
    let lease = ("The lease ends in 2027.", "The lease of plot 12 ends on 31 March 2027.");
    vec![
        page("plot-12", "Plot 12", &[lease, ("The plot is dry.", "The plot is dry.")]),
        page("water", "Water", &[("The water is off in winter.", "The water is turned off in winter.")]),
    ]
}

fn files() -> BTreeSet<String> {
    ["entities/plot-12.md", "entities/water.md", "concepts/frost.md"].map(str::to_owned).into()
}

fn label(quote: &str) -> String {
    Anchor::new("lease", quote).label
}

fn answer(text: &str, writer: &str) -> WikiAnswer {
    let checked = check_references(text, &pages(), &files());
    WikiAnswer {
        id: "1a2b3c4d".into(),
        wiki: "allotment".into(),
        by: "ann".into(),
        at: "2026-11-22T09:15:04Z".parse().unwrap(),
        question: "When does the *lease* end?".into(),
        text: checked.text,
        writer: writer.into(),
        pages: vec!["entities/plot-12.md".into()],
        sources: Vec::new(),
        citations: checked.citations,
        unknown: checked.unknown,
        clerk: (writer != "rules").then(ClerkMark::default),
    }
}

#[test]
fn a_question_gets_the_claims_that_hold_its_rarest_words() {
    let text = extract_answer("When is the WATER off?", &pages()).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let expected =
        format!("- [[water|Water]]: The water is off in winter.[^{}]", label("The water is turned off in winter."));
    assert_eq!((lines[0], lines[2]), (crate::wiki::compile::EXTRACT_LINE, expected.as_str()), "{text}");
    assert_eq!(extract_answer("Elephants", &pages()), None);
    // A plural counts as its singular, and a word such as "the" for nothing.
    assert!(extract_answer("When does the lease end?", &pages()).unwrap().contains("The lease ends in 2027."));
    assert_eq!(extract_answer("What is the price?", &pages()), None);
    assert!(extract_answer("is the", &pages()).is_some());
    assert_eq!(
        list_content_words("How many leases does this glass have?"),
        ["glass", "lease"].map(str::to_owned).into()
    );
}

#[test]
fn both_sides_of_a_dispute_are_shown() {
    let (one, other) = (Anchor::new("lease", "The lease of plot 12 ends"), Anchor::new("letter", "on 31 March 2029."));
    let body = format!(
        "::: disputed\n> ⚠️ Contradiction: a vs b\n\nThe lease ends in 2027.[^{}]\n\nThe council says 2029.[^{}]\n:::\n\n{}\n{}\n",
        one.label,
        other.label,
        one.render(),
        other.render()
    );
    let head = "---\nschema: knowledge.entry/v1\nslug: two\nkind: entity\ntitle: Two\nupdated_at: \"2026-11-22T09:15:04Z\"\n---\n";
    let disputed = crate::wiki::page::read_page("entities/two.md", format!("{head}{body}").as_bytes()).page.unwrap();
    let pages: Vec<WikiPage> = pages().into_iter().chain([disputed]).collect();
    let text = extract_answer("When does the lease end?", &pages).unwrap();
    assert!(
        text.contains("[[two|Two]], disputed: The lease ends in 2027.") && text.contains("The council says 2029."),
        "{text}"
    );
    assert_eq!(text.matches("ends in 2027").count(), 1, "{text}");
}

#[test]
fn only_what_the_wiki_has_is_cited() {
    let known = label("The lease of plot 12 ends on 31 March 2027.");
    let text = format!(
        "It ends in 2027.[{known}][^c00000000] See [[plot-12|the plot]], [[frost]] and [[nowhere|nobody]].[^1]\n\n[^{known}]: lease — \"It is free.\"\n[x] [[a\n"
    );
    let checked = check_references(&text, &pages(), &files());
    assert_eq!(
        checked.text,
        format!("It ends in 2027.[^{known}] See [[plot-12|the plot]], [[frost]] and nobody.\n\n[x] [[a")
    );
    assert_eq!(checked.unknown, ["[^c00000000]", "[[nowhere|nobody]]", "[^1]"]);
    let [citation] = checked.citations.as_slice() else { panic!("{checked:?}") };
    assert_eq!((citation.page.as_str(), citation.anchor.source.as_str()), ("plot-12", "lease"));
    assert_eq!(
        number_marks(&checked.text, &checked.citations).lines().next(),
        Some("It ends in 2027. [1] See the plot, frost and nobody.")
    );
}

#[test]
fn the_pages_are_data_and_at_most_sixty_thousand_characters() {
    let long = "word ".repeat(20_000);
    let pages: Vec<WikiPage> = (0..5).map(|n| page(&format!("p-{n}"), "P", &[(&long, "The plot is dry.")])).collect();
    let conversation = build_query("What?", None, &pages);
    let text = conversation.data["pages"].as_str().unwrap();
    assert!(
        text.starts_with("### entities/p-0.md\nword") && text.contains("\n---\n### entities/p-1.md\n"),
        "{text:.100}"
    );
    assert!((60_000..60_200).contains(&text.chars().count()) && !text.contains("p-3"));
    assert!(conversation.tools.is_empty() && !conversation.rules.contains("What?"));
}

/// What the rules say of the page of an answer.
fn judge(filed: &FiledPage, run_type: WikiRunType) -> RulesVerdict {
    let path = PagePath::new("wiki/allotment", &filed.file).unwrap();
    let files = [RunFile { path, before: None, after: Some(filed.text.clone().into_bytes()) }];
    let texts = BTreeMap::from([("lease".to_owned(), QuoteFinder::new(SOURCE))]);
    let manifest = crate::wiki::manifest::EffectiveManifest::new(Default::default(), BTreeMap::new());
    let pages = pages();
    verify_run(&VerifyInput {
        manifest: &manifest,
        pages: &pages,
        files: &files,
        texts: &texts,
        run_type,
        source: None,
        removed: &[],
    })
}

#[test]
fn an_answer_becomes_a_page_that_the_rules_accept() {
    let known = label("The lease of plot 12 ends on 31 March 2027.");
    let at = "2026-11-23T10:00:00Z".parse().unwrap();
    let filed =
        render_filed_page(&answer(&format!("It ends in 2027.[^{known}]"), "openai/m"), FiledKind::Qa, &pages(), at);
    assert_eq!((filed.file.as_str(), filed.kind), ("qa/when-does-the-lease-end.md", FiledKind::Qa));
    assert!(filed.text.contains("confidence: 0.7") && filed.text.contains("\nsources:\n"), "{}", filed.text);
    assert!(
        filed.text.contains("## Question\n\nWhen does the \\*lease\\* end?\n\n## Answer\n\nIt ends"),
        "{}",
        filed.text
    );
    assert!(filed.text.contains("summary: It ends in 2027."), "{}", filed.text);
    assert_eq!(judge(&filed, WikiRunType::Archive).findings, []);
    // The question is exempt once, and in such a run alone.
    assert_eq!(judge(&filed, WikiRunType::Manual).findings[0].fault, RunFault::ClaimUnanchored);
    let second =
        FiledPage { text: filed.text.replace("## Answer", "## Question\n\nNobody said so.\n\n## Answer"), ..filed };
    assert_eq!(judge(&second, WikiRunType::Archive).findings[0].fault, RunFault::ClaimUnanchored);
    // By fixed rules, and with a title that is taken.
    let text = extract_answer("When does the lease end?", &pages()).unwrap();
    let mut by_rules = answer(&text, "rules");
    by_rules.question = "plot 12".into();
    let filed = render_filed_page(&by_rules, FiledKind::Insight, &pages(), at);
    assert_eq!(filed.file, "insights/plot-12-2026-11-23-10-00-00.md");
    assert!(filed.text.contains("confidence: 0.5"), "{}", filed.text);
    let verdict = judge(&filed, WikiRunType::Archive);
    assert_eq!((verdict.verdict, verdict.findings), (Verdict::Commit, vec![]));
}

#[test]
fn an_answer_without_a_quote_is_an_archive() {
    let at = "2026-11-23T10:00:00Z".parse().unwrap();
    let filed = render_filed_page(&answer("The wiki does not say.", "openai/m"), FiledKind::Qa, &pages(), at);
    assert_eq!((filed.kind, filed.file.as_str()), (FiledKind::Archive, "archives/when-does-the-lease-end.md"));
    assert_eq!(judge(&filed, WikiRunType::Archive).findings, []);
}

#[test]
fn no_form_of_markdown_brings_words_without_a_quote_onto_a_page() {
    let known = Anchor::new("lease", "The lease of plot 12 ends on 31 March 2027.");
    let good = format!("It ends in 2027.[^{}]", known.label);
    let lie = "The council has cancelled the lease of plot 12";
    let forms = [
        format!("::: disputed\n> ⚠️ Contradiction: x vs y (lease)\n> {lie}.\n\n{good}\n:::"),
        format!("> ⚠️ {lie}.\n\n{good}"),
        format!("{good}\n\nSee also: [[plot-12#{lie}]]"),
        format!("{good}\n\nSee also:\n[[plot-12|{lie}]]"),
        format!("{good}\n\n- See also: [[plot-12|{lie}]]"),
        format!("{lie}. Members must leave by May.\n===\n\n{good}"),
        format!("> # {lie}\n\n{good}"),
        format!("{good}\n\n[a]: # \"{lie}.\""),
        format!("{good}\n\n1. [^{}]: {lie}.", known.label),
        format!("{good}\n\n+ [^{}]: {lie}.", known.label),
        format!("{lie}.\n\n{good}"),
        format!("{good} {lie}."),
        format!("{good}\n\n%% {lie} %%"),
        format!("{good}\n\n<!-- {lie} -->"),
        format!("{good}\n\n![{lie}](https://evil.example/a.png)"),
    ];
    let at = "2026-11-23T10:00:00Z".parse().unwrap();
    for form in forms {
        let answer = answer(&form, "openai/m");
        for kind in [FiledKind::Qa, FiledKind::Insight] {
            let filed = render_filed_page(&answer, kind, &pages(), at);
            let verdict = judge(&filed, WikiRunType::Archive);
            assert!(verdict.verdict != Verdict::Commit, "{form}");
        }
    }
    // In an archive it waits for a person instead, or is refused.
    assert_eq!(
        judge(&render_filed_page(&answer(&good, "openai/m"), FiledKind::Qa, &pages(), at), WikiRunType::Archive)
            .findings,
        []
    );
}

#[test]
fn a_question_may_hold_an_address_and_takes_no_slug_of_a_summary() {
    let known = label("The lease of plot 12 ends on 31 March 2027.");
    let at = "2026-11-23T10:00:00Z".parse().unwrap();
    let mut asked = answer(&format!("It ends in 2027.[^{known}]"), "openai/m");
    asked.question = "Summary of https://council.example and v2.4.1?".into();
    let filed = render_filed_page(&asked, FiledKind::Qa, &pages(), at);
    assert!(filed.file.starts_with("qa/question-summary-of"), "{}", filed.file);
    assert_eq!(judge(&filed, WikiRunType::Archive).findings, []);
}
