//! `GET wikis/…` and `POST wikis/{wiki}/runs/{run}/reject|revert`.
//!
//! They read files and audit records, as the pages do. A run is not approved here: that is a person's click. A change is
//! requested from the process that holds the vault.

use super::problem::ProblemDetails;
use crate::access::AuthenticatedCaller;
use crate::http::app::SharedAppState;
use crate::views::wiki::{
    WikiHealth, WikiPageView, WikiRow, WikiRunRow, WikiRunView, check_wiki_health, find_wiki_page, find_wiki_run,
    list_wiki_rows, list_wiki_runs, read_wikis,
};
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::{Extension, Json};
use chrono::Utc;
use serde::{Deserialize, Serialize};
use steward_domain::wiki::run::RunId;
use steward_vault::files::root::VaultRoot;
use steward_vault::wiki::state::{ReadWikiError, find_wiki_folder};
use steward_workflows::{WikiRequest, WikiRunInput, WikiRunOutput};
use utoipa::{IntoParams, ToSchema};

/// The runs of one response.
const RUNS: usize = 200;

/// The wikis of the vault.
#[derive(Serialize, ToSchema)]
pub(crate) struct Wikis {
    pub(crate) wikis: Vec<WikiRow>,
}

/// The newest runs of a wiki first, at most 200 of those that were committed.
#[derive(Serialize, ToSchema)]
pub(crate) struct WikiRuns {
    pub(crate) runs: Vec<WikiRunRow>,
}

/// The parameters of a rollback.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct RevertQuery {
    /// Leave pages as they are that were edited where the run changed them.
    #[serde(default)]
    keep_edited: bool,
}

/// A change of a run.
#[derive(Serialize, ToSchema)]
pub(crate) struct WikiReceipt {
    /// The audit record; absent if nothing in the wiki changed.
    pub(crate) record: Option<String>,
    /// What stays, and where edited files went. Untrusted.
    pub(crate) notes: Vec<String>,
}

type NamePath<T> = Result<Path<T>, PathRejection>;

/// Lists the wikis.
#[utoipa::path(
    get, path = "/api/v1/steward/wikis", tag = "wikis",
    responses(
        (status = 200, description = "The wikis", body = Wikis),
        (status = 401, description = "No token, or an unknown one", body = ProblemDetails, content_type = "application/problem+json"),
        (status = 421, description = "Unknown host name", body = ProblemDetails, content_type = "application/problem+json"),
        (status = 429, description = "Too many requests", body = ProblemDetails, content_type = "application/problem+json"),
        (status = 500, description = "A file cannot be read", body = ProblemDetails, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn wikis(State(app): State<SharedAppState>) -> Result<Json<Wikis>, ProblemDetails> {
    let wikis = read_blocking(&app, |root| list_wiki_rows(&root)).await?;
    Ok(Json(Wikis { wikis }))
}

macro_rules! read_endpoint {
    ($name:ident, $path:literal, ($($param:literal : $about:literal),+), $args:ty, $body:ty, $summary:literal, $read:expr) => {
        #[doc = $summary]
        #[utoipa::path(
            get, path = $path, tag = "wikis",
            params($(($param = String, Path, description = $about)),+),
            responses(
                (status = 200, description = "Found", body = $body),
                (status = 400, description = "A name that is not text", body = ProblemDetails, content_type = "application/problem+json"),
                (status = 401, description = "No token, or an unknown one", body = ProblemDetails, content_type = "application/problem+json"),
                (status = 404, description = "There is none of this name", body = ProblemDetails, content_type = "application/problem+json"),
                (status = 421, description = "Unknown host name", body = ProblemDetails, content_type = "application/problem+json"),
                (status = 429, description = "Too many requests", body = ProblemDetails, content_type = "application/problem+json"),
                (status = 500, description = "A file cannot be read", body = ProblemDetails, content_type = "application/problem+json"),
            )
        )]
        pub(crate) async fn $name(
            State(app): State<SharedAppState>,
            names: NamePath<$args>,
        ) -> Result<Json<$body>, ProblemDetails> {
            let Path(names) = names.map_err(|e| ProblemDetails::new(e.status(), e.body_text()))?;
            let read: fn(VaultRoot, $args) -> Result<Option<$body>, ReadWikiError> = $read;
            let found = read_blocking(&app, move |root| read(root, names)).await?;
            found.map(Json).ok_or_else(|| not_found("there is none of this name"))
        }
    };
}

read_endpoint!(
    wiki_runs, "/api/v1/steward/wikis/{wiki}/runs", ("wiki": "The name of the wiki"), String, WikiRuns,
    "Lists the runs of a wiki, the newest first.",
    |root, wiki| {
        find_wiki_folder(&root, &wiki)?;
        Ok(Some(WikiRuns { runs: list_wiki_runs(&root, Some(&wiki), RUNS)? }))
    }
);
read_endpoint!(
    wiki_run, "/api/v1/steward/wikis/{wiki}/runs/{run}",
    ("wiki": "The name of the wiki", "run": "The whole name of the run, or the 8 characters at its end"),
    (String, String), WikiRunView, "Returns one run with everything that it changes.",
    |root, (wiki, run)| Ok(find_wiki_run(&root, &run)?.filter(|view| view.row.wiki == wiki))
);
read_endpoint!(
    wiki_page, "/api/v1/steward/wikis/{wiki}/pages/{page}",
    ("wiki": "The name of the wiki", "page": "The slug of the page, or its file"),
    (String, String), WikiPageView, "Returns one page, each claim with the words of its source, compared at this moment.",
    |root, (wiki, page)| find_wiki_page(&root, &wiki, &page)
);
read_endpoint!(
    wiki_health, "/api/v1/steward/wikis/{wiki}/health", ("wiki": "The name of the wiki"), String, WikiHealth,
    "Checks a wiki without a model. It reads every page and every source.",
    |root, wiki| check_wiki_health(&root, &wiki, Utc::now()).map(Some)
);

/// The responses of a change, for the description.
#[derive(utoipa::IntoResponses)]
#[allow(dead_code, reason = "only its description is used")]
enum WikiChangeResponse {
    #[response(status = 200, description = "Done")]
    Done(WikiReceipt),
    #[response(status = 400, description = "Invalid parameter", content_type = "application/problem+json")]
    Invalid(ProblemDetails),
    #[response(status = 401, description = "No token, or an unknown one", content_type = "application/problem+json")]
    Unknown(ProblemDetails),
    #[response(status = 403, description = "The token's scope is `read`", content_type = "application/problem+json")]
    Scope(ProblemDetails),
    #[response(status = 404, description = "There is no such run", content_type = "application/problem+json")]
    Missing(ProblemDetails),
    #[response(
        status = 409,
        description = "It does not wait, was taken back already, or an edit is in the way",
        content_type = "application/problem+json"
    )]
    InTheWay(ProblemDetails),
    #[response(status = 421, description = "Unknown host name", content_type = "application/problem+json")]
    Host(ProblemDetails),
    #[response(status = 422, description = "Its record cannot be read", content_type = "application/problem+json")]
    Unreadable(ProblemDetails),
    #[response(status = 429, description = "Too many requests", content_type = "application/problem+json")]
    TooMany(ProblemDetails),
    #[response(status = 500, description = "The change failed", content_type = "application/problem+json")]
    Failed(ProblemDetails),
    #[response(
        status = 503,
        description = "The Temporal server gives no answer, or nothing is taken during a drain",
        content_type = "application/problem+json"
    )]
    Away(ProblemDetails),
    #[response(
        status = 504,
        description = "No outcome within a minute; it goes on as `workflow`",
        content_type = "application/problem+json"
    )]
    Late(ProblemDetails),
}

/// Ends a run that waits for a person.
#[utoipa::path(
    post, path = "/api/v1/steward/wikis/{wiki}/runs/{run}/reject", tag = "wikis",
    params(
        ("wiki" = String, Path, description = "The name of the wiki"),
        ("run" = String, Path, description = "The whole name of the run, or the 8 characters at its end"),
    ),
    responses(WikiChangeResponse)
)]
pub(crate) async fn reject_wiki_run(
    State(app): State<SharedAppState>,
    Extension(caller): Extension<AuthenticatedCaller>,
    names: NamePath<(String, String)>,
) -> Result<Json<WikiReceipt>, ProblemDetails> {
    change_run(&app, caller, names, |run| WikiRequest::Reject { run, reason: None }).await
}

/// Takes a committed run back, also below later ones.
#[utoipa::path(
    post, path = "/api/v1/steward/wikis/{wiki}/runs/{run}/revert", tag = "wikis",
    params(
        ("wiki" = String, Path, description = "The name of the wiki"),
        ("run" = String, Path, description = "The whole name of the run, or the 8 characters at its end"),
        RevertQuery,
    ),
    responses(WikiChangeResponse)
)]
pub(crate) async fn revert_wiki_run(
    State(app): State<SharedAppState>,
    Extension(caller): Extension<AuthenticatedCaller>,
    names: NamePath<(String, String)>,
    query: Result<Query<RevertQuery>, QueryRejection>,
) -> Result<Json<WikiReceipt>, ProblemDetails> {
    let Query(RevertQuery { keep_edited }) = query.map_err(|e| super::actions::bad_request(e.body_text()))?;
    change_run(&app, caller, names, |run| WikiRequest::Revert { run, keep_edited, reason: None }).await
}

async fn change_run(
    app: &SharedAppState,
    caller: AuthenticatedCaller,
    names: NamePath<(String, String)>,
    request: impl FnOnce(RunId) -> WikiRequest,
) -> Result<Json<WikiReceipt>, ProblemDetails> {
    let Path((wiki, name)) = names.map_err(|e| ProblemDetails::new(e.status(), e.body_text()))?;
    let found = read_blocking(app, move |root| find_wiki_run(&root, &name)).await?;
    let run = found.filter(|view| view.row.wiki == wiki).and_then(|view| view.row.run.parse().ok());
    let run = run.ok_or_else(|| not_found("there is no such run"))?;
    let input = WikiRunInput { wiki, by: caller.name, at: Utc::now(), request: request(run) };
    match app.resolution_client().request_wiki_run(input).await? {
        WikiRunOutput::Done { record, notes, .. } => {
            Ok(Json(WikiReceipt { record: record.map(|record| record.to_string()), notes }))
        }
        WikiRunOutput::Refused { status, message } => {
            Err(ProblemDetails::new(StatusCode::from_u16(status).unwrap_or(StatusCode::CONFLICT), message))
        }
    }
}

fn not_found(detail: &str) -> ProblemDetails {
    ProblemDetails::new(StatusCode::NOT_FOUND, detail)
}

/// Reads files of wikis on a blocking thread.
async fn read_blocking<T: Send + 'static>(
    app: &SharedAppState,
    read: impl FnOnce(VaultRoot) -> Result<T, ReadWikiError> + Send + 'static,
) -> Result<T, ProblemDetails> {
    read_wikis(app.views.root(), read).await.map_err(|e| match e {
        e @ ReadWikiError::Unknown { .. } => not_found(&e.to_string()),
        e => ProblemDetails::new(StatusCode::INTERNAL_SERVER_ERROR, e.to_string()),
    })
}
