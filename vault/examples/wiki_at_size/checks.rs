//! Checks the wiki: its lint, what the standard would refuse, and its quotes.
//!
//! Nothing is changed. What is found goes to a file, as a list of pairs of a code and a file.

use crate::usage::Stopwatch;
use crate::{WIKI, compute_time};
use serde_json::{Value, json};
use std::error::Error;
use std::path::Path;
use std::time::Instant;
use steward_domain::wiki::MANIFEST_FILE;
use steward_domain::wiki::claims::read_claims;
use steward_domain::wiki::finding::WikiFinding;
use steward_domain::wiki::grep::LinePattern;
use steward_vault::wiki::chain::{ManifestPlace, check_manifest, read_manifest};
use steward_vault::wiki::folder::WikiFolder;
use steward_vault::wiki::grep::{GrepRequest, MAX_GREP_HITS, MAX_GREP_TIME, grep_wiki};
use steward_vault::wiki::health::check_wiki;
use steward_vault::wiki::quotes::lint_quotes;

/// What `steward wiki lint` does before it prints.
pub(crate) fn measure_lint(vault: &Path, results: &Path) -> Result<Value, Box<dyn Error>> {
    let folder = vault.join("wiki").join(WIKI);
    let watch = Stopwatch::start();
    let checked = check_wiki(&folder, compute_time(0))?;
    let figures = json!({"wall_ms": watch.wall_ms(), "cpu_ms": watch.cpu_ms()});
    write_findings(results, &checked.findings)?;
    Ok(figures)
}

/// What `steward wiki validate` does before it prints. Reading a page reports what the standard refuses of it.
pub(crate) fn measure_validate(vault: &Path, results: &Path) -> Result<Value, Box<dyn Error>> {
    let folder = vault.join("wiki").join(WIKI);
    let watch = Stopwatch::start();
    let mut findings = WikiFolder::open(&folder)?.read().findings;
    let manifest = read_manifest(&folder.join(MANIFEST_FILE))?;
    let place = ManifestPlace { folder: &folder, root: Some(vault) };
    findings.extend(check_manifest(MANIFEST_FILE, &manifest, &place));
    let figures = json!({"wall_ms": watch.wall_ms(), "cpu_ms": watch.cpu_ms()});
    write_findings(results, &findings)?;
    Ok(figures)
}

/// Compares the quotes of all pages with their sources. The pages were read before.
pub(crate) fn measure_quotes(vault: &Path) -> Result<Value, Box<dyn Error>> {
    let folder = WikiFolder::open(&vault.join("wiki").join(WIKI))?;
    let contents = folder.read();
    let watch = Stopwatch::start();
    let findings = lint_quotes(&folder, &contents);
    let (wall, cpu) = (watch.wall_ms(), watch.cpu_ms());
    let count = |body: &str| read_claims(body, &[]).anchors.len();
    let quotes: usize = contents.pages.iter().map(|page| count(page.document.body())).sum();
    Ok(json!({"wall_ms": wall, "cpu_ms": cpu, "quotes": quotes, "findings": findings.findings.len()}))
}

/// Finds the lines with a word in the pages and their sources.
pub(crate) fn measure_grep(vault: &Path, word: &str) -> Result<Value, Box<dyn Error>> {
    let folder = WikiFolder::open(&vault.join("wiki").join(WIKI))?;
    let pattern = LinePattern::new(word, false, false)?;
    let request = GrepRequest { pattern, context: 0, limit: MAX_GREP_HITS, after: None };
    let watch = Stopwatch::start();
    let found = grep_wiki(&folder, folder.list_all_files(), &request, Instant::now() + MAX_GREP_TIME);
    let (wall, cpu) = (watch.wall_ms(), watch.cpu_ms());
    let lines: Vec<Value> = found.hits.iter().map(|hit| json!([hit.path, hit.hit.line])).collect();
    Ok(json!({"wall_ms": wall, "cpu_ms": cpu, "lines": lines, "is_cut": found.is_cut}))
}

fn write_findings(file: &Path, findings: &[WikiFinding]) -> Result<(), Box<dyn Error>> {
    let pairs: Vec<Value> = findings.iter().map(|finding| json!([finding.code.to_string(), finding.file])).collect();
    Ok(std::fs::write(file, serde_json::to_vec(&pairs)?)?)
}
