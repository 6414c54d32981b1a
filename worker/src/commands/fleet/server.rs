//! What `steward fleet` does at the Temporal server: the namespace of a fleet, its search attributes, and the schedules of
//! a tenant that is dropped.
//!
//! It uses the server of `TEMPORAL_ADDRESS` alone. Each schedule is checked by its id and its vault before it is deleted.

use crate::temporal;
use crate::temporal::search_attributes::{self, AttributeType, RUN_ATTRIBUTES};
use anyhow::{Context, bail};
use chrono::Utc;
use std::time::Duration;
use steward_domain::fleet::TenantId;
use steward_domain::fleet::names::VaultNames;
use steward_server::views::schedules::{self, SCHEDULE_ID_PREFIX, TENANT_ATTRIBUTE};
use temporalio_client::tonic::{Code, IntoRequest};
use temporalio_client::{Client, NamespacedClient};
use temporalio_common::protos::temporal::api::enums::v1::IndexedValueType;
use temporalio_common::protos::temporal::api::workflowservice::v1 as svc;

/// How long histories are kept: 3 days.
const RETENTION: Duration = Duration::from_secs(3 * 86_400);

/// Creates the namespace and its search attributes, as far as they are missing; returns its name.
///
/// # Errors
/// The server refuses, as Temporal Cloud does: then the message holds the commands.
pub(super) async fn prepare_namespace() -> anyhow::Result<String> {
    let client = temporal::connect_configured().await?;
    let namespace = client.namespace();
    let register = svc::RegisterNamespaceRequest {
        namespace: namespace.clone(),
        workflow_execution_retention_period: RETENTION.try_into().ok(),
        ..Default::default()
    };
    let attributes: Vec<AttributeType> =
        std::iter::once((TENANT_ATTRIBUTE, IndexedValueType::Keyword)).chain(RUN_ATTRIBUTES).collect();
    let by_hand = || {
        let command = search_attributes::describe_command(&namespace, &attributes);
        format!("create it by hand: a namespace `{namespace}` with 3 days of retention, then `{command}`")
    };
    match client.connection().workflow_service().register_namespace(register.into_request()).await {
        Ok(_) => {}
        Err(status) if status.code() == Code::AlreadyExists => {}
        Err(status) => return Err(anyhow::Error::from(status)).with_context(by_hand),
    }
    search_attributes::add(&client, &attributes).await.with_context(by_hand)?;
    Ok(namespace)
}

/// Lists the ids of a tenant's schedules, which name its vault.
pub(super) async fn list_tenant_schedules(tenant: &TenantId, vault_id: Option<&str>) -> anyhow::Result<Vec<String>> {
    let Some(vault_id) = vault_id else { return Ok(Vec::new()) };
    let client = temporal::connect_configured().await?;
    let names = VaultNames::new(Some(tenant.clone()));
    let rows = schedules::list_schedules(&client, &names, SCHEDULE_ID_PREFIX, Utc::now()).await?;
    let ours = rows.into_iter().filter(|row| row.vault.is_some_and(|vault| vault.to_string() == vault_id));
    Ok(ours.map(|row| row.id).collect())
}

/// Deletes schedules by id. The first failure ends it; what is left is deleted by another call.
pub(super) async fn delete_schedules(ids: &[String]) -> anyhow::Result<()> {
    let client: Client = temporal::connect_configured().await?;
    for id in ids {
        let request =
            svc::DeleteScheduleRequest { namespace: client.namespace(), schedule_id: id.clone(), ..Default::default() };
        match client.connection().workflow_service().delete_schedule(request.into_request()).await {
            Ok(_) => {}
            Err(status) if status.code() == Code::NotFound => {}
            Err(status) => bail!("failed to delete schedule {id}: {}: run the command again", status.message()),
        }
    }
    Ok(())
}
