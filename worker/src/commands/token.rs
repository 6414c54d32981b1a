//! `steward token create|list|revoke` and `steward login`: who may use the control API and the dashboard.
//!
//! They write into the state folder, where every process of the vault looks at each request, so they need no server.

use crate::cli;
use crate::config::Config;
use crate::out::{Exit, Out, shown, table};
use crate::temporal::note::Door;
use anyhow::bail;
use chrono::Utc;
use serde_json::json;
use steward_domain::time::seconds;
use steward_server::access::{Scope, Store, token};
use steward_vault::root::Root;

pub(crate) fn run(config: &Config, what: &cli::Token, out: Out) -> anyhow::Result<Exit> {
    let store = Store::of(&config.state_dir()?);
    match what {
        cli::Token::Create { scope, name } => {
            let scope = match scope {
                cli::TokenScope::Read => Scope::Read,
                cli::TokenScope::Act => Scope::Act,
                cli::TokenScope::Operate => Scope::Operate,
            };
            let name = name.clone().unwrap_or_else(|| config.operator.clone());
            let (text, token) = token::create(&store, &name, scope, Utc::now())?;
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
                    rows.add_row([id, name, token.scope.word().to_owned(), seconds(token.created_at)]);
                }
                rows.to_string()
            })?;
        }
        cli::Token::Revoke { id } => {
            if !token::revoke(&store, id)? {
                bail!("no token has the id `{}`: see `steward token list`", shown(id));
            }
            out.value(&json!({"revoked": id}), || format!("revoked {}", shown(id)))?;
        }
    }
    Ok(Exit::Ok)
}

/// Prints an address that logs in once.
pub(crate) fn login(config: &Config, out: Out) -> anyhow::Result<Exit> {
    let root = Root::open(config.vault()?)?;
    let address = Door::of(&root, &config.state_dir()?).map(|door| door.listen);
    let address = address.or(config.listen).unwrap_or(steward_server::listen::DEFAULT);
    let link = crate::web::invitation(config, address)?;
    out.value(&json!({"link": link}), || format!("{link}\nIt lets one person in, within an hour."))?;
    Ok(Exit::Ok)
}
