use super::*;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// Places inside a network, as an attacker may write them. `PORT` is that of a server that must get no call.
const PRIVATE: [&str; 24] = [
    "http://127.0.0.1:PORT/",
    "http://127.1:PORT/",
    "http://2130706433:PORT/",
    "http://0x7f000001:PORT/",
    "http://0177.0.0.1:PORT/",
    "http://0:PORT/",
    "http://0.0.0.0:PORT/",
    "http://localhost:PORT/",
    "http://LOCALHOST.:PORT/",
    "http://[::1]:PORT/",
    "http://[::]:PORT/",
    "http://[::ffff:127.0.0.1]:PORT/",
    "http://[::ffff:7f00:1]:PORT/",
    "http://[64:ff9b::7f00:1]:PORT/",
    "http://[2002:7f00:1::]:PORT/",
    "http://user@127.0.0.1:PORT/",
    "http://169.254.169.254/latest/meta-data/",
    "http://[fd00:ec2::254]/",
    "http://[fe80::1]/",
    "http://10.0.0.1/",
    "http://172.16.0.1/",
    "http://192.168.0.1/",
    "http://100.64.0.1/",
    "file:///etc/passwd",
];

/// A server that answers each call with these lines, and counts the calls.
async fn serve(answer: impl Fn(&str) -> String + Send + 'static) -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (port, calls) = (listener.local_addr().unwrap().port(), Arc::new(AtomicUsize::new(0)));
    let counted = Arc::clone(&calls);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            counted.fetch_add(1, Ordering::SeqCst);
            let mut request = vec![0; 4096];
            let length = stream.read(&mut request).await.unwrap();
            let answer = answer(&String::from_utf8_lossy(&request[..length]));
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
    });
    (port, calls)
}

fn redirect_to(place: &str) -> String {
    format!("HTTP/1.1 302 Found\r\nlocation: {place}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
}

fn client(configured: &Url) -> reqwest::Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    limit_redirects(reqwest::Client::builder(), configured).no_proxy().build().unwrap()
}

#[tokio::test]
async fn a_redirect_reaches_no_other_server_of_the_network() {
    let (secret, calls) =
        serve(|_| "HTTP/1.1 200 OK\r\ncontent-length: 6\r\nconnection: close\r\n\r\nsecret".into()).await;
    for place in PRIVATE {
        let target = place.replace("PORT", &secret.to_string());
        let (port, asked) = serve(move |_| redirect_to(&target)).await;
        let configured = Url::parse(&format!("http://127.0.0.1:{port}/calendar")).unwrap();
        match client(&configured).get(configured.clone()).send().await {
            Err(failed) => assert!(failed.is_redirect() || failed.is_connect(), "{place}: {failed:?}"),
            // The library knows no such scheme, and answers with the redirect itself.
            Ok(answer) => assert!(answer.status().is_redirection(), "{place}: {answer:?}"),
        }
        assert_eq!(asked.load(Ordering::SeqCst), 1, "{place}");
    }
    assert_eq!(calls.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn the_configured_server_may_redirect_to_itself_three_times() {
    for (most, is_answered) in [(3, true), (4, false)] {
        let (port, calls) = serve(move |request| match request.split_once("/step-").map(|(_, rest)| &rest[..1]) {
            Some(step) if step.parse::<usize>().unwrap() == most => {
                "HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".into()
            }
            Some(step) => redirect_to(&format!("/step-{}", step.parse::<usize>().unwrap() + 1)),
            None => redirect_to("/step-1"),
        })
        .await;
        let configured = Url::parse(&format!("http://127.0.0.1:{port}/")).unwrap();
        let answer = client(&configured).get(configured.clone()).send().await;
        assert_eq!(answer.is_ok(), is_answered, "{answer:?}");
        assert_eq!(calls.load(Ordering::SeqCst), 4);
    }
}

#[test]
fn an_encrypted_calendar_stays_encrypted_and_may_move_to_another_host() {
    let configured = Url::parse("https://calendar.example/a").unwrap();
    let may = |next: &str| may_follow(&configured, std::slice::from_ref(&configured), &Url::parse(next).unwrap());
    assert!(may("https://elsewhere.example/b") && may("https://calendar.example/b") && may("https://93.184.215.14/"));
    for refused in
        ["http://calendar.example/b", "http://elsewhere.example/", "https://calendar.example:8443/", "ftp://x/"]
    {
        assert!(!may(refused), "{refused}");
    }
}

#[tokio::test]
async fn a_name_with_a_private_address_is_refused_unless_it_is_the_configured_one() {
    let resolve = async |configured: &str, was_private: Option<bool>| {
        let is_private = Arc::new(was_private.map_or_else(OnceLock::new, OnceLock::from));
        let resolver = RedirectResolver { configured: configured.to_owned(), is_private };
        resolver.resolve("localhost".parse().unwrap()).await.is_ok()
    };
    assert!(resolve("localhost", None).await);
    assert!(!resolve("calendar.example", None).await);
    assert!(!resolve("localhost", Some(false)).await, "its name was public before");
}

#[test]
fn addresses_of_the_internet_are_public() {
    for address in ["1.1.1.1", "93.184.215.14", "2606:4700::1111", "64:ff9b::101:101", "2002:101:101::1"] {
        assert!(is_public(address.parse().unwrap()), "{address}");
    }
    for address in [
        "255.255.255.255",
        "224.0.0.1",
        "198.51.100.7",
        "2001:db8::1",
        "2001:2::1",
        "3fff::1",
        "ff02::1",
        "fec0::1",
        "64:ff9b:1::1",
    ] {
        assert!(!is_public(address.parse().unwrap()), "{address}");
    }
}
