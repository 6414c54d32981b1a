//! Calibrates a vault of many sources to its end, with times, memory and a digest of what it comes to.
//!
//! `cargo run --release -p steward-vault --example large_vault -- <folder> 200000 20000` makes such a vault;
//! `cargo run --release -p steward-activities --example calibration_at_size -- <folder> <moment>` calibrates it as of that
//! moment (RFC 3339). Killed midway and run again, it must come to the same digest as a run that was left alone.

use chrono::{DateTime, Utc};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;
use steward_activities::trust::TrustActivities;
use steward_activities::vault::{VaultContext, VaultSettings};
use steward_domain::action::audit::WorkflowRef;
use steward_domain::action::plan::ContentHash;
use steward_domain::gates::mode::{Ceiling, DecisionPolicy};
use steward_domain::record::path::RecordKind;
use steward_domain::steward::tick::{Cadence, RunDisplay};
use steward_vault::action::writer::VaultWriter;
use steward_vault::files::root::VaultRoot;
use steward_vault::index::Index;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let (Some(folder), Some(moment)) = (arguments.next(), arguments.next()) else {
        anyhow::bail!("usage: calibration_at_size <folder> <moment>");
    };
    let now: DateTime<Utc> = moment.parse()?;
    let begin = Instant::now();
    let host = open_vault_context(Path::new(&folder)).await?;
    print_progress(&format!("opened with {} files read", host.index.scan_progress().0), begin)?;
    let trust = TrustActivities::new(host.clone());
    let workflow = WorkflowRef { id: "calibration".into(), run_id: "at-size".into() };
    loop {
        let begin = Instant::now();
        let ended = trust.calibrate_trust(workflow.clone(), now).await.map_err(|e| anyhow::anyhow!("{e:?}"))?;
        print_progress(&format!("{ended:?} with one fold"), begin)?;
        if !ended.more {
            break;
        }
    }
    let (root, mut all) = (host.writer.root(), String::new());
    for entry in root.list_files(RecordKind::Instinct)? {
        all += &format!(
            "{} {}\n",
            entry.name,
            ContentHash::hash_bytes(&std::fs::read(root.path().join("instinct").join(&entry.name))?).as_str()
        );
    }
    eprintln!("{} instincts, {}", all.lines().count(), ContentHash::hash_bytes(all.as_bytes()).as_str());
    Ok(())
}

async fn open_vault_context(folder: &Path) -> anyhow::Result<VaultContext> {
    let (writer, state) = (VaultWriter::lock(VaultRoot::open(folder)?)?, folder.join("state"));
    let index = Index::open(&state).await?;
    index.sync_all(writer.root(), Utc::now()).await?;
    let settings = VaultSettings {
        policy: DecisionPolicy::default(),
        default_ceiling: Ceiling::Act,
        cadence: Cadence::default(),
        keep_events_days: 7,
        live_per_source_day: 20,
        reversal_budget: 0.05,
        display: RunDisplay::default(),
    };
    Ok(VaultContext::new(Arc::new(writer), Arc::new(index), settings))
}

/// Says what was done, in which time, and the most memory so far.
fn print_progress(what: &str, begin: Instant) -> anyhow::Result<()> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let peak = status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or_default();
    eprintln!("{what} in {:.1?}; most memory so far: {peak}", begin.elapsed());
    Ok(())
}
