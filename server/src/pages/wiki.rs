//! The pages of wikis: all of them, one with its runs and its health, one run with its diff, and one page with its quotes.
//!
//! A click approves, rejects or takes back a run. It asks the process that holds the vault, as the command does. The text of a
//! page is shown as plain text; nothing in it is followed.

mod answer;
mod click;

use super::moment::Moment;
use super::note::NoteLinks;
use super::{PageError, PageFrame, render_page};
use crate::access::AuthenticatedCaller;
use crate::api::problem::ProblemDetails;
use crate::http::app::{NO_SUCH_PAGE, SharedAppState};
use crate::views::FactsError;
use crate::views::wiki::{
    DiffSide, WikiHealth, WikiPageView, WikiRow, WikiRunRow, WikiRunView, check_wiki_health, find_wiki_page,
    find_wiki_run, list_wiki_pages, list_wiki_rows, list_wiki_runs, read_wiki_row, read_wikis, shorten_run,
};
use askama::Template;
use axum::Extension;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Query, State};
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use chrono::{DateTime, Utc};
use serde::Deserialize;
use steward_domain::wiki::query::{MAX_QUESTION, WikiAnswer};
use steward_domain::wiki::search::PageHit;
use steward_vault::files::root::VaultRoot;
use steward_vault::wiki::answers::read_answers;
use steward_vault::wiki::state::ReadWikiError;

pub(crate) use answer::{ask_wiki, save_answer, show_answer};
pub(crate) use click::resolve_run;

/// The runs that the page of a wiki shows.
const RUNS: usize = 30;
/// The questions that it shows.
const ANSWERS: usize = 10;
/// The lines of one file that the page of a run shows.
const LINES: usize = 400;

type WikiPath<T> = Result<Path<T>, PathRejection>;

/// A run as a row of a list.
pub(crate) struct RunLine {
    pub(crate) short: String,
    pub(crate) wiki: String,
    pub(crate) run_type: String,
    pub(crate) state: String,
    pub(crate) at: Moment,
    pub(crate) what: String,
}

/// A wiki as a row of a list.
struct WikiLine {
    row: WikiRow,
    newest_at: Option<Moment>,
}

#[derive(Template)]
#[template(path = "wikis.html")]
struct WikisPage {
    page: PageFrame,
    wikis: Vec<WikiLine>,
}

#[derive(Template)]
#[template(path = "wiki.html")]
struct WikiPage {
    page: PageFrame,
    row: WikiRow,
    waiting: Vec<RunLine>,
    runs: Vec<RunLine>,
    health: Option<WikiHealth>,
    /// What was searched for, and the best pages for it.
    q: String,
    hits: Vec<PageHit>,
    /// The files of all pages.
    pages: Vec<String>,
    /// The newest questions.
    answers: Vec<WikiAnswer>,
    longest_question: usize,
}

#[derive(Template)]
#[template(path = "wiki_run.html")]
struct WikiRunPage {
    page: PageFrame,
    run: RunLine,
    view: WikiRunView,
    files: Vec<FileDiff>,
    /// Whether it was committed and can be taken back.
    is_revertible: bool,
    reverted_by: Option<String>,
}

/// A file of a run as its page shows it.
struct FileDiff {
    file: String,
    change: String,
    lines: Vec<(DiffSide, String)>,
    /// How many lines are left out.
    more: usize,
}

#[derive(Template)]
#[template(path = "wiki_page.html")]
struct WikiPagePage {
    page: PageFrame,
    view: WikiPageView,
    links: NoteLinks,
}

#[derive(Deserialize)]
pub(crate) struct WikiQuery {
    /// Not empty if the wiki is to be checked.
    #[serde(default)]
    check: String,
    /// Words to search for.
    #[serde(default)]
    q: String,
}

pub(crate) async fn show_wikis(
    State(app): State<SharedAppState>,
    Extension(caller): Extension<AuthenticatedCaller>,
    uri: Uri,
) -> Result<Response, PageError> {
    let rows = read_blocking(&app, |root| list_wiki_rows(&root)).await?;
    let wikis = rows.into_iter().map(|row| WikiLine { newest_at: row.newest_at.map(Moment), row }).collect();
    let page = PageFrame::load(&app, &caller, "wikis", &uri).await?;
    Ok(render_page(&WikisPage { page, wikis }))
}

pub(crate) async fn show_wiki(
    State(app): State<SharedAppState>,
    Extension(caller): Extension<AuthenticatedCaller>,
    uri: Uri,
    wiki: WikiPath<String>,
    Query(query): Query<WikiQuery>,
) -> Result<Response, PageError> {
    let Path(wiki) = wiki.map_err(|_| no_such_page())?;
    let (is_checked, q) = (!query.check.is_empty(), query.q.trim().to_owned());
    let hits = if q.is_empty() { Vec::new() } else { app.views.search_wiki(&wiki, &q).await };
    let read = move |root: VaultRoot| {
        let row = read_wiki_row(&root, &wiki)?;
        let pages = list_wiki_pages(&root, &wiki)?;
        let answers: Vec<WikiAnswer> = read_answers(&root, &wiki)?.into_iter().rev().take(ANSWERS).collect();
        let runs = list_wiki_runs(&root, Some(&wiki), RUNS)?;
        let health = is_checked.then(|| check_wiki_health(&root, &wiki, Utc::now())).transpose()?;
        Ok((row, pages, answers, runs, health))
    };
    let (row, pages, answers, runs, health) = read_blocking(&app, read).await?;
    let (waiting, runs): (Vec<_>, Vec<_>) = runs.into_iter().partition(|run| run.waits);
    let lines = |runs: Vec<WikiRunRow>| runs.into_iter().map(RunLine::new).collect();
    Ok(render_page(&WikiPage {
        page: PageFrame::load(&app, &caller, "wikis", &uri).await?,
        row,
        waiting: lines(waiting),
        runs: lines(runs),
        health,
        q,
        hits,
        pages,
        answers,
        longest_question: MAX_QUESTION,
    }))
}

pub(crate) async fn show_run(
    State(app): State<SharedAppState>,
    Extension(caller): Extension<AuthenticatedCaller>,
    uri: Uri,
    names: WikiPath<(String, String)>,
) -> Result<Response, PageError> {
    let Path((wiki, run)) = names.map_err(|_| no_such_page())?;
    let found = read_blocking(&app, move |root| find_wiki_run(&root, &run)).await?;
    let mut view = found.filter(|view| view.row.wiki == wiki).ok_or_else(no_such_page)?;
    let files = std::mem::take(&mut view.files).into_iter().map(|file| FileDiff {
        file: file.file,
        change: if file.change == "rendered" { "written by code".to_owned() } else { file.change },
        more: file.lines.len().saturating_sub(LINES),
        lines: file.lines.into_iter().take(LINES).map(|line| (line.side, line.text)).collect(),
    });
    Ok(render_page(&WikiRunPage {
        page: PageFrame::load(&app, &caller, "wikis", &uri).await?,
        run: RunLine::new(view.row.clone()),
        files: files.collect(),
        is_revertible: view.record.is_some() && view.row.reverted_by.is_none(),
        reverted_by: view.row.reverted_by.as_deref().map(|by| shorten_run(by).to_owned()),
        view,
    }))
}

pub(crate) async fn show_page(
    State(app): State<SharedAppState>,
    Extension(caller): Extension<AuthenticatedCaller>,
    uri: Uri,
    names: WikiPath<(String, String)>,
) -> Result<Response, PageError> {
    let Path((wiki, name)) = names.map_err(|_| no_such_page())?;
    let found = read_blocking(&app, move |root| find_wiki_page(&root, &wiki, &name)).await?;
    let view = found.ok_or_else(no_such_page)?;
    let links = NoteLinks::new(app.views.root(), &format!("wiki/{}/{}", view.wiki, view.file));
    Ok(render_page(&WikiPagePage { page: PageFrame::load(&app, &caller, "wikis", &uri).await?, view, links }))
}

/// What happened in the wikis, for the page of today.
pub(super) struct WikiNews {
    /// The runs that wait for a person.
    pub(super) waiting: Vec<RunLine>,
    /// The runs that were committed since, newest first.
    pub(super) done: Vec<RunLine>,
}

pub(super) async fn read_news(app: &SharedAppState, since: DateTime<Utc>) -> Result<WikiNews, PageError> {
    let runs = read_blocking(app, |root| list_wiki_runs(&root, None, RUNS)).await?;
    let (waiting, others): (Vec<_>, Vec<_>) = runs.into_iter().partition(|run| run.waits);
    let done =
        others.into_iter().filter(|run| run.at >= since && ["committed", "taken_back"].contains(&run.state.as_str()));
    Ok(WikiNews { waiting: waiting.into_iter().map(RunLine::new).collect(), done: done.map(RunLine::new).collect() })
}

impl RunLine {
    fn new(row: WikiRunRow) -> Self {
        Self {
            short: row.short().to_owned(),
            state: row.describe_state(),
            wiki: row.wiki,
            run_type: row.run_type,
            at: Moment(row.at),
            what: row.what,
        }
    }

    /// The address of its page.
    pub(crate) fn url(&self) -> String {
        format!("/wikis/{}/runs/{}", self.wiki, self.short)
    }
}

fn no_such_page() -> PageError {
    ProblemDetails::new(StatusCode::NOT_FOUND, NO_SUCH_PAGE).into()
}

/// Reads files of wikis on a blocking thread.
pub(super) async fn read_blocking<T: Send + 'static>(
    app: &SharedAppState,
    read: impl FnOnce(VaultRoot) -> Result<T, ReadWikiError> + Send + 'static,
) -> Result<T, PageError> {
    match read_wikis(app.views.root(), read).await {
        Ok(value) => Ok(value),
        Err(ReadWikiError::Unknown { .. }) => Err(no_such_page()),
        Err(e) => Err(FactsError::Record { path: "wiki".to_owned(), reason: e.to_string() }.into()),
    }
}
