//! `AGENTS.md` beside `KNOWLEDGE.md`: the prose must have its four sections and name nothing that the manifest lacks.
//!
//! The manifest wins. In the sections on pages and on lints, the code that begins a list item is a kind, or the id of a lint.
//! In the section on contradictions, a value of `conflictResolution` is one wherever it stands as code.

use crate::wiki::GUIDE_FILE;
use crate::wiki::finding::{FindingCode, Severity, WikiFinding};
use crate::wiki::manifest::EffectiveManifest;
use crate::wiki::standard::CONFLICT_RESOLUTIONS;
use crate::wiki::template::GUIDE_SECTIONS;

pub(super) fn check_guide(text: &str, manifest: &EffectiveManifest) -> Vec<WikiFinding> {
    let [pages, _, contradictions, lints] = GUIDE_SECTIONS;
    let report = |line: Option<usize>, problem: &str, fix: &str| {
        WikiFinding::new(FindingCode::WikiSchemaDrift, Severity::Warn, GUIDE_FILE, problem, fix).with_line(line)
    };
    let mut found: Vec<WikiFinding> = GUIDE_SECTIONS
        .iter()
        .filter(|section| {
            !list_lines(text).any(|(_, line)| read_heading(line).is_some_and(|(_, found)| is_section(found, section)))
        })
        .map(|section| report(None, &format!("it has no section `{section}`"), "add the heading and say it in prose"))
        .collect();
    let ids: Vec<&str> = manifest.lints.iter().map(|rule| rule.id.as_str()).collect();
    let resolution = manifest.find_text(&["curation", "conflictResolution"]).unwrap_or("defer");
    let (mut section, mut depth) = ("", 0);
    for (number, line) in list_lines(text) {
        let line_number = Some(number);
        // A deeper heading stands in the same section.
        if let Some((level, heading)) = read_heading(line) {
            let begun = GUIDE_SECTIONS.into_iter().find(|known| is_section(heading, known));
            match begun {
                Some(begun) => (section, depth) = (begun, level),
                None if level <= depth => section = "",
                None => {}
            }
        }
        let first = read_item(line);
        if section == pages
            && let Some(kind) = first.filter(|kind| is_word(kind) && !manifest.knows_kind(kind))
        {
            found.push(report(
                line_number,
                &format!("the manifest declares no kind `{kind}`"),
                "make the two say the same",
            ));
        }
        if section == lints
            && let Some(id) = first.filter(|id| is_word(id) && !ids.contains(id))
        {
            found.push(report(line_number, &format!("the manifest has no lint `{id}`"), "make the two say the same"));
        }
        if section == contradictions {
            for value in list_code(line).filter(|value| CONFLICT_RESOLUTIONS.contains(value) && *value != resolution) {
                let problem = format!("the manifest resolves conflicts by `{resolution}`, not by `{value}`");
                found.push(report(line_number, &problem, "make the two say the same"));
            }
        }
    }
    found
}

/// The lines outside of code, with their numbers from 1.
fn list_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_code = false;
    text.lines().enumerate().filter_map(move |(at, line)| {
        if line.trim_start().starts_with("```") || line.trim_start().starts_with("~~~") {
            is_code = !is_code;
            return None;
        }
        (!is_code).then_some((at + 1, line))
    })
}

/// The level and the text of a heading.
fn read_heading(line: &str) -> Option<(usize, &str)> {
    let text = line.trim_start_matches('#');
    let level = line.len() - text.len();
    (level > 0 && text.starts_with(' ')).then(|| (level, text.trim()))
}

fn is_section(heading: &str, section: &str) -> bool {
    heading.eq_ignore_ascii_case(section)
}

/// The code that begins a list item.
fn read_item(line: &str) -> Option<&str> {
    let item = line.trim_start().strip_prefix(['-', '*'])?.trim_start();
    item.strip_prefix('`')?.split_once('`').map(|(code, _)| code)
}

/// What stands between backticks.
fn list_code(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
}
