//! `steward wiki validate`: what the published standard would refuse.
//!
//! It accepts exactly what the published schema accepts. What is read all the same, such as an earlier draft's schema, is an
//! error here and a warning of `steward wiki lint`.

use super::{CheckReport, open_folder, show_in};
use crate::cli::output::{CommandExit, CommandOutput};
use anyhow::Context;
use std::path::{Path, PathBuf};
use steward_domain::record::frontmatter;
use steward_domain::wiki::finding::{FindingCode, Severity, WikiFinding};
use steward_domain::wiki::page::read_page;
use steward_domain::wiki::standard::{Doctype, find_faults};
use steward_domain::wiki::{MANIFEST_FILE, MAX_PAGE_BYTES};
use steward_vault::wiki::chain::{ManifestPlace, check_manifest, find_vault_around, resolve_chain};
use steward_vault::wiki::folder::read_bounded;

pub(super) fn run(paths: &[PathBuf], out: CommandOutput) -> anyhow::Result<CommandExit> {
    let mut report = CheckReport { findings: Vec::new(), checked: 0 };
    for path in paths {
        match path.is_dir() {
            true => check_folder(path, &mut report)?,
            false => check_file(path, &mut report)?,
        }
    }
    report.print(out)
}

/// Checks the manifest, the pages and the registry of a wiki.
fn check_folder(folder: &Path, report: &mut CheckReport) -> anyhow::Result<()> {
    let wiki = open_folder(folder)?.read();
    report.checked += wiki.pages.len();
    report.findings.extend(wiki.findings.into_iter().map(|finding| WikiFinding {
        file: show_in(folder, &finding.file),
        severity: refuse(finding.code, finding.severity),
        ..finding
    }));
    let manifest = folder.join(MANIFEST_FILE);
    if manifest.exists() {
        return check_file(&manifest, report);
    }
    report.findings.push(find_no_manifest(folder));
    Ok(())
}

/// That a folder is no wiki.
pub(super) fn find_no_manifest(folder: &Path) -> WikiFinding {
    let fix = "give the folder of a wiki; `steward wiki init` makes one";
    let (file, code) = (show_in(folder, MANIFEST_FILE), FindingCode::SchemaMissing);
    WikiFinding::new(code, Severity::Error, &file, "there is no manifest", fix)
}

/// What is only a warning for a reader.
fn refuse(code: FindingCode, severity: Severity) -> Severity {
    use FindingCode::{LegacySchema, LegacyType, NewerThanSchema, SlugDigitFirst, SourcePath};
    match code {
        LegacySchema | LegacyType | NewerThanSchema | SlugDigitFirst | SourcePath => Severity::Error,
        _ => severity,
    }
}

/// Checks one file by the doctype that it names.
fn check_file(path: &Path, report: &mut CheckReport) -> anyhow::Result<()> {
    let bytes = read_bounded(path, MAX_PAGE_BYTES).with_context(|| format!("failed to read {}", path.display()))?;
    let file = path.display().to_string();
    report.checked += 1;
    let document = match frontmatter::read_document(&bytes) {
        Ok(document) => document,
        Err(e) => {
            let problem = format!("its frontmatter cannot be read: {e}");
            let finding = WikiFinding::new(invalid_code(path), Severity::Error, &file, &problem, "correct it");
            report.findings.push(finding);
            return Ok(());
        }
    };
    match Doctype::read(document.fields()) {
        Some(Doctype::Manifest) => {
            let folder = path.canonicalize()?.parent().map(Path::to_owned).unwrap_or_default();
            let root = find_vault_around(path);
            let place = ManifestPlace { folder: &folder, root: root.as_deref() };
            report.findings.extend(check_manifest(&file, &document, &place));
            report.findings.extend(resolve_chain(path, root.as_deref())?.findings);
        }
        Some(Doctype::Page) => {
            let found = read_page(&file, &bytes).findings;
            let refused =
                |finding: WikiFinding| WikiFinding { severity: refuse(finding.code, finding.severity), ..finding };
            report.findings.extend(found.into_iter().map(refused));
        }
        Some(Doctype::Source) | None => {
            report.findings.extend(find_faults(document.fields()).iter().map(|fault| {
                let finding = WikiFinding::new(invalid_code(path), Severity::Error, &file, &fault.problem, &fault.fix);
                finding.at_field(&document, &fault.path)
            }));
        }
    }
    Ok(())
}

fn invalid_code(path: &Path) -> FindingCode {
    match path.file_name().and_then(|name| name.to_str()) {
        Some(MANIFEST_FILE) => FindingCode::KnowledgeWorkspaceInvalid,
        _ => FindingCode::EntryInvalid,
    }
}
