//! The configuration: the environment first, then `steward.toml`, then the defaults.
//!
//! Every key has one name in the file and one in the environment: `name` and `STEWARD_NAME`. Tables become prefixes, so
//! `cadence.task_seconds` is `STEWARD_CADENCE_TASK_SECONDS`. An unknown key is an error that names it. An invalid mode,
//! ceiling or threshold is reported and replaced by the safe value, because a typo must never widen what a steward may
//! do.

use anyhow::Context;
use folders::canonicalize_folder;
use mapping::MappingStatus;
use policy::{read_ceiling, read_policy, read_prices, read_threshold, read_wiki_mode};
use serde::{Deserialize, Serialize};
use sources::{ConfigFile, EnvironmentVariables};
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use steward_activities::signals::streams::StreamConfig;
use steward_activities::tracker::TrackerConfig;
use steward_domain::fleet::names::VaultNames;
use steward_domain::gates::mode::{Ceiling, DecisionPolicy};
use steward_domain::gates::source_budget::LIVE_PER_SOURCE_DAY;
use steward_domain::steward::guard::CallCaps;
use steward_domain::steward::tick::Cadence;
use steward_domain::trust::demotion::REVERSAL_BUDGET;
use steward_domain::wiki::gates::WikiSettings;
use steward_domain::wiki::run::WikiMode;
use steward_server::access::proxy::TrustedProxies;
use steward_server::http::listen::CertificateFiles;
use steward_server::mcp::attachments::AttachmentsByWiki;
use steward_server::views::schedules::registered::CHECK_SECONDS;
use toml::Value;
use user_file::UserFile;

mod backup;
mod clerk;
mod faults;
mod fleet;
mod folders;
pub(crate) mod mapping;
mod origins;
mod policy;
mod ports;
pub(crate) mod rules;
mod settings;
mod sources;
mod streams;
pub(crate) mod user_file;
mod web;
mod wikis;

pub(crate) use backup::BackupSettings;
pub(crate) use fleet::FleetMembership;
pub(crate) use origins::SettingOrigins;
pub(crate) use sources::read_environment_value;

/// The default address for webhooks: this machine only. A proxy of the operator receives them from the network.
const WEBHOOK_LISTEN: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 8320);

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RawConfig {
    vault: Option<PathBuf>,
    state_dir: Option<PathBuf>,
    backup_dir: Option<PathBuf>,
    backup_every: Option<String>,
    live_mode: Option<String>,
    confidence_threshold: Option<Value>,
    high_confidence_threshold: Option<Value>,
    default_ceiling: Option<String>,
    state_change_ceiling: Option<String>,
    context_edit_ceiling: Option<String>,
    parent_matter_ceiling: Option<String>,
    related_ceiling: Option<String>,
    live_per_source_day: Option<u32>,
    reversal_budget: Option<Value>,
    mcp: Option<String>,
    wiki_mode: Option<String>,
    wiki_allow_unverified: Option<bool>,
    wiki_clerk: Option<String>,
    wiki_clerk_base_url: Option<String>,
    wiki_clerk_model: Option<String>,
    wiki_clerk_key_file: Option<PathBuf>,
    wiki_verifier: Option<String>,
    wiki_verifier_base_url: Option<String>,
    wiki_verifier_model: Option<String>,
    wiki_verifier_key_file: Option<PathBuf>,
    wiki_price_input: Option<Value>,
    clerk_price_input: Option<Value>,
    clerk_price_output: Option<Value>,
    wiki_price_output: Option<Value>,
    clerk: Option<String>,
    clerk_base_url: Option<String>,
    clerk_model: Option<String>,
    clerk_key_file: Option<PathBuf>,
    clerk_timeout_seconds: Option<u64>,
    clerk_max_response_bytes: Option<usize>,
    clerk_calls_per_second: Option<u32>,
    task_queue: Option<String>,
    tenant: Option<String>,
    fleet_db: Option<String>,
    temporal_cli: Option<PathBuf>,
    temporal_port: Option<u16>,
    temporal_ui_port: Option<u16>,
    scan_seconds: Option<u64>,
    content_scan_seconds: Option<u64>,
    schedule_check_seconds: Option<u64>,
    recycle_after_activities: Option<u64>,
    workflow_task_timeout_seconds: Option<u64>,
    operator: Option<String>,
    stamp_files: Option<bool>,
    keep_events_days: Option<u32>,
    webhook_listen: Option<SocketAddr>,
    listen: Option<SocketAddr>,
    hosts: Option<String>,
    trusted_proxies: Option<String>,
    tls_cert: Option<PathBuf>,
    tls_key: Option<PathBuf>,
    temporal_ui: Option<String>,
    server: Option<String>,
    streams: BTreeMap<String, serde_json::Map<String, serde_json::Value>>,
    wiki: BTreeMap<wikis::WikiName, wikis::WikiTable>,
    tracker: Option<serde_json::Map<String, serde_json::Value>>,
    cadence: Cadence,
    caps: CallCaps,
}

/// The configured clerk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum ClerkChoice {
    /// Fixed rules, offline: they use the proposals in the signals.
    Rules,
    /// Any server with OpenAI's chat completions API.
    Openai(ClerkServer),
    /// Anthropic's Messages API.
    Anthropic(ClerkServer),
    /// Ollama's chat API.
    Ollama(ClerkServer),
}

/// The server behind a clerk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ClerkServer {
    pub(crate) base_url: String,
    pub(crate) model: String,
    pub(crate) timeout_seconds: u64,
    pub(crate) max_response_bytes: usize,
    /// The most calls that this process begins per second.
    pub(crate) calls_per_second: NonZeroU32,
    /// The file that holds the API key; `None` if the environment may hold it.
    #[serde(default)]
    pub(crate) key_file: Option<PathBuf>,
}

/// The checked configuration.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct StewardConfig {
    pub(crate) vault: Option<PathBuf>,
    state_dir: Option<PathBuf>,
    /// Where and how often backups are made; `None` if they are not.
    pub(crate) backup: Option<BackupSettings>,
    pub(crate) policy: DecisionPolicy,
    pub(crate) default_ceiling: Ceiling,
    /// Live changes that one source may cause in 24 hours: 20. Further ones wait for a person.
    pub(crate) live_per_source_day: u32,
    /// The share of live changes that may be undone before a source or class is demoted, 0 to 1: 0.05.
    pub(crate) reversal_budget: f64,
    /// What may happen in each wiki that nobody asked for.
    pub(crate) wikis: Arc<BTreeMap<String, WikiSettings>>,
    /// The streams and clones that belong to each wiki, for assistants.
    pub(crate) attachments: AttachmentsByWiki,
    /// Whether assistants are served over HTTP.
    pub(crate) mcp: bool,
    /// What happens to a run of a wiki that a person asked for and that passed.
    pub(crate) wiki_mode: WikiMode,
    /// Whether pages that a model wrote and no second one checked are committed without a person.
    pub(crate) wiki_allow_unverified: bool,
    /// Who writes the pages of wikis; `None` for the clerk of the stewards.
    pub(crate) wiki_clerk: Option<ClerkChoice>,
    /// Who checks what a model wrote; `None` for the clerk of the stewards.
    pub(crate) wiki_verifier: Option<ClerkChoice>,
    /// The prices of a million tokens of the writer, in and out; `None` if they are not known.
    pub(crate) wiki_prices: Option<(f64, f64)>,
    /// The same of the clerk.
    pub(crate) clerk_prices: Option<(f64, f64)>,
    pub(crate) clerk: ClerkChoice,
    pub(crate) task_queue: String,
    /// The tenant of the vault and the database of its fleet; `None` for a vault alone.
    pub(crate) fleet: Option<FleetMembership>,
    pub(crate) temporal_cli: Option<PathBuf>,
    /// The port of the server that `up` starts; `None` for 7233 or the next free port.
    pub(crate) temporal_port: Option<u16>,
    /// The port of that server's web page; `None` for 8233 or the next free port.
    pub(crate) temporal_ui_port: Option<u16>,
    /// Seconds between two scans of every file's size and time: 60.
    pub(crate) scan_seconds: u64,
    /// Seconds between two scans of every file's content: 3,600.
    pub(crate) content_scan_seconds: u64,
    /// Seconds between two comparisons of the schedules with those at the server: 300.
    pub(crate) schedule_check_seconds: u64,
    /// Activities after which the SDK's worker is rebuilt, because it leaks memory: 50,000, about 10 MB.
    pub(crate) recycle_after_activities: u64,
    /// How long the server waits for a silent worker before another one takes over: 10 s.
    pub(crate) workflow_task_timeout: Duration,
    /// The name of the person at the command line.
    pub(crate) operator: String,
    /// Whether the times of a task's last and next check are also written into its file: no.
    pub(crate) stamp_files: bool,
    /// Days for which an extracted event is kept: 7.
    pub(crate) keep_events_days: u32,
    /// The streams. The drop folder is one of them even if it is not configured.
    pub(crate) streams: Vec<StreamConfig>,
    /// The tracker that holds issues for tasks; off by default.
    pub(crate) tracker: Option<TrackerConfig>,
    /// The address for webhooks: 127.0.0.1:8320, this machine only.
    pub(crate) webhook_listen: SocketAddr,
    /// The address of the dashboard and the control API; `None` for 127.0.0.1:8420 or the next free port.
    pub(crate) listen: Option<SocketAddr>,
    /// Further host names by which the dashboard and the API are reached: none.
    pub(crate) hosts: Vec<String>,
    /// Proxies whose statements about the caller are trusted: none.
    #[serde(skip)]
    pub(crate) trusted_proxies: TrustedProxies,
    /// The certificate of the dashboard and the control API; without one they are not encrypted.
    #[serde(skip)]
    pub(crate) tls: Option<CertificateFiles>,
    /// The web page of a configured Temporal server, for links, such as `https://temporal.example`: none.
    pub(crate) temporal_ui: Option<String>,
    /// The server elsewhere that resolutions are sent to, such as `https://steward.example`: none.
    pub(crate) server: Option<String>,
    pub(crate) cadence: Cadence,
    pub(crate) caps: CallCaps,
    /// Where the settings that limit a steward were set.
    pub(crate) origins: SettingOrigins,
    /// Invalid values, and the values that apply instead.
    pub(crate) warnings: Vec<String>,
    /// The mapping of the vault's notes.
    #[serde(skip)]
    pub(crate) mapping: MappingStatus,
    /// The file in which a person changes the configuration.
    #[serde(skip)]
    pub(crate) file: PathBuf,
}

impl StewardConfig {
    /// Reads the environment and the file.
    ///
    /// # Errors
    /// An unknown key, a value of the wrong type, an unreadable file, a path that is not UTF-8, and a file inside the
    /// vault that sets a key that a vault must not set.
    pub(crate) fn load(vault_flag: Option<&Path>) -> anyhow::Result<Self> {
        let mut file = ConfigFile::find()?;
        file.refuse_unnamed_server()?;
        let variables = sources::collect_variables(std::env::vars_os())?;
        let vault = sources::find_vault(vault_flag, &variables, &file)?;
        let mut mapping = MappingStatus::default();
        if let Some(vault) = &vault {
            file.refuse_vault_overrides(vault)?;
            mapping = MappingStatus::read(vault);
            // A file that cannot be used is reported with the mapping, so that a stop still works.
            UserFile::read(vault).ok().flatten().into_iter().for_each(|user| file.add_user_file(user));
        }
        let mut config = Self::from_parts(&file, variables)?;
        config.warnings.extend(file.list_ignored_keys(vault.as_deref()));
        (config.vault, config.mapping, config.file) = (vault, mapping, file.editable_path());
        if let Some(state) = &config.state_dir {
            config.state_dir = Some(canonicalize_folder(state, "STEWARD_STATE_DIR")?);
        }
        Ok(config)
    }

    /// Builds a configuration from these variables alone.
    #[cfg(test)]
    pub(crate) fn from_variables(variables: &[(&str, &str)]) -> Self {
        let file = ConfigFile::new("steward.toml".into(), toml::Table::new(), false);
        let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Self::from_parts(&file, variables.collect()).unwrap()
    }

    fn from_parts(file: &ConfigFile, variables: EnvironmentVariables) -> anyhow::Result<Self> {
        let known: RawConfig =
            file.table.clone().try_into().with_context(|| format!("failed to read {}", file.path.display()))?;
        drop(known);
        let origins = SettingOrigins::from_sources(file, &variables);
        let merged = sources::merge_variables(file.table.clone(), variables.clone())?;
        let read = merged.try_into::<RawConfig>();
        if read.is_err() {
            faults::check_variables(&variables)?;
        }
        let raw = read.context("failed to read the STEWARD_ environment variables")?;
        Ok(Self { origins, ..Self::from_raw(raw)? })
    }

    fn from_raw(mut raw: RawConfig) -> anyhow::Result<Self> {
        let mut warnings = Vec::new();
        let policy = read_policy(&raw, &mut warnings);
        let budget = raw.reversal_budget.as_ref();
        let reversal_budget = read_threshold("STEWARD_REVERSAL_BUDGET", budget, REVERSAL_BUDGET, &mut warnings);
        ports::check_distinct_ports(raw.temporal_port, raw.temporal_ui_port)?;
        let fleet = fleet::read_membership(raw.tenant.clone(), raw.fleet_db.clone())?;
        let streams = streams::read_streams(std::mem::take(&mut raw.streams))?;
        let (wikis, attachments) = wikis::read_wikis(std::mem::take(&mut raw.wiki), &streams)?;
        let default_ceiling = read_ceiling("STEWARD_DEFAULT_CEILING", raw.default_ceiling.as_deref(), &mut warnings);
        Ok(Self {
            policy,
            clerk: clerk::read_clerk_choice(&raw)?,
            wiki_clerk: clerk::read_wiki_clerk(&raw)?,
            wiki_verifier: clerk::read_wiki_verifier(&raw)?,
            wiki_prices: read_prices(
                "STEWARD_WIKI_PRICE",
                [raw.wiki_price_input.as_ref(), raw.wiki_price_output.as_ref()],
                &mut warnings,
            ),
            clerk_prices: read_prices(
                "STEWARD_CLERK_PRICE",
                [raw.clerk_price_input.as_ref(), raw.clerk_price_output.as_ref()],
                &mut warnings,
            ),
            wiki_allow_unverified: raw.wiki_allow_unverified.unwrap_or(false),
            vault: raw.vault,
            state_dir: raw.state_dir,
            backup: backup::read_settings(raw.backup_dir, raw.backup_every.as_deref())?,
            default_ceiling,
            live_per_source_day: raw.live_per_source_day.unwrap_or(LIVE_PER_SOURCE_DAY),
            reversal_budget,
            wikis: Arc::new(wikis),
            attachments,
            wiki_mode: read_wiki_mode(raw.wiki_mode.as_deref(), &mut warnings),
            task_queue: fleet::choose_task_queue(raw.task_queue, fleet.as_ref())?,
            fleet,
            temporal_cli: raw.temporal_cli,
            temporal_port: raw.temporal_port,
            temporal_ui_port: raw.temporal_ui_port,
            scan_seconds: raw.scan_seconds.unwrap_or(60).max(1),
            content_scan_seconds: raw.content_scan_seconds.unwrap_or(3_600).max(10),
            schedule_check_seconds: raw.schedule_check_seconds.unwrap_or(CHECK_SECONDS).max(1),
            recycle_after_activities: raw.recycle_after_activities.unwrap_or(50_000).max(1),
            workflow_task_timeout: Duration::from_secs(raw.workflow_task_timeout_seconds.unwrap_or(10).clamp(1, 120)),
            operator: raw.operator.or_else(|| std::env::var("USER").ok()).unwrap_or_else(|| "operator".into()),
            stamp_files: raw.stamp_files.unwrap_or(false),
            keep_events_days: streams::read_keep_events_days(raw.keep_events_days)?,
            streams,
            tracker: raw.tracker.map(TrackerConfig::read).transpose().map_err(anyhow::Error::msg)?,
            webhook_listen: raw.webhook_listen.unwrap_or(WEBHOOK_LISTEN),
            listen: raw.listen,
            temporal_ui: web::check_ui_address(raw.temporal_ui)?,
            server: web::check_server_address(raw.server)?,
            trusted_proxies: web::parse_proxies(raw.trusted_proxies.as_deref().unwrap_or_default())?,
            tls: web::read_certificate(raw.tls_cert, raw.tls_key)?,
            mcp: web::read_switch("STEWARD_MCP", raw.mcp.as_deref())?,
            hosts: web::parse_hosts(raw.hosts.as_deref().unwrap_or_default())?,
            cadence: raw.cadence,
            caps: raw.caps,
            origins: SettingOrigins::default(),
            warnings,
            mapping: MappingStatus::default(),
            file: PathBuf::new(),
        })
    }

    /// The names of the vault at the Temporal server.
    pub(crate) fn vault_names(&self) -> VaultNames {
        VaultNames::new(self.fleet.as_ref().map(|fleet| fleet.tenant.clone()))
    }
}

#[cfg(test)]
mod tests;
