//! `steward mcp`: an assistant reads and writes the wikis of the vault, and asks its stewards.
//!
//! The process that serves a client reads files and the index. It changes nothing in the vault but staged runs, a stop and the log of calls, and holds it
//! only with `--up`. The other commands connect a client ([`install`]), call one tool ([`call`]) and show the log ([`log`]).

mod call;
mod install;
mod log;

use crate::cli::mcp::{AllowArg, McpCommand, McpRightsArgs};
use crate::cli::output::{CommandExit, CommandOutput};
use crate::commands::resolve::connect_to_holder;
use crate::commands::up::run_beside;
use crate::config::StewardConfig;
use crate::telemetry::init_quiet_telemetry;
use crate::temporal::is_nothing_running;
use anyhow::anyhow;
use std::sync::Arc;
use steward_server::access::{AccessScope, TokenLimits, Toolset, WikiRight, parse_caller_name};
use steward_server::mcp::{ConnectHolder, McpCaller, McpVault, serve_stdio};
use steward_vault::files::root::VaultRoot;
use steward_vault::wiki::state::find_wiki_folder;

pub(crate) async fn run(
    config: &StewardConfig,
    command: McpCommand,
    out: CommandOutput,
) -> anyhow::Result<CommandExit> {
    match command {
        McpCommand::Serve { up, rights } => {
            let (vault, caller) = open_vault(config, rights)?;
            let serving = serve_stdio(vault, caller);
            let served = if up {
                run_beside(config, serving).await?
            } else {
                let _telemetry = init_quiet_telemetry()?;
                Some(serving.await)
            };
            served.unwrap_or(Ok(())).map_err(|e| anyhow!("the client could not be served: {e}"))?;
            Ok(CommandExit::Ok)
        }
        McpCommand::Install { client, http, up, rights } => {
            let start = if http { install::Start::Http } else { install::Start::Process { up } };
            install::run(config, client, start, &rights, out)
        }
        McpCommand::Call { tool, arguments, rights } => {
            let (vault, caller) = open_vault(config, rights)?;
            call::run(vault, caller, tool.as_deref(), &arguments, out).await
        }
        McpCommand::Log { tool, since } => log::run(config, tool.as_deref(), since, out),
    }
}

/// Opens the vault for a client, and says who calls.
fn open_vault(config: &StewardConfig, rights: McpRightsArgs) -> anyhow::Result<(McpVault, McpCaller)> {
    let root = VaultRoot::open(config.vault_folder()?)?;
    let tools = check_rights(&root, &rights)?;
    let McpRightsArgs { workspace, allow, .. } = rights;
    let name = format!("{} via mcp", parse_caller_name(&config.operator)?);
    let wiki = if allow >= AllowArg::Write { WikiRight::Write } else { WikiRight::Read };
    let caller = McpCaller::new(name, workspace, &tools, wiki, allow >= AllowArg::Act);
    let settings = config.clone();
    let connect: ConnectHolder = Arc::new(move || {
        let settings = settings.clone();
        Box::pin(async move {
            // A process that starts, perhaps this one, says in a moment which server it uses. What fails here fails below, too.
            let _ = is_nothing_running(&settings).await;
            connect_to_holder(&settings).await.map_err(|e| format!("{e:#}"))
        })
    });
    let vault = McpVault::open(root, &config.state_dir()?, connect)?.with_attachments(config.attachments.clone());
    // A mapping that cannot be used does not keep anybody from reading wikis: `steward doctor` reports it.
    let vault = match config.mapping.note_schema() {
        Ok(schema) => vault.with_mapping(schema, config.mapping.list_accepted()),
        Err(_) => vault,
    };
    Ok((vault, caller))
}

/// Checks what a client is to see, and gives the toolsets.
///
/// # Errors
/// There is no such wiki, or the tools do not fit it.
fn check_rights(root: &VaultRoot, rights: &McpRightsArgs) -> anyhow::Result<Vec<Toolset>> {
    if let Some(wiki) = &rights.workspace {
        find_wiki_folder(root, wiki)?;
    }
    let tools: Vec<Toolset> = rights.tools.iter().copied().map(Toolset::from).collect();
    let limits = TokenLimits { tools: tools.clone(), workspace: rights.workspace.clone(), wiki: None };
    limits.check(AccessScope::Act)?;
    Ok(tools)
}
