//! The commands `steward stop` and `steward resume`: stop all stewards of a vault, and end the stop.
//!
//! They write or remove the stop file and nothing else. They need no server and no worker, so they work when those do
//! not. The gates read the file before every change. A listening server is not asked: it would write the same file, and
//! a stop must not wait for a process that may hang.

use crate::cli::output::{CommandExit, CommandOutput, escape_text};
use crate::config::StewardConfig;
use chrono::Utc;
use serde_json::json;
use steward_domain::time::format_millis;
use steward_vault::files::root::VaultRoot;
use steward_vault::gates::stop::{self, VaultStop};

pub(crate) fn stop_vault(
    config: &StewardConfig,
    reason: Option<String>,
    out: CommandOutput,
) -> anyhow::Result<CommandExit> {
    let root = VaultRoot::open(config.vault_folder()?)?;
    let before = stop::read_stop(&root);
    stop::stop_vault(&root, &VaultStop { at: format_millis(Utc::now()), by: config.operator.clone(), reason })?;
    let held = stop::read_stop(&root);
    out.print_value(&json!({"stopped": true, "stop": held}), || {
        let by = held.as_ref().map_or("unknown", |s| s.by.as_str());
        let state = if before.is_some() { "already stopped" } else { "stopped" };
        format!(
            "{state} by {}: no clerk calls and no changes until `steward resume`; undo and dismiss still work",
            escape_text(by)
        )
    })?;
    Ok(CommandExit::Ok)
}

pub(crate) fn resume_vault(config: &StewardConfig, out: CommandOutput) -> anyhow::Result<CommandExit> {
    let root = VaultRoot::open(config.vault_folder()?)?;
    let was_stopped = stop::resume_vault(
        &root,
        &VaultStop { at: format_millis(Utc::now()), by: config.operator.clone(), reason: None },
    )?;
    out.print_value(&json!({"stopped": false, "was_stopped": was_stopped}), || {
        if was_stopped { "the stop has ended".into() } else { "the vault was not stopped".into() }
    })?;
    Ok(CommandExit::Ok)
}
