//! Connects to the Temporal server: the configured one, or the one that `steward up` runs.
//!
//! If `TEMPORAL_ADDRESS` or a Temporal profile is set, that server is used, and no other server must be started.
//! Otherwise `steward up` starts the CLI's development server on loopback. Its database lies in the state folder,
//! beside a note through which the other commands find the server.

#[cfg(test)]
pub(crate) mod test_server;
use crate::config::StewardConfig;
use anyhow::{Context, bail};
use note::VaultHolder;
use std::collections::HashMap;
use std::time::{Duration, Instant};
use steward_vault::files::root::VaultRoot;
use temporalio_client::{Client, ClientOptions, Connection, ConnectionOptions, GrpcCompression, NamespacedClient};
use temporalio_common::envconfig::{LoadClientConfigProfileOptions, load_client_config_profile};
use temporalio_sdk::plugins::SimplePlugin;

pub(crate) mod clock;
pub(crate) mod note;
pub(crate) mod pollers;
pub(crate) mod ports;
pub(crate) mod search_attributes;
pub(crate) mod server;
pub(crate) mod start_retry;

/// How long a running server may take to answer: 15 s.
const PATIENCE: Duration = Duration::from_secs(15);
/// How long the holder of a vault may take to write down which server it uses: 60 s.
pub(crate) const HOLDER_PATIENCE: Duration = Duration::from_secs(60);
/// How often the holder's note is checked: 200 ms.
pub(crate) const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// Whether the environment names a server.
pub(crate) fn is_server_configured() -> bool {
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    ["TEMPORAL_ADDRESS", "TEMPORAL_PROFILE", "TEMPORAL_CONFIG_FILE"].into_iter().any(is_set)
}

/// Connects to the configured server, or to the one that `steward up` runs.
///
/// # Errors
/// There is no server, or it does not answer. The message names the address and the fix.
pub(crate) async fn connect_client(config: &StewardConfig, plugins: Vec<SimplePlugin>) -> anyhow::Result<Client> {
    if is_server_configured() {
        let hint = "TEMPORAL_ADDRESS (or your Temporal profile) to its address";
        return open_client(read_environment_options()?, plugins, hint).await;
    }
    connect_to_address(&read_holder_address(config)?, plugins).await
}

/// As [`connect_client`], repeated while the server does not answer in time. For long-running processes.
///
/// # Errors
/// As [`connect_client`], except that a missing answer is not an error.
pub(crate) async fn connect_patiently(
    config: &StewardConfig,
    plugins: impl Fn() -> Vec<SimplePlugin>,
) -> anyhow::Result<Client> {
    let address = find_server_address(config)?;
    start_retry::retry_unanswered("connect", &address, async || connect_client(config, plugins()).await).await
}

/// Whether no server is configured and no process holds the vault, so that a command has to work alone.
///
/// Waits while the holder has not written down yet which server it uses.
///
/// # Errors
/// There is no vault.
pub(crate) async fn is_nothing_running(config: &StewardConfig) -> anyhow::Result<bool> {
    if is_server_configured() {
        return Ok(false);
    }
    let (root, state) = (VaultRoot::open(config.vault_folder()?)?, config.state_dir()?);
    let begun = Instant::now();
    let mut clock = tokio::time::interval(LOOK_AGAIN);
    loop {
        clock.tick().await;
        match VaultHolder::read(&root, &state) {
            VaultHolder::Nobody | VaultHolder::Died(_) => return Ok(true),
            VaultHolder::Silent(_) if begun.elapsed() < HOLDER_PATIENCE => {}
            VaultHolder::Silent(_) | VaultHolder::Runs(_) => return Ok(false),
        }
    }
}

/// Connects to the server of `TEMPORAL_ADDRESS`, whether or not its namespace exists.
///
/// # Errors
/// None is set, or it does not answer.
pub(crate) async fn connect_configured() -> anyhow::Result<Client> {
    if !is_server_configured() {
        bail!("set TEMPORAL_ADDRESS and TEMPORAL_NAMESPACE to the Temporal server of the fleet");
    }
    open_client(read_environment_options()?, Vec::new(), "TEMPORAL_ADDRESS").await
}

/// The address of the configured server, or of the one that `steward up` runs.
///
/// # Errors
/// As [`connect_client`], but without a call to the server.
pub(crate) fn find_server_address(config: &StewardConfig) -> anyhow::Result<String> {
    if is_server_configured() {
        Ok(read_environment_options()?.connection.target.to_string())
    } else {
        read_holder_address(config)
    }
}

/// The task queue that the holder of the vault serves, which may be another one than is set here.
pub(crate) fn read_served_queue(config: &StewardConfig, holder: &VaultHolder) -> String {
    match holder {
        VaultHolder::Runs(record) => record.task_queue.clone(),
        VaultHolder::Died(_) | VaultHolder::Silent(_) | VaultHolder::Nobody => config.task_queue.clone(),
    }
}

/// The address in the note of a running `steward up`.
fn read_holder_address(config: &StewardConfig) -> anyhow::Result<String> {
    let root = config.vault_folder().ok().and_then(|vault| VaultRoot::open(vault).ok());
    let note = match root
        .map(|root| Ok::<_, anyhow::Error>(VaultHolder::read(&root, &config.state_dir()?)))
        .transpose()?
    {
        Some(VaultHolder::Runs(note)) => note,
        Some(VaultHolder::Died(note)) => bail!(
            "no Temporal server is set, and the `steward {}` of this vault (process {}) has ended: start `steward up`, \
             or set TEMPORAL_ADDRESS",
            note.command,
            note.pid
        ),
        Some(VaultHolder::Silent(holder)) => bail!(
            "no Temporal server is set, and {holder}, which holds this vault, has not written down yet which one it \
             uses: try again in a moment, or set TEMPORAL_ADDRESS"
        ),
        Some(VaultHolder::Nobody) | None => bail!(
            "no Temporal server is set, and no `steward up` runs for this vault: start `steward up`, or set \
             TEMPORAL_ADDRESS"
        ),
    };
    if note.server_pid.is_none() {
        bail!(
            "no Temporal server is set here, and process {} serves this vault with a server of its own: set \
             TEMPORAL_ADDRESS to {}",
            note.pid,
            note.address
        );
    }
    Ok(note.address)
}

/// Connects to the server that `steward up` runs.
///
/// # Errors
/// The server does not answer. The message names the address and the fix.
pub(crate) async fn connect_to_address(address: &str, plugins: Vec<SimplePlugin>) -> anyhow::Result<Client> {
    let hint = "TEMPORAL_ADDRESS to another address; this one is from the note of `steward up`";
    open_client(build_options(address)?, plugins, hint).await
}

/// The options for a connection and for the client that uses it.
struct TemporalOptions {
    connection: ConnectionOptions,
    client: ClientOptions,
}

/// Connects; `hint` reads after "set" in the error message.
async fn open_client(options: TemporalOptions, plugins: Vec<SimplePlugin>, hint: &str) -> anyhow::Result<Client> {
    let TemporalOptions { mut connection, client } = options;
    let client = ClientOptions::new(client.namespace).plugins(plugins).build();
    let address = connection.target.to_string();
    if matches!(connection.target.host_str(), Some("127.0.0.1" | "localhost" | "[::1]")) {
        // On one machine compression only costs processor time at both ends.
        connection.grpc_compression = GrpcCompression::None;
    }
    let connection = tokio::time::timeout(PATIENCE, Connection::connect(connection))
        .await
        .map_err(anyhow::Error::from)
        .and_then(|connected| Ok(connected?))
        .with_context(|| format!("the Temporal server at {address} does not answer: start it, or set {hint}"))?;
    Ok(Client::new(connection, client)?)
}

fn read_environment_options() -> anyhow::Result<TemporalOptions> {
    // By default the SDK reads every variable and panics at the first one that is not UTF-8.
    let mut variables = HashMap::new();
    for (name, value) in std::env::vars_os() {
        let Ok(name) = name.into_string() else { continue };
        match value.into_string() {
            Ok(value) => drop(variables.insert(name, value)),
            Err(_) if name.starts_with("TEMPORAL_") => {
                bail!("the environment variable {name} is not UTF-8: set it to valid UTF-8 text")
            }
            Err(_) => {}
        }
    }
    let profile = load_client_config_profile(LoadClientConfigProfileOptions::default(), Some(&variables));
    let options = profile.and_then(|profile| {
        let namespace = profile.namespace.clone().unwrap_or_else(|| "default".into());
        let connection = ConnectionOptions::try_from(profile)?;
        Ok(TemporalOptions { connection, client: ClientOptions::new(namespace).build() })
    });
    options.map_err(|e| anyhow::anyhow!("failed to read the settings of Temporal (TEMPORAL_…): {e}"))
}

fn build_options(address: &str) -> anyhow::Result<TemporalOptions> {
    let url = temporalio_client::Url::parse(&format!("http://{address}"))
        .context("failed to read the address of the Temporal server")?;
    let client = ClientOptions::new(configured_namespace()).build();
    Ok(TemporalOptions { connection: ConnectionOptions::new(url).build(), client })
}

/// The configured namespace, for a server that `steward up` runs.
pub(crate) fn configured_namespace() -> String {
    std::env::var("TEMPORAL_NAMESPACE").ok().filter(|name| !name.is_empty()).unwrap_or_else(|| "default".into())
}

/// Whether the namespace is ready; the server listens a moment before it is.
pub(crate) async fn is_namespace_ready(client: &Client) -> bool {
    use temporalio_common::protos::temporal::api::workflowservice::v1::ListSchedulesRequest;
    let request = ListSchedulesRequest {
        namespace: client.namespace().to_owned(),
        maximum_page_size: 1,
        ..ListSchedulesRequest::default()
    };
    let mut service = client.connection().workflow_service();
    service.list_schedules(temporalio_client::tonic::IntoRequest::into_request(request)).await.is_ok()
}
