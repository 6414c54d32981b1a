use super::*;
use serde_json::json;
use std::collections::BTreeMap;

fn hook(vendor: WebhookVendor, secret: &str) -> Webhook {
    Webhook { vendor, secret: Secret::new(secret).unwrap(), max_bytes: 1000 }
}

fn judge(hook: &Webhook, headers: &[(&str, &str)], body: &[u8], now: i64) -> Result<WebhookCall, WebhookRefusal> {
    let headers: BTreeMap<&str, &str> = headers.iter().copied().collect();
    hook.check_call(|name| headers.get(name).copied(), body, DateTime::from_timestamp(now, 0).unwrap())
}

fn sign(secret: &str, parts: &[&[u8]]) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).unwrap();
    parts.iter().for_each(|part| mac.update(part));
    mac.finalize().into_bytes().iter().map(|b| format!("{b:02x}")).collect()
}

fn signed(vendor: WebhookVendor, body: &serde_json::Value) -> Result<WebhookCall, WebhookRefusal> {
    let body = body.to_string();
    let (hook, bytes) = (hook(vendor, "s3cret"), body.as_bytes());
    let (plain, slack) = (sign("s3cret", &[bytes]), sign("s3cret", &[b"v0:1000:", bytes]));
    let headers = [
        ("x-signature-256", format!("sha256={plain}")),
        ("x-hub-signature-256", format!("sha256={plain}")),
        ("x-slack-signature", format!("v0={slack}")),
        ("x-slack-request-timestamp", "1000".to_owned()),
    ];
    let headers: Vec<(&str, &str)> = headers.iter().map(|(n, v)| (*n, v.as_str())).collect();
    judge(&hook, &headers, bytes, 1100)
}

/// From GitHub's page "Validating webhook deliveries".
#[test]
fn githubs_published_example_is_verified() {
    let hook = hook(WebhookVendor::Github, "It's a Secret to Everybody");
    let signature = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
    let header = |value: &'static str| move |name: &str| (name == "x-hub-signature-256").then_some(value);
    assert!(hook.is_signed(header(signature), b"Hello, World!", Utc::now()));
    assert!(!hook.is_signed(header(signature), b"Hello, World?", Utc::now()));
}

/// From Slack's page "Verifying requests from Slack".
#[test]
fn slacks_published_example_is_verified_for_five_minutes() {
    let hook = hook(WebhookVendor::Slack, "8f742231b10e8888abcd99yyyzzz85a5");
    let body = "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V\
        &channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=\
        &response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN\
        &trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c";
    let headers = [
        ("x-slack-signature", "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503"),
        ("x-slack-request-timestamp", "1531420618"),
    ];
    let headers: BTreeMap<&str, &str> = headers.into_iter().collect();
    let is_signed = |now: i64| {
        let now = DateTime::from_timestamp(now, 0).unwrap();
        hook.is_signed(|name| headers.get(name).copied(), body.as_bytes(), now)
    };
    assert!(is_signed(1_531_420_618) && is_signed(1_531_420_618 + 300) && is_signed(1_531_420_618 - 300));
    assert!(!is_signed(1_531_420_618 + 301), "a call that is played again grows old");
    assert!(!is_signed(1_531_420_618 - 301), "a clock that is wrong is not believed either");
}

#[test]
fn a_call_without_the_right_signature_is_refused_without_a_word_about_why() {
    let body = br#"{"text":"paid"}"#;
    let right = sign("s3cret", &[body]);
    let hook = hook(WebhookVendor::Generic, "s3cret");
    let good = format!("sha256={right}");
    assert!(judge(&hook, &[("x-signature-256", &good)], body, 0).is_ok());
    let upper = format!("sha256={}", right.to_uppercase());
    assert!(judge(&hook, &[("x-signature-256", &upper)], body, 0).is_ok());
    let wrong = [
        String::new(),
        right.clone(),
        "sha256=".into(),
        format!("sha1={right}"),
        format!("sha256={}", &right[..62]),
        format!("sha256={right}00"),
        format!("sha256={}", "0".repeat(64)),
        format!("sha256={}", "ü".repeat(32)),
        format!("sha256=+{}", &right[1..]),
        format!("sha256={}", sign("other", &[body])),
    ];
    for wrong in &wrong {
        assert_eq!(judge(&hook, &[("x-signature-256", wrong)], body, 0), Err(WebhookRefusal::Unsigned), "{wrong}");
    }
    assert_eq!(judge(&hook, &[], body, 0), Err(WebhookRefusal::Unsigned));
    assert_eq!(judge(&hook, &[("x-hub-signature-256", &good)], body, 0), Err(WebhookRefusal::Unsigned));
    assert_eq!(judge(&hook, &[("x-signature-256", &good)], b"{\"text\":\"owed\"}", 0), Err(WebhookRefusal::Unsigned));
}

#[test]
fn a_plain_call_says_what_a_line_in_the_drop_folder_says() {
    let body = json!({"id": "7", "from": "Shop", "subject": "s", "text": "paid", "at": "2026-11-20T08:00:00Z"});
    let Ok(WebhookCall::Event(found)) = signed(WebhookVendor::Generic, &body) else { panic!() };
    assert_eq!((found.source_id.as_str(), found.pattern.as_str(), found.text.as_str()), ("7", "webhook:shop", "paid"));
    for bad in [json!({"subject": "x"}), json!([1]), json!({"text": 7}), json!({"text": "x", "at": "soon"})] {
        assert!(matches!(signed(WebhookVendor::Generic, &bad), Err(WebhookRefusal::Unreadable(_))), "{bad}");
    }
}

#[test]
fn slack_is_told_that_we_are_there_and_its_messages_are_events() {
    let challenge = json!({"type": "url_verification", "challenge": "abc"});
    assert_eq!(signed(WebhookVendor::Slack, &challenge), Ok(WebhookCall::Challenge("abc".into())));
    let message = json!({"type": "event_callback", "team_id": "T1", "event_id": "Ev1", "event_time": 1_234_567_890,
        "event": {"type": "message", "user": "U1", "channel": "C1", "text": "it is done"}});
    let Ok(WebhookCall::Event(found)) = signed(WebhookVendor::Slack, &message) else { panic!() };
    assert_eq!(
        (found.source_id.as_str(), found.pattern.as_str(), found.text.as_str()),
        ("Ev1", "slack:t1/u1", "it is done")
    );
    let other = json!({"type": "event_callback", "event_id": "Ev2", "event": {"type": "reaction_added"}});
    assert_eq!(signed(WebhookVendor::Slack, &other), Ok(WebhookCall::Nothing));
    assert!(matches!(signed(WebhookVendor::Slack, &json!({})), Err(WebhookRefusal::Unreadable(_))));
}

#[test]
fn what_happened_on_github_is_told_from_the_body_alone() {
    let merged = json!({"action": "closed", "repository": {"full_name": "a/b"}, "sender": {"login": "Ann"},
        "pull_request": {"number": 7, "title": "Fix", "body": "words", "merged": true, "state": "closed",
            "updated_at": "2026-11-20T08:00:00Z"}});
    let Ok(WebhookCall::Event(found)) = signed(WebhookVendor::Github, &merged) else { panic!() };
    assert_eq!((found.pattern.as_str(), found.subject.as_deref()), ("github:ann", Some("a/b: pull request #7 Fix")));
    assert_eq!(found.text, "pull request #7 \"Fix\" was closed\n\nIt is merged.\n\nwords");
    let comment = json!({"action": "created", "issue": {"number": 1, "title": "Bug", "state": "open"},
        "comment": {"body": "solved"}, "sender": {"login": "bob"}});
    let Ok(WebhookCall::Event(found)) = signed(WebhookVendor::Github, &comment) else { panic!() };
    assert!(found.text.ends_with("solved"), "{}", found.text);
    let push = json!({"ref": "refs/heads/main", "commits": [{"message": "one"}, {"message": "two"}]});
    let Ok(WebhookCall::Event(found)) = signed(WebhookVendor::Github, &push) else { panic!() };
    assert!(found.text.starts_with("2 commits were pushed to refs/heads/main"), "{}", found.text);
    assert_eq!(signed(WebhookVendor::Github, &json!({"zen": "Keep it simple"})), Ok(WebhookCall::Nothing));
}

#[test]
fn a_delivery_that_is_played_again_under_another_number_is_the_same_event() {
    let body = json!({"action": "opened", "issue": {"title": "x"}});
    assert_eq!(signed(WebhookVendor::Github, &body), signed(WebhookVendor::Github, &body));
}
