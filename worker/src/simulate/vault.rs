//! The simulated vault: applies the edits of its people and the changes of its stewards.
//!
//! People's edits are plain file writes, dated when they happened. Everything else must go through the real code:
//! [`VaultContext::cap_and_apply`] applies plans, the vault writer applies resolutions, and the real calibration learns
//! trust. Only one task runs, so the vault writer may block it.

use super::household::SOURCES;
use super::principal::PrincipalReaction;
use anyhow::{Context, anyhow, bail};
use chrono::{DateTime, TimeDelta, Utc};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use steward_activities::signals::purge::KEEP_EVENTS_DAYS;
use steward_activities::trust::TrustActivities;
use steward_activities::vault::{VaultContext, VaultSettings};
use steward_domain::action::audit::{ResolverKind, WorkflowRef};
use steward_domain::action::plan::{ActionId, Plan};
use steward_domain::action::undo::{ResolutionKind, ResolutionRequest};
use steward_domain::gates::mode::{Ceiling, DecisionPolicy, Mode};
use steward_domain::gates::source_budget::LIVE_PER_SOURCE_DAY;
use steward_domain::record::entity::Instinct;
use steward_domain::record::frontmatter::{self, FieldEdit};
use steward_domain::record::path::{RecordKind, RecordPath};
use steward_domain::signals::signal::source_key;
use steward_domain::steward::tick::{Cadence, RunDisplay};
use steward_domain::trust::demotion::REVERSAL_BUDGET;
use steward_vault::action::resolve::ResolvedAction;
use steward_vault::action::writer::{ActionReceipt, VaultWriter};
use steward_vault::files::root::VaultRoot;
use steward_vault::index::Index;
use temporalio_common::ActivityError;

/// How soon the next calibration finds a change by hand: 10 min, its interval.
const CALIBRATION_DELAY: TimeDelta = TimeDelta::minutes(10);
/// The name of the person who resolves actions.
const PRINCIPAL_NAME: &str = "Nora";

/// A vault under simulation.
pub(super) struct SimulatedVault {
    dir: PathBuf,
    context: VaultContext,
    observations: BTreeMap<&'static str, u32>,
}

impl SimulatedVault {
    /// Opens a vault whose matters are written; `state` is the temporary folder of its index and ledger.
    pub(super) async fn open(dir: &Path, state: &Path, at: DateTime<Utc>) -> anyhow::Result<Self> {
        let writer = VaultWriter::lock(VaultRoot::open(dir)?)?;
        let index = Index::open(state).await?;
        index.sync_all(writer.root(), at).await?;
        let settings = VaultSettings {
            policy: DecisionPolicy::default(),
            default_ceiling: Ceiling::Act,
            cadence: Cadence::default(),
            keep_events_days: KEEP_EVENTS_DAYS,
            live_per_source_day: LIVE_PER_SOURCE_DAY,
            reversal_budget: REVERSAL_BUDGET,
            display: RunDisplay::default(),
        };
        let context = VaultContext::new(Arc::new(writer.with_index(&index)), Arc::new(index), settings);
        Ok(Self { dir: dir.to_owned(), context, observations: BTreeMap::new() })
    }

    /// Switches the mode, as an operator does.
    pub(super) fn set_mode(&mut self, mode: Mode) {
        self.context.settings.policy.mode = mode;
    }

    pub(super) fn policy(&self) -> &DecisionPolicy {
        &self.context.settings.policy
    }

    /// How many observations the source's instinct held after the last calibration.
    pub(super) fn observation_count(&self, source: &str) -> u32 {
        self.observations.get(source).copied().unwrap_or(0)
    }

    /// The bytes of a record.
    pub(super) fn read_record_bytes(&self, path: &RecordPath) -> anyhow::Result<Vec<u8>> {
        Ok(self.context.writer.root().read_file(path)?.bytes)
    }

    /// Writes a file as a person does, or a signal as a stream does.
    pub(super) fn write_record(&self, path: &RecordPath, bytes: &[u8], at: DateTime<Utc>) -> anyhow::Result<()> {
        write_dated_file(&self.dir, path, bytes, at)
    }

    /// Changes fields of a record as a person does.
    pub(super) fn edit_fields(&self, path: &RecordPath, edits: &[FieldEdit], at: DateTime<Utc>) -> anyhow::Result<()> {
        let edited = frontmatter::edit_fields(&self.read_record_bytes(path)?, edits)?;
        self.write_record(path, &edited, at)
    }

    /// Deletes the file of a record as a person does.
    pub(super) fn remove_record(&self, path: &RecordPath) -> anyhow::Result<()> {
        fs::remove_file(self.dir.join(path.as_str())).with_context(|| format!("failed to remove {path}"))
    }

    /// Applies a plan, after the index has read its target and its signal.
    pub(super) async fn execute_plan(&self, plan: Plan, signal: &RecordPath) -> anyhow::Result<ActionReceipt> {
        let at = plan.decided_at();
        // A record that the index does not know has no matter, and must not be changed.
        let mut paths = vec![plan.target().clone()];
        if self.policy().mode > Mode::Shadow {
            // Budgets are counted by signals, and only for live changes.
            paths.push(signal.clone());
        }
        self.context.index.sync_paths(self.context.writer.root(), &paths, at).await?;
        Ok(self.context.cap_and_apply(plan, at).await.map_err(convert_error)??)
    }

    /// Applies the principal's reaction to an action; the code of the calibration finds changes by hand.
    pub(super) async fn apply_reaction(
        &self,
        reaction: PrincipalReaction,
        record: &RecordPath,
        target: &RecordPath,
        at: DateTime<Utc>,
    ) -> anyhow::Result<()> {
        let kind = match reaction {
            PrincipalReaction::Confirmed => ResolutionKind::Confirm,
            PrincipalReaction::Dismissed => ResolutionKind::Dismiss,
            PrincipalReaction::Undid => ResolutionKind::Undo,
            PrincipalReaction::LeftInPlace | PrincipalReaction::Nothing => return Ok(()),
            PrincipalReaction::DidItByHand | PrincipalReaction::DidOtherwise => {
                let found = self.context.writer.file_manual_outcome(
                    record,
                    simulated_workflow_ref("calibrate", record),
                    at + CALIBRATION_DELAY,
                )?;
                if found.is_none() {
                    bail!("the change by hand after {record} was not found");
                }
                return Ok(());
            }
        };
        let ResolvedAction { receipt, .. } = self.context.writer.resolve_action(
            record,
            &ResolutionRequest {
                kind,
                by: PRINCIPAL_NAME,
                reason: None,
                edited: None,
                batch_id: None,
                resolved_by: ResolverKind::Human,
                policy: self.policy(),
                ceiling: Ceiling::Act,
                workflow: simulated_workflow_ref(kind.as_str(), record),
                now: at,
            },
        )?;
        self.context.index.sync_paths(self.context.writer.root(), &[target.clone(), receipt.record], at).await?;
        Ok(())
    }

    /// Ends a day: reads the vault, calibrates trust until nothing is left to do, and settles all changes.
    pub(super) async fn end_day(&mut self, at: DateTime<Utc>) -> anyhow::Result<()> {
        let root = self.context.writer.root();
        self.context.index.sync_all(root, at).await?;
        let workflow = WorkflowRef { id: "simulated-calibrate".into(), run_id: format!("day-{}", at.timestamp()) };
        let trust = TrustActivities::new(self.context.clone());
        while trust.calibrate_trust(workflow.clone(), at).await.map_err(convert_error)?.more {}
        self.context.writer.settle_swaps_older_than(Duration::ZERO)?;
        for source in &SOURCES {
            let path = RecordPath::new(RecordKind::Instinct, &source_key(source.name))?;
            if root.exists(&path) {
                let instinct = Instinct::read(frontmatter::read_document(&root.read_file(&path)?.bytes)?.fields());
                self.observations.insert(source.name, instinct.observations);
            }
        }
        Ok(())
    }

    /// Closes the index; the first real start of the vault builds a new one.
    pub(super) async fn close(self) {
        self.context.index.close().await;
    }
}

/// Writes a file of a vault with `at` as its modification time.
pub(super) fn write_dated_file(dir: &Path, path: &RecordPath, bytes: &[u8], at: DateTime<Utc>) -> anyhow::Result<()> {
    let full = dir.join(path.as_str());
    let write = || {
        if let Some(folder) = full.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(&full, bytes)?;
        File::options().write(true).open(&full)?.set_modified(SystemTime::from(at))
    };
    write().with_context(|| format!("failed to write {}", full.display()))
}

fn convert_error(e: ActivityError) -> anyhow::Error {
    anyhow!("{e:?}")
}

fn simulated_workflow_ref(kind: &str, record: &RecordPath) -> WorkflowRef {
    let run_id = ActionId::derive(&["simulated", kind, record.as_str()]).to_string();
    WorkflowRef { id: format!("simulated-{kind}"), run_id }
}
