//! Accepts the files that say how a wiki is written, and finds what was accepted.
//!
//! The audit record of the acceptance holds their text. A file that changes later is not in force until somebody accepts it.

use crate::action::chain::{self, ChainError};
use crate::action::writer::{ActionReceipt, VaultWriter};
use crate::files::root::VaultRoot;
use crate::wiki::folder::read_bounded;
use crate::wiki::request::{WikiRunError, WikiRunRequest};
use crate::wiki::runs::{NamedRecord, list_records};
use crate::wiki::state::{find_wiki_folder, read_wiki};
use std::collections::BTreeMap;
use steward_domain::action::audit::{ActionKind, AuditRecord};
use steward_domain::action::plan::ContentHash;
use steward_domain::record::frontmatter::{self, MAX_RECORD_BYTES};
use steward_domain::record::path::RecordPath;
use steward_domain::wiki::assemble::{RunReport, assemble_run};
use steward_domain::wiki::details::{RecordedContent, WikiDetails};
use steward_domain::wiki::plan::{AcceptedFile, close};
use steward_domain::wiki::run::WikiRunType;
use steward_domain::wiki::standard::{Doctype, find_faults};
use steward_domain::wiki::{ACCEPTED_FILES, MANIFEST_FILE};

/// The files of a wiki that are in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcceptedFiles {
    /// The text of each by its name.
    pub files: BTreeMap<String, String>,
    /// The record of the acceptance.
    pub record: RecordPath,
    /// The position of the record in the chain, and the hash of its file.
    seq: u64,
    sha256: ContentHash,
}

/// Finds what was accepted last for a wiki. A file that is no link of the chain of records counts for nothing.
///
/// # Errors
/// The records cannot be listed.
pub fn find_accepted(root: &VaultRoot, wiki: &str) -> Result<Option<AcceptedFiles>, ChainError> {
    let records = list_records(root, &[ActionKind::WikiManifest], Some(wiki))?;
    let mut found: Vec<AcceptedFiles> = records.into_iter().filter_map(|record| read_accepted(root, record)).collect();
    found.sort_by_key(|accepted| std::cmp::Reverse(accepted.seq));
    for accepted in found {
        if chain::is_linked(root, accepted.seq, &accepted.sha256)? {
            return Ok(Some(accepted));
        }
    }
    Ok(None)
}

fn read_accepted(root: &VaultRoot, NamedRecord { path, wiki, .. }: NamedRecord) -> Option<AcceptedFiles> {
    let (bytes, sha256) = root.read_file(&path).map(|read| (read.bytes, read.hash)).ok()?;
    let record = AuditRecord::parse(&bytes).ok()?;
    let is_own = record.draft.record_path().as_ref() == Ok(&path);
    record.draft.wiki.filter(|mark| is_own && mark.wiki == wiki)?;
    let details = WikiDetails::parse(&String::from_utf8_lossy(&bytes)).ok()?;
    let files = details.files.into_iter().filter_map(|file| match file.content {
        RecordedContent::Accepted(text) => Some((file.file, text)),
        RecordedContent::Hashes | RecordedContent::Page { .. } | RecordedContent::Entry(_) => None,
    });
    Some(AcceptedFiles { files: files.collect(), record: path, seq: record.seq, sha256 })
}

/// The files that can be accepted, as they are now.
///
/// # Errors
/// A file cannot be read, or is not text.
pub fn read_acceptable(root: &VaultRoot, folder: &str) -> Result<Vec<AcceptedFile>, WikiRunError> {
    let mut files = Vec::new();
    for file in ACCEPTED_FILES {
        let path = root.path().join(folder).join(file);
        // A link in the place of the file would show something from outside of the wiki.
        match path.symlink_metadata() {
            Err(_) => continue,
            Ok(meta) if !meta.is_file() => return Err(WikiRunError::refuse(format!("{folder}/{file} is not a file"))),
            Ok(_) => {}
        }
        let failed = |e: &dyn std::fmt::Display| WikiRunError::refuse(format!("{folder}/{file}: {e}"));
        let bytes = read_bounded(&path, MAX_RECORD_BYTES).map_err(|e| failed(&e))?;
        let text = String::from_utf8(bytes).map_err(|_| failed(&"it is not UTF-8: save it as UTF-8"))?;
        if text.contains('\0') {
            return Err(failed(&"it holds a NUL: remove it"));
        }
        files.push(AcceptedFile { file, text });
    }
    Ok(files)
}

impl VaultWriter {
    /// Accepts the files of a wiki as a person saw them, which their hashes say. Repeated calls file one record.
    ///
    /// # Errors
    /// [`WikiRunError`]; it is refused if a file is another one by now, or if the manifest is not valid.
    pub fn accept_wiki(
        &self,
        request: &WikiRunRequest<'_>,
        seen: &BTreeMap<String, ContentHash>,
    ) -> Result<ActionReceipt, WikiRunError> {
        let folder = find_wiki_folder(self.root(), request.wiki)?;
        let mut run = request.describe(ActionKind::WikiManifest, &folder, WikiRunType::Manual, &["accept"]);
        if let Some(receipt) = self.find_run(&run)? {
            return Ok(receipt);
        }
        let files = read_acceptable(self.root(), &folder)?;
        let hashes: BTreeMap<String, ContentHash> =
            files.iter().map(|file| (file.file.to_owned(), ContentHash::hash_bytes(file.text.as_bytes()))).collect();
        if hashes != *seen {
            return Err(WikiRunError::refuse("the files are others than those that were shown: accept them again"));
        }
        check_manifest(&files)?;
        let names: Vec<&str> = files.iter().map(|file| file.file).collect();
        run.reasoning = format!("{} accepted {}.", request.by, names.join(", "));
        let subject = format!("Accepted {}", names.join(", "));
        let bullets = vec![format!("run: {}", run.mark.run)];
        let report = RunReport::manual(&run.mark.run, request.at, subject, bullets);
        run.accepted = files;
        let wiki = read_wiki(self.root(), request.wiki, &folder)?;
        let assembled = assemble_run(wiki.state, Vec::new(), &report)?;
        Ok(self.commit_run(&close(run, assembled.files)?)?)
    }
}

fn check_manifest(files: &[AcceptedFile]) -> Result<(), WikiRunError> {
    let refuse = |problem: String| {
        Err(WikiRunError::refuse(format!("{MANIFEST_FILE}: {problem}: `steward wiki validate` shows each fault")))
    };
    let Some(manifest) = files.iter().find(|file| file.file == MANIFEST_FILE) else {
        return refuse("there is none".to_owned());
    };
    match frontmatter::read_document(manifest.text.as_bytes()) {
        Err(e) => refuse(e.to_string()),
        Ok(document) => match (Doctype::read(document.fields()), find_faults(document.fields()).first()) {
            (Some(Doctype::Manifest), None) => Ok(()),
            (_, Some(fault)) => refuse(format!("{}: {}", fault.path, fault.problem)),
            (_, None) => refuse("it is not the manifest of a wiki".to_owned()),
        },
    }
}
