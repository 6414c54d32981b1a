//! `WikisService`: lists wikis, shows runs and pages, rejects runs that wait, and takes committed runs back.
//!
//! All of it is read from files and audit records. A change is requested through Temporal from the process that holds the
//! vault; nothing is written here.

use super::GrpcService;
use super::refusal::{build_status, internal_error, status_from_problem};
use super::values::encode_moment;
use super::{not_found, page, require_caller};
use crate::api::problem::ProblemDetails;
use crate::views::wiki::{
    DiffSide, WikiClaimView, WikiPageView, WikiRow, WikiRunFile, WikiRunRow, WikiRunView, check_wiki_health,
    find_wiki_page, find_wiki_run, list_wiki_rows, list_wiki_runs, read_wikis,
};
use chrono::Utc;
use steward_domain::wiki::run::RunId;
use steward_proto::v1;
use steward_proto::v1::wikis_service_server::WikisService;
use steward_vault::files::root::VaultRoot;
use steward_vault::wiki::state::{ReadWikiError, find_wiki_folder};
use steward_workflows::{WikiRequest, WikiRunInput, WikiRunOutput};
use tonic::{Code, Request, Response, Status};

const LIST: &str = "wiki_runs";
const NO_SUCH_RUN: &str = "there is no such run";

#[tonic::async_trait]
impl WikisService for GrpcService {
    async fn list_wikis(&self, _: Request<v1::ListWikisRequest>) -> Result<Response<v1::ListWikisResponse>, Status> {
        let wikis = self.read_wikis(|root| list_wiki_rows(&root)).await?;
        Ok(Response::new(v1::ListWikisResponse { wikis: wikis.into_iter().map(encode_wiki).collect() }))
    }

    async fn list_wiki_runs(
        &self,
        request: Request<v1::ListWikiRunsRequest>,
    ) -> Result<Response<v1::ListWikiRunsResponse>, Status> {
        let v1::ListWikiRunsRequest { wiki, page_size, page_token } = request.into_inner();
        let (after, size) = (page::parse_page_token::<String>(LIST, &page_token)?, page::parse_page_size(page_size)?);
        let list = move |root: VaultRoot| {
            let wiki = Some(wiki).filter(|wiki| !wiki.is_empty());
            wiki.as_deref().map(|wiki| find_wiki_folder(&root, wiki)).transpose()?;
            list_wiki_runs(&root, wiki.as_deref(), usize::MAX)
        };
        let rows = self.read_wikis(list).await?;
        let (runs, next) = page::take_page(rows, after.as_deref(), size, |row| &row.run);
        Ok(Response::new(v1::ListWikiRunsResponse {
            runs: runs.into_iter().map(encode_summary).collect(),
            next_page_token: page::encode_page_token(LIST, next),
        }))
    }

    async fn get_wiki_run(
        &self,
        request: Request<v1::GetWikiRunRequest>,
    ) -> Result<Response<v1::GetWikiRunResponse>, Status> {
        let view = self.find_run(request.into_inner().run).await?;
        Ok(Response::new(v1::GetWikiRunResponse { run: Some(encode_run(view)) }))
    }

    async fn get_wiki_page(
        &self,
        request: Request<v1::GetWikiPageRequest>,
    ) -> Result<Response<v1::GetWikiPageResponse>, Status> {
        let v1::GetWikiPageRequest { wiki, page } = request.into_inner();
        let found = self.read_wikis(move |root| find_wiki_page(&root, &wiki, &page)).await?;
        let view = found.ok_or_else(|| not_found("there is no such page"))?;
        Ok(Response::new(v1::GetWikiPageResponse { page: Some(encode_page(view)) }))
    }

    async fn get_wiki_health(
        &self,
        request: Request<v1::GetWikiHealthRequest>,
    ) -> Result<Response<v1::GetWikiHealthResponse>, Status> {
        let wiki = request.into_inner().wiki;
        let health = self.read_wikis(move |root| check_wiki_health(&root, &wiki, Utc::now())).await?;
        Ok(Response::new(v1::GetWikiHealthResponse {
            errors: health.errors,
            warnings: health.warnings,
            notes: health.notes,
            findings: health.findings,
        }))
    }

    async fn reject_wiki_run(
        &self,
        request: Request<v1::RejectWikiRunRequest>,
    ) -> Result<Response<v1::RejectWikiRunResponse>, Status> {
        let by = require_caller(&request)?.name;
        self.change_run(request.into_inner().run, by, |run| WikiRequest::Reject { run, reason: None }).await?;
        Ok(Response::new(v1::RejectWikiRunResponse {}))
    }

    async fn revert_wiki_run(
        &self,
        request: Request<v1::RevertWikiRunRequest>,
    ) -> Result<Response<v1::RevertWikiRunResponse>, Status> {
        let by = require_caller(&request)?.name;
        let v1::RevertWikiRunRequest { run, keep_edited } = request.into_inner();
        self.change_run(run, by, |run| WikiRequest::Revert { run, keep_edited, reason: None }).await.map(Response::new)
    }
}

impl GrpcService {
    /// Reads files of wikis on a blocking thread.
    async fn read_wikis<T: Send + 'static>(
        &self,
        read: impl FnOnce(VaultRoot) -> Result<T, ReadWikiError> + Send + 'static,
    ) -> Result<T, Status> {
        read_wikis(self.views.root(), read).await.map_err(|e| match e {
            e @ ReadWikiError::Unknown { .. } => not_found(&e.to_string()),
            e => internal_error(&e.to_string()),
        })
    }

    async fn find_run(&self, name: String) -> Result<WikiRunView, Status> {
        let found = self.read_wikis(move |root| find_wiki_run(&root, &name)).await?;
        found.ok_or_else(|| not_found(NO_SUCH_RUN))
    }

    /// Requests a change of a run, and waits for its outcome.
    async fn change_run(
        &self,
        name: String,
        by: String,
        request: impl FnOnce(RunId) -> WikiRequest,
    ) -> Result<v1::RevertWikiRunResponse, Status> {
        let WikiRunRow { run, wiki, .. } = self.find_run(name).await?.row;
        let run = run.parse().map_err(|_| not_found(NO_SUCH_RUN))?;
        let input = WikiRunInput { wiki, by, at: Utc::now(), request: request(run) };
        let output = self.resolution_client().request_wiki_run(input).await;
        match output.map_err(|e| status_from_problem(&ProblemDetails::from(e)))? {
            WikiRunOutput::Done { record, notes, .. } => {
                let record = record.map(|record| record.to_string()).unwrap_or_default();
                Ok(v1::RevertWikiRunResponse { record, notes })
            }
            WikiRunOutput::Refused { status: 404, message } => Err(not_found(&message)),
            WikiRunOutput::Refused { status, message } => Err(build_status(Code::FailedPrecondition, status, message)),
        }
    }
}

fn encode_wiki(row: WikiRow) -> v1::Wiki {
    v1::Wiki {
        name: row.wiki,
        title: row.title,
        pages: row.pages,
        sources: row.sources,
        waiting: row.waiting,
        newest: row.newest.unwrap_or_default(),
        newest_time: row.newest_at.map(encode_moment),
    }
}

fn encode_summary(row: WikiRunRow) -> v1::WikiRunSummary {
    v1::WikiRunSummary {
        run: row.run,
        wiki: row.wiki,
        run_type: row.run_type,
        time: Some(encode_moment(row.at)),
        state: row.state,
        waits: row.waits,
        what: row.what,
        reverted_by: row.reverted_by.unwrap_or_default(),
    }
}

fn encode_run(view: WikiRunView) -> v1::WikiRun {
    v1::WikiRun {
        summary: Some(encode_summary(view.row)),
        writer: view.writer.unwrap_or_default(),
        files: view.files.into_iter().map(encode_file).collect(),
        claims: view.claims,
        findings: view.findings,
        ideas: view.ideas,
        record: view.record.unwrap_or_default(),
        missing_files: view.missing_files,
    }
}

fn encode_file(file: WikiRunFile) -> v1::WikiRunFile {
    let sign = |side| if side == DiffSide::Before { '-' } else { '+' };
    let lines = file.lines.into_iter().map(|line| format!("{}{}", sign(line.side), line.text)).collect();
    v1::WikiRunFile { file: file.file, change: file.change, lines }
}

fn encode_page(view: WikiPageView) -> v1::WikiPage {
    v1::WikiPage {
        wiki: view.wiki,
        file: view.file,
        slug: view.slug,
        kind: view.kind,
        title: view.title,
        confidence: view.confidence,
        updated_at: view.updated_at.unwrap_or_default(),
        tags: view.tags,
        text: view.text,
        claims: view.claims.into_iter().map(encode_claim).collect(),
    }
}

fn encode_claim(claim: WikiClaimView) -> v1::WikiClaim {
    let quotes = claim.quotes.into_iter().map(|quote| v1::WikiQuote {
        label: quote.label,
        source: quote.source,
        quote: quote.quote,
        verified: quote.verified_against_source,
        offset: quote.offset.unwrap_or_default(),
        fault: quote.fault.unwrap_or_default(),
    });
    let history = claim.history.into_iter().map(|event| v1::WikiClaimEvent {
        time: Some(encode_moment(event.at)),
        run: event.run,
        change: event.change,
        reverted_by: event.reverted_by.unwrap_or_default(),
        reworded: event.is_reworded,
    });
    v1::WikiClaim {
        claim: claim.claim,
        line: claim.line,
        statement: claim.statement,
        disputed: claim.is_disputed,
        quotes: quotes.collect(),
        history: history.collect(),
    }
}
