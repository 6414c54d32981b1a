//! `steward serve`: the dashboard and the control API alone, beside a worker that holds the vault.
//!
//! It reads the index that the worker keeps and asks Temporal; it takes no lock and does no activity. Where it listens
//! stands in a note of its own, by which the commands find it.

use super::Look;
use crate::config::Config;
use crate::out::{Exit, Out};
use crate::schedules;
use crate::temporal::{self, note};
use crate::web::{self, Faces};
use tokio::sync::watch;

pub(crate) async fn run(config: &Config, out: Out) -> anyhow::Result<Exit> {
    let (raise, stop) = watch::channel(false);
    super::up::raise_when_told(raise)?;
    let telemetry = crate::telemetry::init()?;
    super::up::warn(config);
    let serving = web::bind(config, stop.clone()).await?;
    let address = serving.address;
    let begun =
        async { Ok((temporal::connect_patiently(config, || telemetry.plugins()).await?, super::look(config).await?)) };
    let begun: Option<anyhow::Result<_>> = super::up::unless(&stop, begun).await;
    let Some(begun) = begun else { return Ok(Exit::Ok) };
    let (client, look) = begun?;
    let server = temporal::address(config)?;
    let checked = schedules::check_owner_patiently(config, &client, &server);
    let Some(checked) = super::up::unless(&stop, checked).await else { return Ok(Exit::Ok) };
    checked?;
    let Look { root, index, .. } = &look;
    let faces = Faces { config: config.clone(), client, root: root.clone(), address };
    faces.serve(index.clone(), &serving, stop)?;
    let noted = note::of_this_listener(config, address).leave(&config.state_dir()?)?;
    out.say(&format!("dashboard  {}\nCtrl-C ends it", web::invitation(config, address)?))?;
    // It ends by the same flag, and says itself why it ended otherwise.
    serving.ended().await;
    drop(noted);
    telemetry.shutdown().await;
    Ok(Exit::Ok)
}
