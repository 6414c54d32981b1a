//! The commands `steward token create|list|revoke` and `steward login`: who may use the control API and the dashboard.
//!
//! They write into the state folder, which every process of the vault reads at each request. So they need no server.
//! The vault's operator log records who created or revoked a token. If a new token cannot be recorded, it is revoked
//! before anybody has it.

use crate::cli;
use crate::cli::output::{CommandExit, CommandOutput, escape_text};
use crate::cli::style::TextStyle;
use crate::cli::table::create_table;
use crate::config::StewardConfig;
use crate::runtime::web::{create_login_link, find_dashboard, find_endpoint};
use anyhow::{Context, bail};
use chrono::Utc;
use serde_json::json;
use steward_domain::time::format_millis;
use steward_server::access::{self, AccessScope, SecretStore, token};
use steward_vault::files::operator_log::{self, OperatorEvent, OperatorEventKind, OperatorLogError};
use steward_vault::files::root::VaultRoot;
use steward_vault::wiki::state::find_wiki_folder;

pub(crate) fn run(
    config: &StewardConfig,
    command: &cli::TokenCommand,
    out: CommandOutput,
) -> anyhow::Result<CommandExit> {
    let store = SecretStore::new(&config.state_dir()?);
    match command {
        cli::TokenCommand::Create { scope, name, limits } => {
            let name = name.clone().unwrap_or_else(|| config.operator.clone());
            let root = VaultRoot::open(config.vault_folder()?)?;
            let limits = limits.read();
            if let Some(wiki) = &limits.workspace {
                find_wiki_folder(&root, wiki)?;
            }
            let (text, token) = token::create_token(&store, &name, as_scope(*scope), limits, Utc::now())?;
            let about = [token.caller_name(), token.scope.to_string(), token.limits.describe()];
            let subject = about.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ");
            if let Err(e) = record_operator_event(config, &root, OperatorEventKind::TokenMade, subject) {
                token::revoke_token(&store, &token.id)?;
                return Err(e.into());
            }
            let value = json!({"token": text, "id": token.id, "name": token.name, "scope": token.scope, "limits": token.limits});
            out.print_value(&value, || {
                format!("{text}\nThe token is not shown again. `steward token revoke {}` revokes it.", token.id)
            })?;
        }
        cli::TokenCommand::List => {
            let tokens = token::list_tokens(&store)?;
            out.print_value(&tokens, || {
                if tokens.is_empty() {
                    return "No token yet: `steward token create --scope act --name <name>` makes one.".to_owned();
                }
                let mut rows = create_table(&["id", "name", "scope", "limits", "created"], &["name", "limits"]);
                for token in &tokens {
                    let (id, name) = (token.id.clone(), escape_text(&token.name));
                    let (scope, limits) = (token.scope.as_str().to_owned(), escape_text(&token.limits.describe()));
                    rows.add_row([id, name, scope, limits, TextStyle::current().show_moment(token.created_at)]);
                }
                rows.to_string()
            })?;
        }
        cli::TokenCommand::Revoke { id } => {
            let Some(token) = token::list_tokens(&store)?.into_iter().find(|token| token.id == *id) else {
                bail!("no token has the id `{}`: see `steward token list`", escape_text(id));
            };
            token::revoke_token(&store, id)?;
            // Revoked first: the token must not stay valid because the vault cannot be written.
            let root = VaultRoot::open(config.vault_folder()?)?;
            record_operator_event(config, &root, OperatorEventKind::TokenRevoked, token.caller_name())?;
            out.print_value(&json!({"revoked": id}), || format!("revoked {}", escape_text(id)))?;
        }
    }
    Ok(CommandExit::Ok)
}

fn as_scope(scope: cli::TokenScopeArg) -> AccessScope {
    match scope {
        cli::TokenScopeArg::Read => AccessScope::Read,
        cli::TokenScopeArg::Act => AccessScope::Act,
        cli::TokenScopeArg::Operate => AccessScope::Operate,
    }
}

/// Records what the operator of this command did, and on what.
pub(super) fn record_operator_event(
    config: &StewardConfig,
    root: &VaultRoot,
    kind: OperatorEventKind,
    subject: String,
) -> Result<(), OperatorLogError> {
    operator_log::append_event(
        root,
        &OperatorEvent {
            at: format_millis(Utc::now()),
            by: config.operator.clone(),
            act: kind,
            on: subject,
            from: None,
        },
    )
}

/// Prints a link that logs one person in, once, and opens it if that is wanted.
pub(crate) fn print_login_link(
    config: &StewardConfig,
    login: &cli::LoginArgs,
    out: CommandOutput,
) -> anyhow::Result<CommandExit> {
    let endpoint = find_endpoint(config)?;
    let listens = find_dashboard(config, &VaultRoot::open(config.vault_folder()?)?)?.is_some();
    if !listens && config.listen.is_some_and(|address| address.port() == 0) {
        bail!("no server is listening, and its port is not chosen before it starts: start `steward up` first");
    }
    let name = login.name.as_deref().map_or_else(|| Ok(config.operator.clone()), access::parse_caller_name)?;
    let scope = as_scope(login.scope);
    let link = create_login_link(config, &endpoint, &name, scope)?;
    out.print_value(&json!({"link": link, "name": name, "scope": scope}), || {
        let early = if listens { "" } else { " No server is listening yet: start `steward up` first." };
        format!("{link}\nThe link logs one person in within an hour, as {} ({scope}).{early}", escape_text(&name))
    })?;
    if login.open {
        if !listens {
            bail!("no browser was opened, because no server is listening: start `steward up` and log in again");
        }
        open::that_detached(&link).context("no browser could be opened: copy the link into one")?;
    }
    Ok(CommandExit::Ok)
}
