//! `steward wiki lint`: checks a wiki without a model.
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
use steward_vault::wiki::chain::{ManifestPlace, check_manifest, check_standard, find_vault_around, resolve_chain};
use steward_vault::wiki::folder::WikiContents;

/// A wiki and what was found in it.
pub(super) struct LintedWiki {
    pub(super) contents: WikiContents,
    pub(super) manifest: EffectiveManifest,
    /// Sorted by file and line.
    pub(super) findings: Vec<WikiFinding>,
}

pub(super) fn run(folder: &Path, out: CommandOutput) -> anyhow::Result<CommandExit> {
    let LintedWiki { contents, findings, .. } = lint_folder(folder)?;
    CheckReport { findings, checked: contents.pages.len() + 1 }.print(out)
}

/// Reads and checks a wiki.
pub(super) fn lint_folder(folder: &Path) -> anyhow::Result<LintedWiki> {
    let opened = open_folder(folder)?;
    if opened.path().join(MANIFEST_FILE).symlink_metadata().is_err() {
        let (contents, manifest) = (WikiContents::default(), EffectiveManifest::default());
        return Ok(LintedWiki { contents, manifest, findings: vec![validate::find_no_manifest(folder)] });
    }
    let mut contents = opened.read();
    let (manifest, mut findings) = read_effective(opened.path());
    findings.append(&mut contents.findings);
    let facts = WikiFacts {
        manifest: &manifest,
        pages: &contents.pages,
        sources: &contents.sources,
        source_hashes: &contents.source_hashes,
        files: &contents.files,
        has_registry: contents.has_registry,
        index: contents.index.as_deref(),
        log: contents.log.as_deref(),
        guide: contents.guide.as_deref(),
        now: Utc::now(),
    };
    findings.extend(lint_wiki(&facts));
    findings.sort();
    findings.dedup();
    Ok(LintedWiki { contents, manifest, findings })
}

/// The manifest that holds for a wiki, and the findings about it. One that cannot be read counts as empty.
fn read_effective(folder: &Path) -> (EffectiveManifest, Vec<WikiFinding>) {
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
    if let Some((own, above)) = chain.layers.split_last() {
        findings.extend(above.iter().flat_map(|layer| check_standard(&layer.file, &layer.document)));
        findings.extend(check_manifest(&own.file, &own.document, &ManifestPlace { folder, root: root.as_deref() }));
        // Files of the wiki are named relative to it.
        for finding in findings.iter_mut().filter(|finding| finding.file == own.file) {
            MANIFEST_FILE.clone_into(&mut finding.file);
        }
    }
    (manifest, findings)
}
