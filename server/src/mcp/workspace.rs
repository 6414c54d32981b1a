//! One wiki as a tool reads it.
//!
//! Its files are those that have a path. What a path names is found without following links, and nothing outside of the wiki is read.

use super::error::{ToolError, ToolErrorCode, shorten_outside};
use super::paths::{to_file, to_path};
use super::vault::McpVault;
use std::sync::Arc;
use steward_domain::wiki::grep::PathGlob;
use steward_vault::wiki::folder::{WikiFile, WikiFolder, WikiSnapshot};
use steward_vault::wiki::state::look_at_wiki;

/// How many names an error suggests.
const SUGGESTED: usize = 3;
/// How alike a name must be to be suggested, from 0 to 1.
const ALIKE: f64 = 0.6;

/// A wiki that a call names.
pub(crate) struct Workspace<'v> {
    pub(crate) name: String,
    pub(crate) folder: WikiFolder,
    pub(crate) vault: &'v McpVault,
}

/// A file with its path.
#[derive(Clone, Debug)]
pub(crate) struct WorkspaceFile {
    pub(crate) path: String,
    pub(crate) file: WikiFile,
}

impl Workspace<'_> {
    /// What the wiki holds now.
    pub(crate) fn look(&self) -> Arc<WikiSnapshot> {
        look_at_wiki(self.vault.root(), &self.folder)
    }

    /// All files that have a path, sorted by it.
    pub(crate) fn list_files(&self) -> Vec<WorkspaceFile> {
        Self::list_files_of(&self.look())
    }

    /// As [`Workspace::list_files`], of one look at the wiki.
    pub(crate) fn list_files_of(snapshot: &WikiSnapshot) -> Vec<WorkspaceFile> {
        let files = snapshot.files();
        let mut files: Vec<_> =
            files.filter_map(|file| Some(WorkspaceFile { path: to_path(&file.path)?, file })).collect();
        files.sort_by(|a, b| a.path.cmp(&b.path));
        files
    }

    /// Those files that are meant, by their names in the wiki.
    pub(crate) fn list_meant(&self, is_meant: impl Fn(&str) -> bool) -> Vec<String> {
        let files = self.look();
        files.names().filter(|file| is_meant(file)).map(str::to_owned).collect()
    }

    /// The files whose paths a glob means.
    ///
    /// # Errors
    /// [`ToolErrorCode::BadGlob`].
    pub(crate) fn list_matching(&self, glob: &str) -> Result<Vec<WorkspaceFile>, ToolError> {
        let glob = read_glob(glob)?;
        let mut files = self.list_files();
        files.retain(|file| glob.matches(&file.path));
        Ok(files)
    }

    /// The file of a path that exists.
    ///
    /// # Errors
    /// [`ToolErrorCode::NotFound`] with the nearest names, [`ToolErrorCode::IsALink`].
    pub(crate) fn find_file(&self, path: &str) -> Result<String, ToolError> {
        let file = to_file(path)?;
        if self.folder.leads_through_link(&file) {
            let what = format!("`{}` is a symbolic link, or leads through one", shorten_outside(path));
            return Err(ToolError::new(ToolErrorCode::IsALink, what, "A person can put the file itself in its place"));
        }
        if self.folder.has_file(&file) {
            return Ok(file);
        }
        let paths = self.list_files().into_iter().map(|file| file.path);
        let wanted = path.trim_start_matches('/');
        let mut alike: Vec<(f64, String)> = paths
            .map(|path| (strsim::jaro_winkler(wanted, &path), path))
            .filter(|(score, _)| *score >= ALIKE)
            .collect();
        alike.sort_by(|(a, _), (b, _)| b.total_cmp(a));
        alike.truncate(SUGGESTED);
        let fix = match alike.as_slice() {
            [] => "`list` shows all paths".to_owned(),
            alike => {
                let names: Vec<String> = alike.iter().map(|(_, path)| shorten_outside(path)).collect();
                format!("The nearest are: {}", names.join(", "))
            }
        };
        let what = format!("there is no file `{}`", shorten_outside(path));
        Err(ToolError::new(ToolErrorCode::NotFound, what, fix))
    }
}

/// Reads a glob of paths.
pub(crate) fn read_glob(glob: &str) -> Result<PathGlob, ToolError> {
    PathGlob::new(glob.trim_start_matches('/')).map_err(|e| {
        let what = format!("`{}` is no glob: {e}", shorten_outside(glob));
        ToolError::new(ToolErrorCode::BadGlob, what, "Use `*` within a folder and `**` across folders")
    })
}
