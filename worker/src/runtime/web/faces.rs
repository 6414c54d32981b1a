//! The faces of a process that holds no vault, made anew whenever what they are made of is another.
//!
//! Beside them somebody else may take the vault with other settings, set an index aside and read it anew, or edit the
//! configuration. Twice a second is looked whether any of that happened; the new faces then take the address over, and
//! who listens to the old ones (events, live pages) is told to call again. Nothing is created here: while a file is away
//! the old ones stay.

use super::WebInterface;
use super::build_dashboard_settings;
use crate::cli::output::format_causes;
use crate::config::{self, StewardConfig};
use crate::runtime::engine::{open_ledger, wait_for_stop};
use crate::temporal::note::{VaultHolder, read_holder_settings};
use axum::Router;
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use steward_domain::steward::guard::CallCaps;
use steward_server::http::app::DashboardSettings;
use steward_server::http::listen::RunningServer;
use steward_vault::files::root::VaultRoot;
use steward_vault::index::{FILE, Index};
use temporalio_client::Client;
use tokio::sync::watch;
use tokio::time::MissedTickBehavior;

/// How often is looked: 500 ms.
const EVERY: Duration = Duration::from_millis(500);

/// What the faces are made of.
pub(crate) struct RouterReloader {
    pub(crate) config: StewardConfig,
    pub(crate) client: Client,
    pub(crate) root: VaultRoot,
    pub(crate) address: SocketAddr,
}

/// Which file it is: another may take its place.
type FileIdentity = (u64, u64);

/// What faces were made of, to be held against what is there now.
#[derive(Clone, PartialEq)]
struct RouterInputs {
    index: Option<FileIdentity>,
    /// The configuration's file, as it was read.
    config: Option<FileVersion>,
    house: DashboardSettings,
    /// Of the rate guard of whoever decides.
    caps: CallCaps,
}

/// Which file it is, and whether it was written since.
type FileVersion = (FileIdentity, u64, i64, i64);

impl RouterReloader {
    /// Serves until the flag is raised, with this index until it is set aside.
    ///
    /// # Errors
    /// When the keys of sessions and of the command can be neither read nor made, and of a certificate.
    pub(crate) fn start_serving(
        self,
        index: Index,
        at: &RunningServer,
        stop: watch::Receiver<bool>,
    ) -> anyhow::Result<()> {
        let made = self.read_inputs(read_file_version(&config::locate_config_file().0), None)?;
        let (ends, end) = watch::channel(false);
        at.replace_router(self.build_router(index, &made, end)?);
        tokio::spawn(
            self.follow_changes(ServedRouter { made, ends, show: at.clone_router_sender(), told: String::new() }, stop),
        );
        Ok(())
    }

    fn build_router(&self, index: Index, made: &RouterInputs, end: watch::Receiver<bool>) -> anyhow::Result<Router> {
        let (config, root, house) = (&self.config, self.root.clone(), made.house.clone());
        let ledger = config.state_dir().and_then(|state| open_ledger(made.caps, &root, &state));
        let ledger =
            ledger.inspect_err(|e| tracing::warn!("the rate guard cannot be shown: {}", format_causes(e))).ok();
        let (client, index, ledger) = (self.client.clone(), Arc::new(index), ledger.map(Arc::new));
        WebInterface { client, root, index, ledger, house }.build_router(config, self.address, end)
    }

    /// What they would be made of now: what decides is what the process that holds the vault says of itself. One that
    /// has not said so yet decides as was known before.
    fn read_inputs(&self, read: Option<FileVersion>, before: Option<&RouterInputs>) -> anyhow::Result<RouterInputs> {
        let (config, state) = (&self.config, self.config.state_dir()?);
        let namespace = &self.client.options().namespace;
        let (house, caps) = match (VaultHolder::read(&self.root, &state), before) {
            (VaultHolder::Runs(note), _) => {
                let (of_our_own, held) = (
                    build_dashboard_settings(config, namespace, note.ui.as_deref()),
                    read_holder_settings(config, &note),
                );
                let house = DashboardSettings {
                    clerk: held.clerk.as_str(),
                    tracker: held.tracker,
                    policy: note.policy,
                    cadence: note.cadence.unwrap_or(config.cadence),
                    default_ceiling: note.default_ceiling.unwrap_or(config.default_ceiling),
                    scan_every: note.scan_seconds.map_or(of_our_own.scan_every, Duration::from_secs),
                    task_queue: note.task_queue,
                    ..of_our_own
                };
                (house, held.caps)
            }
            (VaultHolder::Silent(_), Some(before)) => (before.house.clone(), before.caps),
            (VaultHolder::Died(_) | VaultHolder::Silent(_) | VaultHolder::Nobody, _) => {
                (build_dashboard_settings(config, namespace, None), config.caps)
            }
        };
        Ok(RouterInputs { index: read_file_identity(&state.join(FILE)), config: read, house, caps })
    }

    async fn follow_changes(mut self, mut now: ServedRouter, mut stop: watch::Receiver<bool>) {
        let mut clock = tokio::time::interval(EVERY);
        clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = wait_for_stop(&mut stop) => break,
                _ = clock.tick() => {}
            }
            match self.reload_if_changed(&mut now).await {
                Ok(()) => now.told.clear(),
                Err(e) => {
                    let said = format_causes(&e);
                    if said != now.told {
                        tracing::warn!("what is shown is of before: {said}");
                        now.told = said;
                    }
                }
            }
        }
        now.ends.send_replace(true);
    }

    async fn reload_if_changed(&mut self, now: &mut ServedRouter) -> anyhow::Result<()> {
        let edited = read_file_version(&config::locate_config_file().0);
        let mut unread = Ok(());
        if edited != now.made.config {
            // What was set before holds on where the file cannot be read, and the rest is followed all the same.
            match StewardConfig::load(self.config.vault.as_deref()) {
                Ok(config) => self.config = config.with_listener_from(&self.config),
                Err(e) => unread = Err(e),
            }
        }
        let read = if unread.is_ok() { edited } else { now.made.config };
        let made = self.read_inputs(read, Some(&now.made))?;
        if made == now.made || made.index.is_none() {
            return unread;
        }
        let (ends, end) = watch::channel(false);
        let index = Index::open(&self.config.state_dir()?).await?;
        let router = self.build_router(index, &made, end)?;
        drop(now.show.send_replace(router));
        now.ends.send_replace(true);
        now.ends = ends;
        now.made = made;
        tracing::info!("the settings or the index are others by now: they are shown");
        unread
    }
}

/// The faces that are shown.
struct ServedRouter {
    made: RouterInputs,
    /// Ends what listens to them.
    ends: watch::Sender<bool>,
    show: watch::Sender<Router>,
    /// The trouble that the log knows of.
    told: String,
}

fn read_file_identity(path: &Path) -> Option<FileIdentity> {
    std::fs::metadata(path).ok().map(|meta| (meta.dev(), meta.ino()))
}

fn read_file_version(path: &Path) -> Option<FileVersion> {
    let meta = std::fs::metadata(path).ok()?;
    Some(((meta.dev(), meta.ino()), meta.len(), meta.mtime(), meta.mtime_nsec()))
}
