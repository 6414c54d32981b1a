//! The dashboard: HTML pages that work without script, one file per page.
//!
//! A page reads values, formats them and fills a template. Templates escape every value. Only a form that carries the
//! key of its session can change something. After a form is sent, the browser returns to the page it came from, which
//! shows the result.

mod action;
mod assets;
mod batch;
mod card;
pub(crate) mod charts;
mod click;
mod done;
mod edit;
mod fleet;
mod form;
mod frame;
mod live;
mod login;
mod matters;
mod message;
mod moment;
mod moved;
mod note;
mod record;
mod search;
mod snooze;
mod today;
mod trust;
mod undo;
mod undo_batch;
mod wiki;

pub(crate) use assets::serve_asset;

use crate::access::admission::{limit_open_routes, require_scope};
use crate::access::{AccessScope, AuthenticatedCaller};
use crate::api::problem::ProblemDetails;
use crate::http::app::SharedAppState;
use crate::views::FactsError;
use askama::Template;
use assets::AssetUrls;
use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use frame::PageFrame;
use std::sync::Arc;
use steward_domain::record::url::encode_path;
use steward_vault::index::IndexError;

/// Builds the routes of all pages, each with the scope it needs.
pub(crate) fn build_router(app: &SharedAppState) -> Router<SharedAppState> {
    let read_routes = Router::new()
        .route("/", get(today::show_today))
        .route("/actions/{id}", get(action::show_action))
        .route("/actions/{id}/undo", get(undo::show_undo))
        .route("/matters", get(matters::show_matters))
        .route("/records/{*path}", get(record::show_record))
        .route("/search", get(search::show_search))
        .route("/fleet", get(fleet::show_fleet))
        .route("/trust", get(trust::show_trust))
        .route("/charts", get(charts::show_charts))
        .route("/batch", get(batch::show_batch))
        .route("/batch/undo", get(undo_batch::show_batch_undo))
        .route("/wikis", get(wiki::show_wikis))
        .route("/wikis/{wiki}", get(wiki::show_wiki))
        .route("/wikis/{wiki}/runs/{run}", get(wiki::show_run))
        .route("/wikis/{wiki}/pages/{page}", get(wiki::show_page))
        .route("/wikis/{wiki}/answers/{answer}", get(wiki::show_answer))
        .route("/live", get(live::stream_live_updates));
    let act_routes = Router::new()
        .route("/actions/{id}/resolve", post(click::resolve_action))
        .route("/wikis/{wiki}/ask", post(wiki::ask_wiki))
        .route("/wikis/{wiki}/answers/{answer}/save", post(wiki::save_answer))
        .route("/wikis/{wiki}/runs/{run}", post(wiki::resolve_run))
        .route("/snooze", post(snooze::snooze_note))
        .route("/stop", post(click::stop_vault))
        .route("/check", post(click::check_matter))
        .route("/moved", post(moved::say_moved))
        .route("/batch", post(batch::resolve_batch));
    let operate_routes =
        Router::new().route("/resume", post(click::resume_vault)).route("/trust", post(trust::set_ceiling));
    let login_routes = Router::new()
        .route("/login", get(login::show_login).post(login::log_in))
        .route("/logout", post(login::log_out));
    let asset_routes = Router::new().route("/assets/{name}", get(assets::serve_asset));
    let framed =
        |router: Router<SharedAppState>| router.route_layer(from_fn_with_state(Arc::clone(app), frame_refusals));
    require_scope(framed(read_routes), app, AccessScope::Read)
        .merge(require_scope(framed(act_routes), app, AccessScope::Act))
        .merge(require_scope(framed(operate_routes), app, AccessScope::Operate))
        .merge(login_routes)
        .merge(limit_open_routes(asset_routes, app))
}

/// A page that could not be built, or a form that was refused.
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

/// A refusal that `frame_refusals` shows inside the page frame.
#[derive(Clone)]
struct RefusalNotice {
    title: &'static str,
    text: String,
    back: String,
}

#[derive(Template)]
#[template(path = "refusal.html")]
struct RefusalPage {
    page: PageFrame,
    notice: RefusalNotice,
}

/// Puts a refusal into the page frame if the caller is known. A person who was refused may want to stop the vault.
pub(crate) async fn frame_refusals(State(app): State<SharedAppState>, request: Request, next: Next) -> Response {
    let (caller, uri) = (request.extensions().get::<AuthenticatedCaller>().cloned(), request.uri().clone());
    let mut response = next.run(request).await;
    let (Some(notice), Some(caller)) = (response.extensions_mut().remove::<RefusalNotice>(), caller) else {
        return response;
    };
    // If the frame itself cannot be loaded, the bare refusal is sent.
    let Ok(page) = PageFrame::load(&app, &caller, "", &uri).await else { return response };
    let mut framed = render_page(&RefusalPage { page: page.with_path("/"), notice });
    *framed.status_mut() = response.status();
    if let Some(after) = response.headers_mut().remove(header::RETRY_AFTER) {
        framed.headers_mut().insert(header::RETRY_AFTER, after);
    }
    framed
}

/// A page without the frame: a title and one paragraph.
#[derive(Template)]
#[template(path = "bare.html")]
struct BarePage<'a> {
    assets: &'static AssetUrls,
    title: &'a str,
    text: &'a str,
    /// The login link's key; the page's button sends it.
    link: Option<&'a str>,
    back: Option<&'a str>,
}

/// Renders a refusal as a page with its status.
pub(crate) fn render_refusal(problem: &ProblemDetails, back: Option<String>) -> Response {
    let status = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let is_unknown = status == StatusCode::UNAUTHORIZED;
    let is_starting = status == StatusCode::SERVICE_UNAVAILABLE && problem.retry_after.is_some();
    let (title, text) = if is_unknown {
        ("Log in", "Open the link that `steward up` printed, or run `steward login` for a new one.")
    } else if is_starting {
        ("Please wait", problem.detail.as_str())
    } else {
        (status_title(status), problem.detail.as_str())
    };
    // A browser that follows a link from another site sends no cookie. From this page it does, so "Try again" works.
    let back = back.as_deref().or(Some(if is_unknown || is_starting { "" } else { "/" }));
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
        StatusCode::NOT_FOUND => "Not found",
        StatusCode::PAYLOAD_TOO_LARGE => "Too large",
        StatusCode::CONFLICT => "Not done",
        StatusCode::GONE => "Too late",
        StatusCode::BAD_GATEWAY => "Partly done",
        StatusCode::GATEWAY_TIMEOUT => "No answer yet",
        StatusCode::TOO_MANY_REQUESTS => "Please wait",
        StatusCode::SERVICE_UNAVAILABLE | StatusCode::INTERNAL_SERVER_ERROR => "Something went wrong",
        _ => "Refused",
    }
}

fn render_page(page: &impl Template) -> Response {
    match page.render() {
        Ok(html) => {
            ([(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"))], html).into_response()
        }
        Err(e) => {
            tracing::error!(error = %e, "failed to render a page");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

/// Builds a URL with a query. Empty parameters are left out.
/// The address of a note's page.
fn build_record_url(path: impl std::fmt::Display) -> String {
    format!("/records/{}", encode_path(&path.to_string()))
}

fn build_url(path: &str, query: &[(&str, &str)]) -> String {
    let query: Vec<_> = query.iter().filter(|(_, value)| !value.is_empty()).collect();
    format!("{path}?{}", serde_urlencoded::to_string(query).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    /// Names of template values that hold foreign text, or paths that somebody else may have named.
    const FOREIGN_VALUES: [&str; 36] = [
        "about",
        "after",
        "before",
        "by",
        "caller",
        "confidence",
        "detail",
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
        "outcome",
        "path",
        "problem",
        "provider",
        "quote",
        "reason",
        "reasoning",
        "record",
        "refused",
        "refuses",
        "resolver",
        "signal",
        "snippet",
        "source",
        "subject",
        "text",
        "words",
        "written",
    ];

    /// The expressions that a template shows as text outside `<bdi>`.
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
    fn foreign_text_is_always_isolated_by_bdi() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("templates");
        let mut unprotected = Vec::new();
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let bare = shown_bare(&std::fs::read_to_string(&path).unwrap());
            let is_foreign = |shown: &String| {
                // The names of the rate guard's windows are Steward's own.
                shown != "window.name" && FOREIGN_VALUES.contains(&shown.rsplit('.').next().unwrap_or_default())
            };
            unprotected.extend(bare.into_iter().filter(is_foreign).map(|shown| format!("{}: {shown}", path.display())));
        }
        assert_eq!(unprotected, Vec::<String>::new(), "to be shown within <bdi>");
        assert_eq!(shown_bare("<p title=\"{{ name }}\"><bdi>{{ name }}</bdi> {{ quote }}</p>"), ["quote"]);
    }
}
