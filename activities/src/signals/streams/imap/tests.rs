use super::super::IntakeTally;
use super::super::StreamConfig;
use super::super::tests::{StreamFixture, config};
use super::*;
use dovecot::Dovecot;
use fake::{Fake, Fault, State};
use serde_json::json;

mod dovecot;
mod fake;

use steward_tests::wait::PATIENCE;

fn mail(id: u32, body: &str) -> String {
    format!("From: Ann <ann@example.org>\r\nMessage-ID: <{id}@example.org>\r\nSubject: mail {id}\r\n\r\n{body}\r\n")
}

fn stream(server: &Dovecot, more: serde_json::Value) -> StreamConfig {
    let mut table = json!({"kind": "imap", "host": "127.0.0.1", "port": server.plain, "tls": false, "user": "ann",
        "password_file": server.password_file()});
    let serde_json::Value::Object(more) = more else { panic!("more keys are an object") };
    table.as_object_mut().unwrap().extend(more);
    config("mail", table).unwrap()
}

#[test]
fn a_cursor_reads_back() {
    let cursor = ImapCursor { validity: 7, last: 42, withheld: BTreeMap::from([(5, 1), (9, 3)]) };
    assert_eq!(ImapCursor::parse(&cursor.to_text()), Some(cursor));
    assert_eq!(ImapCursor::parse("7"), None);
}

#[test]
fn only_this_machine_may_be_asked_in_the_clear() {
    for (host, here) in [("localhost", true), ("127.0.0.1", true), ("::1", true), ("localhost.evil.example", false)] {
        assert_eq!(connection::is_local_host(host), here, "{host}");
    }
}

#[tokio::test]
async fn mails_are_taken_in_once_and_left_unread_also_when_the_server_numbers_anew() {
    let Some(server) = Dovecot::start() else { return };
    let bench = StreamFixture::new().await;
    let config = stream(&server, json!({}));
    assert_eq!(bench.round(&config).await.unwrap().0, IntakeTally::default(), "an empty folder is read too");
    for id in 1..=3 {
        server.deliver(&mail(id, "paid"));
    }
    server.deliver(&mail(4, &"x".repeat(2_000_000)));
    assert_eq!(bench.round(&config).await.unwrap().0, IntakeTally { stored: 3, known: 0, refused: 1 });
    assert_eq!(bench.round(&config).await.unwrap().0, IntakeTally::default());
    server.deliver(&mail(5, "paid again"));
    assert_eq!(bench.round(&config).await.unwrap().0, IntakeTally { stored: 1, known: 0, refused: 0 });
    server.number_anew();
    assert_eq!(bench.round(&config).await.unwrap().0, IntakeTally { stored: 0, known: 4, refused: 1 });
    assert!(server.nothing_was_seen());
    assert!(bench.events("mail").iter().all(|e| e.pattern == "mail:ann@example.org"));
}

#[tokio::test]
async fn a_new_mail_ends_the_wait_at_once() {
    let Some(server) = Dovecot::start() else { return };
    let bench = StreamFixture::new().await;
    let StreamSource::Polled(mut adapter) = stream(&server, json!({})).open(bench.writer.root()).unwrap() else {
        panic!()
    };
    let mut intake = bench.intake("mail");
    adapter.read_round(&mut intake).await.unwrap();
    server.deliver(&mail(1, "paid"));
    while intake.current_tally().stored == 0 {
        timeout(PATIENCE, adapter.wait_for_news()).await.expect("the server told nothing");
        adapter.read_round(&mut intake).await.unwrap();
    }
}

#[tokio::test]
async fn a_wait_that_is_cut_short_costs_a_connection_and_no_mail() {
    let Some(server) = Dovecot::start() else { return };
    let bench = StreamFixture::new().await;
    let StreamSource::Polled(mut adapter) = stream(&server, json!({})).open(bench.writer.root()).unwrap() else {
        panic!()
    };
    let mut intake = bench.intake("mail");
    adapter.read_round(&mut intake).await.unwrap();
    assert!(timeout(Duration::from_millis(300), adapter.wait_for_news()).await.is_err());
    server.deliver(&mail(1, "paid"));
    adapter.read_round(&mut intake).await.unwrap();
    assert_eq!(intake.current_tally().stored, 1);
}

#[tokio::test]
async fn a_server_is_believed_only_with_a_certificate_that_is_trusted() {
    let Some(server) = Dovecot::start() else { return };
    let bench = StreamFixture::new().await;
    let tls = |more: serde_json::Value| {
        let mut keys = json!({"host": "localhost", "port": server.encrypted, "tls": true});
        keys.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        stream(&server, keys)
    };
    server.deliver(&mail(1, "paid"));
    let message = bench.round(&tls(json!({}))).await.unwrap_err().to_string();
    assert!(message.contains("certificate"), "{message}");
    let trusted = tls(json!({"ca_file": server.certificate()}));
    assert_eq!(bench.round(&trusted).await.unwrap().0, IntakeTally { stored: 1, known: 0, refused: 0 });
}

#[tokio::test]
async fn a_wrong_password_is_told_without_it() {
    let Some(server) = Dovecot::start() else { return };
    let bench = StreamFixture::new().await;
    server.change_password("another-secret");
    let message = bench.round(&stream(&server, json!({}))).await.unwrap_err().to_string();
    assert!(message.contains("login failed") && !message.contains("another-secret"), "{message}");
}

#[tokio::test]
async fn a_server_that_is_not_there_is_named() {
    let bench = StreamFixture::new().await;
    let secret = bench.at("../secret");
    dovecot::write_secret(&secret, "x");
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let table = json!({"kind": "imap", "host": "127.0.0.1", "port": port, "tls": false, "user": "ann", "password_file": secret});
    let message = bench.round(&config("mail", table).unwrap()).await.unwrap_err().to_string();
    assert!(message.contains(&format!("127.0.0.1:{port}")), "{message}");
}

const STEPS: [&str; 4] = ["EXAMINE", "UID SEARCH", "RFC822.SIZE", "BODY.PEEK"];

fn mails(ids: std::ops::RangeInclusive<u32>) -> std::collections::BTreeMap<u32, String> {
    ids.map(|id| (id, mail(id, "paid"))).collect()
}

fn of(bench: &StreamFixture, server: &Fake) -> StreamConfig {
    let secret = bench.at("../secret");
    dovecot::write_secret(&secret, "correct-horse");
    let table = json!({"kind": "imap", "host": "127.0.0.1", "port": server.port, "tls": false, "user": "ann", "password_file": secret});
    config("mail", table).unwrap()
}

#[tokio::test]
async fn an_answer_that_breaks_off_or_is_refused_loses_no_mail() {
    for step in STEPS {
        for fault in [Fault::No, Fault::Bad, Fault::HangUp, Fault::Midway, Fault::AtTheEnd] {
            let server = Fake::start(State { mails: mails(1..=4), ..State::default() }).await;
            let bench = StreamFixture::new().await;
            let config = of(&bench, &server);
            for (stored, more) in [(4, 5..=7), (7, 8..=8)] {
                server.change(|s| s.fault = Some((step, fault)));
                let message = bench.round(&config).await.unwrap_err().to_string();
                assert!(message.contains("127.0.0.1"), "{step} {fault:?}: {message}");
                server.change(|s| s.fault = None);
                bench.round(&config).await.unwrap();
                assert_eq!(bench.events("mail").len(), stored, "{step} {fault:?}");
                server.change(|s| s.mails.extend(mails(more)));
            }
        }
    }
}

#[tokio::test]
async fn a_mail_that_is_not_given_is_gone_only_if_the_server_says_so() {
    for step in ["RFC822.SIZE", "BODY.PEEK"] {
        let kept = State { mails: mails(1..=3), kept_back: Some((2, step)), ..State::default() };
        let server = Fake::start(kept).await;
        let bench = StreamFixture::new().await;
        let config = of(&bench, &server);
        assert_eq!(bench.round(&config).await.unwrap().0.stored, 2, "the others are not kept back");
        assert_eq!(bench.round(&config).await.unwrap().0, IntakeTally::default());
        server.change(|s| s.kept_back = None);
        assert_eq!(bench.round(&config).await.unwrap().0.stored, 1, "it is asked for again");
        server.change(|s| {
            s.mails.extend(mails(4..=6));
            s.gone = Some(5);
        });
        assert_eq!(bench.round(&config).await.unwrap().0.stored, 2);
        assert_eq!(bench.round(&config).await.unwrap().0, IntakeTally::default());
    }
}

#[tokio::test]
async fn a_mail_that_is_never_given_is_given_up_and_counted() {
    let kept = State { mails: mails(1..=2), kept_back: Some((1, "BODY.PEEK")), ..State::default() };
    let server = Fake::start(kept).await;
    let bench = StreamFixture::new().await;
    let config = of(&bench, &server);
    let mut all = IntakeTally::default();
    for _ in 0..=MAX_REQUESTS + 1 {
        let round = bench.round(&config).await.unwrap().0;
        (all.stored, all.refused) = (all.stored + round.stored, all.refused + round.refused);
    }
    assert_eq!(all, IntakeTally { stored: 1, known: 0, refused: 1 });
}

#[tokio::test]
async fn a_server_that_ends_the_wait_by_itself_is_asked_again_at_once() {
    for ends in [true, false] {
        let server = Fake::start(State { mails: mails(1..=1), ends_idle: ends, ..State::default() }).await;
        let bench = StreamFixture::new().await;
        let StreamSource::Polled(mut adapter) = of(&bench, &server).open(bench.writer.root()).unwrap() else {
            panic!()
        };
        let mut intake = bench.intake("mail");
        adapter.read_round(&mut intake).await.unwrap();
        let long = if ends { PATIENCE } else { Duration::from_secs(2) };
        let waited = timeout(long, adapter.wait_for_news()).await;
        assert_eq!(waited.is_ok(), ends);
    }
}

#[tokio::test]
async fn a_server_that_does_not_say_which_number_is_next_brings_no_old_mails() {
    let server = Fake::start(State { mails: mails(1..=2), is_old: true, ..State::default() }).await;
    let bench = StreamFixture::new().await;
    let config = of(&bench, &server);
    for _ in 0..2 {
        assert_eq!(bench.round(&config).await.unwrap().0, IntakeTally::default());
    }
    server.change(|s| s.mails.extend(mails(3..=3)));
    assert_eq!(bench.round(&config).await.unwrap().0.stored, 1);
}

#[tokio::test]
async fn a_mail_that_is_told_of_while_others_are_read_ends_the_wait() {
    for step in ["UID SEARCH", "BODY.PEEK", "CAPABILITY", "IDLE"] {
        let arrives_at = Some((step, mail(9, "paid")));
        let server = Fake::start(State { mails: mails(1..=1), arrives_at, ..State::default() }).await;
        let bench = StreamFixture::new().await;
        let StreamSource::Polled(mut adapter) = of(&bench, &server).open(bench.writer.root()).unwrap() else {
            panic!()
        };
        let mut intake = bench.intake("mail");
        adapter.read_round(&mut intake).await.unwrap();
        timeout(PATIENCE, adapter.wait_for_news()).await.unwrap_or_else(|_| panic!("{step}: it was not told"));
        adapter.read_round(&mut intake).await.unwrap();
        assert_eq!(intake.current_tally().stored, 2, "{step}");
        assert!(
            timeout(Duration::from_millis(200), adapter.wait_for_news()).await.is_err(),
            "{step}: there is no news"
        );
    }
}
