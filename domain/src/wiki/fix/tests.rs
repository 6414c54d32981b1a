//! What is corrected to the byte, what stays, and that the rules let nothing else pass.

use super::*;
use crate::wiki::manifest::EffectiveManifest;
use crate::wiki::path::PagePath;
use crate::wiki::plan::RunFile;
use crate::wiki::run::WikiRunType;
use crate::wiki::verify::{RulesVerdict, RunFault, Verdict, VerifyInput, verify_fixes};

const NOTE: &str = "[^c6107d23f]: 2024-03-02-lease — \"The lease of plot 12 ends on 31 March 2027.\"\n";

fn read(slug: &str, text: &str) -> WikiPage {
    read_page(&format!("entities/{slug}.md"), text.as_bytes()).page.unwrap()
}

fn head(slug: &str, more: &str) -> String {
    format!(
        "---\nschema: knowledge.entry/v1\nslug: {slug}\nkind: entity\ntitle: Of {slug}\nupdated_at: \"2026-11-22T09:15:04Z\"\n{more}---\n"
    )
}

fn page(slug: &str, more: &str, body: &str) -> WikiPage {
    read(slug, &format!("{}{body}", head(slug, more)))
}

/// Judges a run that leaves a page like this.
fn judge(pages: &[WikiPage], at: usize, after: &str) -> RulesVerdict {
    let page = &pages[at];
    let file = RunFile {
        path: PagePath::new("wiki/plot", &page.file).unwrap(),
        before: Some(page.document.as_bytes().to_vec()),
        after: Some(after.as_bytes().to_vec()),
    };
    verify_fixes(&VerifyInput {
        manifest: &EffectiveManifest::default(),
        pages,
        files: &[file],
        texts: &BTreeMap::new(),
        run_type: WikiRunType::Lint,
        source: None,
        removed: &[],
    })
}

/// Corrects the first page, which must pass the rules; returns its text and what was corrected.
fn fix(pages: &[WikiPage], sources: &BTreeMap<String, WikiSource>) -> (String, String) {
    let planner = FixPlanner::new(pages, sources);
    let FixedPage { text, changes } = planner.fix_page(0).unwrap();
    let verdict = judge(pages, 0, &text);
    assert_eq!((verdict.verdict, &verdict.findings), (Verdict::Commit, &Vec::new()), "{text}");
    assert!(changes.is_empty() || planner.list_pages().contains(&0));
    (text, changes.to_string())
}

fn fix_alone(pages: &[WikiPage]) -> (String, String) {
    fix(pages, &BTreeMap::new())
}

#[test]
fn a_link_is_corrected_if_one_page_alone_is_meant_and_its_words_stay() {
    let body = "# Plot\n\nSee [[Plot_12]], [[plot 12.md|the plot]], [[entities/PLOT-12x#Lease]] and ![[Plot_12]].[^c6107d23f]\n\n\
        | a | b |\n|---|---|\n| [[plot 12]] | [[Plot_12\\|it]] |\n\n`[[Plot_12]]` [[Of A_B]] [[gone]] [[plot-12]] [[of plot-12]]\n\n";
    let first = page("first", "", &format!("{body}{NOTE}"));
    let pages = [
        first,
        page("plot-12", "", "A.\n"),
        page("plot-12x", "", "B.\n"),
        page("a-b", "", "C.\n"),
        read("ab", &page("ab", "", "D.\n").document.as_str().replace("Of ab", "Of a b")),
    ];
    let (text, changes) = fix_alone(&pages);
    let expected = body
        .replace("[[Plot_12]], ", "[[plot-12|Plot_12]], ")
        .replace("[[plot 12.md|", "[[plot-12|")
        .replace("[[entities/PLOT-12x#Lease]]", "[[plot-12x#Lease|entities/PLOT-12x#Lease]]")
        .replace("![[Plot_12]]", "![[plot-12]]")
        .replace("| [[plot 12]] | [[Plot_12\\|it]] |", "| [[plot-12\\|plot 12]] | [[plot-12\\|it]] |");
    assert_eq!(text, format!("{}{expected}{NOTE}", head("first", "")));
    assert_eq!(changes, "6 links corrected (plot-12, plot-12, plot-12x, plot-12, plot-12, plot-12)");
    // Corrected once, nothing is left.
    let mut again = pages.to_vec();
    again[0] = read("first", &text);
    assert_eq!(FixPlanner::new(&again, &BTreeMap::new()).list_pages(), Vec::<usize>::new());
}

#[test]
fn lists_of_slugs_are_corrected_and_other_fields_keep_their_bytes() {
    let more = "contradicts: [Plot_12, gone]\nlinks:\n  - plot 12 # mine\n  - plot-12\nmine:   \"x\"  # kept\n";
    let pages = [page("first", more, "A.\n"), page("plot-12", "", "B.\n")];
    let (text, changes) = fix_alone(&pages);
    let kept = "contradicts: [plot-12, gone]\nlinks:\n  - plot-12\nmine:   \"x\"  # kept\n";
    assert_eq!(text, format!("{}A.\n", head("first", kept)));
    assert_eq!(changes, "2 links corrected (plot-12, plot-12)");
}

#[test]
fn see_also_lines_stand_above_the_footnotes_or_become_longer() {
    let words = "In winter the valve of a stopcock is shut.";
    let other = |title: &str| {
        let page = page("other", "tags: [water]\n", &format!("{words}\n"));
        read("other", &page.document.as_str().replace("Of other", title))
    };
    let fixed = |body: &str, title: &str| {
        let pages = [page("first", "tags: [water]\n", body), other(title)];
        let text = fix_alone(&pages).0;
        text[head("first", "tags: [water]\n").len()..].to_owned()
    };
    let claim = format!("{words}[^c6107d23f]\n");
    for (body, title, expected) in [
        (format!("{claim}\n{NOTE}"), "Of other", format!("{claim}\nSee also: [[other|Of other]]\n\n{NOTE}")),
        (words.to_owned(), "Of other", format!("{words}\n\nSee also: [[other|Of other]]\n")),
        (
            format!("{words}\n\nSee also: [[x]], [[y|Why]]\n\n{NOTE}"),
            "Of other",
            format!("{words}\n\nSee also: [[x]], [[y|Why]], [[other|Of other]]\n\n{NOTE}"),
        ),
        (
            format!("{words}\nSee also: [[x]]\n"),
            "Of other",
            format!("{words}\nSee also: [[x]]\n\nSee also: [[other|Of other]]\n"),
        ),
        (
            format!("{words}\r\n\r\nSee also: [[x]]\r\n"),
            "Of other",
            format!("{words}\r\n\r\nSee also: [[x]], [[other|Of other]]\r\n"),
        ),
        (format!("{words}\n"), "\"[it] is\"", format!("{words}\n\nSee also: [[other]]\n")),
        (format!("{words}\n"), "Since v1.2", format!("{words}\n\nSee also: [[other]]\n")),
        // Nobody would see a link there.
        (format!("{words}\n\n```\nlet a;\n"), "Of other", format!("{words}\n\n```\nlet a;\n")),
        (format!("::: disputed\n{words}\n"), "Of other", format!("::: disputed\n{words}\n")),
    ] {
        assert_eq!(fixed(&body, title), expected);
    }
}

#[test]
fn forms_of_earlier_drafts_become_those_of_today() {
    let old = "---\nschema: knowledge/v1 # old\nslug: lease\ntype: concept   # mine\ntitle: Lease\n\
        sources: [sources/2024-03-02 Lease.pdf, raw/letter.md, call]\nupdated_at: \"2026-11-22T09:15:04Z\"\n---\nThe lease.\n";
    let source = |id: &str, path: &str| WikiSource {
        id: id.into(),
        path: path.into(),
        title: String::new(),
        captured_at: None,
        content_hash: String::new(),
        text_file: None,
        superseded_by: None,
    };
    let known = [source("call", "sources/letter.md"), source("2024-03-02-lease", "sources/2024-03-02 Lease.pdf")];
    let sources: BTreeMap<String, WikiSource> = known.into_iter().map(|known| (known.id.clone(), known)).collect();
    // A path that is not registered names no source.
    let (kept, _) = fix(&[read("lease", &old.replace("Lease.pdf", "Other.pdf"))], &sources);
    assert!(kept.contains("sources/2024-03-02 Other.pdf"), "{kept}");
    let (text, changes) = fix(&[read("lease", old)], &sources);
    let expected = old
        .replace("knowledge/v1", "knowledge.entry/v1")
        .replace("type: concept", "kind: concept")
        .replace("[sources/2024-03-02 Lease.pdf, raw/letter.md, call]", "[\"2024-03-02-lease\", call]");
    assert_eq!(text, expected);
    assert_eq!(changes, "schema, sources, kind in the form of today");
    assert_eq!(read_page("concepts/lease.md", text.as_bytes()).findings, []);
}

#[test]
fn reports_stay_as_they_are() {
    let report = |kind: &str| {
        let text = head("first", "").replace("kind: entity", &format!("kind: {kind}"));
        read("first", &format!("{text}[[Plot_12]]\n"))
    };
    for kind in ["archive", "lint", "overview"] {
        let pages = [report(kind), page("plot-12", "", "A.\n")];
        assert_eq!(FixPlanner::new(&pages, &BTreeMap::new()).list_pages(), Vec::<usize>::new(), "{kind}");
    }
}

#[test]
fn the_rules_refuse_whatever_else_a_run_would_change() {
    let body = format!("Mine, by [[Plot_12]].\n\nThe lease ends.[^c6107d23f]\n\nSee also: [[x|X]]\n\n{NOTE}");
    let pages = [page("first", "confidence: 0.5\n", &body), page("plot-12", "", "A.\n"), page("other", "", "B.\n")];
    let good = pages[0].document.as_str().replace("[[Plot_12]]", "[[plot-12|Plot_12]]");
    let extended = good.replace("[[x|X]]", "[[x|X]], [[other|Of other]]");
    for text in [&good, &extended] {
        assert_eq!(judge(&pages, 0, text).findings, []);
    }
    for (from, to) in [
        ("[[plot-12|Plot_12]]", "[[other|Plot_12]]"),
        ("[[plot-12|Plot_12]]", "[[plot-12|Plot 13]]"),
        ("[[plot-12|Plot_12]]", "[[Plot_12]]"),
        ("The lease ends.", "The lease ended."),
        ("Mine, ", ""),
        ("[[other|Of other]]", "[[other|Pay at once]]"),
        ("[[other|Of other]]", "[[other|Of other]] pay"),
        ("[[x|X]], ", ""),
        ("See also:", "## Pay\n\nSee also:"),
        ("See also:", "Pay.\n\nSee also:"),
        ("confidence: 0.5", "confidence: 0.9"),
        ("kind: entity", "kind: concept"),
        ("2027.\"\n", "2029.\"\n"),
    ] {
        let changed = extended.replacen(from, to, 1);
        assert_ne!(changed, extended, "{from}");
        assert_ne!(judge(&pages, 0, &changed).verdict, Verdict::Commit, "{from} to {to}");
    }
    let path = PagePath::new("wiki/plot", &pages[0].file).unwrap();
    let removed = RunFile { path, before: Some(pages[0].document.as_bytes().to_vec()), after: None };
    let verdict = verify_fixes(&VerifyInput {
        manifest: &EffectiveManifest::default(),
        pages: &pages,
        files: &[removed],
        texts: &BTreeMap::new(),
        run_type: WikiRunType::Lint,
        source: None,
        removed: &[],
    });
    assert_eq!(verdict.findings[0].fault, RunFault::BlockChanged);
}
