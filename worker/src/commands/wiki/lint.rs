//! `steward wiki lint`: what is wrong with a wiki, found without a model.
//!
//! Nothing is changed and nothing is logged.

use super::{CheckReport, open_folder, validate};
use crate::cli::output::{CommandExit, CommandOutput};
use chrono::Utc;
use std::path::Path;
use steward_domain::wiki::MANIFEST_FILE;
use steward_domain::wiki::finding::{FindingCode, Severity, WikiFinding};
use steward_domain::wiki::lint::{WikiFacts, lint_wiki};
use steward_domain::wiki::manifest::{EffectiveManifest, merge_manifests};
use steward_vault::wiki::chain::{ManifestPlace, check_manifest, find_vault_around, read_manifest, resolve_chain};
use steward_vault::wiki::folder::ReadWiki;

pub(super) fn run(folder: &Path, out: CommandOutput) -> anyhow::Result<CommandExit> {
    let (wiki, findings) = lint_folder(folder)?;
    CheckReport { findings, checked: wiki.pages.len() + 1 }.print(out)
}

/// Reads a wiki and finds what is wrong with it, sorted by file and line.
pub(super) fn lint_folder(folder: &Path) -> anyhow::Result<(ReadWiki, Vec<WikiFinding>)> {
    let opened = open_folder(folder)?;
    if !opened.path().join(MANIFEST_FILE).exists() {
        return Ok((ReadWiki::default(), vec![validate::find_no_manifest(folder)]));
    }
    let mut wiki = opened.read();
    let (manifest, mut findings) = read_effective(opened.path());
    findings.append(&mut wiki.findings);
    let facts = WikiFacts {
        manifest: &manifest,
        pages: &wiki.pages,
        sources: &wiki.sources,
        source_hashes: &wiki.source_hashes,
        has_registry: wiki.has_registry,
        index: wiki.index.as_deref(),
        log: wiki.log.as_deref(),
        guide: wiki.guide.as_deref(),
        now: Utc::now(),
    };
    findings.extend(lint_wiki(&facts));
    findings.sort();
    findings.dedup();
    Ok((wiki, findings))
}

/// The manifest that holds for a wiki, and what is wrong with it. One that cannot be read counts as empty.
pub(super) fn read_effective(folder: &Path) -> (EffectiveManifest, Vec<WikiFinding>) {
    let (file, root) = (folder.join(MANIFEST_FILE), find_vault_around(folder));
    let chain = match resolve_chain(&file, root.as_deref()) {
        Ok(chain) => chain,
        Err(e) => {
            let (code, problem) = (FindingCode::KnowledgeWorkspaceInvalid, format!("it cannot be read: {e}"));
            let finding = WikiFinding::new(code, Severity::Error, MANIFEST_FILE, &problem, "correct it");
            return (EffectiveManifest::default(), vec![finding]);
        }
    };
    let (manifest, mut findings) = merge_manifests(&chain.layers);
    findings.extend(chain.findings);
    if let Ok(document) = read_manifest(&file) {
        findings.extend(check_manifest(MANIFEST_FILE, &document, &ManifestPlace { folder, root: root.as_deref() }));
    }
    (manifest, findings)
}
