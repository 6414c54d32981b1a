//! `steward mcp install`: prints what connects a client to this vault. It changes no file.
//!
//! Programs of the desktop do not have the search path of a shell, so commands and folders are absolute. A token is never printed: clients read it
//! from a variable or ask for it.
//!
//! The forms are those of the clients' documentation: Claude Code, Claude Desktop, VS Code, Cursor and Codex, each on its page about MCP.

#[cfg(test)]
mod tests;

use super::check_rights;
use crate::cli::mcp::{AllowArg, McpClientArg, McpRightsArgs, ToolsetArg};
use crate::cli::output::{CommandError, CommandExit, CommandOutput};
use crate::config::StewardConfig;
use crate::runtime::web::find_server_url;
use crate::temporal::is_server_configured;
use crate::temporal::server::find_cli;
use anyhow::Context;
use clap::ValueEnum;
use serde::Serialize;
use serde_json::json;
use std::path::Path;
use steward_vault::files::root::VaultRoot;

/// The variable from which clients read the token.
const TOKEN_VARIABLE: &str = "STEWARD_TOKEN";

/// How a client is to reach Steward.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Start {
    /// It sends requests to a server that runs.
    Http,
    /// It starts a process, which may hold the vault as well.
    Process { up: bool },
}

/// How a client reaches Steward.
enum Connection {
    /// It starts a process: the program and its arguments.
    Process { command: String, arguments: Vec<String> },
    /// It sends requests to an address.
    Http { url: String },
}

/// What a person adds to the configuration of a client.
#[derive(Debug, Serialize)]
struct Installation {
    client: String,
    /// Where the text belongs: a file, or a terminal.
    place: &'static str,
    text: String,
    notes: Vec<String>,
}

pub(super) fn run(
    config: &StewardConfig,
    client: McpClientArg,
    start: Start,
    rights: &McpRightsArgs,
    out: CommandOutput,
) -> anyhow::Result<CommandExit> {
    let root = VaultRoot::open(config.vault_folder()?)?;
    check_rights(&root, rights)?;
    if start == Start::Http && client == McpClientArg::ClaudeDesktop {
        let message = "the file of Claude Desktop takes no addresses: leave out --http, so that it starts a process";
        return Err(CommandError::Usage(message.to_owned()).into());
    }
    let connection = match start {
        Start::Http => {
            let wiki = rights.workspace.as_ref().map(|wiki| format!("/{wiki}")).unwrap_or_default();
            Connection::Http { url: format!("{}/mcp{wiki}", find_server_url(config)?) }
        }
        Start::Process { up } => {
            let program = std::env::current_exe().context("failed to find the program of this process")?;
            let folder = std::fs::canonicalize(config.vault_folder()?)?;
            let mut arguments = list_arguments(&convert_path(&folder)?, rights);
            arguments.extend(up.then(|| "--up".to_owned()));
            Connection::Process { command: convert_path(&program)?, arguments }
        }
    };
    let mut installation = describe_installation(client, &connection, rights);
    if start == (Start::Process { up: true }) && config.temporal_cli.is_none() && !is_server_configured() {
        installation.notes.push(match find_cli(config) {
            Ok(cli) => format!(
                "`--up` starts {}. Programs of the desktop do not have the search path of your shell: put `temporal_cli = \"{}\"` into your \
                 configuration (docs/reference/configuration.md).",
                cli.display(),
                cli.display()
            ),
            Err(e) => format!("`--up` cannot hold the vault yet: {e}"),
        });
    }
    out.print_value(&installation, || {
        let notes: String = installation.notes.iter().map(|note| format!("\n\n{note}")).collect();
        format!("{}:\n\n{}{notes}", installation.place, installation.text)
    })?;
    Ok(CommandExit::Ok)
}

/// A path as text, for files that hold text alone.
fn convert_path(path: &Path) -> anyhow::Result<String> {
    let text =
        path.to_str().with_context(|| format!("{} is not UTF-8, so no client can be given it", path.display()))?;
    Ok(text.to_owned())
}

fn list_arguments(vault: &str, rights: &McpRightsArgs) -> Vec<String> {
    let mut arguments: Vec<String> = ["mcp", "serve", "--vault", vault].map(str::to_owned).to_vec();
    if let Some(wiki) = &rights.workspace {
        arguments.extend(["--workspace".to_owned(), wiki.clone()]);
    }
    if !rights.tools.is_empty() {
        arguments.extend(["--tools".to_owned(), join_names(&rights.tools)]);
    }
    if rights.allow != AllowArg::Write {
        arguments.extend(["--allow".to_owned(), name_value(&rights.allow)]);
    }
    arguments
}

/// How an option names a value.
fn name_value(value: &impl ValueEnum) -> String {
    value.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}

fn join_names(tools: &[ToolsetArg]) -> String {
    tools.iter().map(name_value).collect::<Vec<_>>().join(",")
}

fn describe_installation(client: McpClientArg, connection: &Connection, rights: &McpRightsArgs) -> Installation {
    let server = rights.workspace.as_deref().unwrap_or("steward");
    let place = match client {
        McpClientArg::ClaudeCode => "Run in a terminal",
        McpClientArg::ClaudeDesktop => "Add to claude_desktop_config.json (Settings > Developer > Edit Config)",
        McpClientArg::Vscode => "Add to .vscode/mcp.json of a folder",
        McpClientArg::Cursor => "Add to .cursor/mcp.json of a folder, or to ~/.cursor/mcp.json",
        McpClientArg::Codex => "Add to ~/.codex/config.toml",
    };
    let text = match client {
        McpClientArg::ClaudeCode => format_shell_command(server, connection),
        McpClientArg::ClaudeDesktop | McpClientArg::Cursor => format_json(server, connection),
        McpClientArg::Vscode => format_vscode(server, connection),
        McpClientArg::Codex => format_toml(server, connection),
    };
    let notes = match connection {
        Connection::Http { .. } => describe_token(client, rights),
        Connection::Process { .. } => Vec::new(),
    };
    Installation { client: name_value(&client), place, text, notes }
}

/// How a person makes the token, and where the client takes it from.
fn describe_token(client: McpClientArg, rights: &McpRightsArgs) -> Vec<String> {
    let scope = match rights.allow {
        AllowArg::Read => "--scope read --wiki read",
        AllowArg::Write => "--scope read --wiki write",
        AllowArg::Act => "--scope act --wiki write",
    };
    let wiki = rights.workspace.as_ref().map(|wiki| format!(" --workspace {wiki}")).unwrap_or_default();
    let tools = if rights.tools.is_empty() { String::new() } else { format!(" --tools {}", join_names(&rights.tools)) };
    let make = format!("Make its token:\n\nsteward token create {scope}{wiki}{tools} --name {}", name_value(&client));
    let place = if client == McpClientArg::Vscode {
        "VS Code asks for the token when it first connects.".to_owned()
    } else {
        format!("Set it as {TOKEN_VARIABLE} where the client starts. The server must run: `steward up`.")
    };
    vec![make, place]
}

fn format_shell_command(server: &str, connection: &Connection) -> String {
    match connection {
        Connection::Process { command, arguments } => {
            let words =
                ["claude", "mcp", "add", server, "--", command].into_iter().chain(arguments.iter().map(String::as_str));
            // Only a zero byte cannot be quoted, and no path has one.
            shlex::try_join(words).unwrap_or_default()
        }
        Connection::Http { url } => {
            let header = format!("--header \"Authorization: Bearer ${TOKEN_VARIABLE}\"");
            format!("claude mcp add --transport http {server} {url} {header}")
        }
    }
}

fn format_json(server: &str, connection: &Connection) -> String {
    let value = match connection {
        Connection::Process { command, arguments } => json!({"command": command, "args": arguments}),
        Connection::Http { url } => {
            let headers = json!({"Authorization": format!("Bearer ${{env:{TOKEN_VARIABLE}}}")});
            json!({"url": url, "headers": headers})
        }
    };
    format!("{:#}", json!({"mcpServers": {server: value}}))
}

fn format_vscode(server: &str, connection: &Connection) -> String {
    let value = match connection {
        Connection::Process { command, arguments } => {
            json!({"servers": {server: {"type": "stdio", "command": command, "args": arguments}}})
        }
        Connection::Http { url } => json!({
            "inputs": [{"type": "promptString", "id": "steward", "description": "Steward token", "password": true}],
            "servers": {server: {"type": "http", "url": url, "headers": {"Authorization": "Bearer ${input:steward}"}}},
        }),
    };
    format!("{value:#}")
}

fn format_toml(server: &str, connection: &Connection) -> String {
    let mut table = toml::Table::new();
    match connection {
        Connection::Process { command, arguments } => {
            table.insert("command".to_owned(), command.clone().into());
            table.insert("args".to_owned(), arguments.clone().into());
        }
        Connection::Http { url } => {
            table.insert("url".to_owned(), url.clone().into());
            table.insert("bearer_token_env_var".to_owned(), TOKEN_VARIABLE.into());
        }
    }
    let servers = toml::Table::from_iter([(server.to_owned(), toml::Value::Table(table))]);
    let file = toml::Table::from_iter([("mcp_servers".to_owned(), toml::Value::Table(servers))]);
    toml::to_string(&file).unwrap_or_default().trim_end().to_owned()
}
