//! `SignalsService`: lists signals and explains one. Nearly all of their content is untrusted.
//!
//! Lists come from the index. One signal comes from its file and its event's file, without the event's text. Foreign
//! text is passed on unchanged, in the fields that the contract marks as untrusted.

use super::GrpcService;
use super::invalid_argument;
use super::not_found;
use super::page;
use super::parse_record_path;
use super::record;
use super::refusal;
use super::refusal::{build_status, internal_error};
use super::values::encode_moment;
use crate::grpc::enums;
use crate::views::signal::{self, SignalExplanation, SignalFile};
use steward_domain::record::path::{RecordKind, RecordPath};
use steward_domain::signals::signal::Signal;
use steward_domain::time;
use steward_proto::v1;
use steward_proto::v1::signals_service_server::SignalsService;
use steward_vault::index::{PageCursor, SignalFilter, SignalRow};
use tonic::{Code, Request, Response, Status};

const LIST: &str = "signals";

#[tonic::async_trait]
impl SignalsService for GrpcService {
    async fn list_signals(
        &self,
        request: Request<v1::ListSignalsRequest>,
    ) -> Result<Response<v1::ListSignalsResponse>, Status> {
        let request = request.into_inner();
        let mut filter =
            SignalFilter { status: enums::decode_signal_status_filter(request.status)?, ..SignalFilter::default() };
        if let Some(about) = parse_about(&request.about)? {
            let kind = self.views.read().find_note_kind(&about).await.map_err(refusal::index_error)?;
            let with_tasks = request.with_tasks && kind == Some(RecordKind::Matter);
            *(if with_tasks { &mut filter.matter } else { &mut filter.target }) = Some(about);
        }
        let (before, size) = (
            page::parse_page_token::<PageCursor>(LIST, &request.page_token)?,
            page::parse_page_size(request.page_size)?,
        );
        let page =
            self.views.read().signals_page(&filter, before.as_ref(), size).await.map_err(refusal::index_error)?;
        let signals = page.rows.into_iter().map(encode_signal_row).collect();
        Ok(Response::new(v1::ListSignalsResponse {
            signals,
            next_page_token: page::encode_page_token(LIST, page.next),
        }))
    }

    async fn get_signal(
        &self,
        request: Request<v1::GetSignalRequest>,
    ) -> Result<Response<v1::GetSignalResponse>, Status> {
        let path = parse_record_path(RecordKind::Signal, "path", &request.into_inner().path)?;
        if !self.views.root().exists(&path) {
            return Err(not_found(&format!("{path}: not in the vault")));
        }
        let history = self.views.read_signal_history(&path).await.map_err(refusal::index_error)?;
        let (root, schema) = (self.views.root().clone(), self.views.note_schema());
        let read = tokio::task::spawn_blocking(move || {
            let file = signal::read_signal(&root, path)?;
            Ok(signal::explain_signal(&root, &schema, file, &history))
        });
        let read = read.await.map_err(|e| internal_error(&e.to_string()))?;
        let explanation =
            read.map_err(|e: signal::SignalReadError| build_status(Code::DataLoss, 422, e.to_string()))?;
        Ok(Response::new(encode_explanation(explanation)))
    }
}

fn parse_about(text: &str) -> Result<Option<RecordPath>, Status> {
    if text.is_empty() {
        return Ok(None);
    }
    let path = RecordPath::parse(text).ok().filter(|path| path.own_kind().is_none());
    path.map(Some).ok_or_else(|| invalid_argument("`about` is not a path like task/name.md or matter/name.md"))
}

fn encode_signal_row(SignalRow { signal, target }: SignalRow) -> v1::SignalSummary {
    v1::SignalSummary {
        path: signal.path.to_string(),
        created: Some(encode_moment(signal.created)),
        source: signal.source,
        note: signal.note,
        target: target.map(String::from).unwrap_or_default(),
        target_confidence: signal.target_confidence,
        effect: enums::effect(signal.effect),
        change_class: signal.class.map(enums::class).unwrap_or_default(),
        effect_confidence: signal.effect_confidence,
        status: enums::signal(signal.status),
        reason: signal.reason.unwrap_or_default(),
    }
}

fn encode_signal_summary(path: &RecordPath, signal: &Signal) -> v1::SignalSummary {
    v1::SignalSummary {
        path: path.to_string(),
        created: Some(encode_moment(signal.created)),
        source: signal.source_type.clone(),
        note: signal.clerk_note(),
        target: signal.target.as_ref().map(ToString::to_string).unwrap_or_default(),
        target_confidence: signal.target_confidence,
        effect: enums::effect(signal.effect),
        change_class: signal.proposal.as_ref().map(|proposal| enums::class(proposal.class())).unwrap_or_default(),
        effect_confidence: signal.effect_confidence,
        status: enums::signal(signal.status),
        reason: signal.reason.clone().unwrap_or_default(),
    }
}

fn encode_explanation(explanation: SignalExplanation) -> v1::GetSignalResponse {
    let SignalExplanation { filed: SignalFile { path, signal, .. }, event, why, what_would_change_it } = explanation;
    let encode_candidate = |candidate: &steward_domain::signals::signal::TargetCandidate| v1::Candidate {
        path: candidate.path.to_string(),
        score: candidate.score,
    };
    let event = event.map(|event| v1::SourceEvent {
        path: event.path.to_string(),
        source: event.source,
        author: event.author.unwrap_or_default(),
        subject: event.subject.unwrap_or_default(),
        received_at: time::parse(&event.received_at).map(encode_moment),
    });
    let signal = v1::Signal {
        summary: Some(encode_signal_summary(&path, &signal)),
        origin_at: signal.origin_at.map(encode_moment),
        candidates: signal.candidates.iter().map(encode_candidate).collect(),
        proposal: signal.proposal.as_ref().map(record::encode_change),
        source_event: signal.source_event.map(String::from).unwrap_or_default(),
        raw_quote: signal.raw_quote,
        reasoning: signal.reasoning,
    };
    v1::GetSignalResponse { signal: Some(signal), event, why, what_would_change_it }
}
