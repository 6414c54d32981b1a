//! A client of the control API: it sends a request and returns the status and the body of the response.

use crate::steward::Running;
use crate::world::World;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, Response, redirect};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Once;

/// A client of one server.
#[derive(Clone)]
pub struct Api {
    /// `http://127.0.0.1:<port>`.
    pub base: String,
    headers: HeaderMap,
    client: reqwest::Client,
}

/// A response.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: String,
}

impl Answer {
    /// The body as JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|e| panic!("no JSON ({e}): {self:?}"))
    }

    /// Asserts the status and returns the JSON.
    #[must_use]
    pub fn expect(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{self:?}");
        self.json()
    }
}

/// The worker of a world with its dashboard: `up` on a server of its own namespace.
pub async fn up(world: &World) -> (Running, Api) {
    world.index_quietly(&world.steward).await;
    let mut running = world.steward.with("STEWARD_LISTEN", "127.0.0.1:0").start(&["up"]);
    running.says("up; Ctrl-C ends it").await;
    world.hold_calibration().await;
    let link = link(&running);
    let base = link.split("/login").next().unwrap_or_default().to_owned();
    (running, Api::new(&base))
}

/// The printed login link, which logs one person in.
#[must_use]
pub fn link(running: &Running) -> String {
    find_link(&running.out()).to_owned()
}

/// The login link in the output of a process.
pub(crate) fn find_link(out: &str) -> &str {
    out.lines().find_map(|line| line.strip_prefix("dashboard")).unwrap_or_else(|| panic!("{out}")).trim()
}

impl Api {
    /// A client without a token.
    #[must_use]
    pub fn new(base: &str) -> Self {
        static CRYPTO: Once = Once::new();
        CRYPTO.call_once(|| drop(rustls::crypto::ring::default_provider().install_default()));
        let client = reqwest::Client::builder().redirect(redirect::Policy::none()).no_proxy().build().unwrap();
        Self { base: base.to_owned(), headers: HeaderMap::new(), client }
    }

    /// A client of a server whose certificate is in this file.
    #[must_use]
    pub fn trusting(base: &str, certificate: &Path) -> Self {
        let certificate = reqwest::Certificate::from_pem(&std::fs::read(certificate).unwrap()).unwrap();
        let client = reqwest::Client::builder().add_root_certificate(certificate).no_proxy().build().unwrap();
        Self { client, ..Self::new(base) }
    }

    /// A copy that sends one more header with every request.
    #[must_use]
    pub fn with(&self, name: &str, value: &str) -> Self {
        let mut other = self.clone();
        let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
        other.headers.insert(name, HeaderValue::from_str(value).unwrap());
        other
    }

    /// A copy with a token of this scope.
    pub async fn token(&self, world: &World, scope: &str) -> Self {
        let made = world.json(&["token", "create", "--scope", scope, "--name", &format!("test {scope}")]).await;
        self.with("authorization", &format!("Bearer {}", made["token"].as_str().unwrap()))
    }

    /// Sends a GET request; the path begins with `/`.
    pub async fn get(&self, path: &str) -> Answer {
        self.ask(Method::GET, path, None).await
    }

    /// The status of a GET request; `None` if the server cannot be reached or its certificate is not trusted.
    pub async fn find_status(&self, path: &str) -> Option<u16> {
        let request = self.client.get(format!("{}{path}", self.base)).headers(self.headers.clone());
        Some(request.send().await.ok()?.status().as_u16())
    }

    /// Sends JSON.
    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        let one = self.with("content-type", "application/json");
        one.ask(Method::POST, path, Some(body.to_string())).await
    }

    /// Resolves an action.
    pub async fn answer(&self, kind: &str, action: &str) -> Answer {
        self.post(&format!("/api/v1/steward/{kind}/{action}"), &json!({"reason": "as the test says"})).await
    }

    /// Sends a form, as a browser does. Names and values must need no encoding.
    pub async fn form(&self, path: &str, fields: &[(&str, &str)]) -> Answer {
        let body: Vec<String> = fields.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let one = self.with("content-type", "application/x-www-form-urlencoded");
        one.ask(Method::POST, path, Some(body.join("&"))).await
    }

    /// Sends a request of any method and body.
    pub async fn ask(&self, method: Method, path: &str, body: Option<String>) -> Answer {
        Answer::of(self.open(method, path, body).await).await
    }

    /// Sends a request, and leaves its response to be read as it comes.
    pub async fn open(&self, method: Method, path: &str, body: Option<String>) -> Response {
        let mut request = self.client.request(method, format!("{}{path}", self.base)).headers(self.headers.clone());
        if let Some(body) = body {
            request = request.body(body);
        }
        request.send().await.unwrap()
    }
}

impl Answer {
    async fn of(response: Response) -> Self {
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        Self { status, headers, body: response.text().await.unwrap() }
    }
}
