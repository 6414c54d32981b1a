//! Checks a wiki without a model: its files, its manifest, its quotes, and what a person has not accepted yet.
//!
//! Nothing is changed and nothing is logged.

use crate::files::root::VaultRoot;
use crate::wiki::accept::{AcceptedFiles, find_accepted, read_acceptable};
use crate::wiki::chain::{ManifestPlace, check_manifest, check_standard, find_vault_around, resolve_chain};
use crate::wiki::create::{WIKIS_FOLDER, list_wikis};
use crate::wiki::folder::{WikiContents, WikiFolder};
use crate::wiki::quotes::lint_quotes;
use crate::wiki::runs::{UnreachedFile, list_unreached_files};
use crate::wiki::state::{ReadWikiError, apply_accepted};
use chrono::{DateTime, Utc};
use std::collections::BTreeSet;
use std::path::Path;
use steward_domain::record::frontmatter;
use steward_domain::wiki::MANIFEST_FILE;
use steward_domain::wiki::finding::{FindingCode, Severity, WikiFinding};
use steward_domain::wiki::lint::{WikiFacts, lint_wiki};
use steward_domain::wiki::manifest::{EffectiveManifest, merge_manifests};
use steward_domain::wiki::standard::FieldPath;

/// A wiki and what was found in it.
#[derive(Debug)]
pub struct CheckedWiki {
    pub contents: WikiContents,
    pub manifest: EffectiveManifest,
    /// Sorted by file and line.
    pub findings: Vec<WikiFinding>,
}

/// Reads and checks the wiki in a folder.
///
/// # Errors
/// [`ReadWikiError`] if the folder or the records of its acceptance cannot be read.
pub fn check_wiki(folder: &Path, now: DateTime<Utc>) -> Result<CheckedWiki, ReadWikiError> {
    let failed = |source| ReadWikiError::Io { path: folder.display().to_string(), source };
    let opened = WikiFolder::open(folder).map_err(failed)?;
    let mut contents = opened.read();
    let known = find_vault_wiki(opened.path())?;
    let (accepted, mut findings) = match &known {
        Some(known) => find_unreviewed(known, opened.path())?,
        None => (None, Vec::new()),
    };
    if let Some(VaultWiki { root, name }) = &known {
        findings.extend(find_partial(root, name)?);
    }
    if opened.path().join(MANIFEST_FILE).symlink_metadata().is_err() {
        findings.push(find_no_manifest(accepted.as_ref()));
    }
    let (manifest, found) = read_effective(opened.path(), accepted.as_ref());
    findings.extend(found);
    findings.append(&mut contents.findings);
    let quotes = lint_quotes(&opened, &contents);
    findings.extend(quotes.findings);
    let facts = WikiFacts {
        manifest: &manifest,
        pages: &contents.pages,
        sources: &contents.sources,
        source_hashes: &contents.source_hashes,
        files: &contents.files,
        impacts: &quotes.impacts,
        has_registry: contents.has_registry,
        index: contents.index.as_deref(),
        log: contents.log.as_deref(),
        guide: contents.guide.as_deref(),
        now,
    };
    findings.extend(lint_wiki(&facts));
    findings.sort();
    findings.dedup();
    Ok(CheckedWiki { contents, manifest, findings })
}

/// That a wiki has no manifest. What a person accepted stays in force.
fn find_no_manifest(accepted: Option<&AcceptedFiles>) -> WikiFinding {
    let fix = match accepted {
        Some(accepted) => {
            format!("`steward wiki init` with its name restores the text that is in force, of {}", accepted.record)
        }
        None => "`steward wiki init` makes one".to_owned(),
    };
    WikiFinding::new(FindingCode::SchemaMissing, Severity::Error, MANIFEST_FILE, "there is no manifest", &fix)
}

/// The manifest that holds for a wiki, and the findings about it. One that cannot be read counts as empty.
fn read_effective(folder: &Path, accepted: Option<&AcceptedFiles>) -> (EffectiveManifest, Vec<WikiFinding>) {
    let (file, root) = (folder.join(MANIFEST_FILE), find_vault_around(folder));
    let chain = match resolve_chain(&file, root.as_deref()) {
        Ok(chain) => chain,
        // It is reported already.
        Err(_) if file.symlink_metadata().is_err() => {
            return (merge_manifests(&apply_accepted(Vec::new(), accepted)).0, Vec::new());
        }
        Err(e) => {
            let (code, problem) = (FindingCode::KnowledgeWorkspaceInvalid, format!("it cannot be read: {e}"));
            let finding = WikiFinding::new(code, Severity::Error, MANIFEST_FILE, &problem, "correct it");
            return (EffectiveManifest::default(), vec![finding]);
        }
    };
    let layers = apply_accepted(chain.layers.clone(), accepted);
    let (manifest, mut findings) = merge_manifests(&layers);
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

/// A wiki of a vault.
struct VaultWiki {
    root: VaultRoot,
    name: String,
}

/// The wiki of a vault that lies in a folder, if it is one.
fn find_vault_wiki(folder: &Path) -> Result<Option<VaultWiki>, ReadWikiError> {
    let Some(root) = find_vault_around(folder).and_then(|vault| VaultRoot::open(&vault).ok()) else {
        return Ok(None);
    };
    let failed = |source| ReadWikiError::Io { path: WIKIS_FOLDER.to_owned(), source };
    let found = list_wikis(&root).map_err(failed)?.into_iter().find(|(_, known)| known == folder);
    Ok(found.map(|(name, _)| VaultWiki { root, name }))
}

/// The files that runs did not reach.
fn find_partial(root: &VaultRoot, wiki: &str) -> Result<Vec<WikiFinding>, ReadWikiError> {
    let report = |UnreachedFile { file, run, record }: UnreachedFile| {
        let problem = format!("the run {} did not reach it: see {record}", run.short());
        let fix = format!("take the run back and repeat it: `steward wiki runs revert {}`", run.short());
        WikiFinding::new(FindingCode::PartialIngest, Severity::Error, &file, &problem, &fix)
    };
    Ok(list_unreached_files(root, wiki)?.into_iter().map(report).collect())
}

/// What a person accepted for a wiki of a vault, and what is not in force yet. A folder elsewhere needs no acceptance.
fn find_unreviewed(
    wiki: &VaultWiki,
    folder: &Path,
) -> Result<(Option<AcceptedFiles>, Vec<WikiFinding>), ReadWikiError> {
    let VaultWiki { root, name } = wiki;
    let relative = folder.strip_prefix(root.path()).unwrap_or(folder).display().to_string();
    let fix = format!("`steward wiki validate {name} --accept` puts it in force");
    let warn = |file: &str, problem: &str| {
        WikiFinding::new(FindingCode::ManifestUnreviewed, Severity::Warn, file, problem, &fix)
    };
    let Some(accepted) = find_accepted(root, name)? else {
        return Ok((None, vec![warn(MANIFEST_FILE, "nobody has accepted the wiki, so nothing can be ingested")]));
    };
    // What cannot be read has a finding of its own.
    let Ok(files) = read_acceptable(root, &relative) else { return Ok((Some(accepted), Vec::new())) };
    let mut found = Vec::new();
    for file in &files {
        let known = accepted.files.get(file.file);
        let fields = |text: &str| frontmatter::read_document(text.as_bytes()).ok();
        match (known, known.and_then(|text| fields(text)), fields(&file.text)) {
            (Some(known), _, _) if *known == file.text => {}
            (Some(_), Some(before), Some(now)) if before.fields() != now.fields() => {
                let names: BTreeSet<&String> = before.fields().keys().chain(now.fields().keys()).collect();
                for name in names.into_iter().filter(|name| before.fields().get(*name) != now.fields().get(*name)) {
                    let problem = format!("`{name}` is another one than was accepted");
                    found.push(warn(file.file, &problem).with_field(&now, &FieldPath::from_key(name)));
                }
            }
            (Some(_), _, _) => found.push(warn(file.file, "its text is another one than was accepted")),
            (None, _, _) => found.push(warn(file.file, "nobody has accepted the file")),
        }
    }
    Ok((Some(accepted), found))
}
