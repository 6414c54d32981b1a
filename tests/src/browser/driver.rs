//! The one chromedriver of a test run, and its sessions.
//!
//! Chromium is connected to the driver by a pipe and ends when the pipe closes. Both processes are noted in the run's
//! folder, so nothing is left over however the run ends. Of our environment they see only the PATH.

use crate::{run, wait};
use fantoccini::wd::WebDriverCompatibleCommand;
use fantoccini::{Client, ClientBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use reqwest::{Method, Url};
use serde_json::{Value, json};
use std::io::Write;
use std::path::Path;
use std::process::Stdio;
use tokio::sync::OnceCell;

const CHROMIUM: &str = "/usr/bin/chromium";
const DRIVER: &str = "/usr/bin/chromedriver";
/// No access to the network, no window, and the pipe through which it ends with its driver.
const FLAGS: [&str; 12] = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
];

/// Starts Chromium and returns it with its process id. Returns `None` and prints it if there is no Chromium.
pub(super) async fn session() -> Option<(Client, u32)> {
    static ADDRESS: OnceCell<String> = OnceCell::const_new();
    if !(Path::new(CHROMIUM).exists() && Path::new(DRIVER).exists()) {
        let _ = writeln!(std::io::stderr(), "skipped: there is no chromium; `make tools` installs it");
        return None;
    }
    let address = ADDRESS.get_or_init(start).await;
    let (folder, _) = run::new_folder();
    let mut arguments: Vec<String> = FLAGS.iter().map(ToString::to_string).collect();
    arguments.push(format!("--user-data-dir={}", folder.display()));
    let patience = u64::try_from(wait::PATIENCE.as_millis()).unwrap();
    let wanted = json!({
        "browserName": "chrome",
        "goog:chromeOptions": {"binary": CHROMIUM, "args": arguments},
        "goog:loggingPrefs": {"browser": "ALL"},
        // By default a script may run for half a minute.
        "timeouts": {"script": patience, "pageLoad": patience},
    });
    let mut builder = ClientBuilder::new(HttpConnector::new());
    let client = builder.capabilities(wanted.as_object().unwrap().clone()).connect(address).await;
    let client = client.unwrap_or_else(|e| panic!("no session of chromedriver: {e}"));
    let process = client.capabilities().and_then(|granted| granted["goog:processID"].as_u64());
    let process = u32::try_from(process.expect("the number of Chromium's process")).unwrap();
    run::note(process);
    Some((client, process))
}

async fn start() -> String {
    let port = run::free_port();
    let log = std::fs::File::create(run::folder().join("chromedriver.log")).unwrap();
    let driver = std::process::Command::new(DRIVER)
        .arg(format!("--port={port}"))
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", run::folder())
        // A reader who is not in Greenwich.
        .env("TZ", "Asia/Kolkata")
        .stdin(Stdio::null())
        .stdout(log.try_clone().unwrap())
        .stderr(log)
        .spawn()
        .expect("chromedriver");
    run::note(driver.id());
    // The driver ends with the run; see `run`.
    std::mem::forget(driver);
    let answers = async || tokio::net::TcpStream::connect(("127.0.0.1", port)).await.ok();
    wait::until("chromedriver to listen", answers).await;
    format!("http://127.0.0.1:{port}")
}

/// A command that is Chromium's own and not part of WebDriver.
#[derive(Debug)]
pub(super) struct Command {
    /// The path below the session.
    pub(super) path: &'static str,
    pub(super) body: Value,
}

impl WebDriverCompatibleCommand for Command {
    fn endpoint(&self, base: &Url, session: Option<&str>) -> Result<Url, <Url as std::str::FromStr>::Err> {
        base.join(&format!("session/{}/{}", session.unwrap_or_default(), self.path))
    }

    fn method_and_body(&self, _: &Url) -> (Method, Option<String>) {
        (Method::POST, Some(self.body.to_string()))
    }
}
