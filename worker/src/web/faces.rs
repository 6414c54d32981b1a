//! The faces of a process that holds no vault, made anew whenever what they are made of is another.
//!
//! Beside them somebody else may take the vault with other settings, set an index aside and read it anew, or edit the
//! configuration. Twice a second is looked whether any of that happened; the new faces then take the address over, and
//! who listens to the old ones (events, live pages) is told to call again. Nothing is created here: while a file is away
//! the old ones stay.

use super::{Web, house};
use crate::config::{self, Config};
use crate::engine::{open_ledger, raised};
use crate::out::causes;
use crate::temporal::note::{Holder, held_settings};
use axum::Router;
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use steward_domain::guard::CallCaps;
use steward_server::app::House;
use steward_server::listen::Serving;
use steward_vault::index::{FILE, Index};
use steward_vault::root::VaultRoot;
use temporalio_client::Client;
use tokio::sync::watch;
use tokio::time::MissedTickBehavior;

/// How often is looked: 500 ms.
const EVERY: Duration = Duration::from_millis(500);

/// What the faces are made of.
pub(crate) struct Faces {
    pub(crate) config: Config,
    pub(crate) client: Client,
    pub(crate) root: VaultRoot,
    pub(crate) address: SocketAddr,
}

/// Which file it is: another may take its place.
type Which = (u64, u64);

/// What faces were made of, to be held against what is there now.
#[derive(Clone, PartialEq)]
struct Made {
    index: Option<Which>,
    /// The configuration's file, as it was read.
    config: Option<Written>,
    house: House,
    /// Of the rate guard of whoever decides.
    caps: CallCaps,
}

/// Which file it is, and whether it was written since.
type Written = (Which, u64, i64, i64);

impl Faces {
    /// Serves until the flag is raised, with this index until it is set aside.
    ///
    /// # Errors
    /// When the keys of sessions and of the command can be neither read nor made, and of a certificate.
    pub(crate) fn serve(self, index: Index, at: &Serving, stop: watch::Receiver<bool>) -> anyhow::Result<()> {
        let made = self.now(written(&config::file_path().0), None)?;
        let (ends, end) = watch::channel(false);
        at.answer_with(self.router(index, &made, end)?);
        tokio::spawn(self.follow(Now { made, ends, show: at.shows(), told: String::new() }, stop));
        Ok(())
    }

    fn router(&self, index: Index, made: &Made, end: watch::Receiver<bool>) -> anyhow::Result<Router> {
        let (config, root, house) = (&self.config, self.root.clone(), made.house.clone());
        let ledger = config.state_dir().and_then(|state| open_ledger(made.caps, &root, &state));
        let ledger = ledger.inspect_err(|e| tracing::warn!("the rate guard cannot be shown: {}", causes(e))).ok();
        let (client, index, ledger) = (self.client.clone(), Arc::new(index), ledger.map(Arc::new));
        Web { client, root, index, ledger, house }.router(config, self.address, end)
    }

    /// What they would be made of now: what decides is what the process that holds the vault says of itself. One that
    /// has not said so yet decides as was known before.
    fn now(&self, read: Option<Written>, before: Option<&Made>) -> anyhow::Result<Made> {
        let (config, state) = (&self.config, self.config.state_dir()?);
        let namespace = &self.client.options().namespace;
        let (house, caps) = match (Holder::of(&self.root, &state), before) {
            (Holder::Runs(note), _) => {
                let (of_our_own, held) = (house(config, namespace, note.ui.as_deref()), held_settings(config, &note));
                let house = House {
                    clerk: held.clerk.word(),
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
            (Holder::Silent(_), Some(before)) => (before.house.clone(), before.caps),
            (Holder::Died(_) | Holder::Silent(_) | Holder::Nobody, _) => (house(config, namespace, None), config.caps),
        };
        Ok(Made { index: which(&state.join(FILE)), config: read, house, caps })
    }

    async fn follow(mut self, mut now: Now, mut stop: watch::Receiver<bool>) {
        let mut clock = tokio::time::interval(EVERY);
        clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = raised(&mut stop) => break,
                _ = clock.tick() => {}
            }
            match self.turn(&mut now).await {
                Ok(()) => now.told.clear(),
                Err(e) => {
                    let said = causes(&e);
                    if said != now.told {
                        tracing::warn!("what is shown is of before: {said}");
                        now.told = said;
                    }
                }
            }
        }
        now.ends.send_replace(true);
    }

    async fn turn(&mut self, now: &mut Now) -> anyhow::Result<()> {
        let edited = written(&config::file_path().0);
        let mut unread = Ok(());
        if edited != now.made.config {
            // What was set before holds on where the file cannot be read, and the rest is followed all the same.
            match Config::load(self.config.vault.as_deref()) {
                Ok(config) => self.config = config.behind_the_door_of(&self.config),
                Err(e) => unread = Err(e),
            }
        }
        let read = if unread.is_ok() { edited } else { now.made.config };
        let made = self.now(read, Some(&now.made))?;
        if made == now.made || made.index.is_none() {
            return unread;
        }
        let (ends, end) = watch::channel(false);
        let index = Index::open(&self.config.state_dir()?).await?;
        let router = self.router(index, &made, end)?;
        drop(now.show.send_replace(router));
        now.ends.send_replace(true);
        now.ends = ends;
        now.made = made;
        tracing::info!("the settings or the index are others by now: they are shown");
        unread
    }
}

/// The faces that are shown.
struct Now {
    made: Made,
    /// Ends what listens to them.
    ends: watch::Sender<bool>,
    show: watch::Sender<Router>,
    /// The trouble that the log knows of.
    told: String,
}

fn which(path: &Path) -> Option<Which> {
    std::fs::metadata(path).ok().map(|meta| (meta.dev(), meta.ino()))
}

fn written(path: &Path) -> Option<Written> {
    let meta = std::fs::metadata(path).ok()?;
    Some(((meta.dev(), meta.ino()), meta.len(), meta.mtime(), meta.mtime_nsec()))
}
