//! A clerk behind a server: a model that is asked over HTTP, by the API of one [`ClerkWire`].
//!
//! One reservation is one HTTP request. So there is no retry, no redirect and no proxy from the environment. No
//! connection is reused either, because the HTTP client would silently repeat a request on a stale one. The response is
//! untrusted and bounded: the body by [`RemoteClerkConfig::max_response_bytes`], texts by `text`, the answer by
//! [`Verdict::parse_answer`](steward_domain::steward::clerk::Verdict::parse_answer). The key must never be printed, by
//! `Debug`, in a reason or in a log.

mod answer;
mod endpoint;
mod key_health;
mod prompt;
mod refusal;
pub mod secret;
mod text;
mod turn;
mod wire;

pub use key_health::KeyHealth;
pub use secret::Secret;
use wire::ModelTarget;
pub use wire::{ANTHROPIC, ClerkWire, OLLAMA, OPENAI};

use super::pace::{ClerkRateLimiter, MAX_WAIT_SECONDS};
use super::sha256_hex;
use chrono::Utc;
use endpoint::{build_endpoint, build_headers};
use prompt::ClerkPrompt;
use reqwest::header::RETRY_AFTER;
use reqwest::{Client, Response, StatusCode, Url};
use std::num::NonZeroU32;
use std::time::Duration;
use steward_domain::fleet::provider_gate::CONNECT_TIMEOUT;
use steward_domain::signals::extract::{ExtractOutcome, ExtractQuestion, ExtractReply};
use steward_domain::steward::clerk::{ClerkCallOutcome, ClerkMark, ClerkQuestion, ClerkReply, TokenUsage};
use steward_domain::steward::guard::{Reservation, estimate_tokens, parse_retry_after};
use steward_fleet::read_boot_instant;

/// Longest time of a call, in seconds: 60. A run has 300 for all its tasks.
pub const TIMEOUT_SECONDS: u64 = 60;
/// Largest response that is read, in bytes: 256 KiB. A verdict has about one thousand.
pub const MAX_RESPONSE_BYTES: usize = 256 * 1024;
/// Calls that one process begins in a second by default: 5, which small accounts allow.
pub const CALLS_PER_SECOND: NonZeroU32 = NonZeroU32::new(5).expect("5 is not zero");
/// How many digits of the hash of its address name a server.
const SERVER_DIGITS: usize = 16;
/// Largest error response that is quoted, in bytes: 16 KiB. A larger one is a page and not a message.
const MAX_ERROR_BYTES: usize = 16 * 1024;
/// The status of an overloaded server of Anthropic: 529.
///
/// It is treated like 429. The vendor asks to back off, and the tick's other calls would get the same.
const OVERLOADED: u16 = 529;

/// Where the model is, and how much time and space its answers may take.
#[derive(Clone, Debug)]
pub struct RemoteClerkConfig {
    pub wire: &'static ClerkWire,
    /// The part before the wire's path, such as `https://api.openai.com/v1` before `/chat/completions`.
    pub base_url: String,
    pub model: String,
    /// `None` for servers that require no key.
    pub api_key: Option<Secret>,
    /// The environment variable of the key, so that a reason can name it.
    pub api_key_variable: String,
    /// The time from connecting to the last byte of the answer.
    pub timeout: Duration,
    pub max_response_bytes: usize,
    /// Most tokens of a verdict. An answer about an event may have twice as many.
    pub max_tokens: u32,
    pub calls_per_second: NonZeroU32,
    /// Longest wait for the rate limit.
    pub max_wait: Duration,
    /// Whether a call needs the leave of a fleet's gate, which is good for seconds only.
    pub is_gated: bool,
    /// Where to report whether the provider accepts the key.
    pub key_health: KeyHealth,
}

impl RemoteClerkConfig {
    /// A configuration without a key and with defaults for the rest.
    #[must_use]
    pub fn new(wire: &'static ClerkWire, base_url: &str, model: &str) -> Self {
        Self {
            wire,
            base_url: base_url.to_owned(),
            model: model.to_owned(),
            api_key: None,
            api_key_variable: "STEWARD_CLERK_API_KEY".to_owned(),
            timeout: Duration::from_secs(TIMEOUT_SECONDS),
            max_response_bytes: MAX_RESPONSE_BYTES,
            max_tokens: wire.max_tokens,
            calls_per_second: CALLS_PER_SECOND,
            max_wait: Duration::from_secs(MAX_WAIT_SECONDS),
            is_gated: false,
            key_health: KeyHealth::default(),
        }
    }
}

/// Why a clerk cannot be set up. No message holds the key.
#[derive(Debug, thiserror::Error)]
pub enum ClerkSetupError {
    #[error(
        "read the clerk's base URL: it must look like `https://host` or `https://host/v1`, without user, password, `?` or `#`"
    )]
    BaseUrl,
    #[error("use the key in {variable}: it has characters that cannot be sent, such as a line break; set it again")]
    Key { variable: String },
    #[error("use an empty name as the clerk's model: set a model that the server offers")]
    Model,
    #[error("set up the HTTP client: {0}")]
    Client(String),
}

/// What a server answered to one request.
enum ServerReply<T> {
    Answered(T),
    /// The complaint about an answer that cannot be used.
    Bad(String),
    /// 429 or 529, with the seconds to wait if the server sent them.
    Wait(Option<u64>),
}

/// Why a call got no answer.
struct ClerkCallFailure {
    reason: String,
    kind: ClerkCallFailureKind,
}

enum ClerkCallFailureKind {
    /// No request left this process.
    NotSent,
    /// The call took too long, which other calls may have caused.
    Slow,
    /// The server refused a request with tools, and its message speaks of them.
    NoTools,
    Other,
}

impl From<String> for ClerkCallFailure {
    fn from(reason: String) -> Self {
        Self { reason, kind: ClerkCallFailureKind::Other }
    }
}

/// A clerk behind a server.
#[derive(Debug)]
pub struct RemoteClerk {
    config: RemoteClerkConfig,
    endpoint: Url,
    client: Client,
    rate_limiter: ClerkRateLimiter,
}

impl RemoteClerk {
    /// Checks the configuration and builds the HTTP client. Sends nothing.
    ///
    /// # Errors
    /// [`ClerkSetupError`] when the base URL, the key or the model cannot be used.
    pub fn new(config: RemoteClerkConfig) -> Result<Self, ClerkSetupError> {
        let endpoint = build_endpoint(&config)?;
        if config.model.trim().is_empty() {
            return Err(ClerkSetupError::Model);
        }
        // This fails if a provider is installed already, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let builder = match config.is_gated {
            true => Client::builder().connect_timeout(CONNECT_TIMEOUT.to_std().unwrap_or_default()),
            false => Client::builder(),
        };
        let client = builder
            .default_headers(build_headers(&config)?)
            .user_agent(concat!("steward/", env!("CARGO_PKG_VERSION")))
            .timeout(config.timeout)
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .pool_max_idle_per_host(0)
            .no_proxy()
            .build()
            .map_err(|e| ClerkSetupError::Client(e.without_url().to_string()))?;
        let rate_limiter = ClerkRateLimiter::new(config.calls_per_second, config.max_wait);
        Ok(Self { config, endpoint, client, rate_limiter })
    }

    /// Asks once, with at most one HTTP request.
    pub async fn ask(
        &self,
        reservation: &Reservation,
        question: &ClerkQuestion,
        description: Option<&str>,
    ) -> ClerkReply {
        let body = self.render_prompt(question, description);
        let mut clerk = self.build_mark(&body);
        let outcome = match self
            .post_prompt(reservation, body, |content| answer::read_verdict(content, question, self.api_key()))
            .await
        {
            Ok((reply, usage)) => {
                clerk.tokens = usage;
                match reply {
                    ServerReply::Answered(verdict) => ClerkCallOutcome::Answered { verdict },
                    ServerReply::Bad(complaint) => ClerkCallOutcome::BadAnswer { complaint },
                    ServerReply::Wait(retry_after_seconds) => ClerkCallOutcome::RateLimited { retry_after_seconds },
                }
            }
            Err(ClerkCallFailure { reason, kind: ClerkCallFailureKind::NotSent }) => {
                ClerkCallOutcome::NotSent { reason }
            }
            Err(ClerkCallFailure { reason, .. }) => ClerkCallOutcome::Failed { reason },
        };
        ClerkReply { outcome, clerk }
    }

    /// Asks once which facts an event holds, with at most one HTTP request.
    pub async fn extract_signals(&self, reservation: &Reservation, question: &ExtractQuestion) -> ExtractReply {
        let body = self.render_extract_prompt(question);
        let mut clerk = self.build_mark(&body);
        let outcome = match self
            .post_prompt(reservation, body, |content| answer::read_findings(content, question, self.api_key()))
            .await
        {
            Ok((reply, usage)) => {
                clerk.tokens = usage;
                match reply {
                    ServerReply::Answered(text) => ExtractOutcome::Answered { text },
                    ServerReply::Bad(complaint) => ExtractOutcome::BadAnswer { complaint },
                    ServerReply::Wait(retry_after_seconds) => ExtractOutcome::RateLimited { retry_after_seconds },
                }
            }
            Err(ClerkCallFailure { reason, kind: ClerkCallFailureKind::NotSent }) => ExtractOutcome::NotSent { reason },
            Err(ClerkCallFailure { reason, kind }) => {
                ExtractOutcome::Failed { reason, slow: matches!(kind, ClerkCallFailureKind::Slow) }
            }
        };
        ExtractReply { outcome, clerk }
    }

    /// The request body that [`RemoteClerk::ask`] would send.
    pub(super) fn render_prompt(&self, question: &ClerkQuestion, description: Option<&str>) -> Vec<u8> {
        self.render_body(&prompt::build_verdict_prompt(question, description))
    }

    /// The request body that [`RemoteClerk::extract_signals`] would send.
    pub(super) fn render_extract_prompt(&self, question: &ExtractQuestion) -> Vec<u8> {
        self.render_body(&prompt::extract::build_extract_prompt(question))
    }

    pub(super) fn verdict_overhead_tokens(&self) -> u64 {
        estimate_tokens(prompt::VERDICT_OVERHEAD_BYTES) + u64::from(self.config.max_tokens)
    }

    pub(super) fn estimate_extract_tokens(&self, question: &ExtractQuestion) -> u64 {
        let prompt = prompt::extract::build_extract_prompt(question);
        let answer = u64::from(self.config.max_tokens.saturating_mul(prompt.token_factor));
        estimate_tokens(self.render_body(&prompt).len()) + answer
    }

    fn render_body(&self, prompt: &ClerkPrompt) -> Vec<u8> {
        let max_tokens = self.config.max_tokens.saturating_mul(prompt.token_factor);
        let target =
            ModelTarget { model: &self.config.model, host: self.endpoint.host_str().unwrap_or_default(), max_tokens };
        (self.config.wire.body)(prompt, &target).to_string().into_bytes()
    }

    fn api_key(&self) -> Option<&Secret> {
        self.config.api_key.as_ref()
    }

    /// The mark of an answer to this request body.
    pub(super) fn build_mark(&self, body: &[u8]) -> ClerkMark {
        ClerkMark {
            provider: self.config.wire.name.to_owned(),
            model: self.config.model.clone(),
            server: sha256_hex(self.endpoint.as_str().as_bytes())[..SERVER_DIGITS].to_owned(),
            prompt_sha256: sha256_hex(body),
            ..ClerkMark::default()
        }
    }

    /// Waits until a call may begin.
    ///
    /// # Errors
    /// Why it may not, for a person.
    pub(super) async fn wait_for_turn(&self) -> Result<(), String> {
        if self.rate_limiter.wait_for_turn().await {
            return Ok(());
        }
        Err(format!(
            "too many calls at once: this one could not begin within {} s and was not sent; raise \
             STEWARD_CLERK_CALLS_PER_SECOND if the provider allows it",
            self.config.max_wait.as_secs()
        ))
    }

    /// Waits for the pace, or checks the deadline of a reservation that waited for it before it was made.
    async fn wait_to_send(&self, reservation: &Reservation) -> Result<(), String> {
        match reservation.deadline() {
            None if self.config.is_gated => Err("the fleet's gate has not reserved this call".to_owned()),
            None => self.wait_for_turn().await,
            Some(deadline) if deadline.is_over(Utc::now(), &read_boot_instant()) => {
                Err("the fleet's reservation was over before the call could be sent".to_owned())
            }
            Some(_) => Ok(()),
        }
    }

    async fn post_prompt<T>(
        &self,
        reservation: &Reservation,
        body: Vec<u8>,
        judge: impl FnOnce(&str) -> answer::ContentResult<T>,
    ) -> Result<(ServerReply<T>, TokenUsage), ClerkCallFailure> {
        let read = |body: &[u8]| answer::read_response(body, self.config.wire, self.api_key(), judge);
        self.post_body(reservation, body, read).await
    }

    /// Sends a request, and reads a response with status 200 by `read`.
    async fn post_body<T>(
        &self,
        reservation: &Reservation,
        body: Vec<u8>,
        read: impl FnOnce(&[u8]) -> Result<(answer::ContentResult<T>, TokenUsage), String>,
    ) -> Result<(ServerReply<T>, TokenUsage), ClerkCallFailure> {
        self.wait_to_send(reservation)
            .await
            .map_err(|reason| ClerkCallFailure { reason, kind: ClerkCallFailureKind::NotSent })?;
        let request = self.client.post(self.endpoint.clone()).body(body);
        let response = request.send().await.map_err(|e| self.transport_failure(&e))?;
        self.config.key_health.record_status(response.status());
        match response.status() {
            StatusCode::OK => {
                let body = self.read_body(response).await?;
                let (content, usage) =
                    read(&body).map_err(|found| refusal::explain_missing_completion(&found, &self.config))?;
                Ok((content.map_or_else(ServerReply::Bad, ServerReply::Answered), usage))
            }
            status if status == StatusCode::TOO_MANY_REQUESTS || status.as_u16() == OVERLOADED => {
                let header = response.headers().get(RETRY_AFTER).and_then(|v| v.to_str().ok());
                let seconds = header.and_then(|text| parse_retry_after(text, Utc::now())).map(whole_seconds);
                Ok((ServerReply::Wait(seconds), TokenUsage::default()))
            }
            status => {
                let error_body = read_error_body(response).await;
                let reason = refusal::explain_status(status, &error_body, &self.config);
                let kind = match refusal::names_tools(status, &error_body) {
                    true => ClerkCallFailureKind::NoTools,
                    false => ClerkCallFailureKind::Other,
                };
                Err(ClerkCallFailure { reason, kind })
            }
        }
    }

    fn transport_failure(&self, error: &reqwest::Error) -> ClerkCallFailure {
        let kind = if error.is_timeout() { ClerkCallFailureKind::Slow } else { ClerkCallFailureKind::Other };
        ClerkCallFailure { reason: refusal::explain_transport_error(error, &self.config), kind }
    }

    async fn read_body(&self, mut response: Response) -> Result<Vec<u8>, ClerkCallFailure> {
        let limit = self.config.max_response_bytes;
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|e| self.transport_failure(&e))? {
            if body.len() + chunk.len() > limit {
                return Err(refusal::explain_oversize(&self.config).into());
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    }
}

/// Rounds up to whole seconds, because a call that comes too early gets another 429.
fn whole_seconds(wait: Duration) -> u64 {
    wait.as_secs().saturating_add(u64::from(wait.subsec_nanos() > 0))
}

/// Reads the body of an error response. A body over the limit counts as empty: a cut could run through the key.
async fn read_error_body(mut response: Response) -> Vec<u8> {
    let mut body = Vec::new();
    loop {
        match response.chunk().await {
            Ok(Some(chunk)) if body.len() + chunk.len() <= MAX_ERROR_BYTES => body.extend_from_slice(&chunk),
            Ok(None) => return body,
            Ok(Some(_)) | Err(_) => return Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests;
