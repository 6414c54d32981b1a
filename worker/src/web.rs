//! The dashboard and the control API of this process: the address, the router, the way in.
//!
//! Wiring and nothing else: what is set becomes what [`steward_server`] needs. It holds no keeper and calls no activity.

mod faces;

pub(crate) use faces::Faces;

use crate::config::Config;
use anyhow::Context;
use axum::Router;
use chrono::Utc;
use std::net::SocketAddr;
use std::sync::Arc;
use steward_server::access::host::{Hosts, is_open};
use steward_server::access::{Scope, Store, link};
use steward_server::answer::Answers;
use steward_server::app::{self, House, Parts};
use steward_server::listen::Listening;
use steward_vault::guard::Ledger;
use steward_vault::index::Index;
use steward_vault::root::Root;
use temporalio_client::Client;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Takes the address.
///
/// # Errors
/// When it is taken or not this machine's; the message names the setting.
pub(crate) async fn bind(config: &Config) -> anyhow::Result<Listening> {
    let listening = Listening::bind(config.listen).await.with_context(|| {
        let wanted = config.listen.unwrap_or(steward_server::listen::DEFAULT);
        format!("cannot listen on {wanted}: set STEWARD_LISTEN to an address of this machine that is free")
    })?;
    if is_open(listening.address) && config.tls.is_none() && config.trusted_proxies.is_empty() {
        tracing::warn!(
            address = %listening.address,
            "others than this machine can reach the dashboard, and nothing is encrypted: set STEWARD_TLS_CERT and STEWARD_TLS_KEY, or put a proxy before it and name it in \
                STEWARD_TRUSTED_PROXIES"
        );
    }
    Ok(listening)
}

/// What is served.
pub(crate) struct Web {
    pub(crate) client: Client,
    pub(crate) root: Root,
    pub(crate) index: Arc<Index>,
    pub(crate) ledger: Option<Arc<Ledger>>,
    pub(crate) house: House,
}

/// What is shown of what is set, where this process and no other decides.
///
/// The Temporal UI is that of the server which this process started, where it did.
pub(crate) fn house(config: &Config, namespace: &str, ui: Option<&str>) -> House {
    let ui = ui.or(config.temporal_ui.as_deref());
    House {
        policy: config.policy.clone(),
        cadence: config.cadence,
        default_ceiling: config.default_ceiling,
        task_queue: config.task_queue.clone(),
        temporal_ui: ui.map(|ui| format!("{ui}/namespaces/{namespace}")),
        clerk: config.clerk.word(),
        tracker: config.tracker.as_ref().map(|tracker| tracker.base_url.clone()),
        streams: config.stream_names(),
        warnings: config.warnings.clone(),
    }
}

impl Web {
    /// Serves until the flag is raised.
    ///
    /// # Errors
    /// When the keys of sessions and of the command can be neither read nor made.
    pub(crate) fn serve(
        self,
        config: &Config,
        listening: Listening,
        stop: watch::Receiver<bool>,
    ) -> anyhow::Result<JoinHandle<()>> {
        let router = self.router(config, listening.address, stop.clone())?;
        Ok(listening.serve(router, config.tls.clone(), stop)?)
    }

    /// What is served there, until the flag is raised.
    fn router(self, config: &Config, address: SocketAddr, stop: watch::Receiver<bool>) -> anyhow::Result<Router> {
        Ok(app::router(Parts {
            root: self.root,
            index: self.index,
            answers: Answers::new(self.client.clone(), &self.house.task_queue),
            client: self.client,
            ledger: self.ledger,
            store: Store::of(&config.state_dir()?),
            hosts: Hosts::of(address, &config.hosts),
            proxies: config.trusted_proxies.clone(),
            encrypted: config.tls.is_some(),
            house: self.house,
            stop,
        })?)
    }
}

/// An address that logs a person in, once, with everything that a person may do.
///
/// # Errors
/// When nothing can be written into the state folder.
pub(crate) fn invitation(config: &Config, address: SocketAddr) -> anyhow::Result<String> {
    let link = link::create(&Store::of(&config.state_dir()?), &config.operator, Scope::Operate, Utc::now())?;
    // Every address of a machine is none that a browser could be sent to; without a name it is this machine's own.
    let own = if address.ip().is_unspecified() { format!("127.0.0.1:{}", address.port()) } else { address.to_string() };
    let proxied = !config.trusted_proxies.is_empty() && !config.hosts.is_empty();
    let scheme = if config.tls.is_some() || proxied { "https" } else { "http" };
    let host = match config.hosts.first() {
        Some(name) if proxied || name.contains(':') => name.clone(),
        Some(name) => format!("{name}:{}", address.port()),
        None => own,
    };
    Ok(format!("{scheme}://{host}/login?link={link}"))
}
