//! A model provider that several tenants share: it keeps the time of every call that arrived, by its own clock.
//!
//! A tenant is known by the model that it asks for. What a script returns is the answer; what arrived cannot be changed by
//! it. The counts of windows are the provider's own, so they do not depend on anything that Steward recorded. A provider that
//! was told its keys answers every other key with 401.

use crate::clerk::{Clerk, Says};
use chrono::{DateTime, TimeDelta, Utc};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A call that arrived.
#[derive(Clone, Debug)]
pub struct Arrival {
    pub at: DateTime<Utc>,
    pub tenant: String,
    pub task: String,
    pub key: String,
    /// Whether its key was accepted.
    pub authorised: bool,
    /// The wait that it was answered with, if it got a 429.
    pub refused: Option<TimeDelta>,
    /// When it gets its answer.
    pub answered: DateTime<Utc>,
}

/// How a call is answered.
#[derive(Clone, Debug)]
pub enum Reply {
    /// The task is done, after this time.
    Done(Duration),
    /// 429 with a time to wait, at once.
    Wait(TimeDelta),
}

/// A running provider.
pub struct Provider {
    /// What the clerk of a tenant is set to.
    pub url: String,
    arrivals: Arc<Mutex<Vec<Arrival>>>,
    /// The keys that are accepted; none for all.
    keys: Arc<Mutex<Vec<String>>>,
    _server: Clerk,
}

impl Provider {
    /// Starts a provider. The script gets the calls that came before, the tenant and the task.
    pub async fn start(script: impl Fn(&[Arrival], &str, &str) -> Reply + Send + Sync + 'static) -> Self {
        let arrivals: Arc<Mutex<Vec<Arrival>>> = Arc::default();
        let keys: Arc<Mutex<Vec<String>>> = Arc::default();
        let (kept, accepted) = (Arc::clone(&arrivals), Arc::clone(&keys));
        let server = Clerk::start(move |asked| {
            let (tenant, task) = (asked.body["model"].as_str().unwrap().to_owned(), asked.task().to_owned());
            let (at, key, accepted) = (Utc::now(), asked.key.clone(), accepted.lock().unwrap());
            let authorised = accepted.is_empty() || accepted.contains(&key);
            let mut arrivals = kept.lock().unwrap();
            let reply = if authorised { script(&arrivals, &tenant, &task) } else { Reply::Done(Duration::ZERO) };
            let (refused, delay) = match reply {
                Reply::Done(delay) => (None, delay),
                Reply::Wait(wait) => (Some(wait), Duration::ZERO),
            };
            let answered = at + TimeDelta::from_std(delay).unwrap();
            arrivals.push(Arrival { at, tenant, task, key, authorised, refused, answered });
            match refused {
                _ if !authorised => Says::Status(401, None),
                Some(wait) => Says::Status(429, Some(wait.num_seconds().to_string())),
                None => Says::Late(delay, Box::new(Says::Verdict("likely_done", 0.97))),
            }
        })
        .await;
        Self { url: server.url.clone(), arrivals, keys, _server: server }
    }

    /// Accepts these keys and no other from now on.
    pub fn accept_keys(&self, keys: &[&str]) {
        *self.keys.lock().unwrap() = keys.iter().map(|&key| key.to_owned()).collect();
    }

    /// All calls so far.
    #[must_use]
    pub fn arrivals(&self) -> Vec<Arrival> {
        self.arrivals.lock().unwrap().clone()
    }

    /// Whether a call of this tenant waits for its answer.
    #[must_use]
    pub fn has_open_call(&self, tenant: &str) -> bool {
        let arrivals = self.arrivals.lock().unwrap();
        arrivals.iter().rev().find(|call| call.tenant == tenant).is_some_and(|call| call.answered > Utc::now())
    }
}

/// The most of these times within any window of this width.
#[must_use]
pub fn find_most_within(times: &[DateTime<Utc>], width: TimeDelta) -> usize {
    let mut sorted = times.to_vec();
    sorted.sort();
    let counts =
        sorted.iter().enumerate().map(|(n, first)| sorted[n..].iter().take_while(|at| **at - *first < width).count());
    counts.max().unwrap_or(0)
}
