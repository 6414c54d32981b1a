//! The command `steward status --healthz`: asks the running process whether it is alive, for the health check of a
//! container that holds no other program.
//!
//! It reads one small record and sends one request to this machine. It opens no database, so it costs nothing to run it
//! every few seconds.

use crate::cli::output::{CommandExit, CommandOutput};
use crate::config::StewardConfig;
use crate::temporal::note::ServerEndpoint;
use anyhow::{Context, bail};
use serde_json::json;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;
use steward_vault::files::root::VaultRoot;

/// How long the process may take to answer: 5 s.
const PATIENCE: Duration = Duration::from_secs(5);

pub(crate) async fn run(config: &StewardConfig, out: CommandOutput) -> anyhow::Result<CommandExit> {
    let root = VaultRoot::open(config.vault_folder()?)?;
    let endpoint = ServerEndpoint::find_for_vault(&root, &config.state_dir()?)
        .context("no process of this vault listens: start `steward up`")?;
    let url = format!("{}/healthz", ServerEndpoint { listen: find_own_address(endpoint.listen), ..endpoint }.to_url());
    let _ = rustls::crypto::ring::default_provider().install_default();
    // The certificate names the host that people use, not this address. Nothing secret is sent.
    let client =
        reqwest::Client::builder().no_proxy().timeout(PATIENCE).tls_danger_accept_invalid_certs(true).build()?;
    let response = client.get(&url).send().await.with_context(|| format!("{url} does not answer"))?;
    if !response.status().is_success() {
        bail!("{url}: {}", response.text().await?);
    }
    out.print_value(&json!({"healthz": "ok"}), || "ok".to_owned())?;
    Ok(CommandExit::Ok)
}

/// The address at which this machine reaches a server that listens on all addresses.
fn find_own_address(listen: SocketAddr) -> SocketAddr {
    let ip = match listen.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, listen.port())
}
