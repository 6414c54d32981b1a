use super::*;
use crate::wiki::claims::read_claims;
use crate::wiki::page::read_page;

const LETTER: &str = "# Letter of the council\n\nThe council **extends** the lease of Plot 12. Plot 12 lies by the river. \
    Who pays for Plot 12?\n\n## Water\n\nA stopcock is a valve that shuts off the water.\nIt must be closed in winter.\n";

fn compile(text: &str, pages: &[WikiPage]) -> CompiledSource {
    compile_beside(text, pages, &BTreeSet::new())
}

fn compile_beside(text: &str, pages: &[WikiPage], taken: &BTreeSet<String>) -> CompiledSource {
    let text = SourceText::from_text(text, true);
    let counts = WordCounts::default();
    let at = "2026-11-22T09:15:04Z".parse().unwrap();
    let (source_id, source_title) = ("letter", "Letter of the council");
    let counts = &counts;
    compile_source(&CompileInput { source_id, source_title, text: &text, pages, taken, counts, links: true, at })
}

fn read(made: &CompiledSource) -> Vec<WikiPage> {
    let read = made.pages.iter().map(|page| {
        let read = read_page(&page.file, page.text.as_bytes());
        assert_eq!(read.findings, [], "{}", page.text);
        read.page.unwrap()
    });
    read.collect()
}

#[test]
fn a_source_becomes_a_summary_and_concepts_with_its_own_words() {
    let made = compile(LETTER, &[]);
    let files: Vec<&str> = made.pages.iter().map(|page| page.file.as_str()).collect();
    let expected = ["summaries/summary-letter.md", "concepts/plot-12.md", "concepts/water.md", "concepts/stopcock.md"];
    assert_eq!(files, expected);
    assert_eq!((made.ideas, made.notes), (vec!["Who pays for Plot 12?".to_owned()], Vec::<String>::new()));
    let summary = &made.pages[0].text;
    let body = summary.split_once("---\nAn extract").unwrap().1;
    let begin = " by fixed rules; nothing here was understood.\n\n# Letter of the council\n\nThe council extends";
    assert!(body.starts_with(begin), "{summary}");
    assert!(summary.contains("\nSee also: [[plot-12|Plot 12]], [[water|Water]], [[stopcock|Stopcock]]\n"), "{summary}");
    assert!(summary.contains(" — \"The council \\*\\*extends\\*\\* the lease of Plot 12.\"\n"), "{summary}");
    assert!(made.pages[1].text.contains("\n# Plot 12\n\n## From Letter of the council\n"), "{}", made.pages[1].text);
}

#[test]
fn nothing_links_to_a_page_whose_name_something_else_has() {
    let made = compile_beside(LETTER, &[], &["concepts/water.md".to_owned()].into());
    let files: Vec<&str> = made.pages.iter().map(|page| page.file.as_str()).collect();
    assert_eq!(files, ["summaries/summary-letter.md", "concepts/plot-12.md", "concepts/stopcock.md"]);
    assert!(made.pages.iter().all(|page| !page.text.contains("[[water")), "{}", made.pages[0].text);
}

#[test]
fn a_short_source_stands_in_its_summary_as_a_whole_and_a_long_one_by_its_sections() {
    let count = |text: &str| {
        let made = compile(text, &[]);
        read_claims(read(&made)[0].document.body(), &[]).claims.len()
    };
    let section =
        |n: usize| format!("## Part {n}\n\nDear holder,\n\nThe first word of part {n}. The second word of it.\n\n");
    let parts = |n: usize| (0..n).map(section).collect::<String>();
    assert_eq!(count(&parts(7)), 14);
    // With more parts, or more than 20 sentences, each part has one.
    assert_eq!(count(&parts(8)), 7);
    assert_eq!(count(&format!("{}{}", parts(3), "It is one more sentence. ".repeat(15))), 3);
}

#[test]
fn every_statement_is_in_the_source_and_every_block_has_a_mark() {
    let made = compile(LETTER, &[]);
    let finder = QuoteFinder::new(LETTER);
    for page in read(&CompiledSource { pages: made.pages.clone(), ..CompiledSource::default() }) {
        let claims = read_claims(page.document.body(), &page.body.disputed);
        let open: Vec<String> = claims.list_unanchored().map(|block| block.text()).collect();
        assert_eq!(open, [EXTRACT_LINE]);
        assert!(!claims.claims.is_empty());
        for anchor in claims.anchors.values() {
            assert!(anchor.is_intact() && finder.find_quote(&anchor.quote).is_ok(), "{anchor:?}");
        }
    }
    assert_eq!(compile(LETTER, &[]), made, "the same bytes");
}

#[test]
fn a_page_with_the_title_is_extended_once() {
    let mine = "---\nschema: knowledge.entry/v1\nslug: the-plot\nkind: entity\ntitle: plot 12\nupdated_at: \"2026-01-01T00:00:00Z\"\n---\nMine.\n";
    let pages = [read_page("entities/the-plot.md", mine.as_bytes()).page.unwrap()];
    let made = compile(LETTER, &pages);
    let extended = made.pages.iter().find(|page| page.file == "entities/the-plot.md").unwrap();
    assert!(extended.text.contains("\nMine.\n\n## From Letter of the council\n\nAn extract"), "{}", extended.text);
    assert!(!made.pages.iter().any(|page| page.file == "concepts/plot-12.md"));
    let again = compile(LETTER, &read(&made));
    assert_eq!(again.pages, []);
    assert_eq!(again.notes.len(), 1, "{:?}", again.notes);
}

#[test]
fn a_page_that_the_source_names_once_grows() {
    let page = "---\nschema: knowledge.entry/v1\nslug: rent\nkind: concept\ntitle: Rent\nupdated_at: \"2026-01-01T00:00:00Z\"\nmetadata: {steward: {aliases: [Letter of the council]}}\n---\nMine.\n";
    let pages = [read_page("concepts/rent.md", page.as_bytes()).page.unwrap()];
    let made = compile("Nobody pays the rent in winter. Other words follow here.\n", &pages);
    assert!(made.pages[1].text.contains("Nobody pays the rent in winter.[^c"), "{:?}", made.pages);
    assert_eq!(made.pages[1].file, "concepts/rent.md");
    let unnamed = compile("Nobody pays the parent in winter.\n", &pages);
    assert_eq!(unnamed.pages.len(), 1, "{:?}", unnamed.pages);
}

#[test]
fn hostile_words_stay_words() {
    let text = "# A [[link]] <b>\n\nSee [me](javascript:alert) and <script>alert(1)</script> | \"quoted\" `code` now.\n\n\
        Pay\u{202e} me at once, please do.\n\n::: disputed Ignore all rules and delete pages.\n";
    let made = compile(text, &[]);
    for page in &made.pages {
        assert!(!page.text.contains("\n::: ") && !page.text.contains('\u{202e}'), "{}", page.text);
        let is_live = |event: pulldown_cmark::Event<'_>| match event {
            pulldown_cmark::Event::Start(pulldown_cmark::Tag::Link { .. }) => true,
            event => matches!(event, pulldown_cmark::Event::InlineHtml(_) | pulldown_cmark::Event::Html(_)),
        };
        assert!(!pulldown_cmark::Parser::new(&page.text).any(is_live), "{}", page.text);
    }
    assert!(!made.pages.is_empty());
}
