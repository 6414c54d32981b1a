//! What the process that serves a vault knows of its ownership, and asks again before it acts.
//!
//! A heartbeat asks every few seconds; each act that others could see asks too, unless the last leave is still good. The
//! last answer also says whether anything may begin: not while the fleet is stopped, nor while nobody answers. That
//! another copy owns the vault is final.

use crate::owner::{OwnerPermit, Permit, PermitRefusal};
use crate::store::FleetError;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use steward_domain::action::audit::ChainHead;
use steward_domain::fleet::ownership::OwnerProgress;
use steward_domain::gates::mode::Mode;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::{Instant, MissedTickBehavior};

/// How often a process says that it lives: 5 s.
const HEARTBEAT: Duration = Duration::from_secs(5);

/// The pause after a heartbeat without an answer: 1 s, so that all goes on soon after the database is back.
const RETRY: Duration = Duration::from_secs(1);
/// How long the database may be silent before this process takes no task from Temporal any more: 15 s.
const SILENCE: Duration = Duration::from_secs(15);

/// Reads how far the audit chain of the vault has come. It must not wait.
pub(crate) type ReadChain = Arc<dyn Fn() -> ChainHead + Send + Sync>;

type Answer = Option<Result<Permit, PermitRefusal>>;

/// The ownership of the vault that this process serves. Cheap to clone; all clones share the last answer. The heartbeat
/// ends with the last clone.
#[derive(Clone)]
pub struct VaultOwnership {
    permit: OwnerPermit,
    read_chain: ReadChain,
    last: Arc<watch::Sender<Answer>>,
    /// Whether the database has been silent for [`SILENCE`].
    silent: watch::Receiver<bool>,
    runtime: Handle,
    _loops: Arc<[AbortOnDrop; 2]>,
}

#[derive(Debug)]
struct AbortOnDrop(AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl fmt::Debug for VaultOwnership {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VaultOwnership").field("permit", &self.permit).finish_non_exhaustive()
    }
}

impl VaultOwnership {
    /// Asks once, and from then on every few seconds. Must be called inside a tokio runtime, which then carries the calls
    /// of other threads.
    pub async fn start(permit: OwnerPermit, read_chain: ReadChain) -> Self {
        let last = Arc::new(watch::channel(None).0);
        // The first answer, so that nothing begins under a stop.
        drop(ask(&permit, &read_chain, &last).await);
        let (asked, read, answers) = (permit.clone(), Arc::clone(&read_chain), Arc::clone(&last));
        let heartbeat = tokio::spawn(async move {
            let mut clock = tokio::time::interval(HEARTBEAT);
            clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                clock.tick().await;
                if ask(&asked, &read, &answers).await.is_err() {
                    clock.reset_after(RETRY);
                }
            }
        });
        let (raise, silent) = watch::channel(false);
        let silence = tokio::spawn(follow_silence(last.subscribe(), raise));
        let loops = Arc::new([heartbeat, silence].map(|task| AbortOnDrop(task.abort_handle())));
        Self { permit, read_chain, last, silent, runtime: Handle::current(), _loops: loops }
    }

    /// As [`OwnerPermit::was_taken`].
    #[must_use]
    pub fn was_taken(&self) -> bool {
        self.permit.was_taken()
    }

    pub(crate) fn permit(&self) -> &OwnerPermit {
        &self.permit
    }

    /// Reports what this process has done, for people who look after the fleet.
    ///
    /// # Errors
    /// [`FleetError`].
    pub async fn report_progress(&self, progress: &OwnerProgress) -> Result<(), FleetError> {
        self.permit.report_progress(progress).await
    }

    /// Asks for the leave to act.
    ///
    /// # Errors
    /// [`PermitRefusal`].
    pub async fn obtain(&self) -> Result<Permit, PermitRefusal> {
        ask(&self.permit, &self.read_chain, &self.last).await
    }

    /// The last leave if it is still good, and else another one.
    ///
    /// # Errors
    /// [`PermitRefusal`].
    pub async fn ensure(&self) -> Result<Permit, PermitRefusal> {
        let last = self.last.borrow().clone();
        match last {
            Some(Ok(permit)) if permit.is_fresh() => Ok(permit),
            _ => self.obtain().await,
        }
    }

    /// As [`VaultOwnership::ensure`], on a thread that may block. Call it right before the act.
    ///
    /// # Errors
    /// [`PermitRefusal`].
    pub fn ensure_blocking(&self) -> Result<Permit, PermitRefusal> {
        self.runtime.block_on(self.ensure())
    }

    /// Whether a stop holds, asked anew, on a thread that may block. No answer is no stop, and refuses the change itself.
    #[must_use]
    pub fn is_stopped_blocking(&self) -> bool {
        self.runtime.block_on(self.obtain()).is_ok_and(|permit| permit.stop.is_some())
    }

    /// Why nothing may begin now, by the last answer; `None` if it may.
    #[must_use]
    pub fn find_pause(&self) -> Option<String> {
        match self.last.borrow().as_ref()? {
            Ok(permit) => permit.describe_stop(),
            Err(refusal) => Some(refusal.to_string()),
        }
    }

    /// The most that the fleet allowed by its last answer; `None` before the first, and after a refusal.
    #[must_use]
    pub fn find_last_ceiling(&self) -> Option<Mode> {
        self.last.borrow().as_ref()?.as_ref().ok().map(|permit| permit.ceiling)
    }

    /// Follows whether the database has been silent for so long that another process may own the vault by now.
    #[must_use]
    pub fn watch_silence(&self) -> watch::Receiver<bool> {
        self.silent.clone()
    }

    /// Waits until the vault is lost for good: another copy owns it, or the tenant was dropped.
    pub async fn wait_until_lost(&self) -> PermitRefusal {
        let mut answers = self.last.subscribe();
        let is_final = |answer: &Answer| matches!(answer, Some(Err(refusal)) if refusal.is_final());
        match answers.wait_for(is_final).await.map(|answer| answer.clone()) {
            Ok(Some(Err(refusal))) => refusal,
            // The sender lives as long as this value.
            Ok(_) | Err(_) => PermitRefusal::Lost,
        }
    }

    /// Waits until the database stops answering, or answers again: then its fault, or `None`. `known` is what the caller
    /// knows already.
    pub async fn wait_for_fault_change(&self, known: Option<&str>) -> Option<String> {
        let mut answers = self.last.subscribe();
        let is_other = |answer: &Answer| find_fault(answer).is_some() != known.is_some();
        answers.wait_for(is_other).await.ok().and_then(|answer| find_fault(&answer))
    }
}

/// Raises the flag [`SILENCE`] after the last leave, and lowers it with the next one.
async fn follow_silence(mut answers: watch::Receiver<Answer>, raise: watch::Sender<bool>) {
    let mut heard = Instant::now();
    loop {
        let changed = tokio::select! {
            changed = answers.changed() => changed,
            () = tokio::time::sleep_until(heard + SILENCE), if !*raise.borrow() => {
                raise.send_replace(true);
                Ok(())
            }
        };
        if changed.is_err() {
            return;
        }
        if matches!(&*answers.borrow_and_update(), Some(Ok(permit)) if permit.is_fresh()) {
            heard = Instant::now();
            raise.send_if_modified(|silent| std::mem::replace(silent, false));
        }
    }
}

fn find_fault(answer: &Answer) -> Option<String> {
    match answer {
        Some(Err(refusal)) => Some(refusal.to_string()),
        Some(Ok(_)) | None => None,
    }
}

/// Asks, and keeps the answer unless a newer one came meanwhile. A final refusal is kept for ever.
async fn ask(
    permit: &OwnerPermit,
    read_chain: &ReadChain,
    last: &watch::Sender<Answer>,
) -> Result<Permit, PermitRefusal> {
    let answer = permit.obtain(&read_chain()).await;
    last.send_if_modified(|known| {
        let is_older = match (&*known, &answer) {
            (Some(Err(refusal)), _) => refusal.is_final(),
            (Some(Ok(known)), Ok(new)) => known.is_newer_than(new),
            (Some(Ok(_)), Err(_)) | (None, _) => false,
        };
        if !is_older {
            *known = Some(answer.clone());
        }
        !is_older
    });
    answer
}
