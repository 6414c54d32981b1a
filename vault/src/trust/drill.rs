//! The reversibility drill: every class of change is made on a canary and undone, and the bytes are compared.
//!
//! The canaries lie in a vault of their own that is created anew for each drill. So neither the records nor the audit
//! chain of a person's vault are touched. A change takes the usual path: a signal is routed, and the vault writer
//! applies the plan and the undo. The results go to the calibration of trust, which demotes a class that fails.

use crate::action::resolve::ResolutionError;
use crate::action::writer::{ApplyError, LockError, VaultWriter};
use crate::files::root::{VaultRoot, VaultRootError};
use chrono::{DateTime, TimeDelta, Utc};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use steward_domain::action::audit::{ResolverKind, WorkflowRef};
use steward_domain::action::mutation::{ContextField, Mutation, MutationClass, RelatedField};
use steward_domain::action::plan::{ContentHash, Disposition, Plan};
use steward_domain::action::undo::{ResolutionKind, ResolutionRequest};
use steward_domain::gates::mode::{Ceiling, DecisionPolicy, Mode};
use steward_domain::record::entity::{RecordState, SignalEffect};
use steward_domain::record::frontmatter;
use steward_domain::record::path::{PathError, RecordKind, RecordPath};
use steward_domain::signals::route::{
    RouteCase, RouteDecision, RouteSkip, RouteTarget, StewardWeighing, plan_signal_route,
};
use steward_domain::signals::signal::{Signal, SignalStatus};
use steward_domain::time;

/// The folder of the canaries, inside the state folder.
pub const FOLDER: &str = "drill";
/// The source of the canaries' signals.
const SOURCE: &str = "drill";

/// The canaries: forms in which people write records. An undo must restore each of them to the byte.
const CANARIES: [(&str, &str); 4] = [
    (
        "matter/canary.md",
        "---\ntype: matter\nname: Canary # sings\nstate: open\nsummary: \"it's fine\" # so far\nrelated_to: [Ann, \"[[Bob]]\"] # flow\n---\n\nBody\n",
    ),
    (
        "matter/canary-of-windows.md",
        "\u{feff}---\r\ntype: matter\r\nname: Canary\r\nsummary: >\r\n  long\r\n  text\r\nrelated_to:\r\n  - Ann # first\r\n\r\n  # then\r\n  - '[[Bob]]'\r\ntags: [a]\r\n---\r\nBody",
    ),
    (
        "task/canary.md",
        "---\ntype: task\nname: Canary\nparent_matter: \"[[matter/canary]]\"  # home\nstate: 'open' # since May\nrelated_to:\n- Ann\n---\nBody\n",
    ),
    (
        "task/canary-of-windows.md",
        "---\r\ntype: task\r\nname: Canary\r\nparent_matter: canary\r\nunknown: {a: 1}\r\n---\r\nBody\r\n",
    ),
];

/// The result of a drill for one class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassDrillResult {
    pub class: MutationClass,
    /// The canary that was not restored or could not be changed; `None` if all were restored.
    pub broken: Option<String>,
}

/// Why a drill could not run. It is no result for any class.
#[derive(Debug, thiserror::Error)]
pub enum DrillError {
    #[error("keep canaries in {path}: {source}")]
    Io { path: String, source: io::Error },
    #[error(transparent)]
    Root(#[from] VaultRootError),
    #[error(transparent)]
    Lock(#[from] LockError),
    #[error(transparent)]
    Apply(#[from] ApplyError),
    #[error(transparent)]
    Name(#[from] PathError),
}

/// Drills every class on every canary that it fits, in a folder below `state_dir` that is created anew.
///
/// # Errors
/// [`DrillError`] if the disk fails. A change that is not restored is a result and not an error.
pub fn run_drill(state_dir: &Path, now: DateTime<Utc>) -> Result<Vec<ClassDrillResult>, DrillError> {
    run_drill_with(state_dir, now, |_, _| {})
}

/// As [`run_drill`]; `tamper` may change a canary between the change and its undo.
fn run_drill_with(
    state_dir: &Path,
    now: DateTime<Utc>,
    tamper: impl Fn(&VaultRoot, &RecordPath),
) -> Result<Vec<ClassDrillResult>, DrillError> {
    let folder = state_dir.join(FOLDER);
    let io = |source| DrillError::Io { path: folder.display().to_string(), source };
    match std::fs::remove_dir_all(&folder) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(io(e)),
        Ok(()) | Err(_) => {}
    }
    for (path, text) in CANARIES {
        let file = folder.join(path);
        let parent = file.parent().unwrap_or(&folder);
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(parent).map_err(io)?;
        std::fs::write(&file, text).map_err(io)?;
    }
    let mut vault = CanaryVault { writer: VaultWriter::lock(VaultRoot::open(&folder)?)?, now, tamper };
    let mut found = Vec::new();
    for class in MutationClass::ALL {
        let mut broken = None;
        for (canary, mutation) in list_exercises(class)? {
            let fault = vault.exercise_canary(&canary, &mutation)?;
            broken = broken.or(fault);
            // Records are named after their moments, so each one needs its own.
            vault.now += TimeDelta::milliseconds(1);
        }
        found.push(ClassDrillResult { class, broken });
    }
    Ok(found)
}

/// Every change of a class that the drill tries, with its canary.
fn list_exercises(class: MutationClass) -> Result<Vec<(RecordPath, Mutation)>, PathError> {
    let related = |field: RelatedField, member: &str, present| {
        let member = member.to_owned();
        Mutation::Related { field, member, present }
    };
    let text = |field| Mutation::ContextEdit { field, to: "50 %: \"yes\" # new".to_owned() };
    let mutations = match class {
        MutationClass::StateChange => {
            [RecordState::Done, RecordState::Archived].map(|to| Mutation::StateChange { to }).to_vec()
        }
        MutationClass::ContextEdit => ContextField::ALL.map(text).to_vec(),
        MutationClass::ParentMatter => {
            vec![Mutation::ParentMatter { to: RecordPath::parse("matter/canary-of-windows.md")? }]
        }
        MutationClass::Related => vec![
            related(RelatedField::RelatedTo, "[[Eve]]", true),
            related(RelatedField::RelatedTo, "Ann", false),
            related(RelatedField::RelatedOrgs, "Zoe: Z", true),
        ],
    };
    let mut all = Vec::new();
    for (path, _) in CANARIES {
        let canary = RecordPath::parse(path)?;
        let fitting = mutations.iter().filter(|m| canary.folder_kind().is_some_and(|kind| m.is_applicable_to(kind)));
        all.extend(fitting.map(|m| (canary.clone(), m.clone())));
    }
    Ok(all)
}

/// The canaries' own vault.
struct CanaryVault<M> {
    writer: VaultWriter,
    now: DateTime<Utc>,
    tamper: M,
}

impl<M: Fn(&VaultRoot, &RecordPath)> CanaryVault<M> {
    /// Changes a canary and undoes the change; returns the fault, if there is one.
    fn exercise_canary(&self, canary: &RecordPath, mutation: &Mutation) -> Result<Option<String>, DrillError> {
        let before = self.writer.root().read_file(canary)?;
        let Ok(document) = frontmatter::read_document(&before.bytes) else {
            return Ok(Some(format!("{canary} can no longer be read")));
        };
        let run = format!("{SOURCE}-{}", time::format_compact(self.now));
        let target = RouteTarget {
            path: canary.clone(),
            kind: canary.folder_kind().unwrap_or(RecordKind::Task),
            parent: None,
            state: RecordState::Open,
            snoozed_until: None,
            has_twin: false,
            hash: before.hash.clone(),
            fields: document.fields().clone(),
            is_writable: true,
        };
        let plan = match self.plan_mutation(&target, mutation, &run)? {
            Ok(plan) => plan,
            // The canary does not have the member that the change removes.
            Err(RouteSkip::AlreadySo) => return Ok(None),
            Err(why) => return Ok(Some(format!("{canary} could not be changed: {}", why.as_str()))),
        };
        let receipt = match self.writer.apply_plan(plan) {
            Ok(receipt) => receipt,
            Err(e @ (ApplyError::Io { .. } | ApplyError::Root(_))) => return Err(e.into()),
            Err(e) => return Ok(Some(format!("{canary} could not be changed: {e}"))),
        };
        let changed = self.writer.root().read_file(canary)?;
        if receipt.disposition != Disposition::Live || changed.bytes == before.bytes {
            return Ok(Some(format!("{canary} was not changed at all")));
        }
        (self.tamper)(self.writer.root(), canary);
        let undone = self.writer.resolve_action(
            &receipt.record,
            &ResolutionRequest {
                kind: ResolutionKind::Undo,
                by: SOURCE,
                reason: None,
                edited: None,
                batch_id: None,
                resolved_by: ResolverKind::Human,
                policy: &live_policy(),
                ceiling: Ceiling::Act,
                workflow: WorkflowRef { id: SOURCE.into(), run_id: format!("undo-{run}") },
                now: self.now,
            },
        );
        let broken = match undone {
            Err(ResolutionError::Apply(e @ (ApplyError::Io { .. } | ApplyError::Root(_)))) => return Err(e.into()),
            Err(e) => Some(format!("{canary}: its change was not undone: {e}")),
            Ok(_) if self.writer.root().read_file(canary)?.bytes != before.bytes => {
                Some(format!("{canary}: other bytes than before after a change of `{}` was undone", mutation.field()))
            }
            Ok(_) => None,
        };
        if broken.is_some() {
            let file = self.writer.root().path().join(canary.as_str());
            std::fs::write(&file, &before.bytes)
                .map_err(|source| DrillError::Io { path: canary.to_string(), source })?;
        }
        Ok(broken)
    }

    /// The plan of a change that no gate holds, or why the router skips it.
    fn plan_mutation(
        &self,
        target: &RouteTarget,
        mutation: &Mutation,
        run: &str,
    ) -> Result<Result<Plan, RouteSkip>, DrillError> {
        let hash = ContentHash::hash_bytes(format!("{run} {}", target.path).as_bytes());
        let reference = RecordPath::parse(&format!("signal/{run}-{}.md", &hash.as_str()[..8]))?;
        let signal = Signal {
            created: self.now,
            source_event: None,
            origin_at: None,
            source_type: SOURCE.to_owned(),
            raw_quote: String::new(),
            target: Some(target.path.clone()),
            target_kind: target.kind,
            target_confidence: 1.0,
            candidates: Vec::new(),
            effect: SignalEffect::Mutation,
            proposal: Some(mutation.clone()),
            effect_confidence: 1.0,
            reasoning: String::new(),
            status: SignalStatus::Unrouted,
            reason: None,
        };
        let routed = plan_signal_route(&RouteCase {
            reference: &reference,
            signal: &signal,
            target: Some(target),
            new_parent: Some(RecordState::Open),
            claim: None,
            weighing: StewardWeighing::Until(self.now),
            doubt: None,
            observations: u32::MAX,
            ceiling: Ceiling::Act,
            policy: &live_policy(),
            matter_policies: &[],
            workflow: WorkflowRef { id: SOURCE.into(), run_id: run.to_owned() },
            at: self.now,
            decided_at: self.now,
        });
        Ok(match routed {
            RouteDecision::Planned(plan) | RouteDecision::QuestionPlanned(plan) => Ok(*plan),
            RouteDecision::Skipped(why) => Err(why),
        })
    }
}

fn live_policy() -> DecisionPolicy {
    DecisionPolicy { mode: Mode::Live, ..DecisionPolicy::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> DateTime<Utc> {
        time::parse("2026-11-22T02:00:00Z").unwrap()
    }

    #[test]
    fn every_class_is_changed_and_restored_night_after_night() {
        let dir = tempfile::tempdir().unwrap();
        for _ in 0..2 {
            let found = run_drill(dir.path(), now()).unwrap();
            assert_eq!(found.iter().map(|d| d.class).collect::<Vec<_>>(), MutationClass::ALL);
            assert!(found.iter().all(|d| d.broken.is_none()), "{found:?}");
        }
        let root = VaultRoot::open(&dir.path().join(FOLDER)).unwrap();
        for (path, text) in CANARIES {
            assert_eq!(root.read_file(&RecordPath::parse(path).unwrap()).unwrap().bytes, text.as_bytes(), "{path}");
        }
        let filed = std::fs::read_dir(dir.path().join(FOLDER).join("event")).unwrap().count();
        assert!(filed >= 2 * 20, "{filed} records: something was not tried");
    }

    #[test]
    fn every_canary_of_a_class_is_tried() {
        for class in MutationClass::ALL {
            let all = list_exercises(class).unwrap();
            assert!(
                all.len() >= 2
                    && all.iter().all(|(canary, m)| m.class() == class
                        && canary.folder_kind().is_some_and(|kind| m.is_applicable_to(kind)))
            );
        }
    }

    #[test]
    fn a_class_whose_undo_does_not_restore_is_found_and_no_other() {
        let dir = tempfile::tempdir().unwrap();
        let spoil = |root: &VaultRoot, canary: &RecordPath| {
            let file = root.path().join(canary.as_str());
            let text = std::fs::read_to_string(&file).unwrap();
            // What a field is changed to is changed once more; another class never writes that.
            std::fs::write(&file, text.replace("50 %", "51 %")).unwrap();
        };
        let found = run_drill_with(dir.path(), now(), spoil).unwrap();
        for one in found {
            let spoilt = one.class == MutationClass::ContextEdit;
            assert_eq!(one.broken.is_some(), spoilt, "{one:?}");
        }
    }

    #[test]
    fn bytes_that_differ_beside_the_field_are_found_too() {
        let dir = tempfile::tempdir().unwrap();
        let spoil = |root: &VaultRoot, canary: &RecordPath| {
            let file = root.path().join(canary.as_str());
            let text = std::fs::read_to_string(&file).unwrap();
            std::fs::write(&file, text.replace("Body", "body")).unwrap();
        };
        let found = run_drill_with(dir.path(), now(), spoil).unwrap();
        assert!(found.iter().all(|d| d.broken.as_ref().is_some_and(|b| b.contains("other bytes"))), "{found:?}");
    }
}
