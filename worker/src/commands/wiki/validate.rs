//! `steward wiki validate`: what the published standard would refuse.
//!
//! It accepts exactly what the published schema accepts. What is read all the same, such as an earlier draft's schema, is an
//! error here and a warning of `steward wiki lint`. A file that cannot be read is a finding, and the others are checked.

use super::{CheckReport, open_folder, show_in};
use crate::cli::output::{CommandExit, CommandOutput};
use std::path::{Path, PathBuf};
use steward_domain::record::frontmatter::{self, Document, MAX_RECORD_BYTES};
use steward_domain::wiki::finding::{FindingCode, Severity, WikiFinding};
use steward_domain::wiki::page::read_page;
use steward_domain::wiki::standard::{Doctype, SchemaFault, find_faults};
use steward_domain::wiki::{MANIFEST_FILE, MAX_PAGE_BYTES};
use steward_vault::wiki::chain::{ManifestPlace, check_manifest, find_vault_around, resolve_chain};
use steward_vault::wiki::folder::read_bounded;

pub(super) fn run(paths: &[PathBuf], out: CommandOutput) -> anyhow::Result<CommandExit> {
    let mut report = CheckReport { findings: Vec::new(), checked: 0 };
    for path in paths {
        match path.is_dir() {
            true => check_folder(path, &mut report)?,
            false => check_file(path, &mut report),
        }
    }
    report.print(out)
}

/// Checks the manifest, the pages and the registry of a wiki.
fn check_folder(folder: &Path, report: &mut CheckReport) -> anyhow::Result<()> {
    let wiki = open_folder(folder)?.read();
    report.checked += wiki.pages.len();
    report.findings.extend(wiki.findings.into_iter().map(|finding| {
        let file = show_in(folder, &finding.file);
        raise_severity(WikiFinding { file, ..finding })
    }));
    let manifest = folder.join(MANIFEST_FILE);
    match manifest.symlink_metadata() {
        Ok(_) => check_file(&manifest, report),
        Err(_) => report.findings.push(find_no_manifest(folder)),
    }
    Ok(())
}

/// That a folder is not a wiki.
pub(super) fn find_no_manifest(folder: &Path) -> WikiFinding {
    let fix = "give the folder of a wiki; `steward wiki init` makes one, and restores a lost manifest";
    let (file, code) = (show_in(folder, MANIFEST_FILE), FindingCode::SchemaMissing);
    WikiFinding::new(code, Severity::Error, &file, "there is no manifest", fix)
}

/// Makes an error of what is only a warning for a reader.
fn raise_severity(finding: WikiFinding) -> WikiFinding {
    use FindingCode::{LegacySchema, LegacyType, NewerThanSchema, SlugDigitFirst, SourcePath};
    match finding.code {
        LegacySchema | LegacyType | NewerThanSchema | SlugDigitFirst | SourcePath => {
            WikiFinding { severity: Severity::Error, ..finding }
        }
        _ => finding,
    }
}

/// Checks one file by the doctype that it names, or as a manifest if it is called like one.
fn check_file(path: &Path, report: &mut CheckReport) {
    report.checked += 1;
    let is_manifest = path.file_name().is_some_and(|name| name == MANIFEST_FILE);
    let (code, limit) = match is_manifest {
        true => (FindingCode::KnowledgeWorkspaceInvalid, MAX_RECORD_BYTES),
        false => (FindingCode::EntryInvalid, MAX_PAGE_BYTES),
    };
    let file = path.display().to_string();
    let fail = |problem: String, fix: &str| WikiFinding::new(code, Severity::Error, &file, &problem, fix);
    let bytes = match read_bounded(path, limit) {
        Ok(bytes) => bytes,
        Err(fault) => return report.findings.push(fail(fault.to_string(), "give a file that can be read")),
    };
    let document = match frontmatter::read_document(&bytes) {
        Ok(document) => document,
        Err(e) => return report.findings.push(fail(format!("its frontmatter cannot be read: {e}"), "correct it")),
    };
    let found = match Doctype::read(document.fields()) {
        doctype if is_manifest || doctype == Some(Doctype::Manifest) => check_chain(path, &file, &document),
        doctype => {
            let found = read_page(&file, &bytes).findings;
            // A page of an earlier draft is named as such; a source, and what is neither, by the standard alone.
            if doctype == Some(Doctype::Page) || !found.is_empty() {
                found
            } else {
                let report_fault =
                    |fault: &SchemaFault| fail(fault.problem.clone(), &fault.fix).with_field(&document, &fault.path);
                find_faults(document.fields()).iter().map(report_fault).collect()
            }
        }
    };
    report.findings.extend(found.into_iter().map(raise_severity));
}

/// Checks a manifest with the chain above it.
fn check_chain(path: &Path, file: &str, document: &Document) -> Vec<WikiFinding> {
    let code = FindingCode::KnowledgeWorkspaceInvalid;
    let fail = |e: String| vec![WikiFinding::new(code, Severity::Error, file, &e, "correct it")];
    let real = match path.canonicalize() {
        Ok(real) => real,
        Err(e) => return fail(e.to_string()),
    };
    let root = find_vault_around(&real);
    let place = ManifestPlace { folder: real.parent().unwrap_or(Path::new("/")), root: root.as_deref() };
    let mut found = check_manifest(file, document, &place);
    match resolve_chain(path, root.as_deref()) {
        Ok(chain) => found.extend(chain.findings),
        Err(e) => found.extend(fail(e.to_string())),
    }
    found
}
