//! The commands `steward stop --fleet` and `steward resume --fleet`.
//!
//! They write or remove one row of the fleet's database. Every process sees it with its next leave to act, within a second.
//! `steward stop` in a vault works beside it, without a database.

use super::{connect_as_operator, explain_silence, find_operator, report_missing_tenant};
use crate::cli::output::{CommandExit, CommandOutput, escape_text};
use serde_json::json;
use steward_domain::fleet::TenantId;
use steward_domain::time::format_seconds;
use steward_fleet::stops::{ALL_TENANTS, StopRow};

pub(crate) async fn stop_tenants(
    tenant: Option<&TenantId>,
    reason: Option<String>,
    out: CommandOutput,
) -> anyhow::Result<CommandExit> {
    let store = connect_as_operator().await?;
    // A stop of a tenant that does not exist would hold nobody.
    if let Some(tenant) = tenant
        && store.list_tenants(Some(tenant)).await?.is_empty()
    {
        return Err(report_missing_tenant(tenant));
    }
    let is_new = store.stop_tenants(tenant, &find_operator(reason)).await.map_err(explain_silence)?;
    let stops = store.list_stops().await?;
    out.print_value(&json!({"stopped": true, "new": is_new, "stops": stops}), || {
        let stops: Vec<String> = stops.iter().map(describe).collect();
        format!(
            "{}\nNo clerk calls and no changes until `steward resume --fleet`; undo and dismiss still work",
            stops.join("\n")
        )
    })?;
    Ok(CommandExit::Ok)
}

pub(crate) async fn resume_tenants(tenant: Option<&TenantId>, out: CommandOutput) -> anyhow::Result<CommandExit> {
    let store = connect_as_operator().await?;
    let was_stopped = store.resume_tenants(tenant, &find_operator(None)).await.map_err(explain_silence)?;
    let left = store.list_stops().await?;
    out.print_value(&json!({"was_stopped": was_stopped, "stops": left}), || {
        let ended = if was_stopped { "the stop has ended" } else { "there was no such stop" };
        let left = left.iter().map(|stop| format!("\nstill: {}", describe(stop)));
        format!("{ended}{}", left.collect::<String>())
    })?;
    Ok(CommandExit::Ok)
}

/// `all tenants are stopped since … by …: reason`.
pub(super) fn describe(stop: &StopRow) -> String {
    let who = if stop.scope == ALL_TENANTS { "all tenants are".to_owned() } else { format!("{} is", stop.scope) };
    let reason = if stop.reason.is_empty() { String::new() } else { format!(": {}", escape_text(&stop.reason)) };
    format!("{who} stopped since {} by {}{reason}", format_seconds(stop.stopped_at), escape_text(&stop.stopped_by))
}
