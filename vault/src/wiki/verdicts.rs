//! The log of verdicts about runs of wikis: `.steward/logs/verifier-<date>.jsonl`, one line for each verdict.
//!
//! A line names the faults that were found and how often, and holds no words of a page or a source. A log that cannot be written holds no run.

use crate::files::day_log::DayLog;
use crate::files::root::VaultRoot;
use crate::wiki::staged::RunMeta;
use chrono::{DateTime, Utc};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io;
use steward_domain::wiki::run::RunId;
use steward_domain::wiki::verify::{RulesVerdict, RunFault, RunFinding, Verdict};

/// Who judges a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum VerdictLayer {
    Rules,
    /// A model.
    Clerk,
}

/// A verdict about a run.
#[derive(Clone, Copy, Debug)]
pub struct RunVerdict<'a> {
    pub layer: VerdictLayer,
    pub verdict: Verdict,
    /// The model that judged, as in `openai/gpt-4.1`; `None` for the rules.
    pub verifier: Option<&'a str>,
    pub findings: &'a [RunFinding],
}

#[derive(Serialize)]
struct VerdictLine<'a> {
    at: DateTime<Utc>,
    run: &'a RunId,
    wiki: &'a str,
    layer: VerdictLayer,
    verdict: Verdict,
    #[serde(skip_serializing_if = "Option::is_none")]
    verifier: Option<&'a str>,
    /// How often each fault was found.
    findings: BTreeMap<RunFault, u64>,
}

/// Logs a verdict about a run. A failure is reported, and stops nothing.
pub fn log_verdict(root: &VaultRoot, meta: &RunMeta, verdict: RunVerdict<'_>, at: DateTime<Utc>) {
    let mut findings = BTreeMap::new();
    for finding in verdict.findings {
        *findings.entry(finding.fault).or_default() += 1;
    }
    let RunVerdict { layer, verdict, verifier, .. } = verdict;
    let line = VerdictLine { at, run: &meta.run, wiki: &meta.wiki, layer, verdict, verifier, findings };
    if let Err(error) = append_line(root, &line) {
        tracing::warn!(run = %meta.run, %error, "a verdict is not in the log");
    }
}

/// Logs what the rules found in a run.
pub fn log_rules_verdict(root: &VaultRoot, meta: &RunMeta, found: &RulesVerdict) {
    let (layer, verdict, findings) = (VerdictLayer::Rules, found.verdict, found.findings.as_slice());
    log_verdict(root, meta, RunVerdict { layer, verdict, verifier: None, findings }, Utc::now());
}

/// Appends a line to the log of its day. Returns after it is durable.
fn append_line(root: &VaultRoot, line: &VerdictLine<'_>) -> io::Result<()> {
    let mut log = DayLog::new(root.clone(), "verifier").open(line.at)?;
    log.append(line)?;
    log.sync()
}

#[cfg(test)]
mod tests {
    use super::*;
    use steward_domain::wiki::run::WikiRunType;
    use steward_domain::wiki::writer::budget::RunLimits;

    fn log(root: &VaultRoot, at: &str, verdict: Verdict, faults: &[RunFault]) {
        let at: DateTime<Utc> = at.parse().unwrap();
        let meta = RunMeta {
            run: RunId::derive(at, &["a"]),
            wiki: "plot".into(),
            folder: "wiki/plot".into(),
            run_type: WikiRunType::Ingest,
            by: "ann".into(),
            began: at,
            source: None,
            answer: None,
            review: None,
            writer: "rules".into(),
            unattended: false,
            limits: RunLimits::default(),
        };
        let finding = |fault: &RunFault| RunFinding {
            file: "entities/secret.md".into(),
            fault: *fault,
            problem: "secret words".into(),
        };
        let findings: Vec<RunFinding> = faults.iter().map(finding).collect();
        let layer = VerdictLayer::Clerk;
        let verdict = RunVerdict { layer, verdict, verifier: Some("openai/checker"), findings: &findings };
        log_verdict(root, &meta, verdict, at);
    }

    #[test]
    fn a_verdict_is_a_line_without_words_of_a_page_and_goes_after_30_days() {
        let dir = tempfile::tempdir().unwrap();
        let root = VaultRoot::open(dir.path()).unwrap();
        let folder = dir.path().join(".steward/logs");
        let read = |day: &str| std::fs::read_to_string(folder.join(format!("verifier-{day}.jsonl")));
        log(&root, "2026-11-22T23:59:59Z", Verdict::Revise, &[RunFault::Unsupported, RunFault::Unsupported]);
        let cut = format!("{}{{\"at\":", read("2026-11-22").unwrap());
        std::fs::write(folder.join("verifier-2026-11-22.jsonl"), cut).unwrap();
        log(&root, "2026-11-22T23:59:59Z", Verdict::Commit, &[]);
        let text = read("2026-11-22").unwrap();
        let lines: Vec<serde_json::Value> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        assert_eq!(lines.len(), 2, "{text}");
        assert_eq!((&lines[0]["verdict"], &lines[0]["findings"]["unsupported"]), (&"revise".into(), &2.into()));
        assert_eq!((&lines[1]["layer"], &lines[1]["verifier"]), (&"clerk".into(), &"openai/checker".into()));
        assert!(!text.contains("secret"), "{text}");
        std::fs::write(folder.join("mine.txt"), "mine").unwrap();
        log(&root, "2026-12-22T00:00:00Z", Verdict::Commit, &[]);
        assert!(read("2026-11-22").is_ok(), "30 days");
        log(&root, "2026-12-23T00:00:00Z", Verdict::Commit, &[]);
        assert!(read("2026-11-22").is_err() && read("2026-12-22").is_ok() && folder.join("mine.txt").exists());
    }

    #[test]
    fn a_log_that_is_no_file_is_left_alone_and_stops_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let root = VaultRoot::open(dir.path()).unwrap();
        let folder = dir.path().join(".steward/logs");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(dir.path().join("mine"), "mine").unwrap();
        std::os::unix::fs::symlink(dir.path().join("mine"), folder.join("verifier-2026-11-22.jsonl")).unwrap();
        log(&root, "2026-11-22T09:00:00Z", Verdict::Commit, &[]);
        assert_eq!(std::fs::read_to_string(dir.path().join("mine")).unwrap(), "mine");
    }
}
