//! The dashboard: HTML that needs no script, one file a page.
//!
//! A page gathers facts, gives them words, and fills a template; templates escape every value. What changes anything is a
//! form with the key of its session. After an answer the page that was left comes again, and says what was done.

mod action;
mod assets;
mod batch;
mod card;
pub(crate) mod charts;
mod click;
mod edit;
mod fleet;
mod form;
mod live;
mod login;
mod matters;
mod record;
mod search;
mod today;
mod undo;
mod undo_batch;

pub(crate) use assets::serve_asset;

use crate::access::admission::{limit_open_routes, require_scope};
use crate::access::{AccessScope, AuthenticatedCaller, CallerProof};
use crate::api::problem::ProblemDetails;
use crate::http::app::SharedAppState;
use crate::views::FactsError;
use askama::Template;
use assets::AssetUrls;
use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, Uri, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use chrono::{DateTime, Utc};
use std::sync::Arc;
use steward_vault::gates::stop;
use steward_vault::index::{ActionFilter, IndexError};

/// Every page with what guards it.
pub(crate) fn build_router(app: &SharedAppState) -> Router<SharedAppState> {
    let see = Router::new()
        .route("/", get(today::show_today))
        .route("/actions/{id}", get(action::show_action))
        .route("/actions/{id}/undo", get(undo::show_undo))
        .route("/matters", get(matters::show_matters))
        .route("/records/{folder}/{file}", get(record::show_record))
        .route("/search", get(search::show_search))
        .route("/fleet", get(fleet::show_fleet))
        .route("/charts", get(charts::show_charts))
        .route("/together", get(batch::show_batch))
        .route("/together/undo", get(undo_batch::show_batch_undo))
        .route("/live", get(live::stream_live_updates));
    let answer = Router::new()
        .route("/actions/{id}/answer", post(click::resolve_action))
        .route("/stop", post(click::stop_fleet))
        .route("/together", post(batch::resolve_batch));
    let operate = Router::new().route("/resume", post(click::resume_fleet));
    let door = Router::new()
        .route("/login", get(login::show_login).post(login::log_in))
        .route("/logout", post(login::log_out));
    let assets = Router::new().route("/assets/{name}", get(assets::serve_asset));
    let headed =
        |router: Router<SharedAppState>| router.route_layer(from_fn_with_state(Arc::clone(app), frame_refusals));
    require_scope(headed(see), app, AccessScope::Read)
        .merge(require_scope(headed(answer), app, AccessScope::Act))
        .merge(require_scope(headed(operate), app, AccessScope::Operate))
        .merge(door)
        .merge(limit_open_routes(assets, app))
}

/// What every page shows around its own.
pub(crate) struct PageFrame {
    assets: &'static AssetUrls,
    /// Which of the pages in the head this is.
    at: &'static str,
    /// Where it is, to come back to.
    path: String,
    caller: String,
    form_key: String,
    may_act: bool,
    may_operate: bool,
    stop: Option<StopNotice>,
    mode: &'static str,
    waiting: u64,
    vault: String,
    /// The Temporal UI at this namespace's schedules.
    temporal: Option<String>,
    /// How far the index had come.
    seen: u64,
}

impl PageFrame {
    async fn load(
        app: &SharedAppState,
        caller: &AuthenticatedCaller,
        at: &'static str,
        uri: &Uri,
    ) -> Result<Self, PageError> {
        let form_key = match &caller.proof {
            CallerProof::Session { form_key } => form_key.clone(),
            CallerProof::Token => String::new(),
        };
        // The beat is half a second late, and what the page itself shows is nothing new.
        let newest = app.index.actions_page(&ActionFilter::default(), None, 1).await?;
        let newest = newest.rows.first().map_or(0, |row| row.seq);
        let settings = app.read_settings();
        Ok(Self {
            assets: assets::asset_urls(),
            at,
            path: uri.path_and_query().map_or("/", |path| path.as_str()).to_owned(),
            caller: caller.name.clone(),
            form_key,
            may_act: caller.scope >= AccessScope::Act,
            may_operate: caller.scope >= AccessScope::Operate,
            stop: stop::read_stop(&app.root).map(StopNotice::from_stop),
            mode: settings.policy.mode.as_str(),
            waiting: app.index.count_pending_actions().await?,
            vault: app.root.path().display().to_string(),
            temporal: settings.temporal_ui.map(|ui| format!("{ui}/schedules")),
            seen: newest.max(app.beat.borrow().seq),
        })
    }
}

/// Who stopped everything, when, and why.
struct StopNotice {
    by: String,
    at: String,
    reason: Option<String>,
}

impl StopNotice {
    fn from_stop(stop: stop::FleetStop) -> Self {
        Self { by: stop.by, at: format_written_moment(&stop.at), reason: stop.reason }
    }
}

impl PageFrame {
    fn live_url(&self) -> String {
        live::build_live_url(self)
    }

    /// The same, but what is done next leads to this page.
    fn with_path(self, path: &str) -> Self {
        Self { path: path.to_owned(), ..self }
    }
}

/// A page that could not be made, or a click that was refused.
pub(crate) struct PageError(ProblemDetails);

impl From<ProblemDetails> for PageError {
    fn from(problem: ProblemDetails) -> Self {
        Self(problem)
    }
}

impl From<FactsError> for PageError {
    fn from(e: FactsError) -> Self {
        Self(e.into())
    }
}

impl From<IndexError> for PageError {
    fn from(e: IndexError) -> Self {
        Self(FactsError::from(e).into())
    }
}

impl IntoResponse for PageError {
    fn into_response(self) -> Response {
        render_refusal(&self.0, None)
    }
}

/// What could not be done, to be told with everything that stands around a page.
#[derive(Clone)]
struct RefusalNotice {
    title: &'static str,
    text: String,
    back: String,
}

#[derive(Template)]
#[template(path = "told.html")]
struct RefusalPage {
    page: PageFrame,
    told: RefusalNotice,
}

/// Gives a refusal the head of every page, where who asked is known: whom something is refused may want to stop it all.
async fn frame_refusals(State(app): State<SharedAppState>, request: Request, next: Next) -> Response {
    let (caller, uri) = (request.extensions().get::<AuthenticatedCaller>().cloned(), request.uri().clone());
    let mut response = next.run(request).await;
    let (Some(told), Some(caller)) = (response.extensions_mut().remove::<RefusalNotice>(), caller) else {
        return response;
    };
    // What keeps a page from being made is told without it.
    let Ok(page) = PageFrame::load(&app, &caller, "", &uri).await else { return response };
    let mut whole = render_page(&RefusalPage { page: page.with_path("/"), told });
    *whole.status_mut() = response.status();
    if let Some(after) = response.headers_mut().remove(header::RETRY_AFTER) {
        whole.headers_mut().insert(header::RETRY_AFTER, after);
    }
    whole
}

/// A page with nothing but a few words.
#[derive(Template)]
#[template(path = "bare.html")]
struct BarePage<'a> {
    assets: &'static AssetUrls,
    title: &'a str,
    text: &'a str,
    /// What logs in when it is sent.
    link: Option<&'a str>,
    back: Option<&'a str>,
}

/// What could not be done, as a page with its status.
pub(crate) fn render_refusal(problem: &ProblemDetails, back: Option<String>) -> Response {
    let status = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let unknown = status == StatusCode::UNAUTHORIZED;
    let starts = status == StatusCode::SERVICE_UNAVAILABLE && problem.retry_after.is_some();
    let (title, text) = if unknown {
        ("Log in", "Open the address that `steward up` printed, or let `steward login` print another.")
    } else if starts {
        ("A moment, please", problem.detail.as_str())
    } else {
        (status_title(status), problem.detail.as_str())
    };
    // Whoever comes from a page of others brings no cookie; from this one they do.
    let back = back.as_deref().or(Some(if unknown || starts { "" } else { "/" }));
    let mut response = render_page(&BarePage { assets: assets::asset_urls(), title, text, link: None, back });
    let back = back.filter(|back| !back.is_empty()).unwrap_or("/").to_owned();
    response.extensions_mut().insert(RefusalNotice { title, text: text.to_owned(), back });
    *response.status_mut() = status;
    if let Some(seconds) = problem.retry_after {
        response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    }
    response
}

fn status_title(status: StatusCode) -> &'static str {
    match status {
        StatusCode::NOT_FOUND => "There is nothing here",
        StatusCode::PAYLOAD_TOO_LARGE => "Too much",
        StatusCode::CONFLICT => "Not done",
        StatusCode::GONE => "Too late",
        StatusCode::BAD_GATEWAY => "Done in part",
        StatusCode::GATEWAY_TIMEOUT => "No answer yet",
        StatusCode::TOO_MANY_REQUESTS => "A moment, please",
        StatusCode::SERVICE_UNAVAILABLE | StatusCode::INTERNAL_SERVER_ERROR => "That did not work",
        _ => "Refused",
    }
}

fn render_page(page: &impl Template) -> Response {
    match page.render() {
        Ok(html) => {
            ([(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"))], html).into_response()
        }
        Err(e) => {
            tracing::error!(error = %e, "failed to draw a page");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

/// An address with what it asks for; what is empty is left out.
fn build_url(path: &str, asked: &[(&str, &str)]) -> String {
    let asked: Vec<_> = asked.iter().filter(|(_, value)| !value.is_empty()).collect();
    format!("{path}?{}", serde_urlencoded::to_string(asked).unwrap_or_default())
}

/// How long ago, as a person says it.
fn format_age(at: DateTime<Utc>, now: DateTime<Utc>) -> String {
    let seconds = (now - at).num_seconds();
    let span = |seconds: i64| match seconds {
        ..90 => format!("{seconds} s"),
        90..5_400 => format!("{} min", (seconds + 30) / 60),
        5_400..129_600 => format!("{} h", (seconds + 1_800) / 3_600),
        _ => format!("{} days", (seconds + 43_200) / 86_400),
    };
    if seconds < 0 { format!("in {}", span(-seconds)) } else { format!("{} ago", span(seconds)) }
}

/// A moment as a person writes it, in UTC, to the minute.
fn format_moment(at: DateTime<Utc>) -> String {
    at.format("%-d %b %Y, %H:%M UTC").to_string()
}

/// A moment of a file; what a person wrote into it stands as it is.
fn format_written_moment(at: &str) -> String {
    steward_domain::time::parse(at).map_or_else(|| at.to_owned(), format_moment)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What pages call the words of others by, and paths, which others may have named.
    const OF_OTHERS: [&str; 34] = [
        "about",
        "after",
        "before",
        "by",
        "caller",
        "done",
        "error",
        "field",
        "follower",
        "found",
        "hint",
        "matter",
        "model",
        "name",
        "needed",
        "now",
        "on",
        "ours",
        "outcome",
        "path",
        "problem",
        "provider",
        "quote",
        "reason",
        "reasoning",
        "record",
        "refused",
        "said",
        "says",
        "signal",
        "snippet",
        "source",
        "what",
        "words",
    ];

    /// The expressions that a template shows between its tags and outside `<bdi>`.
    fn shown_bare(template: &str) -> Vec<String> {
        let mut bare = Vec::new();
        for (at, _) in template.match_indices("{{ ") {
            let (before, after) = template.split_at(at);
            let in_a_tag = before.rfind('<') > before.rfind('>');
            let is_alone = before.rfind("<option").or(before.rfind("{% block title"))
                > before.rfind("</option>").or(before.rfind("{% endblock"));
            if !in_a_tag && !is_alone && !before.ends_with("<bdi>") {
                bare.push(after[3..].split(" }}").next().unwrap().to_owned());
            }
        }
        bare
    }

    #[test]
    fn words_of_others_turn_no_words_around_them() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("templates");
        let mut faults = Vec::new();
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let bare = shown_bare(&std::fs::read_to_string(&path).unwrap());
            let is_of_others = |shown: &String| {
                // The limits of the rate guard are called by names of ours.
                shown != "window.name" && OF_OTHERS.contains(&shown.rsplit('.').next().unwrap_or_default())
            };
            faults.extend(bare.into_iter().filter(is_of_others).map(|shown| format!("{}: {shown}", path.display())));
        }
        assert_eq!(faults, Vec::<String>::new(), "to be shown within <bdi>");
        assert_eq!(shown_bare("<p title=\"{{ name }}\"><bdi>{{ name }}</bdi> {{ quote }}</p>"), ["quote"]);
    }

    #[test]
    fn times_are_told_in_the_unit_that_a_person_would_take() {
        let now = Utc::now();
        let told = |seconds| format_age(now - chrono::TimeDelta::seconds(seconds), now);
        assert_eq!(
            [told(5), told(600), told(7_200), told(172_800)],
            ["5 s ago", "10 min ago", "2 h ago", "2 days ago"]
        );
        assert_eq!(told(-600), "in 10 min");
        let at = steward_domain::time::parse("2026-11-03T09:05:59.123Z").unwrap();
        assert_eq!(format_moment(at), "3 Nov 2026, 09:05 UTC");
    }
}
