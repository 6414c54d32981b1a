//! A small supervisor for one tenant's process, with the rules of `deploy/systemd/steward@.service`.
//!
//! It starts the process again 2 s after it ended, unless it ended with exit 2 or 3. It remembers every start, when the
//! process served, and how it ended. The process ends when this value is dropped.

use crate::api::{self, Api};
use crate::steward::{Running, Steward};
use crate::wait;
use chrono::{DateTime, Utc};
use rustix::process::Signal;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// As `RestartSec` of the unit.
const PAUSE: Duration = Duration::from_secs(2);
/// As `RestartPreventExitStatus` of the unit.
const FINAL: [i32; 2] = [2, 3];
/// What `up` prints once it serves.
const SERVES: &str = "up; Ctrl-C ends it";

/// One start of the process.
#[derive(Clone, Debug)]
pub struct Start {
    pub pid: u32,
    pub at: DateTime<Utc>,
    /// When it served.
    pub served: Option<DateTime<Utc>>,
    pub ended: Option<DateTime<Utc>>,
    /// Its exit code; `None` after a signal, and while it runs.
    pub code: Option<i32>,
}

struct Watched {
    steward: Steward,
    running: Option<Running>,
    starts: Vec<Start>,
    /// The output and logs of processes that have ended.
    logs: String,
    /// Since when the process has ended and will be started again.
    paused: Option<Instant>,
}

/// A process that is started again whenever it ends.
pub struct Supervised {
    watched: Arc<Mutex<Watched>>,
    watching: tokio::task::JoinHandle<()>,
}

impl Supervised {
    /// Starts `steward up`.
    #[must_use]
    pub fn start(steward: &Steward) -> Self {
        let watched =
            Watched { steward: steward.clone(), running: None, starts: Vec::new(), logs: String::new(), paused: None };
        let watched = Arc::new(Mutex::new(watched));
        watched.lock().unwrap().launch();
        let shared = Arc::clone(&watched);
        let watching = tokio::spawn(async move {
            while shared.lock().unwrap().turn() {
                wait::a_moment(Duration::from_millis(40)).await;
            }
        });
        Self { watched, watching }
    }

    fn open(&self) -> MutexGuard<'_, Watched> {
        self.watched.lock().unwrap()
    }

    /// Sets a variable for the next start.
    pub fn set(&self, name: &str, value: impl ToString) {
        self.open().steward.set(name, value);
    }

    /// All starts so far, the newest last.
    #[must_use]
    pub fn starts(&self) -> Vec<Start> {
        self.open().starts.clone()
    }

    /// The newest start.
    #[must_use]
    pub fn last(&self) -> Start {
        self.open().starts.last().unwrap().clone()
    }

    /// Since when the present process serves; `None` while it does not.
    #[must_use]
    pub fn serving_since(&self) -> Option<DateTime<Utc>> {
        let last = self.last();
        last.served.filter(|_| last.ended.is_none())
    }

    /// Waits until the present process, or the next one, serves.
    pub async fn serves(&self) {
        let pid = self.last().pid;
        wait::until(&format!("process {pid} or the next one to serve"), async || {
            let last = self.last();
            let is_final = last.code.is_some_and(|code| FINAL.contains(&code));
            assert!(!is_final, "it ended with {:?} and is not started again:\n{}", last.code, self.logs());
            self.serving_since().map(drop)
        })
        .await;
    }

    /// Waits until the process has ended with a code after which it is not started again, and returns that code.
    pub async fn gives_up(&self) -> i32 {
        wait::until("the process to end for good", async || self.last().code.filter(|code| FINAL.contains(code))).await
    }

    /// Kills the process at once. Returns its id, or `None` if none runs now.
    #[must_use]
    pub fn kill(&self) -> Option<u32> {
        let mut watched = self.open();
        let running = watched.running.as_mut()?;
        if running.status().is_some() {
            return None;
        }
        running.kill();
        let pid = running.pid();
        watched.turn();
        Some(pid)
    }

    /// Sends a signal to the process, if one runs.
    pub fn send(&self, signal: Signal) {
        if let Some(running) = &self.open().running {
            running.send(signal);
        }
    }

    /// Asks the process to end, and waits until the next one serves.
    pub async fn restart(&self) {
        let before = self.starts().len();
        self.send(Signal::TERM);
        wait::until("the next start", async || (self.starts().len() > before).then_some(())).await;
        self.serves().await;
    }

    /// The output and logs of all its processes.
    #[must_use]
    pub fn logs(&self) -> String {
        let watched = self.open();
        let present = watched.running.as_ref().map(|running| format!("{}{}", running.out(), running.err()));
        format!("{}{}", watched.logs, present.unwrap_or_default())
    }

    /// Its server, without a token.
    #[must_use]
    pub fn open_api(&self) -> Api {
        Api::new(api::find_link(&self.out()).split("/login").next().unwrap())
    }

    /// The output of the present process.
    #[must_use]
    pub fn out(&self) -> String {
        self.open().running.as_ref().map(Running::out).unwrap_or_default()
    }
}

impl Drop for Supervised {
    fn drop(&mut self) {
        self.watching.abort();
        self.watched.lock().unwrap().running = None;
    }
}

impl Watched {
    fn launch(&mut self) {
        let running = self.steward.start(&["up"]);
        self.starts.push(Start { pid: running.pid(), at: Utc::now(), served: None, ended: None, code: None });
        self.running = Some(running);
        self.paused = None;
    }

    /// Looks after the process once. Returns whether it is to be looked after again.
    fn turn(&mut self) -> bool {
        if let Some(running) = &mut self.running {
            let start = self.starts.last_mut().unwrap();
            if start.served.is_none() && running.out().contains(SERVES) {
                start.served = Some(Utc::now());
            }
            let Some(status) = running.status() else { return true };
            start.ended = Some(Utc::now());
            start.code = status.code();
            self.logs.push_str(&format!("{}{}", running.out(), running.err()));
            self.running = None;
            self.paused = Some(Instant::now());
            return !start.code.is_some_and(|code| FINAL.contains(&code));
        }
        if self.paused.is_some_and(|since| since.elapsed() >= PAUSE) {
            self.launch();
        }
        true
    }
}
