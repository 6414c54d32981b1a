use super::*;
use steward_domain::signals::route::action_id;
use steward_domain::signals::signal::source_key;

/// A bench with a matter and its task, scanned at 01:00.
async fn bench() -> Bench {
    let bench = Bench::scanned().await;
    bench.matter("m");
    bench.task("t", "m", "");
    bench.sync("01:00:00").await;
    bench
}

async fn waiting(bench: &Bench, clock: &str, acts: bool) -> Vec<String> {
    let paths = bench.index.signals().list_signals_to_route(9, noon(clock), acts).await.unwrap();
    paths.iter().map(|p| p.slug().to_owned()).collect()
}

async fn facts(bench: &Bench, acts: bool) -> RouteFacts {
    let (signal, target) = (path("signal/s.md"), path("task/t.md"));
    let query = RouteFactsQuery {
        signal: &signal,
        source: "gmail",
        target: &target,
        new_parent: None,
        acts,
        default_ceiling: Ceiling::Act,
    };
    bench.index.signals().read_route_facts(&query).await.unwrap().unwrap()
}

fn cites(draft: &mut AuditDraft, signal: &str) {
    let cited = CitedSignal {
        reference: path(signal),
        source: "gmail".into(),
        note: "n".into(),
        target_confidence: 0.9,
        effect_confidence: 0.9,
        supports: true,
    };
    draft.evidence = vec![cited];
}

#[tokio::test]
async fn unrouted_signals_wait_and_those_that_have_a_standing_do_not() {
    let bench = bench().await;
    bench.signal("a", "task/t.md", "");
    for status in ["applied", "skipped", "pending", "action_pending"] {
        bench.signal(status, "task/t.md", &format!("status: {status}\n"));
    }
    bench.signal("told", "task/t.md", "status: skipped\nreason: 'ambiguous: two candidates'\n");
    let found = bench.sync("01:01:00").await;
    assert!(found.scan_changes.signals_arrived);
    assert_eq!(waiting(&bench, "01:02:00", true).await, ["a", "told"]);
    bench.signal("a", "task/t.md", "status: applied\nreason: x\n");
    let found = bench.sync("01:03:00").await;
    assert!(!found.scan_changes.signals_arrived, "a standing is nothing new");
    assert_eq!(waiting(&bench, "01:04:00", true).await, ["told"]);
}

#[tokio::test]
async fn what_is_settled_or_waits_for_later_is_not_looked_at() {
    let bench = bench().await;
    for n in 0..50 {
        bench.signal(&format!("settled{n:02}"), "task/t.md", "status: applied\nreason: x\n");
        bench.signal(&format!("later{n:02}"), "task/t.md", "");
    }
    bench.sync("01:01:00").await;
    for n in 0..50 {
        let left = RouteDeferral {
            acts: true,
            until: noon("07:00:00"),
            now: noon("01:02:00"),
            filed: true,
            reason: String::new(),
            question: None,
            basis: None,
        };
        bench.index.signals().record_route_deferral(&path(&format!("signal/later{n:02}.md")), &left).await.unwrap();
    }
    bench.signal("new", "task/t.md", "");
    bench.sync("01:03:00").await;
    assert_eq!(waiting(&bench, "01:04:00", true).await, ["new"]);
    let on_the_list = async |at: &str| -> i64 {
        let list = sqlx::query_scalar("SELECT COUNT(*) FROM routes WHERE retry_at <= ?1 OR acts = 0");
        list.bind(noon(at).timestamp_micros()).fetch_one(&bench.index.store.reader).await.unwrap()
    };
    assert_eq!((on_the_list("01:04:00").await, on_the_list("08:00:00").await), (1, 51));
    // Signals that are settled by their next try leave the list for good.
    bench.signal("later00", "task/t.md", "status: applied\nreason: y\n");
    bench.sync("08:00:00").await;
    assert_eq!(on_the_list("08:00:00").await, 50);
}

#[tokio::test]
async fn a_flood_of_one_source_delays_no_other() {
    let bench = bench().await;
    for n in 0..20 {
        bench.signal(&format!("flood{n:02}"), "task/t.md", "");
    }
    let other = signal_text("task/t.md", "2026-11-20T10:00:00Z", "").replace("gmail", "slack");
    bench.put("signal/other.md", other);
    bench.sync("01:01:00").await;
    assert_eq!(waiting(&bench, "01:02:00", true).await[..2], ["flood00", "other"]);
}

#[tokio::test]
async fn what_was_left_comes_back_in_time_or_when_it_says_something_new_or_when_changes_may_happen() {
    let bench = bench().await;
    bench.signal("s", "task/t.md", "");
    bench.sync("01:01:00").await;
    let left = RouteDeferral {
        acts: false,
        until: noon("02:00:00"),
        now: noon("01:02:00"),
        filed: false,
        reason: String::new(),
        question: None,
        basis: None,
    };
    bench.index.signals().record_route_deferral(&path("signal/s.md"), &left).await.unwrap();
    assert_eq!(waiting(&bench, "01:59:00", false).await, [""; 0]);
    assert_eq!(waiting(&bench, "02:00:00", false).await, ["s"]);
    assert_eq!(waiting(&bench, "01:03:00", true).await, ["s"], "the mode was raised");
    bench.signal("s", "task/t.md", "reasoning: mended\n");
    bench.sync("01:04:00").await;
    assert_eq!(waiting(&bench, "01:05:00", false).await, ["s"], "its content is new");
}

#[tokio::test]
async fn an_action_has_one_moment_for_all_tries_and_no_two_have_the_same() {
    let bench = bench().await;
    let begin = async |signal: &str, acts| {
        bench.index.signals().begin_route(&path(signal), acts, noon("01:00:00")).await.unwrap()
    };
    let first = begin("signal/a.md", true).await;
    assert_eq!(first, noon("01:00:00"));
    let second = begin("signal/b.md", true).await;
    assert_eq!(second, first + chrono::TimeDelta::milliseconds(1));
    assert_eq!(begin("signal/a.md", true).await, first);
    assert_ne!(begin("signal/a.md", false).await, first, "the action in shadow mode is a different one");
    let mut left = RouteDeferral {
        acts: true,
        until: noon("02:00:00"),
        now: noon("01:00:00"),
        filed: true,
        reason: String::new(),
        question: None,
        basis: None,
    };
    bench.index.signals().record_route_deferral(&path("signal/b.md"), &left).await.unwrap();
    assert_eq!(begin("signal/b.md", true).await, second);
    left.filed = false;
    bench.index.signals().record_route_deferral(&path("signal/b.md"), &left).await.unwrap();
    assert_ne!(begin("signal/b.md", true).await, second, "nothing came of it");
}

#[tokio::test]
async fn a_clock_that_ran_three_days_ahead_and_came_back_names_actions_after_itself_again() {
    let bench = bench().await;
    let begin = async |signal: &str, now| bench.index.signals().begin_route(&path(signal), true, now).await.unwrap();
    let ahead = noon("01:00:00") + chrono::TimeDelta::days(3);
    assert_eq!(begin("signal/a.md", ahead).await, ahead);
    let back = noon("01:00:01");
    assert_eq!(begin("signal/b.md", back).await, back);
    assert_eq!(begin("signal/c.md", back).await, back + chrono::TimeDelta::milliseconds(1), "and no two have the same");
    assert_eq!(begin("signal/d.md", ahead).await, ahead + chrono::TimeDelta::milliseconds(1), "nor once it gets there");
}

#[tokio::test]
async fn a_record_claims_what_it_cites_and_a_mere_shadow_does_not_once_changes_may_happen() {
    for (disposition, claimed, claimed_when_live) in [
        (Disposition::Live, true, true),
        (Disposition::Pending, true, true),
        (Disposition::Recorded, true, true),
        (Disposition::Shadow, true, false),
    ] {
        let bench = bench().await;
        bench.signal("s", "task/t.md", "");
        let id = bench.action("a", |draft| {
            cites(draft, "signal/s.md");
            draft.disposition = disposition;
        });
        bench.sync("01:01:00").await;
        let claim = facts(&bench, false).await.claim;
        assert_eq!(claim.map(|c| (c.id, c.disposition)), claimed.then_some((id.clone(), disposition)));
        assert_eq!(facts(&bench, true).await.claim.is_some(), claimed_when_live, "{disposition:?}");
        bench.action("b", |draft| answer(draft, ActionKind::Opposed, &id));
        bench.sync("01:02:00").await;
        assert!(facts(&bench, true).await.claim.is_some(), "{disposition:?}: a person has done something else since");
    }
    let bench = bench().await;
    bench.signal("s", "task/t.md", "");
    bench.action("a", |draft| {
        cites(draft, "signal/s.md");
        draft.target = path("task/other.md");
    });
    bench.sync("01:01:00").await;
    assert_eq!(facts(&bench, true).await.claim, None, "of another target");
    bench.action("own", |draft| {
        cites(draft, "signal/s.md");
        draft.id = action_id(&path("signal/s.md"));
        draft.target = path("task/other.md");
    });
    bench.sync("01:02:00").await;
    assert!(facts(&bench, true).await.claim.is_some(), "a signal acts once, whatever it points at later");
}

#[tokio::test]
async fn trust_is_the_lowest_that_a_human_set_anywhere() {
    let bench = bench().await;
    bench.signal("s", "task/t.md", "");
    bench.put("instinct/gmail.md", "---\ntype: instinct\nobservations: 12\nceiling: confirm\n---\n");
    bench.put("matter/asking.md", "---\ntype: matter\nsteward_ceiling: ask\nstate: done\n---\n");
    bench.sync("01:01:00").await;
    let seen = facts(&bench, true).await;
    assert_eq!((seen.observations, seen.ceiling, seen.matter), (12, Ceiling::Confirm, Some(RecordState::Open)));
    assert_eq!((seen.first_seen, seen.weighed, seen.has_twin), (noon("01:01:00"), false, false));
    let (signal, target, parent) = (path("signal/s.md"), path("task/t.md"), path("matter/asking.md"));
    let query = RouteFactsQuery {
        signal: &signal,
        source: "gmail",
        target: &target,
        new_parent: Some(&parent),
        acts: true,
        default_ceiling: Ceiling::Act,
    };
    let moved = bench.index.signals().read_route_facts(&query).await.unwrap().unwrap();
    assert_eq!((moved.ceiling, moved.new_parent), (Ceiling::Ask, Some(RecordState::Done)));
    let now = async |parent, sources: &[&str], default| {
        bench.index.signals().lowest_configured_ceiling(&target, parent, sources, default).await.unwrap()
    };
    assert_eq!(now(None, &["gmail"], Ceiling::Act).await, Ceiling::Confirm);
    assert_eq!(now(None, &["slack"], Ceiling::Act).await, Ceiling::Act);
    assert_eq!(now(None, &["slack"], Ceiling::Ask).await, Ceiling::Ask);
    assert_eq!(now(Some(&parent), &["slack"], Ceiling::Act).await, Ceiling::Ask);
}

#[tokio::test]
async fn a_signal_is_due_at_once_if_its_record_was_decided_on_while_the_router_deferred_it() {
    for (name, question) in [("steward's turn", None), ("withheld", Some(ActionId::derive(&["question"])))] {
        let bench = bench().await;
        bench.signal("s", "task/t.md", "");
        bench.sync("01:01:00").await;
        let actions = facts(&bench, true).await.target_actions;
        bench.action("a", |draft| {
            cites(draft, "signal/s.md");
            draft.disposition = Disposition::Live;
        });
        bench.sync("01:02:00").await;
        let mut deferral = RouteDeferral {
            acts: true,
            until: noon("20:00:00"),
            now: noon("01:02:00"),
            filed: false,
            reason: name.to_owned(),
            question,
            basis: Some(DeferralBasis { target: path("task/t.md"), actions }),
        };
        let defer = async |deferral: &RouteDeferral| {
            bench.index.signals().record_route_deferral(&path("signal/s.md"), deferral).await.unwrap();
            waiting(&bench, "01:03:00", true).await
        };
        assert_eq!(defer(&deferral).await, ["s"], "{name}: the action came too early to make it due");
        deferral.basis = Some(DeferralBasis { target: path("task/t.md"), actions: actions + 1 });
        assert!(defer(&deferral).await.is_empty(), "{name}: the action was known");
    }
}

#[tokio::test]
async fn what_the_steward_has_weighed_since_is_known() {
    let bench = bench().await;
    bench.signal("s", "task/t.md", "");
    bench.task("twin", "m", "id: 7\n");
    bench.task("t", "m", "id: 7\n");
    bench.sync("01:01:00").await;
    assert!(facts(&bench, true).await.has_twin);
    bench.remove("task/twin.md");
    bench.sync("01:02:00").await;
    let seen = bench.look("matter/m.md", "l1", "02:00:00").await;
    assert!(!facts(&bench, true).await.weighed, "the check has not ended");
    bench.checked("task/t.md", &seen, "l1").await;
    assert!(facts(&bench, true).await.weighed);
}

#[tokio::test]
async fn what_was_weighed_beside_other_messages_is_told_from_what_was_weighed_alone() {
    for (event, beside) in [("stream/mail/1.md", false), ("stream/mail/2.md", true)] {
        let bench = bench().await;
        bench.signal("s", "task/t.md", "source_event_path: stream/mail/1.md\n");
        bench.signal("other", "task/t.md", &format!("source_event_path: {event}\n"));
        bench.sync("01:01:00").await;
        assert!(!facts(&bench, true).await.weighed_with_others, "no check has weighed it");
        let seen = bench.look("matter/m.md", "l1", "02:00:00").await;
        bench.checked("task/t.md", &seen, "l1").await;
        assert_eq!(facts(&bench, true).await.weighed_with_others, beside, "{event}");
    }
    // Signals of an earlier check, of a later one, and without effect. Signals of a shadow decision are checked again.
    for (disposition, beside) in [(Disposition::Recorded, false), (Disposition::Shadow, true)] {
        let bench = bench().await;
        bench.signal("early", "task/t.md", "");
        bench.sync("01:01:00").await;
        let seen = bench.look("matter/m.md", "l1", "02:00:00").await;
        bench.checked("task/t.md", &seen, "l1").await;
        bench.action("one", |draft| (draft.timestamp, draft.disposition) = (noon("02:00:00"), disposition));
        bench.signal("s", "task/t.md", "");
        bench.signal("idle", "task/t.md", "effect: none\n");
        bench.sync("03:00:00").await;
        let seen = bench.look("matter/m.md", "l2", "04:00:00").await;
        bench.checked("task/t.md", &seen, "l2").await;
        bench.signal("late", "task/t.md", "");
        bench.sync("05:00:00").await;
        let facts = facts(&bench, true).await;
        assert_eq!((facts.weighed, facts.weighed_with_others), (true, beside), "{disposition:?}");
    }
}

#[tokio::test]
async fn the_live_changes_of_a_day_are_counted_by_who_speaks_for_them() {
    let bench = bench().await;
    bench.put("instinct/bank.md", "---\ntype: instinct\nobservations: 3\n---\n");
    let signal = |slug: &str, source: &str, more: &str| {
        let text = signal_text("task/t.md", "2026-11-20T10:00:00Z", more).replace("gmail", source);
        bench.put(&format!("signal/{slug}.md"), text);
    };
    signal("bank", "bank", "");
    signal("asks", "bank", "effect: action\n");
    for n in 0..3 {
        signal(&format!("forged{n}"), &format!("mail:forged{n}"), "");
    }
    let file = |slug: &str, hour: u32, disposition, refs: &[&str]| {
        bench.action(slug, |draft| {
            draft.timestamp = noon(&format!("{hour:02}:00:00"));
            draft.disposition = disposition;
            for signal in refs {
                cites(draft, &format!("signal/{signal}.md"));
            }
        })
    };
    file("a", 3, Disposition::Live, &["forged0"]);
    file("b", 4, Disposition::Live, &["forged1"]);
    file("c", 5, Disposition::Pending, &["forged1"]);
    // The bank's signal only asks for an action, so it supports no change.
    file("d", 6, Disposition::Live, &["asks"]);
    let own = file("e", 7, Disposition::Live, &["forged2"]);
    bench.sync("08:00:00").await;
    let spent = async |refs: &[&str], id: Option<ActionId>, clock: &str| {
        let mut asked = draft("x");
        for signal in refs {
            let mut one = draft("y");
            cites(&mut one, &format!("signal/{signal}.md"));
            asked.evidence.extend(one.evidence);
        }
        asked.id = id.unwrap_or(asked.id);
        let spendings = bench.index.gates().count_changes_by_source(&asked, noon(clock)).await.unwrap();
        spendings.into_iter().map(|s| (s.source, s.changes, s.unknown_changes)).collect::<Vec<_>>()
    };
    let forged = |n: u32, changes, all| (source_key(&format!("mail:forged{n}")), changes, Some(all));
    let all = [forged(0, 1, 3), forged(2, 1, 3)];
    assert_eq!(spent(&["forged0", "forged2"], None, "09:00:00").await, all, "their names cost nothing");
    assert_eq!(spent(&["forged2"], Some(own), "09:00:00").await, [forged(2, 0, 2)], "not the change itself");
    assert_eq!(spent(&["bank", "forged0"], None, "09:00:00").await, [("bank".to_owned(), 0, None), forged(0, 1, 3)]);
    assert_eq!(spent(&["asks"], None, "09:00:00").await, []);
    let day_later = noon("03:30:00") + chrono::TimeDelta::days(1);
    let mut asked = draft("x");
    cites(&mut asked, "signal/forged0.md");
    assert_eq!(
        bench.index.gates().count_changes_by_source(&asked, day_later).await.unwrap()[0].unknown_changes,
        Some(2),
        "the first has left the window"
    );
}
