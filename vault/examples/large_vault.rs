//! Writes a vault with many made-up audit records and indexes it, and prints the times and the memory.
//!
//! `cargo run --release -p steward-vault --example large_vault -- <folder> [<records> [<sources>]]`. The folder becomes
//! a vault, with its index in `state/` beside the records. A second run finds the records and reads them into a new
//! index. The records look like real ones and are only for measurements.

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::json;
use std::fs;
use std::path::Path;
use std::time::Instant;
use steward_domain::action::audit::{
    ActionKind, AuditDraft, AuditRecord, AuditResolution, ChainLink, CitedSignal, WorkflowRef,
};
use steward_domain::action::mutation::MutationClass;
use steward_domain::action::plan::{ActionId, ContentHash, Disposition};
use steward_domain::gates::mode::Mode;
use steward_domain::record::entity::RecordState;
use steward_domain::record::path::{RecordKind, RecordPath};
use steward_domain::steward::clerk::{ClerkMark, Judgement};
use steward_vault::files::root::VaultRoot;
use steward_vault::index::Index;

type Outcome = Result<(), Box<dyn std::error::Error>>;

#[tokio::main]
async fn main() -> Outcome {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().ok_or("usage: large_vault <folder> [<records> [<sources>]]")?;
    let records: u64 = arguments.next().map_or(Ok(50_000), |count| count.parse())?;
    let sources: u64 = arguments.next().map_or(Ok(500), |count| count.parse())?;
    let folder = Path::new(&folder);
    let begin = Instant::now();
    if !folder.join("event").exists() {
        write(folder, records, sources)?;
        print_usage("written", begin)?;
    }
    let state = folder.join("state");
    if state.exists() {
        fs::remove_dir_all(&state)?;
    }
    let (root, index) = (VaultRoot::open(folder)?, Index::open(&state).await?);
    let begin = Instant::now();
    let report = index.sync_all(&root, Utc::now()).await?;
    print_usage(&format!("{} files read, {} problems", report.read, report.problems.len()), begin)?;
    let begin = Instant::now();
    let again = index.sync_all(&root, Utc::now()).await?;
    print_usage(&format!("{} files read again", again.read), begin)?;
    let begin = Instant::now();
    let trust = index.trust().compute_source_trust(Utc::now()).await?;
    print_usage(&format!("trust of {} sources computed", trust.len()), begin)
}

/// Prints a step with its time, the processor time and the peak memory so far.
fn print_usage(step: &str, begin: Instant) -> Outcome {
    let stat = fs::read_to_string("/proc/self/stat")?;
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |n: usize| fields.get(n).and_then(|ticks| ticks.parse::<f64>().ok()).unwrap_or_default();
    let status = fs::read_to_string("/proc/self/status")?;
    let peak = status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or_default();
    let busy = (ticks(11) + ticks(12)) / 100.0;
    eprintln!("{step} in {:.1?}; processor time so far {busy:.1} s; peak memory so far: {peak}", begin.elapsed());
    Ok(())
}

fn write(folder: &Path, records: u64, sources: u64) -> Outcome {
    for kind in ["event", "matter", "task", "signal"] {
        fs::create_dir_all(folder.join(kind))?;
    }
    let (mut prev, first) = (ContentHash::genesis(), Utc::now() - TimeDelta::days(60));
    for seq in 1..=records {
        let at = first + TimeDelta::days(50) * i32::try_from(seq * 10_000 / records)? / 10_000;
        let draft = draft(seq, seq % sources, at)?;
        let (file, record) =
            (draft.record_path()?, AuditRecord::from_draft(draft, Vec::new(), ChainLink { seq, prev }));
        let text = record.render()?;
        prev = ContentHash::hash_bytes(text.as_bytes());
        fs::write(folder.join(file.as_str()), text)?;
    }
    Ok(())
}

/// One record. Every fifth one resolves the one before it.
fn draft(seq: u64, source: u64, at: DateTime<Utc>) -> Result<AuditDraft, Box<dyn std::error::Error>> {
    let disposition = [Disposition::Live, Disposition::Pending, Disposition::Shadow][usize::try_from(seq % 3)?];
    let gates = ["caller", "mode", "confidence", "discretion", "ceiling", "rate_guard"];
    let gates: Vec<_> =
        gates.map(|gate| json!({"gate": gate, "open": gate != "mode", "found": "0.94", "needed": ">= 0.60"})).into();
    let source = format!("gmail:sender-{source}@vendor-{}.example", source % 97);
    let mut draft = AuditDraft {
        kind: ActionKind::Action,
        id: ActionId::derive(&["large", &seq.to_string()]),
        timestamp: at,
        target: RecordPath::parse(&format!("task/invoice-{seq}.md"))?,
        target_kind: RecordKind::Task,
        named_after: None,
        class: Some(MutationClass::ALL[usize::try_from(seq % 4)?]),
        decision: Judgement::LikelyDone,
        confidence: 0.94,
        mode: Mode::Shadow,
        disposition,
        gates: serde_json::from_value(json!(gates))?,
        prior_state: Some("open".into()),
        proposed_state: Some(RecordState::Done),
        proposal: None,
        confirmable: true,
        pending_confirmation: disposition == Disposition::Pending,
        evidence: vec![CitedSignal {
            reference: RecordPath::parse(&format!("signal/s{seq}.md"))?,
            source: source.clone(),
            note: format!("Payment received in full for invoice {seq}."),
            target_confidence: 0.94,
            effect_confidence: 0.98,
            supports: true,
        }],
        source_contributions: [(source, 0.98)].into(),
        reasoning: "Made up, no model was asked: one signal speaks of it.".into(),
        clerk: Some(ClerkMark::default()),
        workflow: WorkflowRef { id: "made-up".into(), run_id: "ef14e149444bd851".into() },
        resolution: None,
        trust: None,
        wiki: None,
    };
    if seq.is_multiple_of(5) {
        let of = ActionId::derive(&["large", &(seq - 1).to_string()]);
        draft.kind =
            [ActionKind::Confirmed, ActionKind::Dismissed, ActionKind::Reversed][usize::try_from(seq / 5 % 3)?];
        draft.resolution = Some(AuditResolution {
            action_id: of,
            decided_at: at,
            by: "ann".into(),
            reason: None,
            edited: false,
            batch_id: None,
            done: false,
            reopened: None,
            resolved_by: Default::default(),
        });
        (draft.disposition, draft.pending_confirmation) = (Disposition::Live, false);
    }
    Ok(draft)
}
