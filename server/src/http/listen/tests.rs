//! Real sockets and real handshakes: who comes in, how, and who is let go.
//!
//! Certificates are made for each test. What the pages say is not asked here, only that somebody answers and who does not
//! keep the others waiting.

use super::*;
use axum::routing::get;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName};
use std::path::Path;
use std::process::Command;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use tokio_rustls::{TlsConnector, rustls};

/// Longer than any answer takes on a busy machine.
const LONG: Duration = Duration::from_secs(120);
const SHORT: ConnectionLimits =
    ConnectionLimits { patience: Duration::from_secs(1), idle: Duration::from_secs(1), ..LIMITS };
const ASK: &[u8] = b"GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";

struct Bench {
    dir: tempfile::TempDir,
    serving: RunningServer,
    stop: watch::Sender<bool>,
}

async fn bench(limits: ConnectionLimits, encrypted: bool, proxies: &str) -> Bench {
    let dir = tempfile::tempdir().unwrap();
    let certificate = encrypted.then(|| made(dir.path()));
    let (stop, stopped) = watch::channel(false);
    let way = TransportSettings { certificate, proxies: TrustedProxies::parse(proxies).unwrap() };
    let listening = BoundListener::bind(Some("127.0.0.1:0".parse().unwrap())).await.unwrap();
    Bench { dir, serving: listening.serve_with_limits(limits, way, stopped).unwrap(), stop }
}

fn made(dir: &Path) -> CertificateFiles {
    let (chain, key) = (dir.join("cert.pem"), dir.join("key.pem"));
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"])
        .args(["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"])
        .args(["-addext", "basicConstraints=CA:FALSE"])
        .arg("-keyout")
        .arg(&key)
        .arg("-out")
        .arg(&chain)
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    CertificateFiles { chain, key }
}

impl Bench {
    fn answers(&self) {
        self.serving.replace_router(Router::new().route("/", get(async || "hello").post(async |body: String| body)));
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.serving.address).await.unwrap()
    }

    /// Agrees on a key, and on one of these protocols.
    async fn agree(&self, protocols: &[&[u8]]) -> TlsStream<TcpStream> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(self.dir.path().join("cert.pem")).unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let mut config = config.with_root_certificates(roots).with_no_client_auth();
        config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
        let name = ServerName::try_from("localhost").unwrap();
        TlsConnector::from(Arc::new(config)).connect(name, self.connect().await).await.unwrap()
    }
}

/// Everything that comes until the other end closes; an end that breaks is one.
async fn rest(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut heard = Vec::new();
    let read = tokio::time::timeout(LONG, stream.read_to_end(&mut heard)).await;
    assert!(read.is_ok(), "it is kept open; so far: {}", String::from_utf8_lossy(&heard));
    String::from_utf8_lossy(&heard).into_owned()
}

async fn asked(stream: &mut (impl AsyncRead + AsyncWrite + Unpin), request: &[u8]) -> String {
    // Whoever is not let in may be gone before it is sent.
    let _ = stream.write_all(request).await;
    rest(stream).await
}

#[tokio::test]
async fn an_address_that_was_set_is_taken_or_none() {
    let free = BoundListener::bind(Some("127.0.0.1:0".parse().unwrap())).await.unwrap();
    let taken = BoundListener::bind(Some(free.address)).await;
    assert_eq!(taken.err().map(|e| e.kind()), Some(io::ErrorKind::AddrInUse));
}

#[tokio::test]
async fn before_there_is_a_router_everybody_is_told_to_come_again_in_their_own_face() {
    let bench = bench(LIMITS, false, "").await;
    let ask = async |method: &str, path: &str| {
        let request = format!("{method} {path} HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
        asked(&mut bench.connect().await, request.as_bytes()).await.to_ascii_lowercase()
    };
    assert!(ask("GET", "/healthz").await.starts_with("http/1.1 200"));
    for (path, kind) in
        [("/readyz", "application/problem+json"), ("/api/v1/x", "application/problem+json"), ("/", "text/html")]
    {
        let said = ask("GET", path).await;
        assert!(said.starts_with("http/1.1 503") && said.contains(&format!("content-type: {kind}")), "{path}: {said}");
        assert!(said.contains("retry-after: 2") && said.contains("content-security-policy:"), "{path}: {said}");
    }
    let said = ask("POST", "/steward.v1.ActionsService/UndoAction").await;
    assert!(said.contains("grpc-status: 14") && said.contains("steward-status: 503"), "{said}");
    bench.answers();
    assert!(ask("GET", "/").await.ends_with("hello"));
}

#[tokio::test]
async fn by_tls_both_protocols_are_agreed_on_and_answered() {
    let bench = bench(LIMITS, true, "").await;
    bench.answers();
    let mut one = bench.agree(&[b"http/1.1"]).await;
    assert_eq!(one.get_ref().1.alpn_protocol(), Some(&b"http/1.1"[..]));
    assert!(asked(&mut one, ASK).await.ends_with("hello"));
    let two = bench.agree(&[b"h2", b"http/1.1"]).await;
    assert_eq!(two.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
}

#[tokio::test]
async fn who_speaks_plainly_to_tls_is_told_so_at_once() {
    let bench = bench(LIMITS, true, "").await;
    bench.answers();
    let said = asked(&mut bench.connect().await, ASK).await;
    assert!(said.starts_with("HTTP/1.1 400") && said.ends_with("begin it with https\n"), "{said}");
    let length = said.split("\r\n\r\n").last().unwrap().len();
    assert!(said.contains(&format!("content-length: {length}\r\n")), "{said}");
    assert_eq!(asked(&mut bench.connect().await, b"\x16\x03\x01\x00\x05nonsense\r\n\r\n").await.find("HTTP"), None);
}

#[tokio::test]
async fn who_says_nothing_or_stops_halfway_is_let_go() {
    for encrypted in [false, true] {
        let bench = bench(SHORT, encrypted, "").await;
        bench.answers();
        assert_eq!(rest(&mut bench.connect().await).await, "", "silent; encrypted: {encrypted}");
        // The beginnings of a handshake, of a request, and of the preface of HTTP/2.
        for begun in [&b"\x16\x03\x01\x02\x00"[..], b"GET / HTTP/1.1\r\nhost: ", b"PRI * HT"] {
            let said = asked(&mut bench.connect().await, begun).await;
            assert!(!said.contains("hello"), "{said}");
        }
        if encrypted {
            assert_eq!(rest(&mut bench.agree(&[b"h2"]).await).await.find("hello"), None, "agreed, and then silent");
        }
    }
}

#[tokio::test]
async fn callers_who_are_silent_keep_nobody_waiting() {
    let few = ConnectionLimits { of_each: 3, of_all: 5, patience: LONG * 10, idle: LONG };
    for encrypted in [false, true] {
        let bench = bench(few, encrypted, "127.0.0.2").await;
        bench.answers();
        let ask = async || match encrypted {
            true => asked(&mut bench.agree(&[b"http/1.1"]).await, ASK).await,
            false => asked(&mut bench.connect().await, ASK).await,
        };
        let _silent = (bench.connect().await, bench.connect().await);
        assert!(ask().await.ends_with("hello"), "the third of three seats");
        let _third = bench.connect().await;
        assert_eq!(asked(&mut bench.connect().await, ASK).await, "", "one too many is let go at once");
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.3:0".parse().unwrap()).unwrap();
        let mut other = socket.connect(bench.serving.address).await.unwrap();
        let said = asked(&mut other, ASK).await;
        assert!(said.starts_with("HTTP/1.1"), "another address has seats of its own: {said}");
    }
}

#[tokio::test]
async fn many_may_come_by_a_trusted_proxy_up_to_the_seats_of_all() {
    let bench = bench(ConnectionLimits { of_each: 1, of_all: 3, ..LIMITS }, false, "127.0.0.1").await;
    bench.answers();
    let _open = (bench.connect().await, bench.connect().await);
    assert!(asked(&mut bench.connect().await, ASK).await.ends_with("hello"));
    let _third = bench.connect().await;
    assert_eq!(asked(&mut bench.connect().await, ASK).await, "");
}

#[tokio::test]
async fn what_was_begun_is_said_to_its_end_and_what_only_stays_open_keeps_nobody() {
    let bench = bench(LIMITS, false, "").await;
    let (begun, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let slow = {
        let (begun, go) = (Arc::clone(&begun), Arc::clone(&go));
        async move || {
            begun.notify_one();
            go.notified().await;
            "hello"
        }
    };
    bench.serving.replace_router(Router::new().route("/", get(slow)));
    let _idle = bench.connect().await;
    let mut open = bench.connect().await;
    open.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    begun.notified().await;
    bench.stop.send(true).unwrap();
    go.notify_one();
    assert!(rest(&mut open).await.ends_with("hello"));
    tokio::time::timeout(LONG, bench.serving.wait_until_ended()).await.unwrap();
}

#[tokio::test]
async fn what_is_sent_half_and_what_lies_still_gives_its_seat_back() {
    let bench = bench(SHORT, false, "").await;
    bench.answers();
    let half = b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 60000\r\n\r\nxx";
    let said = asked(&mut bench.connect().await, half).await;
    assert!(said.starts_with("HTTP/1.1 4") && !said.ends_with("xx"), "{said}");
    let mut one = bench.connect().await;
    one.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    assert!(rest(&mut one).await.ends_with("hello"), "it is closed once it lies still");
    // By HTTP/2 the other end keeps the connection alive for ever, and asks nothing more.
    let (mut client, connection) = h2::client::handshake(bench.connect().await).await.unwrap();
    let kept = tokio::spawn(connection);
    let request = axum::http::Request::get("http://x/").body(()).unwrap();
    let (answer, _) = client.send_request(request, true).unwrap();
    assert_eq!(answer.await.unwrap().status(), 200);
    tokio::time::timeout(LONG, kept).await.unwrap().unwrap().unwrap();
}

#[tokio::test]
async fn a_certificate_that_cannot_be_used_ends_the_start() {
    let dir = tempfile::tempdir().unwrap();
    let certificate = made(dir.path());
    std::fs::write(&certificate.key, "nonsense").unwrap();
    let listening = BoundListener::bind(Some("127.0.0.1:0".parse().unwrap())).await.unwrap();
    let way = TransportSettings { certificate: Some(certificate), proxies: TrustedProxies::default() };
    let Err(e) = listening.serve(way, watch::channel(false).1) else { panic!("it was used") };
    assert!(e.to_string().contains("key.pem"), "{e}");
}
