//! Runs that are staged: what a run wants to change, before anything of the wiki is changed.
//!
//! A staged run is a folder below `.steward/runs/`. Nothing else is written here, and only its owner can read it. One
//! process at a time writes a run. What a folder holds is read back through checked types: it may have been edited.

mod cleanup;
pub(crate) mod files;
mod meta;
mod transcript;
mod upload;

use crate::files::root::{VaultRoot, make_real_folder, open_real_folder};
use crate::files::{crash, durable};
use cap_std::fs::Dir;
use chrono::{DateTime, Utc};
pub(crate) use files::read_bytes;
use files::{lock, read_json, write_json};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io;
use steward_domain::action::plan::ContentHash;
use steward_domain::wiki::graph::PageRelation;
use steward_domain::wiki::path::{PagePath, PagePathError};
use steward_domain::wiki::plan::RunFile;
use steward_domain::wiki::run::RunId;
use steward_domain::wiki::verify::RulesVerdict;

pub use meta::{ASSISTANT_WRITER, FiledReview, RULES_WRITER, RunMeta};

/// The folder of all runs, in our own folder.
const RUNS: &str = "runs";
const META: &str = "meta.json";
const PLAN: &str = "plan.json";
const STATUS: &str = "status";
const VERDICT: &str = "verdict.json";
const STAGED: &str = "staged";
const BASE: &str = "base";
/// The bytes of a source that is to be added.
const UPLOAD: &str = "source";

/// How far a run has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, strum::Display)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum RunState {
    /// It is being staged, or waits for a person.
    Pending,
    Verifying,
    Committed,
    Rejected,
    Abandoned,
}

/// The state of a run, since when, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunStatus {
    pub state: RunState,
    pub at: DateTime<Utc>,
    /// One line for people.
    pub reason: String,
    /// A person decides about it.
    #[serde(default)]
    pub waits: bool,
    /// The hash of what a verifier refused at the end, if nothing else was wrong with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused_by_verifier: Option<ContentHash>,
    /// The person who rejected it, as they gave their name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rejected_by: Option<String>,
}

impl RunStatus {
    /// A state since a moment, for a reason.
    #[must_use]
    pub fn new(state: RunState, at: DateTime<Utc>, reason: &str) -> Self {
        Self { state, at, reason: reason.to_owned(), waits: false, refused_by_verifier: None, rejected_by: None }
    }
}

/// What a run wants to change.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StagedPlan {
    pub files: Vec<StagedFile>,
    /// Lines that are added to the ideas.
    pub ideas: Vec<String>,
    /// Relations that are added to the graph.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub relations: Vec<PageRelation>,
    /// What could not be done, for people.
    pub notes: Vec<String>,
    /// The slugs of the related pages that the writer was offered, and of those that need no change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub offered: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unchanged: Vec<String>,
    /// The subject of the entry in the log, if its writer gave one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
}

impl StagedPlan {
    /// The hash of everything that is staged: each file with the hash of its content, the ideas and the relations.
    #[must_use]
    pub fn hash(&self) -> ContentHash {
        ContentHash::hash_bytes(&serde_json::to_vec(self).unwrap_or_default())
    }
}

/// A file of a run, by its path in the wiki.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StagedFile {
    pub path: String,
    /// `None` for a new file.
    pub before: Option<ContentHash>,
    /// `None` for a file that is removed.
    pub after: Option<ContentHash>,
}

/// A run with its state, as lists show it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StagedRunSummary {
    #[serde(flatten)]
    pub meta: RunMeta,
    pub status: RunStatus,
}

/// Why a staged run cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StagedRunError {
    #[error("there is no run {0}")]
    Unknown(RunId),
    #[error("another process works on the run {0}: try again later")]
    Busy(RunId),
    #[error("the staged run {run} was edited: {reason}")]
    Edited { run: RunId, reason: String },
    #[error(transparent)]
    Path(#[from] PagePathError),
    #[error(".steward/{RUNS}/{path}: {source}{}", crate::files::disk::disk_error_hint(source))]
    Io { path: String, source: io::Error },
}

/// The staged runs of a vault.
#[derive(Clone, Debug)]
pub struct StagedRuns {
    root: VaultRoot,
}

/// A run that this process stages. Nobody else writes it meanwhile.
#[derive(Debug)]
pub struct StagedRun {
    pub meta: RunMeta,
    dir: Dir,
    /// `None` for a run that is only read.
    _lock: Option<File>,
}

impl StagedRuns {
    #[must_use]
    pub fn new(root: &VaultRoot) -> Self {
        Self { root: root.clone() }
    }

    /// Begins a run, or goes on with the one that has this name.
    ///
    /// # Errors
    /// [`StagedRunError`].
    pub fn begin(&self, meta: &RunMeta) -> Result<StagedRun, StagedRunError> {
        let failed = |source| StagedRunError::Io { path: meta.run.to_string(), source };
        let runs = self.root.make_own_folder(Some(RUNS)).map_err(failed)?;
        let dir = make_real_folder(&runs, meta.run.as_str()).map_err(failed)?;
        let lock = lock(&dir, &meta.run)?;
        match read_json::<RunMeta>(&dir, META) {
            Ok(Some(known)) if known == *meta => {}
            Ok(Some(_)) => return Err(edited(&meta.run, "another run has its name")),
            Ok(None) => {
                write_json(&dir, META, meta).map_err(failed)?;
                durable::sync_folder(&runs).map_err(failed)?;
            }
            Err(e) => return Err(edited(&meta.run, &e.to_string())),
        }
        let run = StagedRun { meta: meta.clone(), dir, _lock: Some(lock) };
        if run.read_status()?.is_none() {
            run.set_status(RunState::Pending, meta.began, "it is being written")?;
        }
        Ok(run)
    }

    /// Opens a run that was begun.
    ///
    /// # Errors
    /// [`StagedRunError`].
    pub fn open(&self, run: &RunId) -> Result<StagedRun, StagedRunError> {
        let dir = self.find_folder(run)?.ok_or_else(|| StagedRunError::Unknown(run.clone()))?;
        let lock = lock(&dir, run)?;
        Self::read_run(dir, run, Some(lock))
    }

    /// Opens a run only to read it, also while another process writes it. What is read may not fit together then, which the hashes
    /// of its plan show.
    ///
    /// # Errors
    /// [`StagedRunError`].
    pub fn peek(&self, run: &RunId) -> Result<StagedRun, StagedRunError> {
        let dir = self.find_folder(run)?.ok_or_else(|| StagedRunError::Unknown(run.clone()))?;
        Self::read_run(dir, run, None)
    }

    fn read_run(dir: Dir, run: &RunId, lock: Option<File>) -> Result<StagedRun, StagedRunError> {
        let meta = read_json::<RunMeta>(&dir, META).map_err(|e| edited(run, &e.to_string()))?;
        let meta = meta.filter(|meta| meta.run == *run).ok_or_else(|| StagedRunError::Unknown(run.clone()))?;
        Ok(StagedRun { meta, dir, _lock: lock })
    }

    /// All runs with their states, oldest first. What cannot be read is left out.
    ///
    /// # Errors
    /// The folder cannot be listed.
    pub fn list(&self) -> Result<Vec<StagedRunSummary>, StagedRunError> {
        self.list_some(|_| true)
    }

    /// As [`Self::list`], of the runs that a name means. No other one is read.
    ///
    /// # Errors
    /// The folder cannot be listed.
    pub fn list_named(&self, name: &str) -> Result<Vec<StagedRunSummary>, StagedRunError> {
        self.list_some(|run| run.is_named(name))
    }

    fn list_some(&self, is_meant: impl Fn(&RunId) -> bool) -> Result<Vec<StagedRunSummary>, StagedRunError> {
        let failed = |source| StagedRunError::Io { path: String::new(), source };
        let Some(runs) = self.root.find_own_folder(Some(RUNS)).map_err(failed)? else { return Ok(Vec::new()) };
        let mut found = Vec::new();
        for entry in runs.entries().map_err(failed)? {
            let name = entry.map_err(failed)?.file_name();
            let run = name.to_str().and_then(|name| name.parse::<RunId>().ok());
            let Some(run) = run.filter(|run| is_meant(run)) else { continue };
            let Ok(Some(dir)) = open_real_folder(&runs, run.as_str()) else { continue };
            let read = (read_json::<RunMeta>(&dir, META), read_json::<RunStatus>(&dir, STATUS));
            if let (Ok(Some(meta)), Ok(Some(status))) = read
                && meta.run == run
            {
                found.push(StagedRunSummary { meta, status });
            }
        }
        found.sort_by(|a, b| a.meta.run.cmp(&b.meta.run));
        Ok(found)
    }

    fn find_folder(&self, run: &RunId) -> Result<Option<Dir>, StagedRunError> {
        let failed = |source| StagedRunError::Io { path: run.to_string(), source };
        match self.root.find_own_folder(Some(RUNS)).map_err(failed)? {
            Some(runs) => open_real_folder(&runs, run.as_str()).map_err(failed),
            None => Ok(None),
        }
    }
}

impl StagedRun {
    /// Stages files in the place of those that were staged before. The plan, to which they are added, is written last.
    ///
    /// # Errors
    /// [`StagedRunError::Io`].
    pub fn stage(&self, files: &[RunFile], mut plan: StagedPlan) -> Result<(), StagedRunError> {
        for folder in [STAGED, BASE] {
            if open_real_folder(&self.dir, folder).map_err(self.failed())?.is_some() {
                self.dir.remove_dir_all(folder).map_err(self.failed())?;
            }
        }
        let hash = |bytes: &Option<Vec<u8>>| bytes.as_deref().map(ContentHash::hash_bytes);
        plan.files.clear();
        for file in files {
            for (folder, bytes) in [(BASE, &file.before), (STAGED, &file.after)] {
                if let Some(bytes) = bytes {
                    self.write_content(folder, &file.path, bytes).map_err(self.failed())?;
                }
            }
            let path = file.path.file().to_owned();
            plan.files.push(StagedFile { path, before: hash(&file.before), after: hash(&file.after) });
        }
        write_json(&self.dir, PLAN, &plan).map_err(self.failed())?;
        crash::die_if_armed("after-staging-run");
        Ok(())
    }

    /// What was staged, with the content before the run as it was then. `None` if nothing was.
    ///
    /// # Errors
    /// [`StagedRunError::Edited`] if a file is not as it was staged.
    pub fn read_staged(&self) -> Result<Option<(StagedPlan, Vec<RunFile>)>, StagedRunError> {
        let plan = read_json::<StagedPlan>(&self.dir, PLAN).map_err(|e| edited(&self.meta.run, &e.to_string()))?;
        let Some(plan) = plan else { return Ok(None) };
        let mut files = Vec::new();
        for staged in &plan.files {
            let path = PagePath::new(&self.meta.folder, &staged.path)?;
            let before = self.read_content(BASE, &path, staged.before.as_ref())?;
            let after = self.read_content(STAGED, &path, staged.after.as_ref())?;
            files.push(RunFile { path, before, after });
        }
        Ok(Some((plan, files)))
    }

    /// Keeps the verdict about what is staged.
    ///
    /// # Errors
    /// [`StagedRunError::Io`].
    pub fn write_verdict(&self, verdict: &RulesVerdict) -> Result<(), StagedRunError> {
        write_json(&self.dir, VERDICT, verdict).map_err(self.failed())
    }

    /// The last verdict.
    ///
    /// # Errors
    /// [`StagedRunError::Edited`].
    pub fn read_verdict(&self) -> Result<Option<RulesVerdict>, StagedRunError> {
        read_json(&self.dir, VERDICT).map_err(|e| edited(&self.meta.run, &e.to_string()))
    }

    /// Whether a verifier refused the run and nothing else did. Then a person may commit it all the same.
    ///
    /// # Errors
    /// [`StagedRunError::Edited`].
    pub fn is_rejected_by_verifier(&self) -> Result<bool, StagedRunError> {
        let rejected = self.read_status()?.filter(|status| status.state == RunState::Rejected);
        let Some(refused) = rejected.and_then(|status| status.refused_by_verifier) else { return Ok(false) };
        Ok(self.read_staged()?.is_some_and(|(plan, _)| plan.hash() == refused))
    }

    /// Sets the state of a run that goes on or was committed. The vault writer ends any other one, because that is on record.
    ///
    /// # Errors
    /// [`StagedRunError::Io`].
    pub fn set_status(&self, state: RunState, at: DateTime<Utc>, reason: &str) -> Result<(), StagedRunError> {
        self.write_status(&RunStatus::new(state, at, reason))
    }

    /// Leaves the run to a person.
    ///
    /// # Errors
    /// [`StagedRunError::Io`].
    pub fn leave_to_person(&self, at: DateTime<Utc>, reason: &str) -> Result<(), StagedRunError> {
        self.write_status(&RunStatus { waits: true, ..RunStatus::new(RunState::Pending, at, reason) })
    }

    pub(crate) fn write_status(&self, status: &RunStatus) -> Result<(), StagedRunError> {
        write_json(&self.dir, STATUS, status).map_err(self.failed())
    }

    /// The state; `None` for a run that has just begun.
    ///
    /// # Errors
    /// [`StagedRunError::Edited`].
    pub fn read_status(&self) -> Result<Option<RunStatus>, StagedRunError> {
        read_json(&self.dir, STATUS).map_err(|e| edited(&self.meta.run, &e.to_string()))
    }

    fn failed(&self) -> impl Fn(io::Error) -> StagedRunError + use<'_> {
        |source| StagedRunError::Io { path: self.meta.run.to_string(), source }
    }

    fn write_content(&self, folder: &str, path: &PagePath, bytes: &[u8]) -> io::Result<()> {
        let (folders, name) = path.file().rsplit_once('/').unwrap_or(("", path.file()));
        let mut dir = make_real_folder(&self.dir, folder)?;
        for part in folders.split('/').filter(|part| !part.is_empty()) {
            dir = make_real_folder(&dir, part)?;
        }
        durable::replace_private_file(&dir, name, bytes)
    }

    fn read_content(
        &self,
        folder: &str,
        path: &PagePath,
        hash: Option<&ContentHash>,
    ) -> Result<Option<Vec<u8>>, StagedRunError> {
        let Some(hash) = hash else { return Ok(None) };
        let name = format!("{folder}/{}", path.file());
        let bytes = read_bytes(&self.dir, &name, path.max_bytes()).map_err(self.failed())?;
        match bytes.filter(|bytes| ContentHash::hash_bytes(bytes) == *hash) {
            Some(bytes) => Ok(Some(bytes)),
            None => Err(edited(&self.meta.run, &format!("{name} is not as it was staged"))),
        }
    }
}

fn edited(run: &RunId, reason: &str) -> StagedRunError {
    StagedRunError::Edited { run: run.clone(), reason: reason.to_owned() }
}

#[cfg(test)]
mod tests;
