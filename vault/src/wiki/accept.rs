//! Accepts the files that say how a wiki is written, and finds what was accepted.
//!
//! The audit record of the acceptance holds their text. A file that changes later is not in force until somebody accepts it.

use crate::action::chain::{self, ChainError};
use crate::action::writer::{ActionReceipt, VaultWriter};
use crate::files::root::VaultRoot;
use crate::wiki::folder::read_bounded;
use crate::wiki::request::{WikiRunError, WikiRunRequest};
use crate::wiki::state::{find_wiki_folder, read_wiki};
use std::collections::BTreeMap;
use steward_domain::action::audit::{ActionKind, AuditRecord};
use steward_domain::action::plan::ContentHash;
use steward_domain::record::frontmatter::{self, MAX_RECORD_BYTES};
use steward_domain::record::path::{RecordKind, RecordPath};
use steward_domain::wiki::assemble::{ProvenanceChange, RunReport, assemble_run};
use steward_domain::wiki::details::{RecordedContent, WikiDetails};
use steward_domain::wiki::log::LogType;
use steward_domain::wiki::plan::{AcceptedFile, close};
use steward_domain::wiki::run::{RunId, WikiRunType};
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

impl AcceptedFiles {
    /// The hashes of the files by their names.
    #[must_use]
    pub fn hash_files(&self) -> BTreeMap<String, ContentHash> {
        let hash = |text: &String| ContentHash::hash_bytes(text.as_bytes());
        self.files.iter().map(|(file, text)| (file.clone(), hash(text))).collect()
    }
}

/// Finds what was accepted last for a wiki. A file that is no link of the chain of records counts for nothing.
///
/// # Errors
/// The records cannot be listed.
pub fn find_accepted(root: &VaultRoot, wiki: &str) -> Result<Option<AcceptedFiles>, ChainError> {
    let names = root.list_names(RecordKind::Event)?;
    let is_of_wiki =
        |name: &&String| read_record_name(name, ActionKind::WikiManifest).is_some_and(|named| named.wiki == wiki);
    let mut found: Vec<AcceptedFiles> =
        names.iter().filter(is_of_wiki).filter_map(|name| read_accepted(root, name, wiki)).collect();
    found.sort_by_key(|accepted| std::cmp::Reverse(accepted.seq));
    for accepted in found {
        if chain::is_linked(root, accepted.seq, &accepted.sha256)? {
            return Ok(Some(accepted));
        }
    }
    Ok(None)
}

fn read_accepted(root: &VaultRoot, name: &str, wiki: &str) -> Option<AcceptedFiles> {
    let path = RecordPath::new(RecordKind::Event, name.strip_suffix(".md")?).ok()?;
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

/// What the name of a wiki's record says.
pub(crate) struct RecordName<'n> {
    pub(crate) run: RunId,
    pub(crate) wiki: &'n str,
}

/// Reads the name of a record of a wiki: `<kind>-<run>-<wiki>.md`.
pub(crate) fn read_record_name(name: &str, kind: ActionKind) -> Option<RecordName<'_>> {
    let rest = name.strip_suffix(".md")?.strip_prefix(kind.as_str())?.strip_prefix('-')?;
    let (run, wiki) = rest.split_at_checked(RunId::LENGTH)?;
    Some(RecordName { run: run.parse().ok()?, wiki: wiki.strip_prefix('-')? })
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
        let report = RunReport {
            run: run.mark.run.clone(),
            at: request.at,
            log_type: LogType::Manual,
            subject: format!("Accepted {}", names.join(", ")),
            bullets: vec![format!("run: {}", run.mark.run)],
            provenance: ProvenanceChange::Nothing,
            added_sources: 0,
            ideas: Vec::new(),
            dropped_ideas: Vec::new(),
        };
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
