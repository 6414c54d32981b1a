//! The client of the tracker Plane, by version 1 of its published REST API.
//!
//! One call is one HTTP request: no retry, no redirect, no proxy from the environment. The response is untrusted:
//! bodies are bounded, ids must be UUIDs, and text of the response must not leave this module but into the log. At
//! most 60 requests begin in any minute, which is Plane's limit for a key. After a 429 or a spent limit, no request is
//! sent until the time that the response names. Nothing here decides whether something is owed.

mod wire;

pub(super) use self::wire::ProjectStates;

use self::wire::{CreatedComment, PlaneComment, PlanePage, PlaneState, WorkItem};
use super::settings::TrackerConfig;
use crate::steward::clerks::remote::Secret;
use chrono::Utc;
use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::{Client, Method, Response, StatusCode, Url};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::num::NonZeroU32;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use steward_domain::action::plan::ActionId;
use steward_domain::steward::guard::parse_retry_after;
use steward_domain::tracker::{EXTERNAL_SOURCE, TrackerId, TrackerIssue};

/// Longest time from connecting to the last byte: 10 s, so that a delivery of some requests ends within its time.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Largest body that is read: 1 MiB. A hundred comments without their texts have a few kilobytes.
const MAX_BODY_BYTES: usize = 1024 * 1024;
/// Requests a minute: 50. With [`BURST`] that allows 60 in any minute.
const PER_MINUTE: NonZeroU32 = NonZeroU32::new(50).expect("50 is not zero");
const BURST: NonZeroU32 = NonZeroU32::new(10).expect("10 is not zero");
/// Longest wait for the rate limit, in seconds: 10.
const MAX_RATE_WAIT: u64 = 10;
/// The wait after a 429 that names no time, in seconds: 60, because Plane counts by the minute.
const DEFAULT_WAIT: u64 = 60;
/// The longest wait that is accepted, in seconds: 1 h.
const LONGEST_WAIT: u64 = 3_600;
/// Most pages of comments that are searched for one of ours: 10, which is 1,000 comments, the newest first.
const MAX_PAGES: usize = 10;
/// Longest excerpt of a response in the log, in characters: 200.
const MAX_EXCERPT_CHARS: usize = 200;

/// Why a call failed. The texts are ours and hold nothing of the response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PlaneError {
    /// Nothing may be sent for this many seconds.
    Wait(u64),
    /// An earlier request may still be running at the tracker for this many seconds.
    Unsure(u64),
    /// The failure may pass by itself.
    Passing(String),
    /// A person must do something.
    Lasting(String),
    /// The issue, project or comment does not exist.
    Missing,
    /// The request was refused with this status.
    Refused(u16),
}

/// The result of a search for our comment.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum CommentSearch {
    Found(TrackerId),
    Nothing,
    /// There are more comments than are searched.
    TooMany,
}

/// A client for one workspace of Plane.
#[derive(Debug)]
pub struct PlaneClient {
    config: TrackerConfig,
    endpoint: Url,
    key: Secret,
    client: Client,
    rate_limiter: DefaultDirectRateLimiter,
    /// Nothing is sent before this time.
    quiet_until: Mutex<Option<Instant>>,
}

impl PlaneClient {
    /// Reads the key and builds the HTTP client. Sends nothing.
    ///
    /// # Errors
    /// A message that names the setting and the fix, never the key.
    pub fn new(config: &TrackerConfig) -> Result<Self, String> {
        let (endpoint, key) = (config.endpoint_url()?, config.read_key()?);
        let unusable = "the tracker's key has characters that cannot be sent, such as a line break: set it again";
        let mut value = HeaderValue::from_str(key.expose()).map_err(|_| unusable)?;
        value.set_sensitive(true);
        // This fails if a provider is installed already, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = Client::builder()
            .default_headers(HeaderMap::from_iter([(HeaderName::from_static("x-api-key"), value)]))
            .user_agent(concat!("steward/", env!("CARGO_PKG_VERSION")))
            .timeout(TIMEOUT)
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .pool_max_idle_per_host(0)
            .no_proxy()
            .build()
            .map_err(|e| format!("failed to set up the tracker's HTTP client: {}", e.without_url()))?;
        let rate_limiter = RateLimiter::direct(Quota::per_minute(PER_MINUTE).allow_burst(BURST));
        Ok(Self { config: config.clone(), endpoint, key, client, rate_limiter, quiet_until: Mutex::default() })
    }

    /// Checks that the key is accepted, and that it may read the default project if one is set.
    ///
    /// # Errors
    /// A message that names the failure and the fix.
    pub async fn check_access(&self) -> Result<(), String> {
        let checked = match &self.config.project {
            Some(project) => self.read_project_states(project).await.map(drop),
            None => self.send_checked(Method::GET, &["users", "me"], &[], None).await.map(drop),
        };
        checked.map_err(|error| self.describe_error(&error))
    }

    /// Reads the issue's state; `None` if it has none.
    pub(super) async fn read_issue_state(&self, issue: &TrackerIssue) -> Result<Option<TrackerId>, PlaneError> {
        let path = self.issue_path(issue, &[]);
        let response = self.send_checked(Method::GET, &path, &[("fields", "id,state")], None).await?;
        Ok(self.read_json::<WorkItem>(response).await?.state)
    }

    /// Reads the states of a project.
    pub(super) async fn read_project_states(&self, project: &TrackerId) -> Result<ProjectStates, PlaneError> {
        let path = ["workspaces", &self.config.workspace, "projects", project.as_str(), "states"];
        let response = self.send_checked(Method::GET, &path, &[], None).await?;
        Ok(ProjectStates(self.read_json::<PlanePage<PlaneState>>(response).await?.results))
    }

    /// Moves an issue to another state.
    pub(super) async fn move_issue(&self, issue: &TrackerIssue, state: &TrackerId) -> Result<(), PlaneError> {
        let body = json!({"state": state});
        self.send_checked(Method::PATCH, &self.issue_path(issue, &[]), &[], Some(body)).await.map(drop)
    }

    /// Comments on an issue, once for an action: a second call finds the comment of the first.
    pub(super) async fn post_comment(
        &self,
        issue: &TrackerIssue,
        of: &ActionId,
        html: &str,
    ) -> Result<TrackerId, PlaneError> {
        let body = json!({"comment_html": html, "external_source": EXTERNAL_SOURCE, "external_id": of});
        let path = self.issue_path(issue, &["comments"]);
        let response = self.send_request(Method::POST, &path, &[], Some(body)).await?;
        let exists = response.status() == StatusCode::CONFLICT;
        let response = if exists { response } else { self.check_status(response).await? };
        let comment_id = self.read_json::<CreatedComment>(response).await?.id;
        if !exists {
            return Ok(comment_id);
        }
        // The id is unique in the whole project: another vault may have used it on another issue.
        match self.find_comment(issue, of).await? {
            CommentSearch::Found(comment) => Ok(comment),
            CommentSearch::TooMany => Ok(comment_id),
            CommentSearch::Nothing => Err(PlaneError::Lasting(format!(
                "has the comment of action {of} on another issue of this project: another vault shares the project, \
                 so comment on this issue by hand, or give each vault a project of its own"
            ))),
        }
    }

    /// Searches the comment of an action on its issue, the newest 1,000 comments at most.
    pub(super) async fn find_comment(&self, issue: &TrackerIssue, of: &ActionId) -> Result<CommentSearch, PlaneError> {
        let path = self.issue_path(issue, &["comments"]);
        let mut cursor = String::from("100:0:0");
        for _ in 0..MAX_PAGES {
            let query = [("fields", "id,external_source,external_id"), ("per_page", "100"), ("cursor", &cursor)];
            let page: PlanePage<PlaneComment> =
                self.read_json(self.send_checked(Method::GET, &path, &query, None).await?).await?;
            let ours = |c: &&PlaneComment| {
                c.external_source.as_deref() == Some(EXTERNAL_SOURCE) && c.external_id.as_deref() == Some(of.as_str())
            };
            if let Some(comment) = page.results.iter().find(ours) {
                return Ok(CommentSearch::Found(comment.id.clone()));
            }
            match page.next_cursor.filter(|_| page.next_page_results) {
                Some(next) => cursor = next,
                None => return Ok(CommentSearch::Nothing),
            }
        }
        Ok(CommentSearch::TooMany)
    }

    /// Removes a comment. A comment that is already gone is no error.
    pub(super) async fn remove_comment(&self, issue: &TrackerIssue, comment: &TrackerId) -> Result<(), PlaneError> {
        let path = self.issue_path(issue, &["comments", comment.as_str()]);
        match self.send_checked(Method::DELETE, &path, &[], None).await {
            Ok(_) | Err(PlaneError::Missing) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Describes an error for a person.
    pub(super) fn describe_error(&self, error: &PlaneError) -> String {
        let at = &self.config.base_url;
        match error {
            PlaneError::Wait(seconds) => format!("{at} asks Steward to wait {seconds} s"),
            PlaneError::Unsure(seconds) => {
                format!("{at} may still be creating the comment; Steward checks again in {seconds} s")
            }
            PlaneError::Passing(why) | PlaneError::Lasting(why) => format!("{at} {why}"),
            PlaneError::Missing => {
                format!("{at} has no such issue or project (404): check `plane_issue_id`, project and workspace")
            }
            PlaneError::Refused(code @ (401 | 403)) => {
                format!(
                    "{at} refused the key or its rights ({code}): check the key, and that its owner is in the project"
                )
            }
            PlaneError::Refused(code) => format!("{at} refused the request ({code}); the log has the response"),
        }
    }

    fn issue_path<'a>(&'a self, issue: &'a TrackerIssue, more: &[&'a str]) -> Vec<&'a str> {
        let workspace = self.config.workspace.as_str();
        let issue = ["workspaces", workspace, "projects", issue.project.as_str(), "work-items", issue.issue.as_str()];
        issue.into_iter().chain(more.iter().copied()).collect()
    }

    /// Sends one request, and fails unless its response is a success.
    async fn send_checked(
        &self,
        method: Method,
        path: &[&str],
        query: &[(&str, &str)],
        body: Option<Value>,
    ) -> Result<Response, PlaneError> {
        let response = self.send_request(method, path, query, body).await?;
        self.check_status(response).await
    }

    async fn send_request(
        &self,
        method: Method,
        path: &[&str],
        query: &[(&str, &str)],
        body: Option<Value>,
    ) -> Result<Response, PlaneError> {
        self.wait_for_turn().await?;
        let mut url = self.endpoint.clone();
        url.path_segments_mut()
            .map_err(|()| PlaneError::Lasting("is not a usable address".into()))?
            .pop_if_empty()
            .extend(["api", "v1"])
            .extend(path)
            .push("");
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        let mut request = self.client.request(method, url);
        if let Some(body) = body {
            request = request.header(reqwest::header::CONTENT_TYPE, "application/json").body(body.to_string());
        }
        let response = request.send().await.map_err(|e| map_transport_error(&e))?;
        self.record_rate_limit(response.headers(), response.status());
        Ok(response)
    }

    /// Waits for the rate limit, for a limited time.
    async fn wait_for_turn(&self) -> Result<(), PlaneError> {
        if let Some(seconds) = self.quiet_seconds() {
            return Err(PlaneError::Wait(seconds));
        }
        let ready = tokio::time::timeout(Duration::from_secs(MAX_RATE_WAIT), self.rate_limiter.until_ready());
        ready.await.map_err(|_| PlaneError::Wait(MAX_RATE_WAIT))
    }

    /// For how many seconds nothing may be sent; `None` if requests may be sent.
    pub(super) fn quiet_seconds(&self) -> Option<u64> {
        let until = *self.quiet_until.lock().unwrap_or_else(PoisonError::into_inner);
        let left = until?.checked_duration_since(Instant::now())?;
        Some(left.as_secs() + 1)
    }

    /// Records for how long the response asks to send nothing.
    fn record_rate_limit(&self, headers: &HeaderMap, status: StatusCode) {
        let header = |name: &str| headers.get(name).and_then(|v| v.to_str().ok()).map(str::trim);
        let now = Utc::now();
        let seconds = if status == StatusCode::TOO_MANY_REQUESTS {
            let retry_after = header(RETRY_AFTER.as_str()).and_then(|text| parse_retry_after(text, now));
            retry_after.map_or(DEFAULT_WAIT, |wait| wait.as_secs().saturating_add(1))
        } else if header("x-ratelimit-remaining") == Some("0") {
            let reset = header("x-ratelimit-reset").and_then(|text| text.parse::<i64>().ok());
            reset.and_then(|at| u64::try_from(at - now.timestamp()).ok()).unwrap_or(DEFAULT_WAIT).min(DEFAULT_WAIT)
        } else {
            return;
        };
        let until = Instant::now() + Duration::from_secs(seconds.min(LONGEST_WAIT));
        *self.quiet_until.lock().unwrap_or_else(PoisonError::into_inner) = Some(until);
    }

    async fn check_status(&self, response: Response) -> Result<Response, PlaneError> {
        let status = response.status();
        let error = match status.as_u16() {
            200..=299 => return Ok(response),
            429 => return Err(PlaneError::Wait(self.quiet_seconds().unwrap_or(DEFAULT_WAIT))),
            404 => PlaneError::Missing,
            300..=399 => PlaneError::Lasting("redirects: set tracker.base_url to its final address".into()),
            code @ 400..=499 => PlaneError::Refused(code),
            code => PlaneError::Passing(format!("failed ({code})")),
        };
        let body = self.read_body(response).await.unwrap_or_default();
        tracing::warn!(
            status = status.as_u16(),
            response = self.redact_excerpt(&body),
            "the tracker refused a request"
        );
        Err(error)
    }

    async fn read_json<T: DeserializeOwned>(&self, response: Response) -> Result<T, PlaneError> {
        let body = self.read_body(response).await?;
        serde_json::from_slice(&body).map_err(|_| {
            tracing::warn!(response = self.redact_excerpt(&body), "the tracker's answer is not in its published form");
            PlaneError::Passing("sent an answer that is not in Plane's published form".into())
        })
    }

    async fn read_body(&self, mut response: Response) -> Result<Vec<u8>, PlaneError> {
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|e| map_transport_error(&e))? {
            if body.len() + chunk.len() > MAX_BODY_BYTES {
                return Err(PlaneError::Passing(format!("sent more than {MAX_BODY_BYTES} bytes")));
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    }

    /// The beginning of a response, on one line and without our key.
    fn redact_excerpt(&self, body: &[u8]) -> String {
        let text = self.key.redact_from(&String::from_utf8_lossy(body));
        text.chars().take(MAX_EXCERPT_CHARS).flat_map(char::escape_debug).collect()
    }
}

fn map_transport_error(error: &reqwest::Error) -> PlaneError {
    PlaneError::Passing(if error.is_timeout() {
        format!("did not answer within {} s", TIMEOUT.as_secs())
    } else if error.is_connect() {
        "cannot be reached".into()
    } else {
        "broke off before its answer was complete".into()
    })
}
