//! Runs `git` on a folder that nobody trusts.
//!
//! What the command line sets comes before the configuration of the clone. The environment is empty, so no other configuration is read.
//! Every way by which a read could start a program is closed here, beside the options that a command needs itself.

use crate::mcp::error::{ToolError, ToolErrorCode};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command};
use tokio::runtime::Handle;

/// How long one command may take.
const TIME_LIMIT: Duration = Duration::from_secs(5);
/// The most bytes of an answer: far more than any tool shows.
const MAX_OUTPUT: u64 = 2 * 1024 * 1024;
/// The most bytes of a complaint.
const MAX_COMPLAINT: u64 = 4 * 1024;

/// What the configuration of a clone must not decide.
const SETTINGS: [&str; 15] = [
    // Larger files are shown as binary ones, so that no diff fills the memory.
    "core.bigFileThreshold=8m",
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.untrackedCache=false",
    "core.attributesFile=/dev/null",
    "core.quotePath=false",
    "credential.helper=",
    "diff.external=",
    "diff.submodule=short",
    "log.showSignature=false",
    "log.mailmap=false",
    "mailmap.file=",
    "mailmap.blob=",
    "blame.ignoreRevsFile=",
    "protocol.allow=never",
];

/// Options by which the program itself does less.
const OPTIONS: [&str; 4] = ["--no-pager", "--no-optional-locks", "--no-replace-objects", "--literal-pathspecs"];

/// Variables by which nothing is asked, fetched or read from outside of the clone. An empty list of protocols comes before the
/// configuration of any single one.
const VARIABLES: [(&str, &str); 9] = [
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_CONFIG_SYSTEM", "/dev/null"),
    ("GIT_ATTR_NOSYSTEM", "1"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_ALLOW_PROTOCOL", ""),
    ("LC_ALL", "C.UTF-8"),
    ("TZ", "UTC"),
];

/// A clone on which commands run.
#[derive(Clone, Debug)]
pub(crate) struct GitProcess {
    name: String,
    path: PathBuf,
}

/// What a command answered.
#[derive(Debug, Default)]
pub(crate) struct GitOutput {
    pub(crate) bytes: Vec<u8>,
    /// Whether there was more.
    pub(crate) is_cut: bool,
    /// The status with which it ended; `None` if it was ended.
    pub(crate) status: Option<i32>,
    complaint: Vec<u8>,
}

impl GitOutput {
    /// The answer as text. Bytes that are no UTF-8 are replaced.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    /// Whether it ended well, or was ended because it had more to say than is shown.
    pub(crate) fn is_ok(&self) -> bool {
        self.status == Some(0) || self.is_cut
    }
}

impl GitProcess {
    pub(crate) fn new(name: &str, path: &Path) -> Self {
        Self { name: name.to_owned(), path: path.to_owned() }
    }

    /// Runs a command. Call it on a blocking thread.
    ///
    /// # Errors
    /// `git` is not there or takes too long.
    pub(crate) fn run(&self, arguments: &[&str]) -> Result<GitOutput, ToolError> {
        let mut command = self.build_command(arguments);
        // The child is started by the reactor of the runtime.
        Handle::current().block_on(async {
            let child = command.spawn().map_err(|e| {
                let fix = "Install git, and start Steward with a PATH in which it is";
                ToolError::new(ToolErrorCode::Internal, format!("git cannot be started: {}", e.kind()), fix)
            })?;
            read_output(child).await
        })
    }

    /// What a command complained about, without the path of the clone, which is the operator's. Outside words.
    pub(crate) fn describe_complaint(&self, output: &GitOutput) -> String {
        let complaint = String::from_utf8_lossy(&output.complaint);
        complaint.trim().replace(&*self.path.to_string_lossy(), &self.name)
    }

    /// The refusal of a folder in which git finds no clone.
    pub(crate) fn refuse_folder(&self, output: &GitOutput) -> ToolError {
        let what = format!("the clone `{}` cannot be read", self.name);
        ToolError::new(ToolErrorCode::NoClone, what, "Check the path of the clone in your configuration")
            .with_outside("git", &self.describe_complaint(output))
    }

    fn build_command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("git");
        command.env_clear().envs(VARIABLES);
        // Only the search path stays, by which git itself is found.
        if let Some(path) = std::env::var_os("PATH") {
            command.env("PATH", path);
        }
        command.current_dir(&self.path).args(OPTIONS);
        // The folder is named, so none is looked for: one that is no clone itself must not show one that it lies in. The operator
        // named it, so it may belong to another user.
        let work_tree = self.path.join(".git");
        let folder = if work_tree.exists() { &work_tree } else { &self.path };
        command.arg("--git-dir").arg(folder);
        for setting in SETTINGS {
            command.args(["-c", setting]);
        }
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.process_group(0).kill_on_drop(true);
        command
    }
}

/// Reads what a command answers, until it ends, says too much, or its time is up. Then all that it started is ended.
async fn read_output(mut child: Child) -> Result<GitOutput, ToolError> {
    let group = child.id().and_then(|id| rustix::process::Pid::from_raw(id.cast_signed()));
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let work = async {
        let (bytes, complaint) = tokio::join!(read_bounded(stdout, MAX_OUTPUT), read_bounded(stderr, MAX_COMPLAINT));
        let is_cut = bytes.len() as u64 > MAX_OUTPUT;
        let status = if is_cut { None } else { child.wait().await.ok().and_then(|status| status.code()) };
        GitOutput { bytes, is_cut, status, complaint }
    };
    let output = tokio::time::timeout(TIME_LIMIT, work).await;
    let has_ended = output.as_ref().is_ok_and(|output| !output.is_cut);
    if let Some(group) = group.filter(|_| !has_ended) {
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        let _ = child.wait().await;
    }
    let mut output = output.map_err(|_| {
        let what = format!("git took more than {} s", TIME_LIMIT.as_secs());
        ToolError::new(ToolErrorCode::Internal, what, "Narrow the time, or name a path")
    })?;
    output.bytes.truncate(usize::try_from(MAX_OUTPUT).unwrap_or(usize::MAX));
    Ok(output)
}

/// Reads one byte more than the limit, so that it is known whether there is more.
async fn read_bounded(from: Option<impl AsyncRead + Unpin>, limit: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Some(from) = from {
        // What was read until an error is shown; the status says that something is wrong.
        let _ = from.take(limit + 1).read_to_end(&mut bytes).await;
    }
    bytes
}
