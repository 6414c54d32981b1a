use super::*;
use crate::wiki::page::read_page;
use crate::wiki::path::PagePath;
use crate::wiki::quote::Anchor;

const SOURCE: &str = "The lease of plot 12 ends on 31 March 2027. Water is shut off in winter.";

fn page(slug: &str, body: &str) -> String {
    format!(
        "---\nschema: knowledge.entry/v1\nslug: {slug}\nkind: entity\ntitle: {slug}\nsources: [lease]\nupdated_at: \"2026-11-22T09:15:04Z\"\n---\n{body}"
    )
}

fn said(statement: &str, quote: &str) -> String {
    let anchor = Anchor::new("lease", quote);
    format!("{statement}[^{}]\n\n{}\n", anchor.label, anchor.render())
}

/// Judges a run that changes `entities/plot.md`.
fn verify(before: Option<&str>, after: Option<&str>) -> RulesVerdict {
    let read = |text: &str| read_page("entities/plot.md", text.as_bytes()).page.unwrap();
    let pages: Vec<WikiPage> = before.map(read).into_iter().collect();
    let bytes = |text: Option<&str>| text.map(|text| text.as_bytes().to_vec());
    let path = PagePath::new("wiki/plot", "entities/plot.md").unwrap();
    let files = [RunFile { path, before: bytes(before), after: bytes(after) }];
    let texts = BTreeMap::from([("lease".to_owned(), QuoteFinder::new(SOURCE))]);
    let manifest = EffectiveManifest::default();
    let (run_type, source) = (WikiRunType::Manual, None);
    let input = VerifyInput {
        manifest: &manifest,
        pages: &pages,
        files: &files,
        texts: &texts,
        run_type,
        source,
        removed: &[],
    };
    let verdict = verify_run(&input);
    // A change is judged by itself, and as it is in the whole run.
    if let Some(after) = after.and_then(|text| read_page("entities/plot.md", text.as_bytes()).page) {
        let found = find_page_fault(&input, "entities/plot.md", pages.first(), &[after]);
        assert_eq!(found.as_ref(), verdict.findings.first());
    }
    verdict
}

#[test]
fn a_statement_that_moved_to_another_page_of_the_run_must_stay_on_one() {
    let statement = said("It ends in March.", "ends on 31 March 2027");
    let read = |slug: &str, text: &str| read_page(&format!("entities/{slug}.md"), text.as_bytes()).page.unwrap();
    let other = said("Water is off in winter.", "Water is shut off in winter");
    let (old, bare) = (page("plot", &statement), page("plot", "# Plot\n"));
    let moved = page("well", &format!("{statement}\n{other}"));
    let pages = [read("plot", &old)];
    let judge = |well: &str| {
        let file = |slug: &str, before: Option<&str>, after: &str| {
            let path = PagePath::new("wiki/plot", &format!("entities/{slug}.md")).unwrap();
            RunFile { path, before: before.map(|text| text.as_bytes().to_vec()), after: Some(after.into()) }
        };
        let files = [file("plot", Some(&old), &bare), file("well", None, well)];
        let texts = BTreeMap::from([("lease".to_owned(), QuoteFinder::new(SOURCE))]);
        let input = VerifyInput {
            manifest: &EffectiveManifest::default(),
            pages: &pages,
            files: &files,
            texts: &texts,
            run_type: WikiRunType::Manual,
            source: None,
            removed: &[],
        };
        let after = [read("plot", &bare), read("well", well)];
        find_page_fault(&input, "entities/well.md", Some(&read("well", &moved)), &after).map(|finding| finding.fault)
    };
    assert_eq!(judge(&format!("{moved}\n# More\n")), None);
    assert_eq!(judge(&page("well", &other)), Some(RunFault::DropsClaims));
}

fn faults(verdict: &RulesVerdict) -> Vec<RunFault> {
    verdict.findings.iter().map(|finding| finding.fault).collect()
}

#[test]
fn an_anchored_page_passes_and_its_claims_are_listed() {
    let text = page("plot", &said("The lease ends in March 2027.", "lease of plot 12 ends on 31 March 2027"));
    let found = verify(None, Some(&text));
    assert_eq!((found.verdict, &found.findings), (Verdict::Commit, &vec![]));
    let [claim] = found.claims.as_slice() else { panic!("{found:?}") };
    assert!(claim.claim.starts_with("plot#c"));
    assert_eq!((claim.anchors[0].offset, claim.anchors[0].length), (4, 38));
}

#[test]
fn each_fault_is_found() {
    let good = said("It ends in March.", "ends on 31 March 2027");
    let forged = Anchor::new("lease", "The lease ends on 1 April").render();
    let other = Anchor::new("letter", "Water is shut off").render();
    let note = |line: &str| format!("It ends.[^{}]\n\n{line}\n", &line[2..11]);
    let cases = [
        (page("plot", &note(&forged)), RunFault::FabricatedQuote, Verdict::Reject),
        (page("plot", &note(&other)), RunFault::SourceMissing, Verdict::Reject),
        (page("plot", &good.replace("31 March", "32 March")), RunFault::QuoteEdited, Verdict::Reject),
        (page("plot", &format!("Not said anywhere.\n\n{good}")), RunFault::ClaimUnanchored, Verdict::Revise),
        (page("plot", "# Only a heading\n"), RunFault::NoFootnote, Verdict::Revise),
        (page("plot", "It ends.[^1]\n\n[^1]: see the lease\n"), RunFault::FootnoteForm, Verdict::Revise),
        (
            page("plot", &said(&"long ".repeat(60), "ends on 31 March 2027")),
            RunFault::StatementTooLong,
            Verdict::Revise,
        ),
        (page("plot", &format!("<img src=x onerror=y>\n\n{good}")), RunFault::RawHtml, Verdict::Reject),
        (page("plot", &good.replace("It ends", "It [ends](JavaScript:alert)")), RunFault::UnsafeLink, Verdict::Reject),
        (page("plot", &good).replace("kind: entity", "kind: concept"), RunFault::WrongPath, Verdict::Reject),
        (page("plot", &good).replace("title: plot\n", ""), RunFault::EntryInvalid, Verdict::Reject),
        ("Words.".to_owned(), RunFault::EntryInvalid, Verdict::Reject),
        (
            page("plot", &good).replace("sources:", "contradicts: [gone]\nsources:"),
            RunFault::DanglingReference,
            Verdict::Reject,
        ),
        (page("plot", &format!("{}\n{good}", "x".repeat(70_000))), RunFault::OverQuota, Verdict::Reject),
    ];
    for (text, fault, verdict) in cases {
        let found = verify(None, Some(&text));
        assert!(faults(&found).contains(&fault), "{fault}: {:?} of {}", found.findings, &text[..text.len().min(400)]);
        assert!(found.verdict >= verdict, "{fault}");
    }
}

#[test]
fn what_stood_before_is_no_fault_and_must_not_go() {
    let good = said("It ends in March.", "ends on 31 March 2027");
    let old = page("plot", &format!("Mine, without a source. <b>\n\n{good}"));
    let extended = old.replace("\n[^c", "\nMore.[^cMORE]\n\n[^c");
    let more = Anchor::new("lease", "Water is shut off in winter.");
    let extended = format!("{}{}\n", extended.replace("cMORE", &more.label), more.render());
    assert_eq!(verify(Some(&old), Some(&extended)).findings, []);
    let reworded = old.replace("It ends in March.", "It ended in March.");
    let found = verify(Some(&old), Some(&reworded));
    assert_eq!(faults(&found), [RunFault::BlockChanged, RunFault::DropsClaims]);
    assert_eq!(found.claims.len(), 2, "{:?}", found.claims);
    assert_eq!(faults(&verify(Some(&old), None)), [RunFault::BlockChanged, RunFault::DropsClaims]);
    let without = old.replace("Mine, without a source. <b>\n\n", "");
    assert_eq!(faults(&verify(Some(&old), Some(&without))), [RunFault::BlockChanged], "a person's words");
    let smuggled = [
        old.replace("\n[^c", "\nSee also: [[plot]] and pay at once\n\n[^c"),
        old.replace("\n[^c", "\n> Pay at once.\n\n[^c"),
    ];
    for text in smuggled {
        assert_eq!(faults(&verify(Some(&old), Some(&text))), [RunFault::ClaimUnanchored], "{text}");
    }
    let numbered = page("plot", "Old.[^1]\n\n[^1]: see the lease\n");
    let more = numbered.replace("Old.[^1]", "Old.[^1]\n\nNew.[^1]");
    assert_eq!(faults(&verify(Some(&numbered), Some(&more))), [RunFault::FootnoteForm]);
}

/// What a run may do to a page only if every line stays and nothing new changes how it reads.
#[test]
fn every_line_stays_and_nothing_new_hides_or_shadows_it() {
    let good = said("It ends in March.", "ends on 31 March 2027");
    let anchor = Anchor::new("lease", "ends on 31 March 2027");
    let more = Anchor::new("lease", "Water is shut off in winter.");
    let old = page(
        "plot",
        &format!(
            "## Mine\n\n- one\n- two\n\n```\nlet a;\n```\n\n[home]: https://one.example\n\n%% seen %%\n\n<!-- note -->\n\n{good}"
        ),
    );
    assert_eq!(verify(Some(&old), Some(&old)).findings, []);
    for (from, to) in [
        ("let a;", "let b;"),
        ("<!-- note -->", "<!-- gone -->"),
        ("one.example", "two.example"),
        ("- one", "* one"),
        ("## Mine", "### Mine"),
        ("%% seen %%\n\n", ""),
        (anchor.render().as_str(), more.render().as_str()),
    ] {
        let found = faults(&verify(Some(&old), Some(&old.replace(from, to))));
        assert!(found.contains(&RunFault::BlockChanged), "{from}: {found:?}");
    }
    let added = |text: &str| old.replace("## Mine\n\n", &format!("## Mine\n\n{text}\n\n"));
    let new = format!("New.[^{}]", more.label);
    let with_note = |text: &str| format!("{}{}\n", added(text), more.render());
    assert_eq!(verify(Some(&old), Some(&with_note(&new))).findings, []);
    for (text, fault) in [
        (with_note(&format!("%%\n\n{new}")), RunFault::HiddenText),
        (with_note(&format!("$${new}$$")), RunFault::HiddenText),
        (with_note(&format!("::: warning\n{new}\n:::")), RunFault::HiddenText),
        (with_note(&format!("> ⚠️ Contradiction: {new}")), RunFault::ClaimUnanchored),
        (with_note(&format!("![x](https://evil.example/p.png) {new}")), RunFault::UnsafeLink),
        (with_note(&format!("# {}\n\n{new}", "word ".repeat(60))), RunFault::StatementTooLong),
        (format!("{}    It never ends.\n", with_note(&new)), RunFault::FootnoteForm),
        (format!("{}{}\n", with_note(&new), more.render()), RunFault::FootnoteForm),
        (with_note(&format!("{new}\n\n[^{}]: \"It never ends.\"", anchor.label)), RunFault::FootnoteForm),
        (with_note(&format!("See HTTPS://EVIL.example/x. {new}")), RunFault::CodeNotInSource),
        (with_note(&format!("It needs v9\\.9\\.9. {new}")), RunFault::CodeNotInSource),
    ] {
        let found = faults(&verify(Some(&old), Some(&text)));
        assert!(found.contains(&fault), "{fault}: {found:?} of {text}");
    }
}

#[test]
fn an_ingest_makes_a_summary() {
    let manifest = EffectiveManifest::default();
    let texts = BTreeMap::new();
    let (run_type, source) = (WikiRunType::Ingest, Some("lease"));
    let found = verify_run(&VerifyInput {
        manifest: &manifest,
        pages: &[],
        files: &[],
        texts: &texts,
        run_type,
        source,
        removed: &[],
    });
    assert_eq!(faults(&found), [RunFault::RunIncomplete]);
}
