//! Tests with real sockets and real TLS handshakes: which connections are served, and which are closed.
//!
//! Each test creates its own certificate. The tests do not look at pages, only at who is served and that nobody keeps
//! the others waiting.

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

struct TestServer {
    dir: tempfile::TempDir,
    serving: RunningServer,
    stop: watch::Sender<bool>,
}

async fn start_server(limits: ConnectionLimits, encrypted: bool, proxies: &str) -> TestServer {
    let dir = tempfile::tempdir().unwrap();
    let certificate = encrypted.then(|| create_certificate(dir.path()));
    let (stop, stopped) = watch::channel(false);
    let transport = TransportSettings { certificate, proxies: TrustedProxies::parse(proxies).unwrap() };
    let listening = BoundListener::bind(Some("127.0.0.1:0".parse().unwrap())).await.unwrap();
    TestServer { dir, serving: listening.serve_with_limits(limits, transport, stopped).unwrap(), stop }
}

fn create_certificate(dir: &Path) -> CertificateFiles {
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

impl TestServer {
    fn answers(&self) {
        self.serving.replace_router(Router::new().route("/", get(async || "hello").post(async |body: String| body)));
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.serving.address).await.unwrap()
    }

    /// Connects with TLS and offers these protocols.
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

/// Reads until the other end closes or breaks the connection.
async fn rest(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut received = Vec::new();
    let read = tokio::time::timeout(LONG, stream.read_to_end(&mut received)).await;
    assert!(read.is_ok(), "it is kept open; so far: {}", String::from_utf8_lossy(&received));
    String::from_utf8_lossy(&received).into_owned()
}

async fn exchange(stream: &mut (impl AsyncRead + AsyncWrite + Unpin), request: &[u8]) -> String {
    // A refused connection may be closed before the request is sent.
    let _ = stream.write_all(request).await;
    rest(stream).await
}

#[tokio::test]
async fn a_set_address_is_used_exactly() {
    let free = BoundListener::bind(Some("127.0.0.1:0".parse().unwrap())).await.unwrap();
    let taken = BoundListener::bind(Some(free.address)).await;
    assert_eq!(taken.err().map(|e| e.kind()), Some(io::ErrorKind::AddrInUse));
}

#[tokio::test]
async fn before_there_is_a_router_every_interface_gets_its_own_503() {
    let server = start_server(LIMITS, false, "").await;
    let ask = async |method: &str, path: &str| {
        let request = format!("{method} {path} HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
        exchange(&mut server.connect().await, request.as_bytes()).await.to_ascii_lowercase()
    };
    assert!(ask("GET", "/healthz").await.starts_with("http/1.1 200"));
    for (path, kind) in
        [("/readyz", "application/problem+json"), ("/api/v1/x", "application/problem+json"), ("/", "text/html")]
    {
        let response = ask("GET", path).await;
        assert!(
            response.starts_with("http/1.1 503") && response.contains(&format!("content-type: {kind}")),
            "{path}: {response}"
        );
        assert!(
            response.contains("retry-after: 2") && response.contains("content-security-policy:"),
            "{path}: {response}"
        );
    }
    let response = ask("POST", "/steward.v1.ActionsService/UndoAction").await;
    assert!(response.contains("grpc-status: 14") && response.contains("steward-status: 503"), "{response}");
    server.answers();
    assert!(ask("GET", "/").await.ends_with("hello"));
}

#[tokio::test]
async fn tls_serves_both_protocols() {
    let server = start_server(LIMITS, true, "").await;
    server.answers();
    let mut one = server.agree(&[b"http/1.1"]).await;
    assert_eq!(one.get_ref().1.alpn_protocol(), Some(&b"http/1.1"[..]));
    assert!(exchange(&mut one, ASK).await.ends_with("hello"));
    let two = server.agree(&[b"h2", b"http/1.1"]).await;
    assert_eq!(two.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
}

#[tokio::test]
async fn a_request_without_tls_is_told_to_use_it() {
    let server = start_server(LIMITS, true, "").await;
    server.answers();
    let response = exchange(&mut server.connect().await, ASK).await;
    assert!(response.starts_with("HTTP/1.1 400") && response.ends_with("begin it with https\n"), "{response}");
    let length = response.split("\r\n\r\n").last().unwrap().len();
    assert!(response.contains(&format!("content-length: {length}\r\n")), "{response}");
    assert_eq!(exchange(&mut server.connect().await, b"\x16\x03\x01\x00\x05nonsense\r\n\r\n").await.find("HTTP"), None);
}

#[tokio::test]
async fn a_silent_or_incomplete_connection_is_closed() {
    for encrypted in [false, true] {
        let server = start_server(SHORT, encrypted, "").await;
        server.answers();
        assert_eq!(rest(&mut server.connect().await).await, "", "silent; encrypted: {encrypted}");
        // The beginnings of a handshake, of a request, and of the preface of HTTP/2.
        for begun in [&b"\x16\x03\x01\x02\x00"[..], b"GET / HTTP/1.1\r\nhost: ", b"PRI * HT"] {
            let response = exchange(&mut server.connect().await, begun).await;
            assert!(!response.contains("hello"), "{response}");
        }
        if encrypted {
            assert_eq!(rest(&mut server.agree(&[b"h2"]).await).await.find("hello"), None, "silent after the handshake");
        }
    }
}

#[tokio::test]
async fn silent_connections_keep_nobody_waiting() {
    let few = ConnectionLimits { per_address: 3, in_total: 5, patience: LONG * 10, idle: LONG };
    for encrypted in [false, true] {
        let server = start_server(few, encrypted, "127.0.0.2").await;
        server.answers();
        let ask = async || match encrypted {
            true => exchange(&mut server.agree(&[b"http/1.1"]).await, ASK).await,
            false => exchange(&mut server.connect().await, ASK).await,
        };
        let _silent = (server.connect().await, server.connect().await);
        assert!(ask().await.ends_with("hello"), "the third of three connections");
        let _third = server.connect().await;
        assert_eq!(exchange(&mut server.connect().await, ASK).await, "", "one connection too many is closed at once");
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.3:0".parse().unwrap()).unwrap();
        let mut other = socket.connect(server.serving.address).await.unwrap();
        let response = exchange(&mut other, ASK).await;
        assert!(response.starts_with("HTTP/1.1"), "another address has its own limit: {response}");
    }
}

#[tokio::test]
async fn a_trusted_proxy_may_have_as_many_connections_as_the_server() {
    let server = start_server(ConnectionLimits { per_address: 1, in_total: 3, ..LIMITS }, false, "127.0.0.1").await;
    server.answers();
    let _open = (server.connect().await, server.connect().await);
    assert!(exchange(&mut server.connect().await, ASK).await.ends_with("hello"));
    let _third = server.connect().await;
    assert_eq!(exchange(&mut server.connect().await, ASK).await, "");
}

#[tokio::test]
async fn a_started_response_is_finished_and_an_idle_connection_does_not_delay_the_end() {
    let server = start_server(LIMITS, false, "").await;
    let (begun, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let slow = {
        let (begun, go) = (Arc::clone(&begun), Arc::clone(&go));
        async move || {
            begun.notify_one();
            go.notified().await;
            "hello"
        }
    };
    server.serving.replace_router(Router::new().route("/", get(slow)));
    let _idle = server.connect().await;
    let mut open = server.connect().await;
    open.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    begun.notified().await;
    server.stop.send(true).unwrap();
    go.notify_one();
    assert!(rest(&mut open).await.ends_with("hello"));
    tokio::time::timeout(LONG, server.serving.wait_until_ended()).await.unwrap();
}

#[tokio::test]
async fn an_incomplete_request_and_an_idle_connection_return_their_permits() {
    let server = start_server(SHORT, false, "").await;
    server.answers();
    let half = b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 60000\r\n\r\nxx";
    let response = exchange(&mut server.connect().await, half).await;
    assert!(response.starts_with("HTTP/1.1 4") && !response.ends_with("xx"), "{response}");
    let mut one = server.connect().await;
    one.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    assert!(rest(&mut one).await.ends_with("hello"), "it is closed once it is idle");
    // An HTTP/2 client keeps its connection alive for ever and sends no further request.
    let (mut client, connection) = h2::client::handshake(server.connect().await).await.unwrap();
    let kept = tokio::spawn(connection);
    let request = axum::http::Request::get("http://x/").body(()).unwrap();
    let (answer, _) = client.send_request(request, true).unwrap();
    assert_eq!(answer.await.unwrap().status(), 200);
    tokio::time::timeout(LONG, kept).await.unwrap().unwrap().unwrap();
}

#[tokio::test]
async fn a_certificate_that_cannot_be_used_ends_the_start() {
    let dir = tempfile::tempdir().unwrap();
    let certificate = create_certificate(dir.path());
    std::fs::write(&certificate.key, "nonsense").unwrap();
    let listening = BoundListener::bind(Some("127.0.0.1:0".parse().unwrap())).await.unwrap();
    let transport = TransportSettings { certificate: Some(certificate), proxies: TrustedProxies::default() };
    let Err(e) = listening.serve(transport, watch::channel(false).1) else { panic!("it was used") };
    assert!(e.to_string().contains("key.pem"), "{e}");
}
