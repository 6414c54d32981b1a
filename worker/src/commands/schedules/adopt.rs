//! The command `steward schedules adopt`: takes over schedules whose vault was lost, copied or replaced.
//!
//! It prints the schedules first and asks for a confirmation. It changes only their marks; `up` and `schedules apply`
//! plan with them afterwards. If no server runs for this vault, it starts the server of `up` and stops it again.

use super::MOST_ROWS;
use crate::cli::output::{self, CommandExit, CommandOutput, escape_text, prompt_yes_no};
use crate::cli::table::create_table;
use crate::config::StewardConfig;
use crate::registrar::desired;
use crate::registrar::{OwnedSchedule, ScheduleRegistrar, describe_place};
use crate::temporal::{self, server::LocalTemporalServer};
use serde::Serialize;
use std::path::Path;
use steward_vault::action::writer::{LockError, VaultWriter};
use steward_vault::files::identity::VaultIdentity;
use steward_vault::files::root::VaultRoot;
use temporalio_client::Client;

/// The outcome of an adoption.
#[derive(Serialize)]
struct AdoptionReport {
    /// The schedules that belong to another vault, or may belong to one.
    schedules: Vec<OwnedSchedule>,
    adopted: usize,
    /// Why none was adopted.
    refused: Option<String>,
    errors: Vec<String>,
}

/// The identity of a vault, with the lock unless another process holds it.
pub(super) struct HeldIdentity {
    pub(super) identity: VaultIdentity,
    writer: Option<VaultWriter>,
}

/// Takes the lock of a vault and creates its identity if it has none. If another process holds the lock, only the
/// identity is read.
///
/// # Errors
/// When the vault cannot be written, or its `vault.json` cannot be read.
pub(super) fn acquire_identity(root: &VaultRoot) -> anyhow::Result<HeldIdentity> {
    match VaultWriter::lock(root.clone()) {
        Ok(writer) => Ok(HeldIdentity { identity: writer.identity().clone(), writer: Some(writer) }),
        Err(e @ LockError::Held { .. }) => {
            let identity = VaultIdentity::read(root)?.ok_or(e)?;
            Ok(HeldIdentity { identity, writer: None })
        }
        Err(e) => Err(e.into()),
    }
}

pub(super) async fn run(config: &StewardConfig, yes: bool, out: CommandOutput) -> anyhow::Result<CommandExit> {
    let held = acquire_identity(&VaultRoot::open(config.vault_folder()?)?)?;
    let has_database = config.state_dir()?.join("temporal.db").exists();
    if temporal::is_server_configured() || held.writer.is_none() || !has_database {
        let client = temporal::connect_client(config, Vec::new()).await?;
        return take_over_schedules(config, client, &held.identity, AdoptionPrompt { yes, out }).await;
    }
    let mut server = LocalTemporalServer::spawn(config).await?;
    let outcome = async {
        let client = server.connect(Vec::new).await?;
        take_over_schedules(config, client, &held.identity, AdoptionPrompt { yes, out }).await
    }
    .await;
    server.stop().await;
    outcome
}

/// How a person is asked for the confirmation, and how the outcome is printed.
struct AdoptionPrompt {
    /// Given on the command line, so nobody is asked.
    yes: bool,
    out: CommandOutput,
}

async fn take_over_schedules(
    config: &StewardConfig,
    client: Client,
    identity: &VaultIdentity,
    AdoptionPrompt { yes, out }: AdoptionPrompt,
) -> anyhow::Result<CommandExit> {
    let namespace = client.options().namespace.clone();
    let registrar =
        desired::build_registrar(client, config, Some(identity.clone()), |_| ()).with_progress(output::print_progress);
    let found = registrar.list_adoptable().await.map_err(|e| anyhow::anyhow!("failed to {e}"))?;
    if found.is_empty() {
        let nothing = AdoptionReport { schedules: found, adopted: 0, refused: None, errors: Vec::new() };
        out.print_value(&nothing, || {
            format!("nothing to adopt: namespace `{namespace}` holds no schedules of another vault")
        })?;
        return Ok(CommandExit::Ok);
    }
    out.print_text(&render_adoption_table(&found))?;
    let question = format!("Assign these {} schedules to the vault {}?", found.len(), identity.place.folder);
    let refused =
        find_serving_process(&found, identity).or_else(|| match yes || (!out.json && prompt_yes_no(&question)) {
            true => None,
            false => Some("nothing was changed: check the list, then run the command again with --yes".to_owned()),
        });
    if let Some(refused) = refused {
        let adoption =
            AdoptionReport { schedules: found, adopted: 0, refused: Some(refused.clone()), errors: Vec::new() };
        out.print_value(&adoption, || refused)?;
        return Ok(CommandExit::Refused);
    }
    let errors = adopt_schedules(&registrar, &found).await;
    let adoption = AdoptionReport { adopted: found.len() - errors.len(), schedules: found, refused: None, errors };
    out.print_value(&adoption, || {
        let mut lines: Vec<String> = adoption.errors.iter().map(|e| format!("failed to {}", escape_text(e))).collect();
        lines.push(format!("{} schedules adopted; `steward up` uses them from now on", adoption.adopted));
        lines.join("\n")
    })?;
    Ok(if adoption.errors.is_empty() { CommandExit::Ok } else { CommandExit::Faults })
}

async fn adopt_schedules(registrar: &ScheduleRegistrar, found: &[OwnedSchedule]) -> Vec<String> {
    let ids = found.iter().map(|each| each.id.clone()).collect();
    registrar.adopt_all(ids).await.into_iter().map(|e| e.to_string()).collect()
}

/// Finds a process of this machine that serves the vault of these schedules, and describes why it must stop first.
fn find_serving_process(found: &[OwnedSchedule], ours: &VaultIdentity) -> Option<String> {
    let places = found.iter().filter_map(|each| each.place.as_ref());
    let local = places.filter(|place| place.host == ours.place.host && place.folder != ours.place.folder);
    local
        .filter_map(|place| {
            let holder = VaultWriter::find_lock_holder(&VaultRoot::open(Path::new(&place.folder)).ok()?)?;
            Some(format!("{holder} serves the vault in {}: stop it first, or give it another namespace", place.folder))
        })
        .next()
}

fn render_adoption_table(found: &[OwnedSchedule]) -> String {
    let mut rows = create_table(&["schedule", "vault", "registered in", "state"], &["schedule", "registered in"]);
    for each in found.iter().take(MOST_ROWS) {
        rows.add_row(vec![
            escape_text(&each.id),
            each.vault.map_or_else(|| "none".to_owned(), |vault| vault.to_string()),
            each.place.as_ref().map(|place| escape_text(&describe_place(place))).unwrap_or_default(),
            if each.paused { "paused" } else { "active" }.to_owned(),
        ]);
    }
    let mut text = rows.to_string();
    if found.len() > MOST_ROWS {
        text.push_str(&format!("\n… {} in all; `steward schedules adopt --json` lists them", found.len()));
    }
    text
}
