//! `steward mcp`: an assistant reads the wikis of the vault.
//!
//! The process that serves a client reads files and the index. It holds no vault and changes nothing in it but the log of calls.

use crate::cli::mcp::{AllowArg, McpCommand};
use crate::cli::output::CommandExit;
use crate::commands::resolve::connect_to_holder;
use crate::config::StewardConfig;
use crate::telemetry::init_quiet_telemetry;
use anyhow::anyhow;
use std::sync::Arc;
use steward_server::access::{AccessScope, TokenLimits, Toolset, WikiRight, parse_caller_name};
use steward_server::mcp::{ConnectHolder, McpCaller, McpVault, serve_stdio};
use steward_vault::files::root::VaultRoot;
use steward_vault::wiki::state::find_wiki_folder;

pub(crate) async fn run(config: &StewardConfig, command: McpCommand) -> anyhow::Result<CommandExit> {
    let McpCommand::Serve { workspace, tools, allow } = command;
    let root = VaultRoot::open(config.vault_folder()?)?;
    if let Some(wiki) = &workspace {
        find_wiki_folder(&root, wiki)?;
    }
    let tools: Vec<Toolset> = tools.into_iter().map(Toolset::from).collect();
    let limits = TokenLimits { tools: tools.clone(), workspace: workspace.clone(), wiki: None };
    limits.check(AccessScope::Act)?;
    let _telemetry = init_quiet_telemetry()?;
    let name = format!("{} via mcp", parse_caller_name(&config.operator)?);
    let wiki = if allow >= AllowArg::Write { WikiRight::Write } else { WikiRight::Read };
    let caller = McpCaller::new(name, workspace, &tools, wiki, allow >= AllowArg::Act);
    let settings = config.clone();
    let connect: ConnectHolder = Arc::new(move || {
        let settings = settings.clone();
        Box::pin(async move { connect_to_holder(&settings).await.map_err(|e| format!("{e:#}")) })
    });
    let vault = McpVault::open(root, &config.state_dir()?, connect)?.with_attachments(config.attachments.clone());
    // A mapping that cannot be used does not keep anybody from reading wikis: `steward doctor` reports it.
    let vault = match config.mapping.note_schema() {
        Ok(schema) => vault.with_mapping(schema, config.mapping.list_accepted()),
        Err(_) => vault,
    };
    serve_stdio(vault, caller).await.map_err(|e| anyhow!("the client could not be served: {e}"))?;
    Ok(CommandExit::Ok)
}
