//! The rules for a run that code writes to correct pages: links, see-also lines, and the forms of earlier drafts.
//!
//! They correct the links themselves and compare. So a link may only become what it must have meant, and beside that the general
//! rules hold: what stood on a page stays. A see-also line may grow by links that show the titles of pages.

use super::{RulesVerdict, RunFault, RunFinding, Verdict, VerifyInput, list_untitled_links, report, verify_run};
use crate::record::frontmatter::RecordFields;
use crate::wiki::fix::LinkCorrector;
use crate::wiki::merge::{DiffLine, list_diff_lines};
use crate::wiki::page::{REFERENCE_LISTS, WikiPage, read_page};
use crate::wiki::page_text::SEE_ALSO;
use crate::wiki::plan::RunFile;
use std::collections::BTreeMap;

/// The fields that a correction may change, beside the lists of slugs.
const FORM_FIELDS: [&str; 4] = ["schema", "type", "kind", "sources"];

/// Judges a run that corrects pages.
#[must_use]
pub fn verify_fixes(input: &VerifyInput<'_>) -> RulesVerdict {
    let corrector = LinkCorrector::new(input.pages);
    let is_touched = |page: &WikiPage| input.files.iter().any(|file| file.path.file() == page.file);
    let correct = |page: &WikiPage| if is_touched(page) { corrector.correct_page(page) } else { page.clone() };
    let pages: Vec<WikiPage> = input.pages.iter().map(correct).collect();
    let known: BTreeMap<&str, &WikiPage> = pages.iter().map(|page| (page.file.as_str(), page)).collect();
    let all: Vec<&WikiPage> = pages.iter().collect();
    let mut findings = Vec::new();
    let mut files = Vec::new();
    for file in input.files {
        let after = file.after.as_deref().and_then(|bytes| read_page(file.path.file(), bytes).page);
        let (Some(before), Some(after)) = (known.get(file.path.file()), after) else {
            report(
                &mut findings,
                file.path.file(),
                RunFault::BlockChanged,
                "it would make or remove a page".to_owned(),
            );
            continue;
        };
        check_fields(before, &after, &mut findings);
        let bare = take_out_links(before, &after, &all, &mut findings);
        files.push(RunFile { after: Some(bare.into_bytes()), ..file.clone() });
    }
    let mut verdict = verify_run(&VerifyInput { pages: &pages, files: &files, ..*input });
    verdict.findings.extend(findings);
    let worst = verdict.findings.iter().map(|finding| finding.fault.verdict()).max();
    RulesVerdict { verdict: worst.unwrap_or(Verdict::Commit), ..verdict }
}

/// Fields that a correction leaves as they are.
fn check_fields(before: &WikiPage, after: &WikiPage, findings: &mut Vec<RunFinding>) {
    let may_change = |name: &&String| FORM_FIELDS.iter().chain(&REFERENCE_LISTS).any(|known| known == name);
    let list = |fields: &RecordFields| -> RecordFields {
        let kept = fields.iter().filter(|(name, _)| !may_change(name));
        kept.map(|(name, value)| (name.clone(), value.clone())).collect()
    };
    let (was, is) = (list(before.document.fields()), list(after.document.fields()));
    if was != is || before.kind != after.kind {
        report(findings, &before.file, RunFault::BlockChanged, "another field would change".to_owned());
    }
}

/// The page as the run leaves it, without the links that it adds to a see-also line. The rest must have stood there.
fn take_out_links(before: &WikiPage, after: &WikiPage, pages: &[&WikiPage], findings: &mut Vec<RunFinding>) -> String {
    let (was, is) = (before.document.body(), after.document.body());
    let lines = list_diff_lines(was, is);
    let gone: Vec<&str> = lines.iter().filter_map(find_removed).collect();
    let mut body = String::with_capacity(is.len());
    for line in lines {
        let DiffLine::After(line) = line else {
            body.push_str(if let DiffLine::Both(line) = line { line } else { "" });
            continue;
        };
        body.push_str(find_shorter(line, &gone, pages).unwrap_or(line));
        // A last line that only gets its line break is the same line.
        let is_old = gone.iter().any(|old| old.trim_end() == line.trim_end());
        if !line.trim().is_empty() && !line.starts_with(SEE_ALSO) && !is_old {
            report(findings, &before.file, RunFault::BlockChanged, "more than links would be added".to_owned());
        }
    }
    let text = after.document.as_str();
    format!("{}{body}", &text[..text.len() - is.len()])
}

fn find_removed<'l>(line: &DiffLine<'l>) -> Option<&'l str> {
    match line {
        DiffLine::Before(line) => Some(line),
        DiffLine::After(_) | DiffLine::Both(_) => None,
    }
}

/// The see-also line that a line extends by links that show the titles of pages.
fn find_shorter<'l>(line: &str, gone: &[&'l str], pages: &[&WikiPage]) -> Option<&'l str> {
    let is_extended = |old: &&&str| {
        let added = line.trim_end().strip_prefix(old.trim_end()).and_then(|rest| rest.strip_prefix(", "));
        added.is_some_and(|links| is_link_list(links) && list_untitled_links(links, pages).is_empty())
    };
    gone.iter().filter(|old| old.starts_with(SEE_ALSO)).find(is_extended).copied()
}

/// Whether a text is links and nothing else.
fn is_link_list(text: &str) -> bool {
    let mut rest = text;
    while let Some((_, left)) = rest.strip_prefix("[[").and_then(|link| link.split_once("]]")) {
        match left.strip_prefix(", ") {
            Some(next) => rest = next,
            None => return left.is_empty(),
        }
    }
    false
}
