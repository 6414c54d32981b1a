//! `SignalsService`: what was heard. Nearly all of it is a stranger's.
//!
//! Lists come from the index, one signal from its file and that of its event, whose text is not given. It is passed on as
//! it stands, in the fields that the contract calls untrusted.

use super::refusal::{broken, refused};
use super::values::moment;
use super::{Face, nothing, page, path, record, refusal, words, wrong};
use crate::facts::signal::{self, Explained, Filed, SignalHistory};
use steward_domain::path::{RecordKind, RecordPath};
use steward_domain::signal::Signal;
use steward_domain::time;
use steward_proto::v1;
use steward_proto::v1::signals_service_server::SignalsService;
use steward_vault::index::{PageCursor, SignalFilter, SignalRow};
use tonic::{Code, Request, Response, Status};

const LIST: &str = "signals";

#[tonic::async_trait]
impl SignalsService for Face {
    async fn list_signals(
        &self,
        request: Request<v1::ListSignalsRequest>,
    ) -> Result<Response<v1::ListSignalsResponse>, Status> {
        let asked = request.into_inner();
        let mut filter = SignalFilter { status: words::asked_status(asked.status)?, ..SignalFilter::default() };
        if let Some(about) = about(&asked.about)? {
            let with_tasks = asked.with_tasks && about.kind() == RecordKind::Matter;
            *(if with_tasks { &mut filter.matter } else { &mut filter.target }) = Some(about);
        }
        let (before, size) = (page::place::<PageCursor>(LIST, &asked.page_token)?, page::size(asked.page_size)?);
        let page = self.index.signals_page(&filter, before.as_ref(), size).await.map_err(refusal::index)?;
        let signals = page.rows.into_iter().map(listed).collect();
        Ok(Response::new(v1::ListSignalsResponse { signals, next_page_token: page::token(LIST, page.next) }))
    }

    async fn get_signal(
        &self,
        request: Request<v1::GetSignalRequest>,
    ) -> Result<Response<v1::GetSignalResponse>, Status> {
        let path = path(RecordKind::Signal, "path", &request.into_inner().path)?;
        if !self.root.exists(&path) {
            return Err(nothing(&format!("{path}: not in the vault")));
        }
        let history = SignalHistory::read(&self.index, &path).await.map_err(refusal::index)?;
        let root = self.root.clone();
        let read = tokio::task::spawn_blocking(move || {
            signal::read(&root, path.clone()).map(|it| signal::explain(&root, it, &history))
        });
        let read = read.await.map_err(|e| broken(&e.to_string()))?;
        let explained = read.map_err(|e| refused(Code::DataLoss, 422, e.to_string()))?;
        Ok(Response::new(whole(explained)))
    }
}

fn about(text: &str) -> Result<Option<RecordPath>, Status> {
    if text.is_empty() {
        return Ok(None);
    }
    let path = RecordPath::parse(text).ok().filter(|path| matches!(path.kind(), RecordKind::Task | RecordKind::Matter));
    path.map(Some).ok_or_else(|| wrong("`about` is not a path like task/name.md or matter/name.md"))
}

fn listed(SignalRow { signal, target }: SignalRow) -> v1::SignalSummary {
    v1::SignalSummary {
        path: signal.path.to_string(),
        created: Some(moment(signal.created)),
        source: signal.source,
        note: signal.note,
        target: target.map(String::from).unwrap_or_default(),
        target_confidence: signal.target_confidence,
        effect: words::effect(signal.effect),
        change_class: signal.class.map(words::class).unwrap_or_default(),
        effect_confidence: signal.effect_confidence,
        status: words::signal(signal.status),
        reason: signal.reason.unwrap_or_default(),
    }
}

fn summary(path: &RecordPath, signal: &Signal) -> v1::SignalSummary {
    v1::SignalSummary {
        path: path.to_string(),
        created: Some(moment(signal.created)),
        source: signal.source_type.clone(),
        note: signal.clerk_note(),
        target: signal.target.as_ref().map(ToString::to_string).unwrap_or_default(),
        target_confidence: signal.target_confidence,
        effect: words::effect(signal.effect),
        change_class: signal.proposal.as_ref().map(|it| words::class(it.class())).unwrap_or_default(),
        effect_confidence: signal.effect_confidence,
        status: words::signal(signal.status),
        reason: signal.reason.clone().unwrap_or_default(),
    }
}

fn whole(explained: Explained) -> v1::GetSignalResponse {
    let Explained { filed: Filed { path, signal, .. }, event, why, what_would_change_it } = explained;
    let candidate =
        |one: &steward_domain::signal::TargetCandidate| v1::Candidate { path: one.path.to_string(), score: one.score };
    let event = event.map(|event| v1::SourceEvent {
        path: event.path.to_string(),
        source: event.source,
        author: event.author.unwrap_or_default(),
        subject: event.subject.unwrap_or_default(),
        received_at: time::parse(&event.received_at).map(moment),
    });
    let signal = v1::Signal {
        summary: Some(summary(&path, &signal)),
        origin_at: signal.origin_at.map(moment),
        candidates: signal.candidates.iter().map(candidate).collect(),
        proposal: signal.proposal.as_ref().map(record::change),
        source_event: signal.source_event.map(String::from).unwrap_or_default(),
        raw_quote: signal.raw_quote,
        reasoning: signal.reasoning,
    };
    v1::GetSignalResponse { signal: Some(signal), event, why, what_would_change_it }
}
