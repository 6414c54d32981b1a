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

/// Longer than any machine needs: 60 s.
const PATIENCE: Duration = Duration::from_secs(60);

/// A vault of matters with one task each, its index, and a fake server that counts triggers.
struct WakeFixture {
    dir: tempfile::TempDir,
    root: VaultRoot,
    index: Arc<Index>,
    stopped: AtomicBool,
    at_once: AtomicUsize,
    most_at_once: AtomicUsize,
    triggered: Mutex<Vec<String>>,
    rounds: flag::Sender<u64>,
}

impl WakeFixture {
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
        let query = ObservationQuery {
            matter: matter.clone(),
            check_id: format!("run-{}/1", self.triggered().len()),
            now: Utc::now(),
            cadence: Cadence::default(),
            policy: DecisionPolicy::default(),
            stopped: false,
            max_checks: 64,
            default_ceiling: Ceiling::Act,
        };
        self.index.cursors().observe_due_tasks(&query).await.unwrap();
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

    async fn until(&self, goal: &str, is_reached: impl AsyncFn() -> bool) {
        let waited = tokio::time::timeout(PATIENCE, async {
            let mut pause = tokio::time::interval(Duration::from_millis(5));
            while !is_reached().await {
                pause.tick().await;
            }
        });
        assert!(waited.await.is_ok(), "waited for {goal}; triggered: {:?}", self.triggered());
    }

    async fn until_no_mark_is_left(&self) {
        self.until("an empty queue", async || self.index.cursors().list_wake_marks().await.unwrap().is_empty()).await;
    }

    /// Wakes matters with this trigger while `work` runs.
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
async fn matters_are_woken_at_once_up_to_the_limit_and_none_is_left() {
    let fixture = WakeFixture::new(2 * WAKES_AT_ONCE).await;
    for n in 0..2 * WAKES_AT_ONCE {
        fixture.signal(&format!("s{n}"), n).await;
    }
    // Every call waits until the highest number of calls is in progress.
    let full = Arc::new(Barrier::new(WAKES_AT_ONCE));
    let trigger = |fixture: Arc<WakeFixture>, matter: RecordPath| {
        let full = Arc::clone(&full);
        async move {
            fixture.begin(&matter);
            full.wait().await;
            fixture.end();
            fixture.tick(&matter).await;
            WakeOutcome::Triggered
        }
    };
    fixture.while_waking(trigger, fixture.until_no_mark_is_left()).await;
    assert_eq!(fixture.most_at_once.load(Ordering::SeqCst), WAKES_AT_ONCE);
    assert_eq!(fixture.triggered().len(), 2 * WAKES_AT_ONCE, "each matter once");
}

#[tokio::test]
async fn signals_that_come_while_a_matter_is_being_woken_need_one_more_wake_at_most() {
    let fixture = WakeFixture::new(1).await;
    fixture.signal("s0", 0).await;
    let trigger = |fixture: Arc<WakeFixture>, matter: RecordPath| async move {
        fixture.begin(&matter);
        if fixture.triggered().len() == 1 {
            fixture.tick(&matter).await;
            // After the check of the first tick, and before its trigger is answered.
            for n in 1..6 {
                fixture.signal(&format!("s{n}"), 0).await;
            }
        } else {
            fixture.tick(&matter).await;
        }
        fixture.end();
        WakeOutcome::Triggered
    };
    fixture
        .while_waking(trigger, async {
            fixture.until("the wake for the later signals", async || fixture.triggered().len() >= 2).await;
            fixture.until_no_mark_is_left().await;
        })
        .await;
    assert_eq!(fixture.triggered(), ["m0", "m0"]);
    assert_eq!(fixture.most_at_once.load(Ordering::SeqCst), 1, "never two triggers of one matter");
}

#[tokio::test]
async fn under_a_stop_no_matter_is_woken_and_after_it_all_marked_ones() {
    let fixture = WakeFixture::new(3).await;
    fixture.stopped.store(true, Ordering::SeqCst);
    for n in 0..3 {
        fixture.signal(&format!("s{n}"), n).await;
    }
    let trigger = |fixture: Arc<WakeFixture>, matter: RecordPath| async move {
        assert!(!fixture.stopped.load(Ordering::SeqCst));
        fixture.begin(&matter);
        fixture.tick(&matter).await;
        WakeOutcome::Triggered
    };
    fixture
        .while_waking(trigger, async {
            let mut clock = tokio::time::interval(Duration::from_millis(1_500));
            for _ in 0..2 {
                clock.tick().await;
            }
            assert_eq!(fixture.triggered(), Vec::<String>::new());
            assert_eq!(fixture.index.cursors().list_wake_marks().await.unwrap().len(), 3);
            fixture.stopped.store(false, Ordering::SeqCst);
            fixture.until_no_mark_is_left().await;
        })
        .await;
    assert_eq!(fixture.triggered().len(), 3);
}

#[tokio::test]
async fn a_matter_without_a_schedule_waits_for_the_next_registration_and_blocks_no_other() {
    let fixture = WakeFixture::new(2).await;
    fixture.signal("s0", 0).await;
    let trigger = |fixture: Arc<WakeFixture>, matter: RecordPath| async move {
        fixture.begin(&matter);
        if matter.slug() == "m0" && *fixture.rounds.borrow() < 7 {
            return WakeOutcome::Missing { round: 7 };
        }
        fixture.tick(&matter).await;
        WakeOutcome::Triggered
    };
    fixture
        .while_waking(trigger, async {
            fixture.until("the first try", async || !fixture.triggered().is_empty()).await;
            fixture.signal("s1", 1).await;
            fixture.until("the other matter", async || fixture.triggered().len() == 2).await;
            fixture.rounds.send_replace(6);
            fixture.index.cursors().notify_wakes();
            assert!(
                fixture.index.cursors().list_wake_marks().await.unwrap().keys().any(|matter| matter.slug() == "m0")
            );
            fixture.rounds.send_replace(7);
            fixture.until_no_mark_is_left().await;
        })
        .await;
    assert_eq!(fixture.triggered(), ["m0", "m1", "m0"]);
}

#[tokio::test]
async fn a_failed_call_loses_no_wake_and_a_paused_matter_is_dropped() {
    let fixture = WakeFixture::new(2).await;
    fixture.signal("s0", 0).await;
    fixture.signal("s1", 1).await;
    let trigger = |fixture: Arc<WakeFixture>, matter: RecordPath| async move {
        fixture.begin(&matter);
        let tried = fixture.triggered().iter().filter(|slug| *slug == matter.slug()).count();
        match (matter.slug(), tried) {
            ("m0", 1) => WakeOutcome::Failed,
            ("m0", _) => {
                fixture.tick(&matter).await;
                WakeOutcome::Triggered
            }
            _ => WakeOutcome::Paused,
        }
    };
    fixture.while_waking(trigger, fixture.until_no_mark_is_left()).await;
    let triggered = fixture.triggered();
    assert_eq!(triggered.iter().filter(|slug| *slug == "m0").count(), 2, "{triggered:?}");
    assert_eq!(triggered.iter().filter(|slug| *slug == "m1").count(), 1, "{triggered:?}");
}

fn mark(matter: usize) -> WakeMark {
    let matter = RecordPath::parse(&format!("matter/m{matter}.md")).unwrap();
    WakeMark { matter, at: 1, observed: None, may_tick: true }
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
