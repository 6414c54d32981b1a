//! Sets the ceiling of a sender for a person. Only to let it act needs evidence.
//!
//! The cases are judged as in Suggest ([`steward_domain::trust::report::sender`]), and the audit records behind them
//! must be intact. An undo that lets a sender act again is judged in the same way. A refusal is a value.

use crate::failure::retryable_failure;
use crate::vault::{VaultContext, run_blocking};
use chrono::Utc;
use std::sync::Arc;
use steward_domain::action::audit::WorkflowRef;
use steward_domain::gates::mode::Ceiling;
use steward_domain::record::path::RecordKind;
use steward_domain::time;
use steward_domain::trust::ceiling::CeilingRequest;
use steward_domain::trust::report::advice::EvidenceBar;
use steward_domain::trust::report::sender::{SenderPass, SenderTrust};
use steward_vault::action::chain;
use steward_vault::action::writer::ApplyError;
use steward_workflows::{SetCeilingInput, SetCeilingOutput};
use temporalio_common::ActivityError;

/// Why a sender may not act.
pub(crate) struct SenderRefusal {
    pub(crate) message: String,
    pub(crate) missing_cases: Option<u64>,
}

pub(crate) async fn set_ceiling(
    vault: &VaultContext,
    input: SetCeilingInput,
    workflow: WorkflowRef,
) -> Result<SetCeilingOutput, ActivityError> {
    let (root, now) = (vault.writer.root(), Utc::now());
    // The watcher may not have seen yet that a person wrote an instinct.
    vault.index.sync_folder(root, RecordKind::Instinct, now).await.map_err(retryable_failure)?;
    let instincts = vault.index.trust().list_instincts(Some(&input.source)).await.map_err(retryable_failure)?;
    let trust = judge_sender(vault, &input.source).await?;
    if instincts.is_empty() && trust.classes.is_empty() {
        let message = "no message of this sender has led to a proposal yet".to_owned();
        return Ok(SetCeilingOutput::Refused { status: 404, message, missing_cases: None });
    }
    let acts_already = !instincts.is_empty() && instincts.iter().all(|one| one.ceiling == Some(Ceiling::Act));
    if input.ceiling == Ceiling::Act
        && !acts_already
        && let Some(refusal) = refuse_sender(vault, &trust).await?
    {
        let SenderRefusal { message, missing_cases } = refusal;
        return Ok(SetCeilingOutput::Refused { status: 409, message, missing_cases });
    }
    // A change that is applied meanwhile would not see the ceiling.
    let _guard = vault.apply_lock.lock().await;
    // To let a sender act takes longer than to stop it. The last wish holds, not the last workflow.
    let last = vault.index.trust().find_last_setting(&input.source).await.map_err(retryable_failure)?;
    if let Some(last) = last.filter(|last| *last > time::truncate_to_millis(input.at)) {
        let message = format!("it was set again at {}, so this one no longer holds", time::format_millis(last));
        return Ok(SetCeilingOutput::Refused { status: 409, message, missing_cases: None });
    }
    let paths: Vec<_> = instincts.into_iter().map(|instinct| instinct.path).collect();
    let (writer, mode) = (Arc::clone(&vault.writer), vault.settings.policy.mode);
    let set = run_blocking(move || {
        let SetCeilingInput { source, ceiling, by, at } = &input;
        let request = CeilingRequest { source, name: &trust.name, to: *ceiling, by, at: *at, mode, workflow };
        writer.set_ceiling(&request, &paths)
    });
    let receipts = match set.await? {
        Ok(receipts) => receipts,
        Err(
            e @ (ApplyError::Record { .. } | ApplyError::Conflict { .. } | ApplyError::Root(_) | ApplyError::Form(_)),
        ) => {
            return Ok(SetCeilingOutput::Refused { status: 422, message: e.to_string(), missing_cases: None });
        }
        Err(e) => return Err(retryable_failure(e)),
    };
    let records: Vec<_> = receipts.iter().map(|receipt| &receipt.record).collect();
    vault.index.sync_folder(root, RecordKind::Instinct, Utc::now()).await.map_err(retryable_failure)?;
    vault.reindex_paths(&records).await?;
    let actions = receipts.into_iter().map(|receipt| receipt.id).collect();
    Ok(SetCeilingOutput::Set { actions })
}

/// Judges the cases of one sender.
pub(crate) async fn judge_sender(vault: &VaultContext, source: &str) -> Result<SenderTrust, ActivityError> {
    let now = Utc::now();
    let mut pass = SenderPass::for_sender(source, &vault.settings.policy, now);
    vault.index.trust().for_each_case(now, |case| pass.add_case(case)).await.map_err(retryable_failure)?;
    // What the sender may do now does not matter: whether the cases support it is asked anew.
    Ok(pass.judge_sender(source, None, &EvidenceBar::from_budget(vault.settings.reversal_budget)))
}

/// Says why a sender may not act; `None` if it may.
pub(crate) async fn refuse_sender(
    vault: &VaultContext,
    trust: &SenderTrust,
) -> Result<Option<SenderRefusal>, ActivityError> {
    if !trust.shortfalls.is_empty() {
        let message = trust.describe_refusal();
        return Ok(Some(SenderRefusal { message, missing_cases: trust.missing_cases }));
    }
    let root = vault.writer.root().clone();
    let fault = run_blocking(move || match chain::verify_chain(&root) {
        Ok(chain) if chain.head_unknown && chain.records > 0 => Some("the head of the chain is lost".to_owned()),
        Ok(chain) => chain.faults.first().cloned(),
        Err(e) => Some(e.to_string()),
    });
    Ok(fault.await?.map(|fault| SenderRefusal {
        message: format!(
            "the records behind the cases are not as Steward wrote them ({fault}): run `steward audit verify`"
        ),
        missing_cases: None,
    }))
}

#[cfg(test)]
mod tests;
