//! Triggers a schedule, as a signal or a person does.
//!
//! A paused schedule starts nothing, and neither does one of another vault. However often a schedule is triggered during
//! a run, one more run follows.

use super::client::TemporalQueryError;
use crate::views::schedules::mark::ScheduleMark;
use std::time::Duration;
use steward_domain::fleet::names::VaultNames;
use steward_vault::files::identity::VaultId;
use temporalio_client::tonic::{Code, IntoRequest, Status};
use temporalio_client::{Client, NamespacedClient};
use temporalio_common::protos::temporal::api::enums::v1::ScheduleOverlapPolicy;
use temporalio_common::protos::temporal::api::schedule::v1 as spb;
use temporalio_common::protos::temporal::api::workflowservice::v1 as svc;

/// How long the server may take for each of the two calls: 5 s.
const PATIENCE: Duration = Duration::from_secs(5);

/// The outcome of triggering a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TriggerOutcome {
    Triggered,
    Paused,
    /// There is no such schedule.
    Missing,
    /// It belongs to another vault.
    OfAnother,
}

/// Starts a run of the schedule with this plain id now, or as soon as a running one ends.
///
/// # Errors
/// [`TemporalQueryError`] if the server refuses or gives no answer.
pub(crate) async fn trigger_schedule(
    client: &Client,
    names: &VaultNames,
    id: &str,
    ours: Option<VaultId>,
) -> Result<TriggerOutcome, TemporalQueryError> {
    let (namespace, schedule_id) = (client.namespace(), names.qualify_id(id));
    let describe = svc::DescribeScheduleRequest { namespace: namespace.clone(), schedule_id: schedule_id.clone() };
    let mut service = client.connection().workflow_service();
    let found = match tokio::time::timeout(PATIENCE, service.describe_schedule(describe.into_request())).await {
        Ok(Err(status)) if status.code() == Code::NotFound => return Ok(TriggerOutcome::Missing),
        found => take_answer(found)?.schedule.unwrap_or_default(),
    };
    let vault = ScheduleMark::find_in_spec(found.spec.as_ref()).and_then(|mark| mark.vault);
    if vault.is_some() && vault != ours {
        return Ok(TriggerOutcome::OfAnother);
    }
    // The server would start a run of a paused schedule too.
    if found.state.is_some_and(|state| state.paused) {
        return Ok(TriggerOutcome::Paused);
    }
    let overlap_policy = ScheduleOverlapPolicy::BufferOne.into();
    let trigger = spb::TriggerImmediatelyRequest { overlap_policy, ..Default::default() };
    let patch = svc::PatchScheduleRequest {
        namespace,
        schedule_id,
        patch: Some(spb::SchedulePatch { trigger_immediately: Some(trigger), ..Default::default() }),
        ..Default::default()
    };
    take_answer(tokio::time::timeout(PATIENCE, service.patch_schedule(patch.into_request())).await)?;
    Ok(TriggerOutcome::Triggered)
}

type Answer<T> = Result<Result<temporalio_client::tonic::Response<T>, Status>, tokio::time::error::Elapsed>;

fn take_answer<T>(answer: Answer<T>) -> Result<T, TemporalQueryError> {
    let answered = answer.map_err(|_| TemporalQueryError::new(format!("within {} s", PATIENCE.as_secs())))?;
    answered.map(|response| response.into_inner()).map_err(|status| TemporalQueryError::new(status.message()))
}
