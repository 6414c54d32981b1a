//! `steward token create|list|revoke` and `steward login`: who may use the control API and the dashboard.
//!
//! They write into the state folder, where every process of the vault looks at each request, so they need no server. Who
//! made or revoked a token is written down in the vault; a token that cannot be is taken back before anybody has it.

use crate::cli;
use crate::config::Config;
use crate::out::{Exit, Out, shown, table};
use crate::temporal::note::{self, Door};
use anyhow::bail;
use chrono::Utc;
use serde_json::json;
use steward_domain::time::{format_millis, format_seconds};
use steward_server::access::{self, Scope, Store, token};
use steward_vault::operator::{self, OperatorEvent, OperatorEventKind, OperatorLogError};
use steward_vault::root::VaultRoot;

pub(crate) fn run(config: &Config, what: &cli::Token, out: Out) -> anyhow::Result<Exit> {
    let store = Store::of(&config.state_dir()?);
    match what {
        cli::Token::Create { scope, name } => {
            let name = name.clone().unwrap_or_else(|| config.operator.clone());
            let root = VaultRoot::open(config.vault()?)?;
            let (text, token) = token::create(&store, &name, as_scope(*scope), Utc::now())?;
            if let Err(e) =
                write_down(config, &root, (OperatorEventKind::TokenMade, format!("{}, {}", token.by(), token.scope)))
            {
                token::revoke(&store, &token.id)?;
                return Err(e.into());
            }
            out.value(&json!({"token": text, "id": token.id, "name": token.name, "scope": token.scope}), || {
                format!("{text}\nIt is not shown again. `steward token revoke {}` takes it away.", token.id)
            })?;
        }
        cli::Token::List => {
            let tokens = token::all(&store)?;
            out.value(&tokens, || {
                let mut rows = table(&["id", "name", "scope", "created"]);
                for token in &tokens {
                    let (id, name) = (token.id.clone(), shown(&token.name));
                    rows.add_row([id, name, token.scope.word().to_owned(), format_seconds(token.created_at)]);
                }
                rows.to_string()
            })?;
        }
        cli::Token::Revoke { id } => {
            let Some(token) = token::all(&store)?.into_iter().find(|token| token.id == *id) else {
                bail!("no token has the id `{}`: see `steward token list`", shown(id));
            };
            token::revoke(&store, id)?;
            // Taken away it is, whatever the disk says.
            write_down(config, &VaultRoot::open(config.vault()?)?, (OperatorEventKind::TokenRevoked, token.by()))?;
            out.value(&json!({"revoked": id}), || format!("revoked {}", shown(id)))?;
        }
    }
    Ok(Exit::Ok)
}

fn as_scope(scope: cli::TokenScope) -> Scope {
    match scope {
        cli::TokenScope::Read => Scope::Read,
        cli::TokenScope::Act => Scope::Act,
        cli::TokenScope::Operate => Scope::Operate,
    }
}

/// In the name of whoever types.
pub(super) fn write_down(
    config: &Config,
    root: &VaultRoot,
    (act, on): (OperatorEventKind, String),
) -> Result<(), OperatorLogError> {
    operator::append_event(
        root,
        &OperatorEvent { at: format_millis(Utc::now()), by: config.operator.clone(), act, on, from: None },
    )
}

/// Prints an address that logs in once.
pub(crate) fn login(config: &Config, login: &cli::Login, out: Out) -> anyhow::Result<Exit> {
    let root = VaultRoot::open(config.vault()?)?;
    let listens = config.listen.unwrap_or(steward_server::listen::DEFAULT);
    // Who listens knows by which name and key they are reached; this shell may have other settings.
    let door = Door::of(&root, &config.state_dir()?).unwrap_or_else(|| note::of_this_listener(config, listens).door);
    let name = login.name.as_deref().map_or_else(|| Ok(config.operator.clone()), access::name)?;
    let scope = as_scope(login.scope);
    let link = crate::web::invite(config, &door, (&name, scope))?;
    out.value(&json!({"link": link, "name": name, "scope": scope}), || {
        format!("{link}\nIt lets one person in, within an hour, as {} ({scope}).", shown(&name))
    })?;
    Ok(Exit::Ok)
}
