use super::*;
use chrono::Utc;
use std::fs;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use steward_domain::gates::mode::{Ceiling, DecisionPolicy};
use steward_domain::steward::tick::Cadence;
use steward_vault::files::root::VaultRoot;
use steward_vault::index::ObservationQuery;
use tokio::sync::Barrier;

/// Longer than any machine needs.
const PATIENCE: Duration = Duration::from_secs(60);

/// A vault of matters with one task each, its index, and a server that counts.
struct Bench {
    dir: tempfile::TempDir,
    root: VaultRoot,
    index: Arc<Index>,
    stopped: AtomicBool,
    at_once: AtomicUsize,
    most_at_once: AtomicUsize,
    triggered: Mutex<Vec<String>>,
    rounds: flag::Sender<u64>,
}

impl Bench {
    async fn new(matters: usize) -> Arc<Self> {
        let dir = tempfile::tempdir().unwrap();
        for folder in ["vault/matter", "vault/task", "vault/signal"] {
            fs::create_dir_all(dir.path().join(folder)).unwrap();
        }
        for n in 0..matters {
            let matter = format!("---\ntype: matter\nname: M{n}\nstate: open\n---\n");
            fs::write(dir.path().join(format!("vault/matter/m{n}.md")), matter).unwrap();
            let task = format!("---\ntype: task\nname: T{n}\nstate: open\nparent_matter: \"[[matter/m{n}]]\"\n---\n");
            fs::write(dir.path().join(format!("vault/task/t{n}.md")), task).unwrap();
        }
        let root = VaultRoot::open(&dir.path().join("vault")).unwrap();
        let index = Arc::new(Index::open(&dir.path().join("state")).await.unwrap());
        index.sync_all(&root, Utc::now()).await.unwrap();
        let (stopped, at_once, most_at_once) = (AtomicBool::new(false), AtomicUsize::new(0), AtomicUsize::new(0));
        let (triggered, rounds) = (Mutex::default(), flag::channel(0).0);
        Arc::new(Self { dir, root, index, stopped, at_once, most_at_once, triggered, rounds })
    }

    async fn signal(&self, name: &str, matter: usize) {
        let text = format!(
            "---\ntype: signal\ncreated: 2026-11-20T10:00:00Z\nsource_type: bank\nsource_event_path: stream/bank/1.md\n\
             raw_quote: \"It was paid.\"\ntarget_kind: task\ntarget_path: task/t{matter}.md\ntarget_confidence: 0.97\n\
             effect: mutation\nmutation_proposal:\n  class: state_change\n  set: {{state: done}}\n\
             effect_confidence: 0.95\nstatus: unrouted\n---\n"
        );
        fs::write(self.dir.path().join(format!("vault/signal/{name}.md")), text).unwrap();
        self.index.sync_all(&self.root, Utc::now()).await.unwrap();
    }

    /// A tick as the server would run it.
    async fn tick(&self, matter: &RecordPath) {
        let ask = ObservationQuery {
            matter: matter.clone(),
            look_id: format!("run-{}/1", self.triggered().len()),
            now: Utc::now(),
            cadence: Cadence::default(),
            policy: DecisionPolicy::default(),
            stopped: false,
            max_looks: 64,
            default_ceiling: Ceiling::Act,
        };
        self.index.observe_due_tasks(&ask).await.unwrap();
    }

    fn begin(&self, matter: &RecordPath) {
        let now = self.at_once.fetch_add(1, Ordering::SeqCst) + 1;
        self.most_at_once.fetch_max(now, Ordering::SeqCst);
        self.triggered.lock().unwrap_or_else(PoisonError::into_inner).push(matter.slug().to_owned());
    }

    fn end(&self) {
        self.at_once.fetch_sub(1, Ordering::SeqCst);
    }

    fn triggered(&self) -> Vec<String> {
        self.triggered.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn until(&self, what: &str, is_so: impl AsyncFn() -> bool) {
        let waited = tokio::time::timeout(PATIENCE, async {
            let mut pause = tokio::time::interval(Duration::from_millis(5));
            while !is_so().await {
                pause.tick().await;
            }
        });
        assert!(waited.await.is_ok(), "waited for {what}; triggered: {:?}", self.triggered());
    }

    async fn until_nobody_is_marked(&self) {
        self.until("an empty queue", async || self.index.list_wake_marks().await.unwrap().is_empty()).await;
    }

    /// Wakes with these triggers for as long as `work` lasts.
    async fn while_waking<F: Future<Output = WakeOutcome>>(
        self: &Arc<Self>,
        trigger: impl Fn(Arc<Self>, RecordPath) -> F,
        work: impl Future<Output = ()>,
    ) {
        let dispatcher = WakeDispatcher {
            index: Arc::clone(&self.index),
            trigger: |matter| trigger(Arc::clone(self), matter),
            is_stopped: || self.stopped.load(Ordering::SeqCst),
            rounds: self.rounds.subscribe(),
        };
        tokio::select! {
            () = dispatcher.run() => {}
            () = work => {}
        }
    }
}

#[tokio::test]
async fn matters_are_woken_side_by_side_up_to_the_bound_and_none_is_left() {
    let bench = Bench::new(2 * WAKES_AT_ONCE).await;
    for n in 0..2 * WAKES_AT_ONCE {
        bench.signal(&format!("s{n}"), n).await;
    }
    // Every call waits until as many are under way as may be.
    let full = Arc::new(Barrier::new(WAKES_AT_ONCE));
    let trigger = |bench: Arc<Bench>, matter: RecordPath| {
        let full = Arc::clone(&full);
        async move {
            bench.begin(&matter);
            full.wait().await;
            bench.end();
            bench.tick(&matter).await;
            WakeOutcome::Triggered
        }
    };
    bench.while_waking(trigger, bench.until_nobody_is_marked()).await;
    assert_eq!(bench.most_at_once.load(Ordering::SeqCst), WAKES_AT_ONCE);
    assert_eq!(bench.triggered().len(), 2 * WAKES_AT_ONCE, "each matter once");
}

#[tokio::test]
async fn signals_that_come_while_a_matter_is_being_woken_need_one_more_wake_at_most() {
    let bench = Bench::new(1).await;
    bench.signal("s0", 0).await;
    let trigger = |bench: Arc<Bench>, matter: RecordPath| async move {
        bench.begin(&matter);
        if bench.triggered().len() == 1 {
            bench.tick(&matter).await;
            // After the look of the first tick, and before its trigger is answered.
            for n in 1..6 {
                bench.signal(&format!("s{n}"), 0).await;
            }
        } else {
            bench.tick(&matter).await;
        }
        bench.end();
        WakeOutcome::Triggered
    };
    bench
        .while_waking(trigger, async {
            bench.until("the wake for the later signals", async || bench.triggered().len() >= 2).await;
            bench.until_nobody_is_marked().await;
        })
        .await;
    assert_eq!(bench.triggered(), ["m0", "m0"]);
    assert_eq!(bench.most_at_once.load(Ordering::SeqCst), 1, "never two triggers of one matter");
}

#[tokio::test]
async fn under_a_stop_nobody_is_woken_and_after_it_all_that_are_marked() {
    let bench = Bench::new(3).await;
    bench.stopped.store(true, Ordering::SeqCst);
    for n in 0..3 {
        bench.signal(&format!("s{n}"), n).await;
    }
    let trigger = |bench: Arc<Bench>, matter: RecordPath| async move {
        assert!(!bench.stopped.load(Ordering::SeqCst));
        bench.begin(&matter);
        bench.tick(&matter).await;
        WakeOutcome::Triggered
    };
    bench
        .while_waking(trigger, async {
            let mut clock = tokio::time::interval(Duration::from_millis(1_500));
            for _ in 0..2 {
                clock.tick().await;
            }
            assert_eq!(bench.triggered(), Vec::<String>::new());
            assert_eq!(bench.index.list_wake_marks().await.unwrap().len(), 3);
            bench.stopped.store(false, Ordering::SeqCst);
            bench.until_nobody_is_marked().await;
        })
        .await;
    assert_eq!(bench.triggered().len(), 3);
}

#[tokio::test]
async fn a_matter_without_a_schedule_waits_for_the_next_registration_and_holds_up_nobody() {
    let bench = Bench::new(2).await;
    bench.signal("s0", 0).await;
    let trigger = |bench: Arc<Bench>, matter: RecordPath| async move {
        bench.begin(&matter);
        if matter.slug() == "m0" && *bench.rounds.borrow() < 7 {
            return WakeOutcome::Missing { round: 7 };
        }
        bench.tick(&matter).await;
        WakeOutcome::Triggered
    };
    bench
        .while_waking(trigger, async {
            bench.until("the first try", async || !bench.triggered().is_empty()).await;
            bench.signal("s1", 1).await;
            bench.until("the other matter", async || bench.triggered().len() == 2).await;
            bench.rounds.send_replace(6);
            bench.index.notify_wakes();
            assert!(bench.index.list_wake_marks().await.unwrap().keys().any(|matter| matter.slug() == "m0"));
            bench.rounds.send_replace(7);
            bench.until_nobody_is_marked().await;
        })
        .await;
    assert_eq!(bench.triggered(), ["m0", "m1", "m0"]);
}

#[tokio::test]
async fn a_call_that_fails_loses_no_wake_and_a_paused_matter_is_let_go() {
    let bench = Bench::new(2).await;
    bench.signal("s0", 0).await;
    bench.signal("s1", 1).await;
    let trigger = |bench: Arc<Bench>, matter: RecordPath| async move {
        bench.begin(&matter);
        let tried = bench.triggered().iter().filter(|slug| *slug == matter.slug()).count();
        match (matter.slug(), tried) {
            ("m0", 1) => WakeOutcome::Failed,
            ("m0", _) => {
                bench.tick(&matter).await;
                WakeOutcome::Triggered
            }
            _ => WakeOutcome::Paused,
        }
    };
    bench.while_waking(trigger, bench.until_nobody_is_marked()).await;
    let triggered = bench.triggered();
    assert_eq!(triggered.iter().filter(|slug| *slug == "m0").count(), 2, "{triggered:?}");
    assert_eq!(triggered.iter().filter(|slug| *slug == "m1").count(), 1, "{triggered:?}");
}

fn mark(matter: usize) -> WakeMark {
    let matter = RecordPath::parse(&format!("matter/m{matter}.md")).unwrap();
    WakeMark { matter, at: 1, observed: None, ticks: true }
}

#[test]
fn a_matter_that_no_tick_observes_gives_its_place_to_others_and_is_tried_again_later() {
    let (mut places, begun) = (WakePlaces::default(), Instant::now());
    let all: Vec<WakeMark> = (0..WAKES_AT_ONCE + 1).map(mark).collect();
    let taken = places.assign_places(all.clone(), begun, 0);
    assert_eq!(taken.len(), WAKES_AT_ONCE);
    for mark in &taken {
        places.end_call(&mark.matter, WakeOutcome::Triggered, begun);
    }
    assert!(places.assign_places(all.clone(), begun, 0).is_empty(), "all places are held");
    let deadline = places.next_deadline(begun).unwrap();
    places.release_unobserved(deadline);
    assert_eq!(places.list_backed_off(deadline, 0).len(), WAKES_AT_ONCE);
    let left = all.iter().filter(|m| !places.list_backed_off(deadline, 0).contains(&&m.matter)).cloned().collect();
    assert_eq!(places.assign_places(left, deadline, 0).len(), 1);
    let later = places.next_deadline(deadline).unwrap();
    assert!(later > deadline && later <= deadline + Duration::from_secs(300), "they are tried again");
    assert!(places.list_backed_off(later, 0).is_empty());
}

#[test]
fn calls_that_fail_together_count_once_and_the_pause_has_an_end() {
    let (mut places, mut now) = (WakePlaces::default(), Instant::now());
    for _ in 0..20 {
        for mark in places.assign_places((0..3).map(mark).collect(), now, 0) {
            places.end_call(&mark.matter, WakeOutcome::Failed, now);
        }
        assert!(places.is_paused(now));
        let pause = (1..=31).find(|s| !places.is_paused(now + Duration::from_secs(*s))).expect("an end");
        now += Duration::from_secs(pause);
    }
}
