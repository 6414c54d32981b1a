//! The dashboard and the control API of this process: the address, the router, the way in.
//!
//! Wiring and nothing else: what is set becomes what [`steward_server`] needs. It holds no keeper and calls no activity.

mod faces;

pub(crate) use faces::Faces;

use crate::config::Config;
use crate::temporal::note::{self, Door, HeldSettings};
use anyhow::Context;
use axum::Router;
use chrono::Utc;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use steward_server::access::host::{Hosts, is_open};
use steward_server::access::{Scope, Store, link};
use steward_server::answer::Answers;
use steward_server::app::{self, House, Parts};
use steward_server::listen::{Listening, Serving, Way};
use steward_vault::guard::Ledger;
use steward_vault::index::Index;
use steward_vault::root::VaultRoot;
use temporalio_client::Client;
use tokio::sync::watch;

/// Takes the address, and tells everybody there to come again until there is a [`Web`].
///
/// # Errors
/// When it is taken or not this machine's, or the certificate cannot be used; the message names the setting.
pub(crate) async fn bind(config: &Config, stop: watch::Receiver<bool>) -> anyhow::Result<Serving> {
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
    Ok(listening.serve(Way { certificate: config.tls.clone(), proxies: config.trusted_proxies.clone() }, stop)?)
}

/// What is served.
pub(crate) struct Web {
    pub(crate) client: Client,
    pub(crate) root: VaultRoot,
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
        tracker: HeldSettings::of(config).tracker,
        streams: config.stream_names(),
        scan_every: Duration::from_secs(config.scan_seconds),
        warnings: config.warnings.clone(),
    }
}

impl Web {
    /// Answers whoever comes to an address, until the flag is raised.
    ///
    /// # Errors
    /// When the keys of sessions and of the command can be neither read nor made.
    pub(crate) fn answer(self, config: &Config, at: &Serving, stop: watch::Receiver<bool>) -> anyhow::Result<()> {
        at.answer_with(self.router(config, at.address, stop)?);
        Ok(())
    }

    /// What answers there, until the flag is raised.
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

/// An address that logs the operator in, once, with everything that a person may do.
///
/// # Errors
/// When nothing can be written into the state folder.
pub(crate) fn invitation(config: &Config, address: SocketAddr) -> anyhow::Result<String> {
    invite(config, &note::of_this_listener(config, address).door, (&config.operator, Scope::Operate))
}

/// An address behind this door that logs somebody in, once, under this name and with this scope.
///
/// # Errors
/// When nothing can be written into the state folder.
pub(crate) fn invite(config: &Config, door: &Door, (name, scope): (&str, Scope)) -> anyhow::Result<String> {
    let address = door.listen;
    let link = link::create(&Store::of(&config.state_dir()?), name, scope, Utc::now())?;
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
