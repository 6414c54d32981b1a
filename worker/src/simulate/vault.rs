//! The simulated vault: what its people write, and what its keeper carries out.
//!
//! People's edits are plain writes, dated when they happened. All else goes through the real parts: plans land by
//! [`VaultContext::land`], answers by the keeper's, and trust is learned by the very calibration. There is one task and nothing
//! else to keep waiting, so the keeper is called where it stands.

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
use steward_activities::steward::clerks::Clerk;
use steward_activities::steward::clerks::rules::RulesClerk;
use steward_activities::vault::{VaultContext, VaultSettings};
use steward_domain::action::audit::WorkflowRef;
use steward_domain::action::plan::{ActionId, Plan};
use steward_domain::action::undo::ResolutionKind;
use steward_domain::gates::mode::{Ceiling, DecisionPolicy, Mode};
use steward_domain::gates::source_budget::LIVE_PER_SOURCE_DAY;
use steward_domain::record::entity::Instinct;
use steward_domain::record::frontmatter::{self, FieldEdit};
use steward_domain::record::path::{RecordKind, RecordPath};
use steward_domain::signals::signal::source_key;
use steward_domain::steward::guard::CallCaps;
use steward_domain::steward::tick::Cadence;
use steward_domain::trust::demotion::REVERSAL_BUDGET;
use steward_vault::action::resolve::IncomingResolution;
use steward_vault::action::writer::{ActionReceipt, VaultWriter};
use steward_vault::files::root::VaultRoot;
use steward_vault::index::Index;
use steward_vault::steward::guard::Ledger;
use temporalio_common::ActivityError;
use tokio::sync::mpsc::unbounded_channel;

/// What is done by hand is found by the next calibration; it runs every 10 minutes.
const FOUND_AFTER: TimeDelta = TimeDelta::minutes(10);
/// Who answers.
const PRINCIPAL: &str = "Nora";

/// A vault under simulation.
pub(super) struct SimulatedVault {
    dir: PathBuf,
    host: VaultContext,
    observations: BTreeMap<&'static str, u32>,
}

impl SimulatedVault {
    /// Takes a vault whose matters are written; `state` is where the index and the rate guard's ledger lie meanwhile.
    pub(super) async fn open(dir: &Path, state: &Path, at: DateTime<Utc>) -> anyhow::Result<Self> {
        let keeper = VaultWriter::lock(VaultRoot::open(dir)?)?;
        let index = Index::open(state).await?;
        index.sync_all(keeper.root(), at).await?;
        let ledger = Ledger::open(&state.join("ledger.db"), CallCaps::default(), &state.join("ledger.json"))?;
        let settings = VaultSettings {
            policy: DecisionPolicy::default(),
            default_ceiling: Ceiling::Act,
            cadence: Cadence::default(),
            keep_events_days: KEEP_EVENTS_DAYS,
            live_per_source_day: LIVE_PER_SOURCE_DAY,
            reversal_budget: REVERSAL_BUDGET,
        };
        let host = VaultContext {
            keeper: Arc::new(keeper),
            index: Arc::new(index),
            ledger: Arc::new(ledger),
            settings,
            clerk: Arc::new(Clerk::Rules(RulesClerk)),
            intervals: unbounded_channel().0,
            landing: Arc::default(),
            routing: Arc::default(),
            learning: Arc::default(),
            unshown: Arc::default(),
        };
        Ok(Self { dir: dir.to_owned(), host, observations: BTreeMap::new() })
    }

    /// From now on the operator lets the stewards go so far.
    pub(super) fn set_mode(&mut self, mode: Mode) {
        self.host.settings.policy.mode = mode;
    }

    pub(super) fn policy(&self) -> &DecisionPolicy {
        &self.host.settings.policy
    }

    /// How often a source was right before, as its instinct says since the last calibration.
    pub(super) fn observation_count(&self, source: &str) -> u32 {
        self.observations.get(source).copied().unwrap_or(0)
    }

    /// The bytes of a record.
    pub(super) fn read_record_bytes(&self, path: &RecordPath) -> anyhow::Result<Vec<u8>> {
        Ok(self.host.keeper.root().read_file(path)?.bytes)
    }

    /// A person writes a file, or a stream a signal.
    pub(super) fn write_record(&self, path: &RecordPath, bytes: &[u8], at: DateTime<Utc>) -> anyhow::Result<()> {
        write_dated_file(&self.dir, path, bytes, at)
    }

    /// A person changes fields of a record.
    pub(super) fn edit_fields(&self, path: &RecordPath, edits: &[FieldEdit], at: DateTime<Utc>) -> anyhow::Result<()> {
        let edited = frontmatter::edit_fields(&self.read_record_bytes(path)?, edits)?;
        self.write_record(path, &edited, at)
    }

    /// A person throws a note away.
    pub(super) fn remove_record(&self, path: &RecordPath) -> anyhow::Result<()> {
        fs::remove_file(self.dir.join(path.as_str())).with_context(|| format!("failed to remove {path}"))
    }

    /// Has a plan carried out, once the index knows its target and the signal it rests on.
    pub(super) async fn execute_plan(&self, plan: Plan, signal: &RecordPath) -> anyhow::Result<ActionReceipt> {
        let at = plan.decided_at();
        // A record that the index does not know has no matter, and may not be changed.
        let mut known = vec![plan.target().clone()];
        if self.policy().mode > Mode::Shadow {
            // Budgets are counted by signals, for live changes alone.
            known.push(signal.clone());
        }
        self.host.index.sync_paths(self.host.keeper.root(), &known, at).await?;
        Ok(self.host.cap_and_apply(plan, at).await.map_err(convert_error)??)
    }

    /// The principal answers an action; what is done by hand is found by the code that a calibration runs.
    pub(super) async fn apply_reaction(
        &self,
        reaction: PrincipalReaction,
        (record, target): (&RecordPath, &RecordPath),
        at: DateTime<Utc>,
    ) -> anyhow::Result<()> {
        let kind = match reaction {
            PrincipalReaction::Confirmed => ResolutionKind::Confirm,
            PrincipalReaction::Dismissed => ResolutionKind::Dismiss,
            PrincipalReaction::Undid => ResolutionKind::Undo,
            PrincipalReaction::LeftInPlace | PrincipalReaction::Nothing => return Ok(()),
            PrincipalReaction::DidItByHand | PrincipalReaction::DidOtherwise => {
                let compared = self.host.keeper.file_manual_outcome(
                    record,
                    simulated_workflow_ref("calibrate", record),
                    at + FOUND_AFTER,
                )?;
                if compared.is_none() {
                    bail!("what was done by hand about {record} was not found");
                }
                return Ok(());
            }
        };
        let receipt = self.host.keeper.resolve_action(&IncomingResolution {
            kind,
            record,
            by: PRINCIPAL,
            reason: None,
            edited: None,
            together: None,
            policy: self.policy(),
            ceiling: Ceiling::Act,
            workflow: simulated_workflow_ref(kind.as_str(), record),
            now: at,
        })?;
        self.host.index.sync_paths(self.host.keeper.root(), &[target.clone(), receipt.record], at).await?;
        Ok(())
    }

    /// Ends a day: the vault is read, trust is brought in line with the records, and nothing is left half way.
    pub(super) async fn end_day(&mut self, at: DateTime<Utc>) -> anyhow::Result<()> {
        let root = self.host.keeper.root();
        self.host.index.sync_all(root, at).await?;
        let workflow = WorkflowRef { id: "simulated-calibrate".into(), run_id: format!("day-{}", at.timestamp()) };
        while self.host.calibrate_trust(workflow.clone(), at).await.map_err(convert_error)?.more {}
        self.host.keeper.settle_swaps_older_than(Duration::ZERO)?;
        for source in &SOURCES {
            let path = RecordPath::new(RecordKind::Instinct, &source_key(source.name))?;
            if root.exists(&path) {
                let known = Instinct::read(frontmatter::read_document(&root.read_file(&path)?.bytes)?.fields());
                self.observations.insert(source.name, known.observations);
            }
        }
        Ok(())
    }

    /// Lets go of the index, which the vault's first real start makes anew.
    pub(super) async fn close(self) {
        self.host.index.close().await;
    }
}

/// Writes a file of a vault, dated.
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

fn simulated_workflow_ref(what: &str, record: &RecordPath) -> WorkflowRef {
    let run_id = ActionId::derive(&["simulated", what, record.as_str()]).to_string();
    WorkflowRef { id: format!("simulated-{what}"), run_id }
}
