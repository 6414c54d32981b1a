//! `steward mcp`: an assistant reads the wikis of the vault.
//!
//! The process that serves a client reads files and the index. It holds no vault and changes nothing in it but the log of calls.

use crate::cli::mcp::McpCommand;
use crate::cli::output::CommandExit;
use crate::config::StewardConfig;
use crate::telemetry::init_quiet_telemetry;
use anyhow::anyhow;
use steward_server::access::parse_caller_name;
use steward_server::mcp::{McpCaller, McpVault, serve_stdio};
use steward_vault::files::root::VaultRoot;
use steward_vault::wiki::state::find_wiki_folder;

pub(crate) async fn run(config: &StewardConfig, command: McpCommand) -> anyhow::Result<CommandExit> {
    let McpCommand::Serve { workspace } = command;
    let root = VaultRoot::open(config.vault_folder()?)?;
    if let Some(wiki) = &workspace {
        find_wiki_folder(&root, wiki)?;
    }
    let _telemetry = init_quiet_telemetry()?;
    let name = format!("{} via mcp", parse_caller_name(&config.operator)?);
    let vault = McpVault::open(root, &config.state_dir()?)?;
    serve_stdio(vault, McpCaller { name, workspace })
        .await
        .map_err(|e| anyhow!("the client could not be served: {e}"))?;
    Ok(CommandExit::Ok)
}
