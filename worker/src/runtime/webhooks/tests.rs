use super::*;
use serde_json::json;
use std::os::unix::fs::PermissionsExt;
use steward_vault::action::writer::VaultWriter;
use steward_vault::files::root::VaultRoot;
use steward_vault::index::Index;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// HMAC-SHA256 of [`BODY`] under `s3cret`, from `openssl dgst -sha256 -hmac s3cret`.
const SIGNATURE: &str = "116f1af5c43261f8678eb907d33ea91ef2a51eaeb3f92823394ffc4502e89aba";
const BODY: &str = "{\"text\":\"it is paid\"}";

struct WebhookFixture {
    dir: tempfile::TempDir,
    address: SocketAddr,
    streams: StreamContext,
}

impl WebhookFixture {
    async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("vault")).unwrap();
        let secret = dir.path().join("secret");
        std::fs::write(&secret, "s3cret").unwrap();
        std::fs::set_permissions(&secret, std::fs::Permissions::from_mode(0o600)).unwrap();
        let writer = Arc::new(VaultWriter::lock(VaultRoot::open(&dir.path().join("vault")).unwrap()).unwrap());
        let index = Arc::new(Index::open(&dir.path().join("state")).await.unwrap());
        let streams = StreamContext { writer, index, inbox_changed: Arc::default() };
        let table = json!({"kind": "webhook", "secret_file": secret, "max_message_bytes": 2000});
        let config = |name| StreamConfig::read(name, table.as_object().unwrap().clone()).unwrap();
        let hooks = open_hooks(&streams, vec![config("shop"), config("repo")]).await;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(axum::serve(listener, build_router(streams.clone(), hooks)).into_future());
        Self { dir, address, streams }
    }

    /// Makes a call; returns the status and the whole response.
    async fn call(&self, path: &str, signature: &str, body: &str) -> (u16, String) {
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-Signature-256: sha256={signature}\r\n\
             Content-Length: {}\r\n\r\n",
            body.len()
        );
        self.raw(&(head + body)).await
    }

    async fn raw(&self, request: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        // The server may close the connection while the request is still being sent.
        let _ = stream.read_to_string(&mut answer).await;
        (answer.split(' ').nth(1).unwrap().parse().unwrap(), answer)
    }

    /// Begins a request and never finishes its body.
    async fn drip(&self, path: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let head = format!("POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: 22\r\n\r\n{{");
        stream.write_all(head.as_bytes()).await.unwrap();
        stream
    }

    async fn refused(&self) -> u64 {
        let counts = self.streams.index.signals().list_stream_counts().await.unwrap();
        counts.iter().find(|c| c.source == "shop").unwrap().refused
    }

    fn events(&self) -> usize {
        std::fs::read_dir(self.dir.path().join("vault/stream/shop")).map_or(0, Iterator::count)
    }
}

#[tokio::test]
async fn a_signed_call_is_an_event_on_disk_before_it_is_answered_and_once() {
    let fixture = WebhookFixture::new().await;
    for _ in 0..3 {
        assert_eq!(fixture.call("/hooks/shop", SIGNATURE, BODY).await.0, 200);
        assert_eq!(fixture.events(), 1);
    }
}

#[tokio::test]
async fn a_refused_call_gets_only_a_status() {
    let fixture = WebhookFixture::new().await;
    let forged = "0".repeat(64);
    for (path, signature, body, expected) in [
        ("/hooks/shop", forged.as_str(), BODY, 401),
        ("/hooks/shop", SIGNATURE, "{\"text\":\"it is owed\"}", 401),
        ("/hooks/other", SIGNATURE, BODY, 404),
        ("/hooks/..%2fshop", SIGNATURE, BODY, 404),
        ("/", SIGNATURE, BODY, 404),
    ] {
        let (status, answer) = fixture.call(path, signature, body).await;
        assert_eq!(status, expected, "{path}");
        assert!(!answer.contains("s3cret") && !answer.contains(SIGNATURE), "{answer}");
    }
    assert_eq!(fixture.raw("GET /hooks/shop HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await.0, 405);
    assert_eq!(fixture.events(), 0);
}

#[tokio::test]
async fn a_body_beyond_the_limit_is_refused_with_and_without_a_stated_length() {
    let fixture = WebhookFixture::new().await;
    assert_eq!(fixture.call("/hooks/shop", SIGNATURE, &"x".repeat(3000)).await.0, 413);
    let stated = "POST /hooks/shop HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 52428800\r\n\r\n";
    assert_eq!(fixture.raw(stated).await.0, 413, "the body is not awaited");
    let chunk = format!("bb8\r\n{}\r\n0\r\n\r\n", "x".repeat(3000));
    let chunked = "POST /hooks/shop HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n";
    assert_eq!(fixture.raw(&format!("{chunked}{chunk}")).await.0, 413);
}

#[tokio::test]
async fn a_signed_body_that_is_not_an_event_is_a_bad_request() {
    let fixture = WebhookFixture::new().await;
    let signature = "adbde1ce40c89c14215687d5d762a47df6dfaefcfad61e2e86718ffc8498571b";
    assert_eq!(fixture.call("/hooks/shop", signature, "{}").await.0, 400);
}

#[tokio::test]
async fn a_paused_webhook_asks_to_be_called_again() {
    let fixture = WebhookFixture::new().await;
    fixture.streams.index.signals().update_stream_pause("shop", true).await.unwrap();
    assert_eq!(fixture.call("/hooks/shop", SIGNATURE, BODY).await.0, 503);
    fixture.streams.index.signals().update_stream_pause("shop", false).await.unwrap();
    assert_eq!(fixture.call("/hooks/shop", SIGNATURE, BODY).await.0, 200);
}

#[tokio::test]
async fn a_webhook_without_its_secret_reports_it_and_does_not_block_another() {
    let fixture = WebhookFixture::new().await;
    let table = json!({"kind": "webhook", "secret_env": "NO_SUCH_SECRET"});
    let config = StreamConfig::read("chat", table.as_object().unwrap().clone()).unwrap();
    assert!(open_hooks(&fixture.streams, vec![config]).await.is_empty());
    let counts = fixture.streams.index.signals().list_stream_counts().await.unwrap();
    let chat = counts.iter().find(|c| c.source == "chat").unwrap();
    assert!(chat.last_error.as_deref().unwrap().contains("NO_SUCH_SECRET"), "{chat:?}");
}

#[tokio::test]
async fn many_calls_at_once_are_all_accepted() {
    let fixture = WebhookFixture::new().await;
    let calls = (0..300).map(|_| fixture.call("/hooks/shop", SIGNATURE, BODY));
    let answers = futures_util::future::join_all(calls).await;
    let others: Vec<u16> = answers.into_iter().map(|(status, _)| status).filter(|status| *status != 200).collect();
    assert!(others.is_empty(), "{others:?}");
    assert_eq!(fixture.events(), 1);
}

#[tokio::test]
async fn slow_callers_of_one_webhook_do_not_block_another() {
    let fixture = WebhookFixture::new().await;
    let drips = futures_util::future::join_all((0..100).map(|_| fixture.drip("/hooks/shop"))).await;
    assert_eq!(fixture.call("/hooks/shop", SIGNATURE, BODY).await.0, 503, "it gets no turn");
    assert_eq!(fixture.call("/hooks/repo", SIGNATURE, BODY).await.0, 200);
    drop(drips);
    assert_eq!(fixture.call("/hooks/shop", SIGNATURE, BODY).await.0, 200);
}

#[tokio::test]
async fn refused_calls_are_counted_in_batches() {
    let fixture = WebhookFixture::new().await;
    let begun = std::time::Instant::now();
    let forged = "0".repeat(64);
    for _ in 0..50 {
        assert_eq!(fixture.call("/hooks/shop", &forged, BODY).await.0, 401);
    }
    assert_eq!(fixture.call("/hooks/shop", SIGNATURE, &"x".repeat(3000)).await.0, 413);
    let signature = "adbde1ce40c89c14215687d5d762a47df6dfaefcfad61e2e86718ffc8498571b";
    assert_eq!(fixture.call("/hooks/shop", signature, "{}").await.0, 400);
    assert_eq!(fixture.call("/hooks/shop", SIGNATURE, BODY).await.0, 200);
    let (mut steps, mut often) = (std::collections::BTreeSet::new(), tokio::time::interval(Duration::from_millis(20)));
    let all = async {
        while fixture.refused().await < 52 {
            often.tick().await;
            steps.insert(fixture.refused().await);
        }
    };
    tokio::time::timeout(Duration::from_secs(120), all).await.expect("they are not counted");
    assert_eq!(fixture.refused().await, 52);
    // The count from before, and one of each pause: on a slow machine there are more of those.
    let most = 3 + begun.elapsed().as_secs() / REFUSAL_INTERVAL.as_secs();
    assert!(u64::try_from(steps.len()).unwrap() <= most, "each refusal was stored on its own: {steps:?}");
}
