//! Runs the reversibility drill on canaries for every class of change, and demotes classes that undo does not restore.
//!
//! [`steward_vault::trust::drill`] does the drill itself. A class that is at shadow already is not demoted again. If a
//! person has restored a class, the next drill that finds it broken demotes it again.

use crate::failure::retryable_failure;
use crate::vault::{VaultContext, run_blocking};
use chrono::{DateTime, Utc};
use std::sync::Arc;
use steward_domain::action::audit::WorkflowRef;
use steward_domain::gates::mode::Mode;
use steward_domain::trust::mark::{TrustMark, TrustSubject};
use steward_vault::trust::drill::{ClassDrillResult, run_drill};
use steward_workflows::DrillOutput;
use temporalio_common::ActivityError;

pub(crate) async fn drill_all(
    vault: &VaultContext,
    workflow: WorkflowRef,
    now: DateTime<Utc>,
) -> Result<DrillOutput, ActivityError> {
    let index = Arc::clone(&vault.index);
    let results = run_blocking(move || run_drill(index.state_dir(), now)).await?.map_err(retryable_failure)?;
    let report = record_drill_results(vault, results, workflow, now).await?;
    // This comes last, so that a drill whose results were not recorded does not count.
    vault.index.trust().record_drill(now).await.map_err(retryable_failure)?;
    Ok(report)
}

async fn record_drill_results(
    vault: &VaultContext,
    results: Vec<ClassDrillResult>,
    workflow: WorkflowRef,
    now: DateTime<Utc>,
) -> Result<DrillOutput, ActivityError> {
    let mut report = DrillOutput::default();
    // A change that is applied meanwhile would not see the demotion.
    let _guard = vault.apply_lock.lock().await;
    let caps = vault.index.trust().read_mode_caps().await.map_err(retryable_failure)?;
    for ClassDrillResult { class, broken } in results {
        let Some(why) = broken else {
            report.restored.push(class);
            continue;
        };
        let subject = TrustSubject::Class(class);
        if caps.get(&subject).and_then(|cap| cap.mode) != Some(Mode::Shadow) {
            let mark = TrustMark::Unrestored { subject, why: why.clone() };
            tracing::error!(class = class.as_str(), "{mark}");
            let plan = mark.into_plan(&workflow.run_id, now, vault.settings.policy.mode, workflow.clone());
            vault.file_record(plan.map_err(retryable_failure)?).await?;
            report.lowered += 1;
        }
        report.broken.push((class, why));
    }
    tracing::info!(restored = report.restored.len(), broken = report.broken.len(), "reversibility drill finished");
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vault::tests::VaultFixture;
    use steward_domain::action::mutation::MutationClass;
    use steward_domain::action::undo::ResolutionKind;
    use steward_domain::time;
    use steward_workflows::activities::{ResolveInput, ResolveOutput};

    fn run(id: &str) -> WorkflowRef {
        WorkflowRef { id: "drill".into(), run_id: id.into() }
    }

    fn time_of(id: &str) -> DateTime<Utc> {
        time::parse(&format!("2026-11-22T02:00:0{id}Z")).unwrap()
    }

    fn results(broken: Option<&str>) -> Vec<ClassDrillResult> {
        let result = |class| ClassDrillResult {
            class,
            broken: broken.filter(|_| class == MutationClass::Related).map(Into::into),
        };
        MutationClass::ALL.map(result).to_vec()
    }

    #[tokio::test]
    async fn a_class_that_is_not_restored_goes_to_shadow_once_until_a_human_raises_it() {
        let bench = VaultFixture::new(Mode::Live).await;
        let whole = record_drill_results(&bench.context, results(None), run("1"), time_of("1")).await.unwrap();
        assert_eq!((whole.restored.len(), whole.lowered), (4, 0));
        assert!(bench.context.index.trust().read_mode_caps().await.unwrap().is_empty());
        for (night, lowered) in [("2", 1), ("2", 0), ("3", 0)] {
            let broken = results(Some("other bytes"));
            let report = record_drill_results(&bench.context, broken, run(night), time_of(night)).await.unwrap();
            assert_eq!((report.restored.len(), report.lowered), (3, lowered), "{night}");
            assert_eq!(report.broken, [(MutationClass::Related, "other bytes".to_owned())]);
        }
        let caps = bench.context.index.trust().read_mode_caps().await.unwrap();
        let related = TrustSubject::Class(MutationClass::Related);
        assert_eq!(caps.iter().map(|(s, cap)| (s, cap.mode)).collect::<Vec<_>>(), [(&related, Some(Mode::Shadow))]);
        let action = bench.context.index.trust().find_last_demotion(&related).await.unwrap().unwrap().to_string();
        let ask = ResolveInput {
            kind: ResolutionKind::Raise,
            action,
            by: "ann".into(),
            reason: None,
            edited: None,
            batch_id: None,
            resolved_by: Default::default(),
        };
        let raised = bench.context.handle_resolution(ask, run("4")).await.unwrap();
        assert!(matches!(raised, ResolveOutput::Done { .. }), "{raised:?}");
        assert_eq!(bench.context.index.trust().read_mode_caps().await.unwrap()[&related].mode, None);
        let broken = results(Some("other bytes"));
        let report = record_drill_results(&bench.context, broken, run("5"), time_of("5")).await.unwrap();
        assert_eq!(report.lowered, 1, "it is still broken");
    }

    #[tokio::test]
    async fn a_real_drill_restores_every_class_and_leaves_nothing_in_the_vault() {
        let bench = VaultFixture::new(Mode::Shadow).await;
        let report = drill_all(&bench.context, run("1"), time_of("1")).await.unwrap();
        assert_eq!((report.restored, report.broken), (MutationClass::ALL.to_vec(), Vec::new()));
        assert!(!bench.dir.path().join("matter/canary.md").exists());
        assert!(bench.dir.path().join(".steward").join(steward_vault::trust::drill::FOLDER).exists());
        assert_eq!(bench.context.index.trust().read_drill_history().await.unwrap().last, Some(time_of("1")));
    }

    #[tokio::test]
    async fn a_drill_that_cannot_run_is_not_noted() {
        let bench = VaultFixture::new(Mode::Shadow).await;
        std::fs::write(bench.dir.path().join(".steward").join(steward_vault::trust::drill::FOLDER), "no folder")
            .unwrap();
        assert!(drill_all(&bench.context, run("1"), time_of("1")).await.is_err());
        assert_eq!(bench.context.index.trust().read_drill_history().await.unwrap().last, None);
    }
}
