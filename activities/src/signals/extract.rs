//! Reading stream events: from words that came in to signals on disk, in the vault's own process.
//!
//! An event is asked about once: its answer is kept under the hash of the exact question before any
//! signal is written, signals are named after event and quote, and only then is the event marked. So
//! whatever is cut short is done again from the start and comes to the same files. Whoever reads the
//! words holds no other tool than writing signals; what they may say is checked by
//! [`steward_domain::signals::extract`]. The workflow hears counts, the log hears no word of an event.

mod memory;
mod progress;

use crate::failure::{non_retryable_failure, retryable_failure};
use crate::steward::clerks::Clerk;
use crate::steward::judge::keep_alive;
use crate::vault::{VaultContext, run_blocking};
use chrono::{TimeDelta, Utc};
use memory::ExtractionMemory;
use progress::{AnswerInProgress, answer_key, extracted_edits, field_edit, whole_seconds};
use serde_json::json;
use std::sync::Arc;
use std::time::Instant;
use steward_domain::record::frontmatter::{self, FieldEdit};
use steward_domain::record::path::RecordPath;
use steward_domain::record::plain_text;
use steward_domain::signals::extract::candidates::CandidateMatcher;
use steward_domain::signals::extract::{ExtractAnswer, ExtractOutcome, ExtractQuestion};
use steward_domain::signals::signal::source_key;
use steward_domain::signals::stream::{EventStatus, MAX_TRIES, StreamEvent};
use steward_domain::steward::guard::{
    CallId, CallSource, GuardCap, GuardRefusal, Reservation, ReserveOutcome, ReserveRequest, Settlement,
    SettlementOutcome, back_off_for,
};
use steward_vault::action::create::CreateError;
use steward_vault::files::crash;
use steward_vault::files::root::VaultRootError;
use steward_workflows::activities::ExtractEventOutput;
use temporalio_common::ActivityError;
use temporalio_macros::activities;
use temporalio_sdk::activities::ActivityContext;
use tracing::Instrument;

/// Most attempts at one question: the second is stricter.
const ATTEMPTS: u32 = 2;
/// How long an answer is given again: 30 days, far longer than an event waits.
const GIVEN_AGAIN: TimeDelta = TimeDelta::days(30);
/// When the answer to a probe that is out is looked for again: 2 s, which most calls take.
const PROBE_ANSWERS_WITHIN: u32 = 2;
/// Longest reason that is written into an event's file, in characters.
const MAX_REASON_CHARS: usize = 300;

/// Who reads events. Cheap to clone.
#[derive(Clone)]
pub struct Extractor {
    host: VaultContext,
    clerk: Arc<Clerk>,
    memory: ExtractionMemory,
}

/// What the clerk made of an event.
enum EventReading {
    Answer {
        text: String,
        cached: bool,
    },
    /// The event is to blame.
    Bad(String),
    Unanswered {
        reason: String,
        /// It took too long, and others were asked at the same time.
        crowded: bool,
    },
    Held {
        reason: String,
        /// Where the provider asked to wait: for how long, in seconds.
        wait_seconds: Option<u32>,
    },
    /// Its sender's or its stream's share is used up.
    OverShare(String),
}

/// What one call came to.
enum ExtractCallOutcome {
    Text(String),
    Complaint(String),
    Ends(EventReading),
}

impl Extractor {
    /// Seats a clerk beside the vault.
    #[must_use]
    pub fn new(host: VaultContext, clerk: Clerk) -> Self {
        Self { host, clerk: Arc::new(clerk), memory: ExtractionMemory::default() }
    }

    /// Those that got no answer a moment ago come last.
    async fn list_waiting_events(&self, limit: usize) -> Result<Vec<RecordPath>, ActivityError> {
        let resting = self.memory.list_resting_events();
        // A ledger that cannot be read refuses every call and says why.
        let spent = self.host.ledger.find_exhausted_shares(Utc::now()).await.unwrap_or_default();
        let events =
            self.host.index.list_events_to_extract(limit + resting.len(), &spent).await.map_err(retryable_failure)?;
        let (last, mut first): (Vec<_>, Vec<_>) = events.into_iter().partition(|e| resting.contains(e));
        first.extend(last);
        first.truncate(limit);
        Ok(first)
    }

    async fn read_event(&self, path: &RecordPath, reading: &str) -> Result<ExtractEventOutput, ActivityError> {
        let Some(_claim) = self.memory.claim_event(path) else { return Ok(ExtractEventOutput::NotNew) };
        let Some((event, question)) = self.prepare_question(path).await? else { return Ok(ExtractEventOutput::NotNew) };
        let key = answer_key(path, &event);
        if let Some(answer) = self.find_answer_in_progress(&key, &question).await? {
            return self.complete_event((path, &event), &answer, (&key, true)).await;
        }
        if question.offers.is_empty() {
            self.update_event(path, extracted_edits("no open task or matter shares a word with it")).await?;
            return Ok(ExtractEventOutput::Done { signals: 0, cached: false });
        }
        let offers = question.offers.clone();
        match self.ask_clerk(path, question.clone(), reading).await? {
            EventReading::Answer { text, cached } => {
                let answer =
                    ExtractAnswer::parse_answer(&text, &question).map_err(|e| non_retryable_failure(e.to_string()))?;
                let begun = json!(AnswerInProgress { offers, text }).to_string();
                self.host.index.cache_answer(&key, &begun, Utc::now()).await.map_err(retryable_failure)?;
                crash::die_if_armed("after-keeping-the-answer");
                self.complete_event((path, &event), &answer, (&key, cached)).await
            }
            EventReading::Bad(reason) => self.record_failure(path, &event, &reason).await,
            EventReading::Unanswered { reason, crowded } => {
                if self.memory.record_missed_answer(path, crowded, Instant::now()) {
                    return self.record_failure(path, &event, &reason).await;
                }
                tracing::warn!(event = %path, reason, "no answer about an event; it waits");
                Ok(ExtractEventOutput::Unanswered)
            }
            EventReading::Held { reason, wait_seconds } => {
                tracing::warn!(event = %path, reason, wait_seconds, "no call about an event now; it waits");
                Ok(ExtractEventOutput::Held { wait_seconds })
            }
            EventReading::OverShare(reason) => {
                tracing::info!(event = %path, reason, "it waits until its sender has calls left");
                Ok(ExtractEventOutput::OverShare)
            }
        }
    }

    /// The event and what to ask about it; `None` when it is not new, gone, or not understood any more.
    async fn prepare_question(
        &self,
        path: &RecordPath,
    ) -> Result<Option<(StreamEvent, ExtractQuestion)>, ActivityError> {
        let candidates = self.load_candidates().await?;
        let (keeper, path) = (Arc::clone(&self.host.keeper), path.clone());
        run_blocking(move || {
            let file = match keeper.root().read_file(&path) {
                Ok(file) => file,
                Err(e @ VaultRootError::Io { .. }) => return Err(retryable_failure(e)),
                Err(_) => return Ok(None),
            };
            let document = frontmatter::read_document(&file.bytes).ok();
            let event = document.and_then(|d| StreamEvent::read(d.fields(), d.body()).ok());
            let Some(event) = event.filter(|e| e.status == EventStatus::New) else { return Ok(None) };
            let offers = candidates.choose_offers(&event);
            let question = ExtractQuestion::new(&event, offers);
            Ok(Some((event, question)))
        })
        .await?
    }

    /// Comparing words needs all names, which are many and seldom change.
    async fn load_candidates(&self) -> Result<Arc<CandidateMatcher>, ActivityError> {
        let edition = self.host.index.records_revision();
        if let Some(candidates) = self.memory.cached_candidates(edition) {
            return Ok(candidates);
        }
        let known = self.host.index.list_open_records().await.map_err(retryable_failure)?;
        let candidates = Arc::new(run_blocking(move || CandidateMatcher::new(known)).await?);
        self.memory.cache_candidates(edition, &candidates);
        Ok(candidates)
    }

    /// `reading` names this reading of the event among all: a new one has a reservation of its own.
    async fn ask_clerk(
        &self,
        path: &RecordPath,
        mut question: ExtractQuestion,
        reading: &str,
    ) -> Result<EventReading, ActivityError> {
        for attempt in 1..=ATTEMPTS {
            let key = self.clerk.extract_key(&question);
            let kept =
                self.host.index.find_cached_answer(&key, Utc::now() - GIVEN_AGAIN).await.map_err(retryable_failure)?;
            if let Some(text) = kept.filter(|text| ExtractAnswer::parse_answer(text, &question).is_ok()) {
                return Ok(EventReading::Answer { text, cached: true });
            }
            let call_id = CallId(format!("extract/{reading}/{path}/{attempt}"));
            let request = self.build_reserve_request(path, (call_id, &question)).await?;
            match self.attempt_call(request, &question).await? {
                ExtractCallOutcome::Text(text) => {
                    self.host.index.cache_answer(&key, &text, Utc::now()).await.map_err(retryable_failure)?;
                    return Ok(EventReading::Answer { text, cached: false });
                }
                ExtractCallOutcome::Complaint(complaint) => question.complaint = Some(complaint),
                ExtractCallOutcome::Ends(reading) => return Ok(reading),
            }
        }
        Ok(EventReading::Bad(question.complaint.unwrap_or_default()))
    }

    /// Reserves, asks, settles.
    async fn attempt_call(
        &self,
        request: ReserveRequest,
        question: &ExtractQuestion,
    ) -> Result<ExtractCallOutcome, ActivityError> {
        let reservation = match self.reserve_call(&request).await {
            Ok(reservation) => reservation,
            Err(held) => return Ok(ExtractCallOutcome::Ends(held)),
        };
        let call_id = request.call_id;
        let alone = self.memory.is_alone();
        let reply = self.clerk.extract_signals(&reservation, question).await;
        let usage = reply.clerk.tokens;
        let (outcome, call) = match reply.outcome {
            ExtractOutcome::Answered { text } => {
                (SettlementOutcome::Answered { usage }, ExtractCallOutcome::Text(text))
            }
            ExtractOutcome::BadAnswer { complaint } => {
                (SettlementOutcome::Answered { usage }, ExtractCallOutcome::Complaint(complaint))
            }
            ExtractOutcome::RateLimited { retry_after_seconds } => {
                let retry_after_seconds = retry_after_seconds.map(|s| s as f64);
                let wait_seconds = whole_seconds(back_off_for(retry_after_seconds));
                let held = EventReading::Held { reason: "the provider asked to wait".to_owned(), wait_seconds };
                (SettlementOutcome::RateLimited { retry_after_seconds }, ExtractCallOutcome::Ends(held))
            }
            ExtractOutcome::NotSent { reason } => (
                SettlementOutcome::NotSent,
                ExtractCallOutcome::Ends(EventReading::Unanswered { reason, crowded: true }),
            ),
            ExtractOutcome::Failed { reason, slow } => {
                let crowded = slow && !(alone && self.memory.is_alone());
                (SettlementOutcome::Failed, ExtractCallOutcome::Ends(EventReading::Unanswered { reason, crowded }))
            }
        };
        if matches!(outcome, SettlementOutcome::Answered { .. }) {
            self.memory.record_answer(Instant::now());
        }
        // A settlement that cannot be recorded is not worth losing an answer for: the reservation counts.
        if let Err(e) = self.host.ledger.settle(&Settlement { call_id, outcome }, Utc::now()).await {
            tracing::warn!(error = %e, "failed to settle a call");
        }
        Ok(call)
    }

    /// A call of no task or matter, on the account of the event's stream and sender.
    async fn build_reserve_request(
        &self,
        path: &RecordPath,
        (call_id, question): (CallId, &ExtractQuestion),
    ) -> Result<ReserveRequest, ActivityError> {
        let known = self.host.index.is_known_source(&source_key(&question.source)).await.map_err(retryable_failure)?;
        let stream = path.slug().split('/').next().map(str::to_owned);
        let speakers = vec![CallSource { source: question.source.clone(), known }];
        Ok(ReserveRequest { call_id, stream, speakers, ..ReserveRequest::default() })
    }

    async fn reserve_call(&self, request: &ReserveRequest) -> Result<Reservation, EventReading> {
        if self.host.is_stopped() {
            let reason = "the fleet is stopped: `steward resume` lets it run again".to_owned();
            return Err(EventReading::Held { reason, wait_seconds: None });
        }
        let now = Utc::now();
        match self.host.ledger.reserve(request, now).await {
            ReserveOutcome::Reserved(reservation) => Ok(reservation),
            ReserveOutcome::Refused(GuardRefusal { cap: GuardCap::Sender | GuardCap::Stream, reason, .. }) => {
                Err(EventReading::OverShare(reason))
            }
            ReserveOutcome::Refused(refusal) => {
                let wait_seconds = if refusal.cap == GuardCap::BackOff {
                    refusal.clears_at.and_then(|clears_at| whole_seconds(clears_at - now))
                } else {
                    (refusal.cap == GuardCap::ProbePending).then_some(PROBE_ANSWERS_WITHIN)
                };
                Err(EventReading::Held { reason: refusal.reason, wait_seconds })
            }
        }
    }

    /// The answer by which an earlier run began to write signals, to the question as it was then: by now its
    /// own signals may have closed what they are about.
    async fn find_answer_in_progress(
        &self,
        key: &str,
        question: &ExtractQuestion,
    ) -> Result<Option<ExtractAnswer>, ActivityError> {
        let kept =
            self.host.index.find_cached_answer(key, Utc::now() - GIVEN_AGAIN).await.map_err(retryable_failure)?;
        let begun: Option<AnswerInProgress> = kept.and_then(|text| serde_json::from_str(&text).ok());
        Ok(begun.and_then(|AnswerInProgress { offers, text }| {
            ExtractAnswer::parse_answer(&text, &ExtractQuestion { offers, ..question.clone() }).ok()
        }))
    }

    async fn complete_event(
        &self,
        (path, event): (&RecordPath, &StreamEvent),
        answer: &ExtractAnswer,
        (key, cached): (&str, bool),
    ) -> Result<ExtractEventOutput, ActivityError> {
        let signals = self.write_signals(path, event, answer).await?;
        crash::die_if_armed("after-writing-signals");
        self.update_event(path, extracted_edits("")).await?;
        // Who sets it to new again wants it read anew.
        self.host.index.forget_answer(key).await.map_err(retryable_failure)?;
        tracing::info!(event = %path, signals, cached, "event read");
        Ok(ExtractEventOutput::Done { signals, cached })
    }

    /// Writes the signals; how many there are, those written before included.
    async fn write_signals(
        &self,
        path: &RecordPath,
        event: &StreamEvent,
        answer: &ExtractAnswer,
    ) -> Result<u32, ActivityError> {
        let signals = answer.to_signals(path, event).map_err(|e| non_retryable_failure(e.to_string()))?;
        let count = u32::try_from(signals.len()).unwrap_or(u32::MAX);
        let keeper = Arc::clone(&self.host.keeper);
        run_blocking(move || {
            for (path, signal) in signals {
                match keeper.create_file(&path, signal.render().as_bytes()) {
                    // Written before a crash, and routed or edited since: it stays as it is.
                    Ok(_) | Err(CreateError::Taken { .. }) => {}
                    Err(e @ (CreateError::Kind { .. } | CreateError::Disk(_))) => return Err(retryable_failure(e)),
                }
            }
            Ok(count)
        })
        .await?
    }

    async fn record_failure(
        &self,
        path: &RecordPath,
        event: &StreamEvent,
        reason: &str,
    ) -> Result<ExtractEventOutput, ActivityError> {
        let tries = event.tries.saturating_add(1);
        let parked = tries >= MAX_TRIES;
        let shown: String = plain_text::escape_one_line(reason).chars().take(MAX_REASON_CHARS).collect();
        let mut edits = vec![field_edit("tries", json!(tries)), field_edit("reason", json!(shown))];
        if parked {
            edits.push(field_edit("status", json!(EventStatus::Parked.as_str())));
        }
        self.update_event(path, edits).await?;
        tracing::warn!(event = %path, tries, parked, "an event could not be read");
        Ok(ExtractEventOutput::Failed { parked })
    }

    /// Notes in the event's file how far it has come, and tells the index. The signals it leaves to the
    /// watcher, which wakes their matters.
    async fn update_event(&self, path: &RecordPath, edits: Vec<FieldEdit>) -> Result<(), ActivityError> {
        let (keeper, event) = (Arc::clone(&self.host.keeper), path.clone());
        run_blocking(move || keeper.update_status_fields(&event, &edits)).await?.map_err(retryable_failure)?;
        let root = self.host.keeper.root();
        self.host.index.sync_paths(root, std::slice::from_ref(path), Utc::now()).await.map_err(retryable_failure)?;
        Ok(())
    }
}

#[activities]
impl Extractor {
    #[activity(definition = steward_workflows::activities::Next)]
    pub async fn next(self: Arc<Self>, _ctx: ActivityContext, limit: u32) -> Result<Vec<RecordPath>, ActivityError> {
        self.list_waiting_events(usize::try_from(limit).unwrap_or(usize::MAX)).await
    }

    #[activity(definition = steward_workflows::activities::Event)]
    pub async fn event(
        self: Arc<Self>,
        ctx: ActivityContext,
        event: RecordPath,
    ) -> Result<ExtractEventOutput, ActivityError> {
        let info = ctx.info();
        let reading = format!("{}/{}", info.workflow_run_id.clone().unwrap_or_default(), info.activity_id);
        let span = tracing::info_span!("event");
        let ended = tokio::select! {
            ended = self.read_event(&event, &reading).instrument(span) => ended,
            failed = keep_alive(&ctx) => Err(failed),
        };
        if ended.is_err() && !self.host.can_write().await {
            self.host.index.run_routines_again();
        }
        ended
    }
}
