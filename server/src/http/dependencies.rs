//! What the interfaces need from the process in which they run.
//!
//! The process gathers it once, when it starts.

use crate::access::{SecretStore, host::AllowedHosts, proxy::TrustedProxies};
use crate::http::pulse::LoopPulse;
use crate::http::settings::DashboardSettings;
use crate::mcp::attachments::AttachmentsByWiki;
use chrono::{DateTime, Utc};
use prometheus::Registry;
use std::sync::Arc;
use steward_domain::fleet::names::VaultNames;
use steward_vault::files::root::VaultRoot;
use steward_vault::index::Index;
use steward_vault::steward::guard::Ledger;
use temporalio_client::Client;
use tokio::sync::watch;

/// Lists how `[map]` in the vault's `steward.toml` differs from the mapping in force. It reads that small file each time.
pub type MappingCheck = Arc<dyn Fn() -> Vec<String> + Send + Sync>;

/// Everything that the interfaces need from the process in which they run.
pub struct AppDependencies {
    pub root: VaultRoot,
    pub index: Arc<Index>,
    pub client: Client,
    /// The names of the vault at the Temporal server.
    pub names: VaultNames,
    /// The rate guard's ledger, where it can be opened.
    pub ledger: Option<Arc<Ledger>>,
    pub store: SecretStore,
    pub hosts: AllowedHosts,
    pub proxies: TrustedProxies,
    /// Whether the server uses TLS.
    pub encrypted: bool,
    /// When the certificate in use ends; `None` without TLS.
    pub certificate_end: watch::Receiver<Option<DateTime<Utc>>>,
    pub settings: DashboardSettings,
    /// The streams and clones of each wiki for the assistants at `/mcp`; `None` if none are served.
    pub assistants: Option<AttachmentsByWiki>,
    pub mapping_check: MappingCheck,
    /// Whether the main loop of this process turns.
    pub pulse: LoopPulse,
    /// What `/metrics` shows of this process, beside the state of the vault.
    pub process_metrics: Registry,
    /// Becomes `true` when the process must end.
    pub stop: watch::Receiver<bool>,
}
