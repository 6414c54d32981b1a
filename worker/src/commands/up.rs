//! `steward up` and `steward worker`: everything a vault needs, until told to end.
//!
//! `up` also starts a server when none is named and ends it with itself; `worker` joins a fleet. Both
//! listen to Ctrl-C from their first moment, wire [`crate::engine`] and wait; whoever holds the vault
//! leaves a note of itself. What a tick decides is no business of theirs.

mod round;

use crate::config::Config;
use crate::engine::{self, Engine, Parts, raised};
use crate::fleet::{self, Connected, Crew};
use crate::out::{Exit, Out};
use crate::schedules;
use crate::telemetry::Telemetry;
use crate::temporal;
use crate::temporal::note::{self, UpNote};
use crate::temporal::server::DevServer;
use crate::web::{self, Web};
use anyhow::Context;
use std::future::pending;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use steward_server::listen::Serving;
use steward_vault::keeper::VaultWriter;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, watch};

/// How long the workers get to end when there is no server any more, which they wait for: 5 s.
const END_PATIENCE: Duration = Duration::from_secs(5);

pub(crate) async fn run(config: &Config, up: &crate::cli::Up, out: Out) -> anyhow::Result<Exit> {
    let (raise, stop) = watch::channel(false);
    raise_when_told(raise.clone())?;
    let telemetry = crate::telemetry::init()?;
    warn(config);
    let mut house = House::default();
    let serving = if up.once { None } else { Some(web::bind(config, stop.clone()).await?) };
    let begun = unless(&stop, begin(config, (&telemetry, serving), &raise, (&mut house, out))).await;
    let ended = match begun.transpose() {
        Ok(None) => Ok(Exit::Ok),
        Err(e) => Err(e),
        Ok(Some(begun)) => {
            let serving = serve(config, up, begun, out);
            tokio::pin!(serving);
            tokio::select! {
                ended = &mut serving => ended,
                died = house.server_ended() => {
                    raise.send_replace(true);
                    // How the workers ended is no news: they have lost their server.
                    let _ = tokio::time::timeout(END_PATIENCE, serving).await;
                    Err(died)
                }
            }
        }
    };
    house.end(config).await?;
    telemetry.shutdown().await;
    ended
}

/// What must be put away in the end, however far the process came.
#[derive(Default)]
struct House {
    /// Held until the note is gone, so that nobody takes it for that of a process that died.
    keeper: Option<Arc<VaultWriter>>,
    server: Option<DevServer>,
}

impl House {
    /// The end of the server that this process started; never, when it started none.
    async fn server_ended(&mut self) -> anyhow::Error {
        match &mut self.server {
            Some(server) => server.ended().await,
            None => pending().await,
        }
    }

    async fn end(self, config: &Config) -> anyhow::Result<()> {
        if let Some(server) = self.server {
            server.stop().await;
        }
        if self.keeper.is_some() {
            UpNote::remove(&config.state_dir()?);
        }
        Ok(())
    }
}

/// All that is there before the schedules are looked at.
struct Begun {
    raise: watch::Sender<bool>,
    /// The web page of the server that this process started.
    ui: Option<String>,
    parts: Parts,
    crew: Crew,
    failures: mpsc::UnboundedReceiver<anyhow::Error>,
    clerk: JoinHandle<()>,
    /// Where the dashboard is; nowhere with `--once`.
    serving: Option<Serving>,
}

async fn begin(
    config: &Config,
    (telemetry, serving): (&Telemetry, Option<Serving>),
    raise: &watch::Sender<bool>,
    (house, out): (&mut House, Out),
) -> anyhow::Result<Begun> {
    let parts = Parts::open(config).await?;
    house.keeper = Some(Arc::clone(&parts.keeper));
    let state = config.state_dir()?;
    let listen = serving.as_ref().map(|serving| serving.address);
    let connected = if temporal::is_named() {
        let client = temporal::connect_patiently(config, || telemetry.plugins()).await?;
        let address = temporal::address(config)?;
        UpNote { listen, ..note::of_this_process(config, "up", &address) }.write(&state)?;
        Connected { client, address }
    } else {
        out.say("starting Temporal …")?;
        let server = house.server.insert(DevServer::spawn(config).await?);
        let mine = note::of_this_process(config, "up", &server.address);
        UpNote { listen, ui: server.ui.clone(), server_pid: Some(server.pid), ..mine }.write(&state)?;
        Connected { client: server.connect(|| telemetry.plugins()).await?, address: server.address.clone() }
    };
    let Connected { client, address } = &connected;
    schedules::claim_namespace(config, client, address, &parts.keeper, house.server.is_some()).await?;
    let (crew, failures) = fleet::crew(config, connected, telemetry.runtime_options()?, raise.subscribe())?;
    let clerk = engine::start_clerk(config, &crew)?;
    let ui = house.server.as_ref().and_then(|server| server.ui.clone());
    Ok(Begun { raise: raise.clone(), ui, parts, crew, failures, clerk, serving })
}

/// Serves until the crew's stop flag is raised, or something ends it; then all has ended.
async fn serve(config: &Config, up: &crate::cli::Up, begun: Begun, out: Out) -> anyhow::Result<Exit> {
    let Begun { raise, ui, parts, crew, mut failures, clerk, serving } = begun;
    // A server whose web page is known is one that this process started.
    let engine = engine::start(config, &crew, parts, ui.is_some()).await?;
    let listen = serving.as_ref().map(|serving| serving.address);
    if let Some(serving) = &serving {
        let (root, index) = (engine.parts.keeper.root().clone(), Arc::clone(&engine.parts.index));
        let ledger = Some(Arc::clone(&engine.parts.ledger));
        let house = web::house(config, &crew.client.options().namespace, ui.as_deref());
        let web = Web { client: crew.client.clone(), root, index, ledger, house };
        web.answer(config, serving, crew.stop.clone())?;
    }
    let served = Served { config, crew: &crew, engine: &engine, ui: ui.as_deref(), listen };
    let ended = stay(&served, up, &mut failures, out).await;
    // Before the port is anybody's: whoever asks a server from now on would send its key there.
    UpNote::shut(&config.state_dir()?);
    raise.send_replace(true);
    if let Some(serving) = serving {
        // It ends by the same flag, and says itself why it ended otherwise.
        serving.ended().await;
    }
    engine.end().await;
    // A worker that panicked has already said why.
    let _ = tokio::task::spawn_blocking(move || clerk.join()).await;
    ended
}

/// What `up` keeps running.
struct Served<'a> {
    config: &'a Config,
    crew: &'a Crew,
    engine: &'a Engine,
    ui: Option<&'a str>,
    listen: Option<SocketAddr>,
}

async fn stay(
    served: &Served<'_>,
    up: &crate::cli::Up,
    failures: &mut mpsc::UnboundedReceiver<anyhow::Error>,
    out: Out,
) -> anyhow::Result<Exit> {
    let mut stop = served.crew.stop.clone();
    if !up.once && !*stop.borrow() {
        out.say(&super::schedules::describe(&served.engine.registered))?;
    }
    if up.once || up.tick_now {
        tokio::select! {
            said = round::tick_all(served) => {
                let said = said?;
                out.value(&said, || round::describe(&said))?;
                if up.once {
                    unless(&served.crew.stop, served.engine.stamp_all()).await;
                    return Ok(said.exit());
                }
            }
            failed = failures.recv() => return Err(failed.context("the workers are gone")?),
            () = raised(&mut stop) => return Ok(Exit::Ok),
        }
    }
    served.engine.begin_waking();
    if !*stop.borrow() {
        out.say(&whereabouts(served)?)?;
    }
    tokio::select! {
        failed = failures.recv() => Err(failed.context("the workers are gone")?),
        () = raised(&mut stop) => Ok(Exit::Ok),
    }
}

/// Serves a vault when the lock is free, and clerk calls meanwhile.
pub(crate) async fn worker(config: &Config, out: Out) -> anyhow::Result<Exit> {
    let (raise, stop) = watch::channel(false);
    raise_when_told(raise.clone())?;
    let telemetry = crate::telemetry::init()?;
    warn(config);
    let address = temporal::address(config)?;
    let Some(client) = unless(&stop, temporal::connect_patiently(config, || telemetry.plugins())).await else {
        return Ok(Exit::Ok);
    };
    let connected = Connected { client: client?, address: address.clone() };
    // Its clerk would answer the calls of the other vault.
    let checked = schedules::check_owner_patiently(config, &connected.client, &address);
    let Some(checked) = unless(&stop, checked).await else { return Ok(Exit::Ok) };
    checked?;
    let (crew, mut failures) = fleet::crew(config, connected, telemetry.runtime_options()?, stop.clone())?;
    let clerk = engine::start_clerk(config, &crew)?;
    out.say("serving clerk calls")?;
    let mut house = House::default();
    let mut engine = None;
    let ended = {
        let serving = hold(config, &crew, &address, (&mut house, out));
        tokio::pin!(serving);
        let mut stop = stop.clone();
        let mut opened = false;
        loop {
            tokio::select! {
                result = &mut serving, if !opened => {
                    opened = true;
                    match result {
                        Ok(started) => engine = started,
                        Err(e) => break Err(e),
                    }
                }
                failed = failures.recv() => break failed.context("the workers are gone").and_then(Err),
                () = raised(&mut stop), if opened => break Ok(Exit::Ok),
            }
        }
    };
    raise.send_replace(true);
    if let Some(engine) = engine {
        engine.end().await;
    }
    // A worker that panicked has already said why.
    let _ = tokio::task::spawn_blocking(move || clerk.join()).await;
    house.end(config).await?;
    telemetry.shutdown().await;
    ended
}

/// Waits for its turn to hold the vault and begins to serve it; `None` when told to end before, or
/// when there is no vault.
async fn hold(
    config: &Config,
    crew: &Crew,
    address: &str,
    (house, out): (&mut House, Out),
) -> anyhow::Result<Option<Engine>> {
    let mut waiting = crew.stop.clone();
    if config.vault.is_none() {
        return Ok(None);
    }
    let Some(parts) = Parts::open_in_turn(config, &mut waiting).await? else { return Ok(None) };
    house.keeper = Some(Arc::clone(&parts.keeper));
    tokio::select! {
        claimed = schedules::claim_namespace(config, &crew.client, address, &parts.keeper, false) => claimed?,
        () = raised(&mut waiting) => return Ok(None),
    }
    note::of_this_process(config, "worker", address).write(&config.state_dir()?)?;
    let engine = engine::start(config, crew, parts, false).await?;
    engine.begin_waking();
    if !*waiting.borrow() {
        out.say(&super::schedules::describe(&engine.registered))?;
        out.say("serving the vault")?;
    }
    Ok(Some(engine))
}

/// Raises the flag on Ctrl-C and on a polite kill, from now on.
pub(crate) fn raise_when_told(raise: watch::Sender<bool>) -> anyhow::Result<()> {
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    tokio::spawn(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        raise.send_replace(true);
    });
    Ok(())
}

/// Does something unless the process is told to end meanwhile.
pub(super) async fn unless<T>(stop: &watch::Receiver<bool>, work: impl Future<Output = T>) -> Option<T> {
    let mut stop = stop.clone();
    tokio::select! {
        done = work => Some(done),
        () = raised(&mut stop) => None,
    }
}

pub(crate) fn warn(config: &Config) {
    for warning in &config.warnings {
        tracing::warn!("{warning}");
    }
}

fn whereabouts(served: &Served<'_>) -> anyhow::Result<String> {
    let Served { config, ui, listen, .. } = *served;
    let mut lines = vec![format!("vault      {}", config.vault()?.display())];
    if let Some(address) = listen {
        lines.push(format!("dashboard  {}", web::invitation(config, address)?));
    }
    if let Some(ui) = ui {
        lines.push(format!("schedules  {ui}/namespaces/{}/schedules", temporal::namespace()));
    }
    lines.push(format!("records    {}", config.vault()?.join("event").display()));
    lines.push("up; Ctrl-C ends it".into());
    Ok(lines.join("\n"))
}
