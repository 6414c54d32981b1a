//! One call each against every way a server can behave, over every wire; each sends exactly one request.

use crate::server::{Behaviour, Server};
use crate::{KEY, WIRES, ask, config, error, good_answer, question, reservation, response};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::num::NonZeroU32;
use std::time::Duration;
use steward_activities::steward::clerks::Clerk;
use steward_activities::steward::clerks::remote::{ClerkWire, RemoteClerk, RemoteClerkConfig};
use steward_domain::steward::clerk::{ClerkCallOutcome, Judgement, TokenUsage};

/// Asks the server once and sees that it was asked once.
pub(crate) async fn outcome(wire: &'static ClerkWire, server: &Server) -> ClerkCallOutcome {
    outcome_with(server, config(wire, &server.address)).await
}

async fn outcome_with(server: &Server, config: RemoteClerkConfig) -> ClerkCallOutcome {
    let wire = config.wire;
    let reply = ask(config).await;
    assert_eq!(server.requests(), 1, "one reservation is one request");
    assert_eq!((reply.clerk.provider.as_str(), reply.clerk.model.as_str()), (wire.name, "small"));
    assert!(!reply.clerk.fallback && !reply.clerk.cached);
    reply.outcome
}

pub(crate) fn reason(outcome: ClerkCallOutcome) -> String {
    match outcome {
        ClerkCallOutcome::Failed { reason } => reason,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn complaint(outcome: ClerkCallOutcome) -> String {
    match outcome {
        ClerkCallOutcome::BadAnswer { complaint } => complaint,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_good_answer_is_taken_with_its_usage_and_the_hash_of_what_was_sent() {
    let key = [("authorization", format!("Bearer {KEY}")), ("x-api-key", KEY.to_owned())];
    let table = [("/v1/chat/completions", &key[0]), ("/v1/messages", &key[1]), ("/api/chat", &key[0])];
    for (wire, (path, (header, value))) in WIRES.into_iter().zip(table) {
        let server = Server::json(&response(wire, &good_answer().to_string())).await;
        let reply = ask(config(wire, &server.address)).await;
        let ClerkCallOutcome::Answered { verdict } = &reply.outcome else { panic!("{reply:?}") };
        assert_eq!((verdict.decision, verdict.confidence), (Judgement::LikelyDone, 0.9));
        assert_eq!(reply.clerk.tokens, TokenUsage { prompt_tokens: 320, completion_tokens: 60 });

        assert_eq!(server.requests(), 1);
        let asked = server.first();
        assert_eq!((asked.method.as_str(), asked.uri.path()), ("POST", path));
        assert_eq!(asked.headers[*header], value.as_str());
        assert_eq!(asked.headers["content-type"], "application/json");
        let digest: String = Sha256::digest(&asked.body).iter().map(|b| format!("{b:02x}")).collect();
        assert_eq!(reply.clerk.prompt_sha256, digest);
        let body: Value = serde_json::from_slice(&asked.body).unwrap();
        assert_eq!(body["model"], "small");
    }
}

#[tokio::test]
async fn without_a_key_none_is_sent() {
    for wire in WIRES {
        let server = Server::json(&response(wire, &good_answer().to_string())).await;
        outcome_with(&server, RemoteClerkConfig { api_key: None, ..config(wire, &server.address) }).await;
        let headers = server.first().headers;
        assert!(!headers.contains_key("authorization") && !headers.contains_key("x-api-key"));
    }
}

#[tokio::test]
async fn answers_outside_the_form_are_bad_answers_and_their_usage_counts() {
    let with = |field: &str, value: Value| {
        let mut answer = good_answer();
        answer[field] = value;
        answer.to_string()
    };
    let table = [
        ("Sure! The task looks done to me.".to_owned(), "not the requested JSON object"),
        (good_answer().to_string().replace('}', ""), "not the requested JSON object"),
        (with("confidence", json!(98)), "`confidence` is 98"),
        (with("confidence", json!(-0.1)), "`confidence` is -0.1"),
        (with("source_contributions", json!({"gmail": 1.5})), "`gmail` is 1.5"),
        (with("source_contributions", json!({"gmail": 1, "fax": 1})), "a source that was not given"),
        (with("evidence", json!(["signal/invented.md"])), "a signal that was not given"),
        (with("evidence", json!(["../../etc/passwd"])), "not the requested JSON object"),
        (with("command", json!("rm -rf")), "unknown field `command`"),
        (" ".to_owned(), "no content"),
    ];
    for (wire, (content, expected)) in WIRES.into_iter().flat_map(|wire| table.iter().map(move |row| (wire, row))) {
        let server = Server::json(&response(wire, content)).await;
        let reply = ask(config(wire, &server.address)).await;
        assert_eq!(server.requests(), 1);
        assert_eq!(reply.clerk.tokens.completion_tokens, 60, "a bad answer costs, too");
        let complaint = complaint(reply.outcome);
        assert!(complaint.contains(expected), "{}: {content}: {complaint}", wire.name);
    }
}

#[tokio::test]
async fn a_body_that_is_none_of_the_wire_is_the_servers_fault_not_the_models() {
    for (wire, missing) in WIRES.into_iter().zip(["`choices`", "`content`", "`message`"]) {
        let told = error(wire, "api_error", "no credit\u{1b} left").to_string();
        for (body, expected) in [
            ("{\"id\": [{\"message\"", "not JSON"),
            ("<html>welcome to the router</html>", "not JSON"),
            ("", "not JSON"),
            ("[1]", missing),
            ("{\"content\": 1, \"choices\": {}, \"message\": \"x\"}", missing),
            (&told, "\"no credit\\u{1b} left\""),
        ] {
            let server = Server::status(200, body).await;
            let reason = reason(outcome(wire, &server).await);
            assert!(reason.contains(expected) && reason.contains("base URL"), "{body}: {reason}");
        }
    }
}

#[tokio::test]
async fn too_many_requests_says_when_to_ask_again() {
    let in_two_hours =
        (chrono::Utc::now() + Duration::from_secs(7_200)).format("%a, %d %b %Y %H:%M:%S GMT").to_string();
    let table = [
        (Some("17".to_owned()), Some(17..=17)),
        (Some("1.2".to_owned()), Some(2..=2)),
        (Some("99999999999999999999999".to_owned()), Some(u64::MAX..=u64::MAX)),
        (Some(in_two_hours), Some(3_600..=7_200)),
        (Some("soon".to_owned()), None),
        (None, None),
    ];
    for (wire, (header, range)) in WIRES.into_iter().flat_map(|wire| table.iter().map(move |row| (wire, row))) {
        let headers = header.clone().map(|value| ("retry-after", value)).into_iter().collect();
        let body = error(wire, "rate_limit_error", "slow down").to_string();
        let server = Server::start(Behaviour::Says(429, headers, body)).await;
        let ClerkCallOutcome::RateLimited { retry_after_seconds } = outcome(wire, &server).await else {
            panic!("{header:?}")
        };
        match range {
            Some(range) => {
                assert!(range.contains(&retry_after_seconds.unwrap()), "{header:?}: {retry_after_seconds:?}")
            }
            None => assert_eq!(retry_after_seconds, None, "{header:?}"),
        }
    }
}

#[tokio::test]
async fn a_refusing_status_says_what_to_do() {
    let table = [
        (500, "failed (500), saying \"the model is loading\""),
        (503, "failed (503)"),
        (401, "refused the key (401): check the value of STEWARD_CLERK_API_KEY"),
        (403, "refused the key (403)"),
        (404, "or no model `small` (404), saying \"the model is loading\": "),
        (400, "check that it offers the model `small` and that it accepts "),
        (413, "status 413"),
        (418, "status 418"),
        (204, "status 204"),
    ];
    for wire in WIRES {
        let said = error(wire, "api_error", "the model is loading").to_string();
        for (status, expected) in table {
            let server = Server::status(status, if status == 204 { "" } else { &said }).await;
            let reason = reason(outcome(wire, &server).await);
            assert!(reason.contains(expected), "{status}: {reason}");
            assert!(reason.contains(&server.address), "{reason}");
        }
        let server = Server::status(401, "").await;
        let keyless = RemoteClerkConfig { api_key: None, ..config(wire, &server.address) };
        let reason = reason(outcome_with(&server, keyless).await);
        assert!(reason.contains("requires a key (401): set STEWARD_CLERK_API_KEY"), "{reason}");
    }
}

#[tokio::test]
async fn a_page_instead_of_an_error_message_is_left_out() {
    for wire in WIRES {
        let server = Server::status(502, &"<p>sorry</p>".repeat(10_000)).await;
        let reason = reason(outcome(wire, &server).await);
        assert!(reason.contains("(502): Steward will ask again later"), "{reason}");
        let endless = Server::start(Behaviour::Endless).await;
        let small = RemoteClerkConfig { max_response_bytes: 1_000, ..config(wire, &endless.address) };
        assert!(self::reason(outcome_with(&endless, small).await).contains("larger than 1000 bytes"));
    }
}

#[tokio::test]
async fn a_response_without_end_is_read_up_to_the_limit() {
    for wire in WIRES {
        let server = Server::start(Behaviour::Endless).await;
        let reason = reason(outcome(wire, &server).await);
        assert!(reason.contains("larger than 262144 bytes"), "{reason}");
    }
}

#[tokio::test]
async fn the_limit_is_exact_even_where_the_rest_would_be_blank() {
    for (wire, (limit, fits)) in WIRES.into_iter().flat_map(|wire| [(wire, (2_000, true)), (wire, (1_999, false))]) {
        let body = response(wire, &good_answer().to_string()).to_string();
        let server = Server::status(200, &format!("{body:<2000}")).await;
        let small = RemoteClerkConfig { max_response_bytes: limit, ..config(wire, &server.address) };
        let outcome = outcome_with(&server, small).await;
        assert_eq!(matches!(outcome, ClerkCallOutcome::Answered { .. }), fits, "{outcome:?}");
        assert_eq!(matches!(outcome, ClerkCallOutcome::Failed { .. }), !fits, "{outcome:?}");
    }
}

#[tokio::test]
async fn a_slow_server_runs_into_the_time_limit() {
    for wire in WIRES {
        for behaviour in [Behaviour::Silent, Behaviour::Stalls] {
            let server = Server::start(behaviour).await;
            let hasty = RemoteClerkConfig { timeout: Duration::from_millis(200), ..config(wire, &server.address) };
            let reason = reason(outcome_with(&server, hasty).await);
            assert!(reason.contains("within 0.2 s"), "{reason}");
        }
    }
}

#[tokio::test]
async fn a_connection_that_drops_midway_is_not_tried_again() {
    for wire in WIRES {
        let server = Server::start(Behaviour::Drops).await;
        let reason = reason(outcome(wire, &server).await);
        assert!(reason.contains("broke before the answer was complete"), "{reason}");
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_is_named() {
    for wire in WIRES {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        drop(listener);
        let reason = reason(ask(config(wire, &address)).await.outcome);
        assert!(reason.contains(&format!("cannot connect to {address}")), "{reason}");
    }
}

#[tokio::test]
async fn a_server_that_speaks_no_tls_gets_nothing_in_clear() {
    for wire in WIRES {
        let server = Server::json(&response(wire, &good_answer().to_string())).await;
        let encrypted = server.address.replace("http://", "https://");
        let reason = reason(ask(config(wire, &encrypted)).await.outcome);
        assert!(reason.contains(&format!("cannot connect to {encrypted}")), "{reason}");
        assert_eq!(server.requests(), 0);
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed_and_the_other_host_gets_nothing() {
    for (wire, status) in WIRES.into_iter().flat_map(|wire| [301, 302, 307, 308].map(|status| (wire, status))) {
        let other = Server::json(&response(wire, &good_answer().to_string())).await;
        let to = vec![("location", format!("{}/chat/completions", other.address))];
        let server = Server::start(Behaviour::Says(status, to, String::new())).await;
        let reason = reason(outcome(wire, &server).await);
        assert!(reason.contains(&format!("redirects ({status})")), "{reason}");
        assert_eq!(other.requests(), 0);
    }
}

#[tokio::test]
async fn a_burst_goes_out_at_the_pace_and_each_call_once() {
    for wire in WIRES {
        let server = Server::json(&response(wire, &good_answer().to_string())).await;
        let pace =
            RemoteClerkConfig { calls_per_second: NonZeroU32::new(20).unwrap(), ..config(wire, &server.address) };
        let clerk = Clerk::Remote(RemoteClerk::new(pace).unwrap());
        let (reservation, question) = (reservation(), question(&[("a", "gmail")]));
        let began = std::time::Instant::now();
        let replies = futures_util::future::join_all((0..25).map(|_| clerk.ask(&reservation, &question, None))).await;
        assert!(replies.iter().all(|r| matches!(r.outcome, ClerkCallOutcome::Answered { .. })));
        assert_eq!(server.requests(), 25);
        assert!(began.elapsed() >= Duration::from_millis(200), "the last five wait for their turn");
    }
}

#[test]
fn a_proxy_of_the_environment_is_not_used() {
    let name = "ask::a_good_answer_is_taken_with_its_usage_and_the_hash_of_what_was_sent";
    let mut again = std::process::Command::new(std::env::current_exe().unwrap());
    for variable in ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"] {
        again.env(variable, "http://127.0.0.1:9");
    }
    let output = again.args(["--exact", name]).env_remove("NO_PROXY").env_remove("no_proxy").output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}

#[tokio::test]
async fn a_call_that_waited_in_vain_for_its_turn_is_told_apart_and_never_sent() {
    for wire in WIRES {
        let server = Server::json(&response(wire, &good_answer().to_string())).await;
        let one = NonZeroU32::new(1).unwrap();
        let hasty =
            RemoteClerkConfig { calls_per_second: one, max_wait: Duration::ZERO, ..config(wire, &server.address) };
        let clerk = Clerk::Remote(RemoteClerk::new(hasty).unwrap());
        let first = clerk.ask(&reservation(), &question(&[("a", "gmail")]), None).await.outcome;
        assert!(matches!(first, ClerkCallOutcome::Answered { .. }), "{first:?}");
        match clerk.ask(&reservation(), &question(&[("a", "gmail")]), None).await.outcome {
            ClerkCallOutcome::NotSent { reason } => {
                assert!(reason.contains("STEWARD_CLERK_CALLS_PER_SECOND"), "{reason}")
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(server.requests(), 1);
    }
}
