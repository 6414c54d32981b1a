//! The front door: a real Caddy with `deploy/proxy/Caddyfile` before a real vault.

use crate::deploy;
use rustix::process::Signal as Sent;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use steward_tests::world::World;
use steward_tests::{run, wait};
use tokio::process::{Child, Command};

/// A running Caddy; it ends with its handle.
struct Caddy {
    _process: Child,
    /// `https://localhost:<port>`.
    base: String,
    /// The certificate of its own authority.
    authority: PathBuf,
}

impl Caddy {
    /// Starts it before a server, on loopback and on free ports.
    async fn start(folder: &Path, port: u16, upstream: &str) -> Self {
        let config = folder.join("Caddyfile");
        let (http, door) = (run::free_port(), deploy().join("proxy/Caddyfile"));
        let options =
            format!("http_port {http}\nhttps_port {port}\ndefault_bind 127.0.0.1\nadmin off\nskip_install_trust");
        std::fs::write(&config, format!("{{\n{options}\n}}\nimport {}\n", door.display())).unwrap();
        let log = std::fs::File::create(folder.join("caddy.log")).unwrap();
        let process = Command::new("caddy")
            .args(["run", "--adapter", "caddyfile", "--config"])
            .arg(&config)
            .env("STEWARD_HOST", format!("localhost:{port}"))
            .env("STEWARD_UPSTREAM", upstream)
            .env("XDG_DATA_HOME", folder)
            .env("XDG_CONFIG_HOME", folder)
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .expect("caddy; `make deploy-test` installs it");
        run::note(process.id().unwrap());
        let authority = folder.join("caddy/pki/authorities/local/root.crt");
        wait::until("caddy's authority", async || authority.is_file().then_some(())).await;
        Self { _process: process, base: format!("https://localhost:{port}"), authority }
    }

    fn client(&self) -> reqwest::Client {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let authority = reqwest::Certificate::from_pem(&std::fs::read(&self.authority).unwrap()).unwrap();
        reqwest::Client::builder().tls_certs_merge([authority]).no_proxy().build().unwrap()
    }
}

#[tokio::test]
async fn pages_streams_and_grpc_pass_and_a_dead_vault_is_a_quick_answer() {
    let port = run::free_port();
    let world = World::with_one_done().await.live().with_rare_ticks();
    let world = world.set("STEWARD_HOSTS", format!("localhost:{port}")).set("STEWARD_TRUSTED_PROXIES", "127.0.0.1");
    let upstream = format!("127.0.0.1:{}", run::free_port());
    let mut up = world.steward.with("STEWARD_LISTEN", &upstream).start(&["up"]);
    up.says("up; Ctrl-C ends it").await;
    wait::until("the change to be made", async || (world.live_actions().len() == 1).then_some(())).await;
    let action = world.live_action();
    let caddy = Caddy::start(&world.folder, port, &upstream).await;
    let client = caddy.client();
    let link = world.json(&["login", "--name", "Ann"]).await["link"].as_str().unwrap().to_owned();
    assert!(link.starts_with(&format!("{}/login?link=", caddy.base)), "{link}");

    let get = async |path: &str| client.get(format!("{}{path}", caddy.base)).send().await;
    wait::until("caddy to see that the vault is up", async || {
        get("/healthz").await.ok().filter(|answer| answer.status().is_success())
    })
    .await;
    assert_eq!(get("/api/v1/steward/actions/recent").await.unwrap().status(), 401);
    let made = world.json(&["token", "create", "--scope", "act", "--name", "door"]).await;
    let token = made["token"].as_str().unwrap();
    let stream = client.get(format!("{}/live", caddy.base)).bearer_auth(token);
    let mut stream = stream.header("accept", "text/event-stream").send().await.unwrap();
    assert_eq!(stream.status(), 200);
    world.run(&["stop"]).await.expect(0);
    // It must come at once, and not when a buffer is full.
    let mut said = String::new();
    while !said.contains("stopped") {
        let chunk = tokio::time::timeout(Duration::from_secs(20), stream.chunk()).await.expect("an event within 20 s");
        said.push_str(&String::from_utf8_lossy(&chunk.unwrap().expect("a stream that goes on")));
    }
    drop(stream);
    world.run(&["resume"]).await.expect(0);

    let remote = world.steward.with("STEWARD_SERVER", &caddy.base).with("STEWARD_TOKEN", token);
    remote.with("SSL_CERT_FILE", caddy.authority.display()).run(&["undo", &action]).await.expect(0);
    assert_eq!(world.vault.state("rent"), "open");

    up.send(Sent::KILL);
    let answer = wait::until("caddy to say that nobody is there", async || {
        get("/").await.ok().filter(|answer| answer.status().is_server_error())
    })
    .await;
    assert!(matches!(answer.status().as_u16(), 502 | 503), "{answer:?}");
}
