//! `steward serve`: the dashboard and the control API alone, beside a worker that holds the vault.
//!
//! It reads the index that the worker keeps and asks Temporal; it takes no lock and does no activity.

use super::Look;
use crate::config::Config;
use crate::engine::raised;
use crate::out::{Exit, Out};
use crate::temporal;
use crate::temporal::note::Holder;
use crate::web::{self, Web};
use std::sync::Arc;
use tokio::sync::watch;

pub(crate) async fn run(config: &Config, out: Out) -> anyhow::Result<Exit> {
    let (raise, mut stop) = watch::channel(false);
    super::up::raise_when_told(raise)?;
    let telemetry = crate::telemetry::init()?;
    super::up::warn(config);
    let serving = web::bind(config, stop.clone()).await?;
    let address = serving.address;
    let client = temporal::connect(config, telemetry.plugins()).await?;
    let Look { root, index, .. } = &super::look(config).await?;
    let (policy, ui) = match Holder::of(root, &config.state_dir()?) {
        Holder::Runs(note) => (note.policy, note.ui),
        Holder::Died(_) | Holder::Silent(_) | Holder::Nobody => (config.policy.clone(), None),
    };
    let ui = ui.or_else(|| config.temporal_ui.clone());
    let ledger = crate::engine::open_ledger(config, root, &config.state_dir()?);
    let ledger = ledger.inspect_err(|e| tracing::warn!("the rate guard cannot be shown: {e:#}")).ok().map(Arc::new);
    let web = Web { client, root: root.clone(), index: Arc::new(index.clone()), ledger, policy, ui };
    web.answer(config, &serving, stop.clone())?;
    out.say(&format!("dashboard  {}\nCtrl-C ends it", web::invitation(config, address)?))?;
    raised(&mut stop).await;
    // It ends by the same flag, and says itself why it ended otherwise.
    serving.ended().await;
    telemetry.shutdown().await;
    Ok(Exit::Ok)
}
