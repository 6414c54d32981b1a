use super::*;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use tokio::sync::Semaphore;

#[tokio::test]
async fn requests_during_a_trigger_cause_one_more_trigger() {
    let (requests, calls, answers) = (Arc::new(Notify::new()), AtomicUsize::new(0), Semaphore::new(0));
    let trigger = async || {
        calls.fetch_add(1, Ordering::SeqCst);
        answers.acquire().await.unwrap().forget();
    };
    let serving = trigger_on_request(Arc::clone(&requests), Duration::from_millis(1), || false, trigger);
    let work = async {
        let mut clock = every(Duration::from_millis(2));
        for _ in 0..50 {
            requests.notify_one();
            clock.tick().await;
        }
        assert_eq!(calls.load(Ordering::SeqCst), 1, "the first is not answered yet");
        answers.add_permits(100);
        while calls.load(Ordering::SeqCst) < 2 {
            clock.tick().await;
        }
        for _ in 0..20 {
            clock.tick().await;
        }
    };
    tokio::select! {
        () = serving => {}
        () = work => {}
    }
    assert_eq!(calls.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn requests_under_a_stop_are_triggered_once_after_it() {
    let (requests, calls, stopped) = (Arc::new(Notify::new()), AtomicUsize::new(0), AtomicBool::new(true));
    let trigger = async || {
        calls.fetch_add(1, Ordering::SeqCst);
    };
    let is_stopped = || stopped.load(Ordering::SeqCst);
    let serving = trigger_on_request(Arc::clone(&requests), Duration::from_millis(1), is_stopped, trigger);
    let work = async {
        let mut clock = every(Duration::from_millis(5));
        for _ in 0..10 {
            requests.notify_one();
            clock.tick().await;
        }
        assert_eq!(calls.load(Ordering::SeqCst), 0);
        stopped.store(false, Ordering::SeqCst);
        while calls.load(Ordering::SeqCst) == 0 {
            clock.tick().await;
        }
        for _ in 0..10 {
            clock.tick().await;
        }
    };
    tokio::select! {
        () = serving => {}
        () = work => {}
    }
    assert_eq!(calls.load(Ordering::SeqCst), 1);
}
