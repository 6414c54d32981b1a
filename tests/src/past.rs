//! What happened before a test began.
//!
//! [`change`] makes the real vault writer apply a real change with an earlier time; no worker may serve the vault
//! meanwhile. [`Made`] writes any number of records in their real form, in one chain and with any text. They can be
//! read, but not resolved.

use crate::vault::Vault;
use chrono::{DateTime, TimeDelta, Utc};
use std::collections::BTreeMap;
use steward_domain::action::audit::{AuditDraft, AuditRecord, ChainLink, WorkflowRef};
use steward_domain::action::plan::ContentHash;
use steward_domain::gates::mode::{Ceiling, DecisionPolicy, Mode};
use steward_domain::record::entity::{RecordState, SignalEffect, SurfaceClass};
use steward_domain::record::frontmatter;
use steward_domain::record::path::{RecordKind, RecordPath};
use steward_domain::steward::clerk::{ClerkMark, ClerkQuestion, Judgement, QuestionSubject, SignalEvidence, Verdict};
use steward_domain::steward::decide::{DecisionCase, decide};
use steward_domain::steward::tick::TaskCheck;
use steward_vault::action::writer::VaultWriter;
use steward_vault::files::root::VaultRoot;

/// Sets a task of the matter `house` to done at that time. Returns the action's id.
#[must_use]
pub fn change(vault: &Vault, task: &str, at: DateTime<Utc>) -> String {
    let writer = VaultWriter::lock(VaultRoot::open(vault.path()).unwrap()).unwrap();
    let target = RecordPath::new(RecordKind::Task, task).unwrap();
    let bytes = vault.read(target.as_str());
    let written = frontmatter::read_document(&bytes).unwrap().fields().get("state").cloned();
    let evidence = SignalEvidence {
        source: "mail".into(),
        reference: RecordPath::new(RecordKind::Signal, &format!("s-{task}")).unwrap(),
        note: "It is finished, with thanks.".into(),
        created: at - TimeDelta::hours(1),
        effect: SignalEffect::Mutation,
        proposed_state: Some(RecordState::Done),
        target_confidence: 0.98,
        effect_confidence: 0.97,
        observations: 60,
        ceiling: Ceiling::Act,
    };
    let subject = QuestionSubject {
        task: target,
        task_name: task.into(),
        matter: RecordPath::new(RecordKind::Matter, "house").unwrap(),
        matter_name: "house".into(),
        state: RecordState::Open,
        surface_class: SurfaceClass::Normal,
        due: None,
        description_hash: None,
        last_decision: None,
    };
    let verdict = Verdict {
        decision: Judgement::LikelyDone,
        confidence: 0.95,
        reasoning: "The signals say so.".into(),
        evidence: vec![evidence.reference.clone()],
        source_contributions: BTreeMap::from([("mail".to_owned(), 0.9)]),
    };
    let check = TaskCheck {
        question: ClerkQuestion { subject, evidence: vec![evidence], complaint: None, asked_at: at },
        before: ContentHash::hash_bytes(&bytes),
        state_as_written: written.and_then(|state| state.as_str().map(str::to_owned)),
        matter_ceiling: Ceiling::Act,
        further_policies: Vec::new(),
        known_verdict: None,
    };
    let plan = decide(&DecisionCase {
        check: &check,
        policy: &DecisionPolicy { mode: Mode::Live, ..DecisionPolicy::default() },
        matter_policy: None,
        verdict: &verdict,
        clerk: &ClerkMark { provider: "rules".into(), ..ClerkMark::default() },
        caller_says_shadow: false,
        workflow: WorkflowRef { id: "al-steward-house".into(), run_id: format!("run-{task}") },
        at,
    });
    let receipt = writer.apply_plan(plan).unwrap();
    AuditRecord::parse(&vault.read(receipt.record.as_str())).unwrap().draft.id.to_string()
}

/// Records that were written without a decision.
pub struct Made<'v> {
    vault: &'v Vault,
    last: ChainLink,
}

impl<'v> Made<'v> {
    /// Begins the chain of a new vault.
    #[must_use]
    pub fn new(vault: &'v Vault) -> Self {
        std::fs::create_dir_all(vault.path().join("event")).unwrap();
        Self { vault, last: ChainLink { seq: 0, prev: ContentHash::genesis() } }
    }

    /// Writes one more record.
    pub fn record(&mut self, draft: AuditDraft) {
        let (file, seq) = (draft.record_path().unwrap(), self.last.seq + 1);
        let record = AuditRecord::from_draft(draft, Vec::new(), ChainLink { seq, prev: self.last.prev.clone() });
        let text = record.render().unwrap();
        self.last = ChainLink { seq, prev: ContentHash::hash_bytes(text.as_bytes()) };
        std::fs::write(self.vault.path().join(file.as_str()), text).unwrap();
    }
}
