//! Reads the git clones that belong to a wiki.
//!
//! A clone is a folder of the owner, and whoever wrote into it is not trusted. `git` runs without anything that its configuration could
//! start: no hooks, pager, external diff, text conversion, monitor, signature check or helper, and nothing is fetched. It has five
//! seconds and a limited output.

mod process;

pub(crate) use process::GitProcess;

use super::error::{ToolError, ToolErrorCode, shorten_outside};
use super::workspace::Workspace;

/// The longest revision, in bytes.
const MAX_REV: usize = 200;
/// What is wrong with a wiki without clones, and where they are configured.
const NONE: &str = "no git clone belongs to this wiki";
const FIX: &str = "Set it in your configuration, as in [wiki.<name>.clones] infra = \"/path\"";

/// A commit of a clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CommitId(String);

impl CommitId {
    /// The id if it is one.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let is_hex = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        (is_hex && matches!(text.len(), 40 | 64)).then(|| Self(text.to_owned()))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl Workspace<'_> {
    /// Opens the clone that a call names. A wiki with one need not name it.
    ///
    /// # Errors
    /// [`ToolErrorCode::NoClone`], [`ToolErrorCode::ManyClones`].
    pub(crate) fn open_clone(&self, named: Option<&str>) -> Result<GitProcess, ToolError> {
        let clones = self.vault.attachments.find(&self.name).clones;
        let names = clones.keys().cloned().collect::<Vec<_>>().join(", ");
        let found = match named {
            Some(name) => clones.get_key_value(name),
            None if clones.len() > 1 => {
                let fix = format!("Name one as `source`: {names}");
                return Err(ToolError::new(ToolErrorCode::ManyClones, "several clones belong to this wiki", fix));
            }
            None => clones.first_key_value(),
        };
        let Some((name, path)) = found else {
            let (what, fix) = match named {
                Some(name) if !clones.is_empty() => (
                    format!("no clone `{}` belongs to this wiki", shorten_outside(name)),
                    format!("Use one of: {names}"),
                ),
                Some(_) | None => (NONE.to_owned(), FIX.to_owned()),
            };
            return Err(ToolError::new(ToolErrorCode::NoClone, what, fix));
        };
        if !path.is_dir() {
            let what = format!("the folder of the clone `{name}` is not there");
            return Err(ToolError::new(ToolErrorCode::NoClone, what, FIX));
        }
        Ok(GitProcess::new(name, path))
    }

    /// Whether a git clone belongs to the wiki.
    pub(crate) fn has_clones(&self) -> bool {
        !self.vault.attachments.find(&self.name).clones.is_empty()
    }
}

/// What is shown for a wiki without clones.
pub(crate) fn describe_no_clone() -> String {
    format!("{}: {NONE}. {FIX}", ToolErrorCode::NoClone)
}

/// Finds the commit that a revision means.
///
/// # Errors
/// [`ToolErrorCode::BadRev`]; [`ToolErrorCode::NoClone`] if the folder is no clone.
pub(crate) fn resolve_commit(git: &GitProcess, rev: &str) -> Result<CommitId, ToolError> {
    let refuse = || {
        let what = format!("`{}` is no commit of the clone", shorten_outside(rev));
        ToolError::new(ToolErrorCode::BadRev, what, "`git_log` shows commits; give the id, a branch or a tag")
    };
    if rev.is_empty() || rev.len() > MAX_REV || rev.starts_with('-') || rev.contains(['\0', '\n']) {
        return Err(refuse());
    }
    let output = git.run(&["rev-parse", "--verify", "--quiet", "--end-of-options", &format!("{rev}^{{commit}}")])?;
    match output.status {
        Some(0) => CommitId::parse(output.text().trim()).ok_or_else(refuse),
        Some(1) => Err(refuse()),
        _ => Err(git.refuse_folder(&output)),
    }
}

/// Checks a path in a clone: relative to its root, without a way out.
///
/// # Errors
/// [`ToolErrorCode::BadArguments`].
pub(crate) fn check_clone_path(path: &str) -> Result<&str, ToolError> {
    let path = path.strip_prefix('/').unwrap_or(path);
    let is_name = |part: &str| !part.is_empty() && part != "." && part != "..";
    if path.split('/').all(is_name) && !path.contains('\0') {
        return Ok(path);
    }
    let what = format!("`{}` is no path in a clone", shorten_outside(path));
    Err(ToolError::new(
        ToolErrorCode::BadArguments,
        what,
        "Give the path from the root of the clone, such as `src/a.rs`",
    ))
}
