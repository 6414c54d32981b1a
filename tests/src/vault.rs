//! Vaults that are made for a test, and what tests read from them afterwards.

use crate::files::Files;
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use steward_domain::action::audit::AuditRecord;
use steward_domain::record::frontmatter;
use steward_domain::time::format_millis;

/// A vault in a temporary folder.
#[derive(Clone, Debug)]
pub struct Vault {
    path: PathBuf,
}

/// A signal about a task, certain enough to act upon by default.
#[derive(Clone, Debug)]
pub struct Signal<'a> {
    pub task: &'a str,
    pub source: &'a str,
    pub quote: &'a str,
    /// The state that it proposes; empty for none.
    pub proposes: &'a str,
    pub effect: &'a str,
    pub target_confidence: f64,
    pub effect_confidence: f64,
    pub created: DateTime<Utc>,
}

impl<'a> Signal<'a> {
    /// Proposes that a task is done.
    #[must_use]
    pub fn done(task: &'a str) -> Self {
        Self {
            task,
            source: "mail",
            quote: "It is finished, with thanks.",
            proposes: "done",
            effect: "mutation",
            target_confidence: 0.98,
            effect_confidence: 0.97,
            created: Utc::now() - TimeDelta::hours(1),
        }
    }

    /// The content of its file.
    #[must_use]
    pub fn text(&self) -> String {
        let proposal = if self.proposes.is_empty() {
            "mutation_proposal: null\n".to_owned()
        } else {
            format!("mutation_proposal:\n  class: state_change\n  set:\n    state: {}\n", self.proposes)
        };
        format!(
            "---\ntype: signal\ncreated: {}\nsource_event_path: stream/{}/1.md\norigin_at: {}\nsource_type: {}\n\
             raw_quote: {}\ntarget_kind: task\ntarget_path: task/{}.md\ntarget_confidence: {}\ntarget_candidates: []\n\
             effect: {}\n{proposal}effect_confidence: {}\nreasoning: It says so.\nstatus: unrouted\n---\n",
            format_millis(self.created),
            self.source,
            format_millis(self.created),
            self.source,
            Value::from(self.quote),
            self.task,
            self.target_confidence,
            self.effect,
            self.effect_confidence,
        )
    }
}

impl Vault {
    /// A vault in a folder that is there.
    #[must_use]
    pub fn open(path: PathBuf) -> Self {
        Self { path }
    }

    /// An empty vault in a new folder.
    #[must_use]
    pub fn new(path: PathBuf) -> Self {
        std::fs::create_dir(&path).unwrap();
        Self { path }
    }

    /// The folder of the vault.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a file of any name with any content, as an editor would.
    pub fn write(&self, path: &str, bytes: impl AsRef<[u8]>) {
        let full = self.path.join(path);
        std::fs::create_dir_all(full.parent().unwrap()).unwrap();
        std::fs::write(full, bytes).unwrap();
    }

    /// Writes an open matter.
    pub fn matter(&self, slug: &str) {
        self.write(
            &format!("matter/{slug}.md"),
            format!("---\ntype: matter\nname: {slug}\nstate: open\n---\nWhat it is.\n"),
        );
    }

    /// Writes an open task.
    pub fn task(&self, slug: &str, matter: &str) {
        self.task_with(slug, matter, "");
    }

    /// Writes an open task with more lines of frontmatter.
    pub fn task_with(&self, slug: &str, matter: &str, more: &str) {
        let text = format!(
            "---\ntype: task\nname: {slug}   # as on the list\nstate: open\nparent_matter: \"[[matter/{matter}]]\"\n{more}---\n- [ ] do it\n"
        );
        self.write(&format!("task/{slug}.md"), text);
    }

    /// Sets the field `state` of a task, as an editor would.
    pub fn set_state(&self, task: &str, to: &str) {
        let file = format!("task/{task}.md");
        let now = format!("state: {}", self.state(task));
        let text = String::from_utf8(self.read(&file)).unwrap();
        self.write(&file, text.replace(&now, &format!("state: {to}")));
    }

    /// Writes a signal under a name of its own.
    pub fn signal(&self, name: &str, signal: &Signal<'_>) {
        self.write(&format!("signal/{name}.md"), signal.text());
    }

    /// Sets the number of times that a source was right before.
    pub fn instinct(&self, source: &str, observations: u32) {
        let text = format!("---\ntype: instinct\nsource: {source}\nobservations: {observations}\n---\n");
        self.write(&format!("instinct/{source}.md"), text);
    }

    /// The bytes of a file.
    #[must_use]
    pub fn read(&self, path: &str) -> Vec<u8> {
        std::fs::read(self.path.join(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
    }

    /// The field `state` in the file of a task.
    #[must_use]
    pub fn state(&self, task: &str) -> String {
        let bytes = self.read(&format!("task/{task}.md"));
        let document = frontmatter::read_document(&bytes).unwrap();
        document.fields().get("state").and_then(Value::as_str).unwrap_or_default().to_owned()
    }

    /// The audit records, in the order of the chain.
    #[must_use]
    pub fn records(&self) -> Vec<AuditRecord> {
        let Ok(entries) = std::fs::read_dir(self.path.join("event")) else { return Vec::new() };
        let mut records: Vec<AuditRecord> = entries
            .map(|entry| {
                let path = entry.unwrap().path();
                AuditRecord::parse(&std::fs::read(&path).unwrap()).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
            })
            .collect();
        records.sort_by_key(|record| record.seq);
        records
    }

    /// All files except Steward's own.
    #[must_use]
    pub fn files(&self) -> Files {
        Files::of(&self.path)
    }

    /// Puts all files under git.
    pub fn commit(&self) {
        let _ = self.git(&["init", "--quiet"]);
        let _ = self.git(&["add", "--all"]);
        let _ =
            self.git(&["-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "--quiet", "--message", "all"]);
    }

    /// Runs a git command.
    #[must_use]
    pub fn git(&self, arguments: &[&str]) -> String {
        let mut command = Command::new("git");
        let output =
            command.args(arguments).current_dir(&self.path).env("GIT_CONFIG_GLOBAL", "/dev/null").output().unwrap();
        assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Removes the databases, as a person may do who cleans up too much.
    pub fn lose_databases(&self) {
        self.lose("ledger.db");
        self.lose_index();
    }

    /// Removes the index alone, so that the rate guard keeps its count.
    pub fn lose_index(&self) {
        self.lose("state.db");
    }

    fn lose(&self, database: &str) {
        for entry in std::fs::read_dir(self.path.join(".steward")).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if name.starts_with(database) {
                std::fs::remove_file(path).unwrap();
            }
        }
    }
}
