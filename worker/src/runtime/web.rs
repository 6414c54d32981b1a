//! Starts the dashboard and the control API of this process: the listener, the router and the login links.
//!
//! This module only translates the configuration into what [`steward_server`] needs. It must not hold a vault writer or
//! call an activity.

use crate::config::StewardConfig;
use crate::config::mapping::{describe_acceptance, describe_differences, read_proposal};
use crate::temporal::note::{self, EffectiveHolderSettings, ServerEndpoint};
use anyhow::Context;
use chrono::Utc;
use prometheus::Registry;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use steward_server::access::host::{AllowedHosts, is_reachable_remotely};
use steward_server::access::{AccessScope, SecretStore, link};
use steward_server::http::app;
use steward_server::http::dependencies::{AppDependencies, MappingCheck};
use steward_server::http::listen::{BoundListener, DEFAULT_ADDRESS, RunningServer, TransportSettings};
use steward_server::http::pulse::LoopPulse;
use steward_server::http::settings::DashboardSettings;
use steward_vault::files::root::VaultRoot;
use steward_vault::index::Index;
use steward_vault::steward::guard::Ledger;
use temporalio_client::Client;
use tokio::sync::watch;

/// Binds the address. Every request gets 503 until a [`WebInterface`] serves it.
///
/// # Errors
/// The address is taken or not one of this machine, or the certificate is unusable. The message names the setting.
pub(crate) async fn bind_listener(
    config: &StewardConfig,
    stop: watch::Receiver<bool>,
) -> anyhow::Result<RunningServer> {
    let bound = BoundListener::bind(config.listen).await.with_context(|| {
        let address = config.listen.unwrap_or(steward_server::http::listen::DEFAULT_ADDRESS);
        format!("cannot listen on {address}: set STEWARD_LISTEN to a free address of this machine")
    })?;
    if is_reachable_remotely(bound.address) && config.tls.is_none() && config.trusted_proxies.is_empty() {
        tracing::warn!(
            address = %bound.address,
            "other machines can reach the dashboard without encryption: set STEWARD_TLS_CERT and STEWARD_TLS_KEY, \
             or put a proxy in front of it and name it in STEWARD_TRUSTED_PROXIES"
        );
    }
    Ok(bound
        .serve(TransportSettings { certificate: config.tls.clone(), proxies: config.trusted_proxies.clone() }, stop)?)
}

/// The parts that the dashboard and the API show.
pub(crate) struct WebInterface {
    pub(crate) client: Client,
    pub(crate) root: VaultRoot,
    pub(crate) index: Arc<Index>,
    pub(crate) ledger: Option<Arc<Ledger>>,
    pub(crate) settings: DashboardSettings,
    pub(crate) pulse: LoopPulse,
    /// What `/metrics` shows of this process.
    pub(crate) metrics: Registry,
}

/// The settings that the dashboard shows if no other process holds the vault.
///
/// `ui` is the Temporal UI of a server that this process started; it precedes the configured one.
pub(crate) fn build_dashboard_settings(config: &StewardConfig, namespace: &str, ui: Option<&str>) -> DashboardSettings {
    let ui = ui.or(config.temporal_ui.as_deref());
    DashboardSettings {
        policy: config.policy.clone(),
        cadence: config.cadence,
        default_ceiling: config.default_ceiling,
        caps: config.caps,
        task_queue: config.task_queue.clone(),
        temporal_ui: ui.map(|ui| format!("{ui}/namespaces/{namespace}")),
        clerk: config.clerk.as_str().to_owned(),
        tracker: EffectiveHolderSettings::from_config(config).tracker,
        streams: config.list_stream_names(),
        reversal_budget: config.reversal_budget,
        live_per_source_day: config.live_per_source_day,
        origins: config.origins.describe_all(),
        scan_every: Duration::from_secs(config.scan_seconds),
        warnings: config.warnings.clone(),
    }
}

impl WebInterface {
    /// Serves all requests to a listener until `stop` is set.
    ///
    /// # Errors
    /// The session key can be neither read nor created.
    pub(crate) fn serve_requests(
        self,
        config: &StewardConfig,
        server: &RunningServer,
        stop: watch::Receiver<bool>,
    ) -> anyhow::Result<()> {
        server.replace_router(app::build_router(AppDependencies {
            root: self.root,
            index: self.index,
            client: self.client,
            names: config.vault_names(),
            ledger: self.ledger,
            store: SecretStore::new(&config.state_dir()?),
            hosts: AllowedHosts::from_address(server.address, &config.hosts),
            proxies: config.trusted_proxies.clone(),
            encrypted: config.tls.is_some(),
            certificate_end: server.certificate_end.clone(),
            settings: self.settings,
            assistants: config.mcp.then(|| config.attachments.clone()),
            mapping_check: build_mapping_check(config),
            pulse: self.pulse,
            process_metrics: self.metrics,
            stop,
        })?);
        Ok(())
    }
}

/// Compares `[map]` in the vault with the mapping in force, each time it is asked. A vault without one has no differences.
fn build_mapping_check(config: &StewardConfig) -> MappingCheck {
    let accepted = config.mapping.accepted().map(|accepted| accepted.mapping.clone());
    let vault = config.vault_folder().ok().map(Path::to_owned);
    Arc::new(move || match (&accepted, &vault) {
        (Some(accepted), Some(vault)) => {
            let differences = describe_differences(accepted, read_proposal(vault));
            let advice = describe_acceptance(&differences);
            differences.into_iter().map(|difference| format!("{difference}; {advice}")).collect()
        }
        _ => Vec::new(),
    })
}

/// The address at which a browser reaches the dashboard of a vault, if one runs.
///
/// # Errors
/// The state folder cannot be found.
pub(crate) fn find_dashboard(config: &StewardConfig, root: &VaultRoot) -> anyhow::Result<Option<String>> {
    let endpoint = ServerEndpoint::find_for_vault(root, &config.state_dir()?);
    Ok(endpoint.map(|endpoint| endpoint.build_address(!config.trusted_proxies.is_empty())))
}

/// Creates a URL that logs the operator in, once, with every permission.
///
/// # Errors
/// The state folder cannot be written.
pub(crate) fn create_operator_login_link(config: &StewardConfig, address: SocketAddr) -> anyhow::Result<String> {
    create_login_link(
        config,
        &note::describe_this_listener(config, address).endpoint,
        &config.operator,
        AccessScope::Operate,
    )
}

/// Creates a URL at this endpoint that logs a person in, once, under this name and with this scope.
///
/// # Errors
/// The state folder cannot be written.
pub(crate) fn create_login_link(
    config: &StewardConfig,
    endpoint: &ServerEndpoint,
    name: &str,
    scope: AccessScope,
) -> anyhow::Result<String> {
    let link = link::create_link(&SecretStore::new(&config.state_dir()?), name, scope, Utc::now())?;
    Ok(format!("{}/login?link={link}", build_server_url(config, endpoint)))
}

/// The URL under which people reach the server of this process.
pub(crate) fn describe_server(config: &StewardConfig, address: SocketAddr) -> String {
    build_server_url(config, &note::describe_this_listener(config, address).endpoint)
}

/// The URL of the server of a vault: as the listening process knows it, else as it would be.
///
/// # Errors
/// There is no vault.
pub(crate) fn find_server_url(config: &StewardConfig) -> anyhow::Result<String> {
    Ok(build_server_url(config, &find_endpoint(config)?))
}

/// The endpoint of the process that listens for a vault. It knows the name and certificate by which it is reached; this shell may have
/// other settings, which count if nobody listens.
///
/// # Errors
/// There is no vault.
pub(crate) fn find_endpoint(config: &StewardConfig) -> anyhow::Result<ServerEndpoint> {
    let root = VaultRoot::open(config.vault_folder()?)?;
    let listen = config.listen.unwrap_or(DEFAULT_ADDRESS);
    let own = || note::describe_this_listener(config, listen).endpoint;
    Ok(ServerEndpoint::find_for_vault(&root, &config.state_dir()?).unwrap_or_else(own))
}

fn build_server_url(config: &StewardConfig, endpoint: &ServerEndpoint) -> String {
    endpoint.build_address(!config.trusted_proxies.is_empty())
}
