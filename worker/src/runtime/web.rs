//! The dashboard and the control API of this process: the address, the router, the way in.
//!
//! Wiring and nothing else: what is set becomes what [`steward_server`] needs. It holds no keeper and calls no activity.

use crate::config::StewardConfig;
use crate::temporal::note::{self, EffectiveHolderSettings, ServerEndpoint};
use anyhow::Context;
use chrono::Utc;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use steward_server::access::host::{AllowedHosts, is_reachable_remotely};
use steward_server::access::{AccessScope, SecretStore, link};
use steward_server::http::app::{self, AppDependencies, DashboardSettings};
use steward_server::http::listen::{BoundListener, RunningServer, TransportSettings};
use steward_vault::files::root::VaultRoot;
use steward_vault::index::Index;
use steward_vault::steward::guard::Ledger;
use temporalio_client::Client;
use tokio::sync::watch;

/// Takes the address, and tells everybody there to come again until there is a [`WebInterface`].
///
/// # Errors
/// When it is taken or not this machine's, or the certificate cannot be used; the message names the setting.
pub(crate) async fn bind_listener(
    config: &StewardConfig,
    stop: watch::Receiver<bool>,
) -> anyhow::Result<RunningServer> {
    let listening = BoundListener::bind(config.listen).await.with_context(|| {
        let wanted = config.listen.unwrap_or(steward_server::http::listen::DEFAULT);
        format!("cannot listen on {wanted}: set STEWARD_LISTEN to an address of this machine that is free")
    })?;
    if is_reachable_remotely(listening.address) && config.tls.is_none() && config.trusted_proxies.is_empty() {
        tracing::warn!(
            address = %listening.address,
            "others than this machine can reach the dashboard, and nothing is encrypted: set STEWARD_TLS_CERT and STEWARD_TLS_KEY, or put a proxy before it and name it in \
                STEWARD_TRUSTED_PROXIES"
        );
    }
    Ok(listening
        .serve(TransportSettings { certificate: config.tls.clone(), proxies: config.trusted_proxies.clone() }, stop)?)
}

/// What is served.
pub(crate) struct WebInterface {
    pub(crate) client: Client,
    pub(crate) root: VaultRoot,
    pub(crate) index: Arc<Index>,
    pub(crate) ledger: Option<Arc<Ledger>>,
    pub(crate) settings: DashboardSettings,
}

/// What is shown of what is set, where no other process holds the vault.
///
/// The Temporal UI is that of the server which this process started, where it did.
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
        scan_every: Duration::from_secs(config.scan_seconds),
        warnings: config.warnings.clone(),
    }
}

impl WebInterface {
    /// Answers whoever comes to an address, until the flag is raised.
    ///
    /// # Errors
    /// When the key of sessions can be neither read nor made.
    pub(crate) fn serve_requests(
        self,
        config: &StewardConfig,
        at: &RunningServer,
        stop: watch::Receiver<bool>,
    ) -> anyhow::Result<()> {
        at.replace_router(app::build_router(AppDependencies {
            root: self.root,
            index: self.index,
            client: self.client,
            ledger: self.ledger,
            store: SecretStore::new(&config.state_dir()?),
            hosts: AllowedHosts::from_address(at.address, &config.hosts),
            proxies: config.trusted_proxies.clone(),
            encrypted: config.tls.is_some(),
            settings: self.settings,
            stop,
        })?);
        Ok(())
    }
}

/// An address that logs the operator in, once, with everything that a person may do.
///
/// # Errors
/// When nothing can be written into the state folder.
pub(crate) fn create_operator_login_link(config: &StewardConfig, address: SocketAddr) -> anyhow::Result<String> {
    create_login_link(
        config,
        &note::describe_this_listener(config, address).door,
        (&config.operator, AccessScope::Operate),
    )
}

/// An address behind this door that logs somebody in, once, under this name and with this scope.
///
/// # Errors
/// When nothing can be written into the state folder.
pub(crate) fn create_login_link(
    config: &StewardConfig,
    door: &ServerEndpoint,
    (name, scope): (&str, AccessScope),
) -> anyhow::Result<String> {
    let address = door.listen;
    let link = link::create_link(&SecretStore::new(&config.state_dir()?), name, scope, Utc::now())?;
    // Every address of a machine is none that a browser could be sent to; without a name it is this machine's own.
    let own = if address.ip().is_unspecified() { format!("127.0.0.1:{}", address.port()) } else { address.to_string() };
    let proxied = !config.trusted_proxies.is_empty() && door.host.is_some();
    let scheme = if door.encrypted || proxied { "https" } else { "http" };
    let host = match &door.host {
        Some(name) if proxied || name.contains(':') => name.clone(),
        Some(name) => format!("{name}:{}", address.port()),
        None => own,
    };
    Ok(format!("{scheme}://{host}/login?link={link}"))
}
