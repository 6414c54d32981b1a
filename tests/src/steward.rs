//! The binary under test: run to its end, or kept running.
//!
//! Of our environment it sees only the PATH; the test sets every variable.

use crate::{run, wait};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::Value;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// The longest time of a command on a busy machine; some commands wait for a minute themselves.
const COMMAND: Duration = wait::PATIENCE.saturating_mul(2);

/// How to start the binary.
#[derive(Clone, Debug)]
pub struct Steward {
    folder: PathBuf,
    wrapped: Vec<String>,
    variables: BTreeMap<String, OsString>,
    inside: PathBuf,
}

/// The output and the exit code of a command.
#[derive(Clone, Debug)]
pub struct Said {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Said {
    /// The one JSON value on standard output.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|e| panic!("no JSON ({e}): {self}"))
    }

    /// Asserts the exit code.
    pub fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self}");
        self
    }

    /// All output, for a person or an `assert`.
    #[must_use]
    pub fn all(&self) -> String {
        format!("{}{}", self.out, self.err)
    }
}

impl std::fmt::Display for Said {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "exit {:?}\n--- out\n{}\n--- err\n{}", self.code, self.out, self.err)
    }
}

impl Steward {
    /// The binary, with its logs in this folder.
    #[must_use]
    pub fn new(folder: &Path) -> Self {
        let (folder, inside) = (folder.to_owned(), folder.to_owned());
        let mut steward = Self { folder, wrapped: Vec::new(), variables: BTreeMap::new(), inside };
        for name in ["PATH", "RUST_BACKTRACE"] {
            if let Ok(value) = std::env::var(name) {
                steward.set(name, value);
            }
        }
        let home = steward.folder.clone();
        steward.set("HOME", home.display());
        steward
    }

    /// Sets an environment variable.
    pub fn set(&mut self, name: &str, value: impl ToString) -> &mut Self {
        self.variables.insert(name.to_owned(), value.to_string().into());
        self
    }

    /// Sets an environment variable to any bytes.
    pub fn set_bytes(&mut self, name: &str, value: &[u8]) -> &mut Self {
        self.variables.insert(name.to_owned(), OsString::from_vec(value.to_vec()));
        self
    }

    /// An environment variable, if it is text.
    #[must_use]
    pub fn variable(&self, name: &str) -> Option<&str> {
        self.variables.get(name)?.to_str()
    }

    /// A copy that is started in this folder.
    #[must_use]
    pub fn inside(&self, folder: &Path) -> Self {
        Self { inside: folder.to_owned(), ..self.clone() }
    }

    /// A copy with one more variable.
    #[must_use]
    pub fn with(&self, name: &str, value: impl ToString) -> Self {
        let mut other = self.clone();
        other.set(name, value);
        other
    }

    /// A copy without a variable.
    #[must_use]
    pub fn without(&self, name: &str) -> Self {
        let mut other = self.clone();
        other.variables.remove(name);
        other
    }

    /// A copy that another program starts, with the command line as that program's last arguments.
    #[must_use]
    pub fn wrapped(&self, by: &[&str]) -> Self {
        Self { wrapped: by.iter().map(|&word| word.to_owned()).collect(), ..self.clone() }
    }

    /// The command line, not started yet.
    #[must_use]
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut line = self.wrapped.clone();
        line.push(run::binary().display().to_string());
        line.extend(arguments.iter().map(|&a| a.to_owned()));
        let mut command = Command::new(&line[0]);
        command.args(&line[1..]).env_clear().envs(&self.variables).current_dir(&self.inside).stdin(Stdio::null());
        command
    }

    /// Runs a command to its end.
    pub async fn run(&self, arguments: &[&str]) -> Said {
        let mut command = tokio::process::Command::from(self.command(arguments));
        let output = tokio::time::timeout(COMMAND, command.kill_on_drop(true).output()).await;
        let output = output.unwrap_or_else(|_| panic!("`steward {}` did not end", arguments.join(" "))).unwrap();
        Said {
            code: output.status.code(),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Runs a command to its end in a terminal, where a person types these lines. The output holds what they typed.
    pub async fn run_in_terminal(&self, arguments: &[&str], typed: &str) -> Said {
        let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&terminal).and_then(|()| unlockpt(&terminal)).unwrap();
        let name = ptsname(&terminal, Vec::new()).unwrap().into_string().unwrap();
        let mut terminal = File::from(terminal);
        let open = || File::options().read(true).write(true).open(&name);
        let mut command = self.command(arguments);
        command.stdin(open().unwrap()).stdout(open().unwrap()).stderr(Stdio::piped());
        let mut command = tokio::process::Command::from(command);
        let child = command.kill_on_drop(true).spawn().unwrap();
        // The command holds the other end too, and reading ends when nobody does.
        drop(command);
        terminal.write_all(typed.as_bytes()).unwrap();
        let reading = tokio::task::spawn_blocking(move || {
            let mut out = Vec::new();
            let _ = terminal.read_to_end(&mut out);
            out
        });
        let output = tokio::time::timeout(COMMAND, child.wait_with_output()).await;
        let output = output.unwrap_or_else(|_| panic!("`steward {}` did not end", arguments.join(" "))).unwrap();
        Said {
            code: output.status.code(),
            out: String::from_utf8_lossy(&reading.await.unwrap()).replace("\r\n", "\n"),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Starts a command that keeps running.
    #[must_use]
    pub fn start(&self, arguments: &[&str]) -> Running {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let (out, err) = (self.folder.join(format!("out-{number}")), self.folder.join(format!("err-{number}")));
        let mut command = self.command(arguments);
        command.stdout(std::fs::File::create(&out).unwrap()).stderr(std::fs::File::create(&err).unwrap());
        let child = command.spawn().unwrap();
        run::note(child.id());
        Running { child, out, err, ended: None }
    }
}

/// A running process; it ends when this value is dropped.
#[derive(Debug)]
pub struct Running {
    child: Child,
    out: PathBuf,
    err: PathBuf,
    ended: Option<ExitStatus>,
}

impl Running {
    /// The process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Its standard output so far.
    #[must_use]
    pub fn out(&self) -> String {
        std::fs::read_to_string(&self.out).unwrap_or_default()
    }

    /// Its log so far.
    #[must_use]
    pub fn err(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(&self.err).unwrap_or_default()).into_owned()
    }

    /// Waits until it prints something to standard output.
    pub async fn says(&mut self, text: &str) {
        wait::until(&format!("process {} to say `{text}`", self.pid()), async || {
            if self.out().contains(text) {
                return Some(());
            }
            let status = self.status();
            assert!(status.is_none(), "it ended ({status:?}) before it said `{text}`:\n{}{}", self.out(), self.err());
            None
        })
        .await;
    }

    /// Its exit status, if it has ended.
    pub fn status(&mut self) -> Option<ExitStatus> {
        if self.ended.is_none() {
            self.ended = self.child.try_wait().unwrap();
            if self.ended.is_some() {
                run::strike(self.child.id());
            }
        }
        self.ended
    }

    /// Waits until it has ended.
    pub async fn ends(&mut self) -> ExitStatus {
        let pid = self.pid();
        wait::until(&format!("process {pid} to end"), async || self.status()).await
    }

    /// Waits until it has killed itself with SIGKILL, as at a crash point.
    pub async fn dies(&mut self) {
        let status = self.ends().await;
        assert_eq!(status.signal(), Some(Signal::KILL.as_raw()), "{status}: {}{}", self.out(), self.err());
    }

    /// Sends a signal.
    pub fn send(&self, signal: Signal) {
        if self.ended.is_none() {
            kill_process(Pid::from_child(&self.child), signal).unwrap();
        }
    }

    /// Kills it at once.
    pub fn kill(&mut self) {
        if self.status().is_none() {
            run::strike(self.child.id());
            self.child.kill().unwrap();
            self.ended = Some(self.child.wait().unwrap());
        }
    }

    /// Asks it to end, and waits.
    pub async fn stop(mut self) -> ExitStatus {
        self.send(Signal::TERM);
        self.ends().await
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let (out, err) = (self.out(), self.err());
            let tail = |text: &str| text.lines().rev().take(40).map(str::to_owned).collect::<Vec<_>>();
            let shown = |text: &str| tail(text).into_iter().rev().collect::<Vec<_>>().join("\n");
            eprintln!("--- process {} out\n{}\n--- err\n{}", self.pid(), shown(&out), shown(&err));
        }
        self.kill();
    }
}
