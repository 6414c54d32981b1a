//! Extracts signals from stream events, in the process that holds the vault.
//!
//! The clerk is asked once about an event. Its answer is cached under the hash of the exact question before any signal
//! is written. Signals are named after event and quote, and the event is marked last. So an extraction that was cut
//! short starts again and writes the same files. It must write nothing but signals, and
//! [`steward_domain::signals::extract`] checks what they may say. The workflow gets counts only, and the log holds no
//! text of an event.

mod memory;
mod progress;

use crate::failure::{non_retryable_failure, retryable_failure};
use crate::steward::clerks::Clerk;
use crate::steward::judge::keep_alive;
use crate::steward::tick::reserve_in_turn;
use crate::vault::{VaultContext, run_blocking};
use chrono::{TimeDelta, Utc};
use memory::ExtractionMemory;
use progress::{
    AnswerInProgress, EventReading, ExtractCallOutcome, answer_key, extracted_edits, field_edit, whole_seconds,
};
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
use steward_vault::index::CursorsView;
use steward_vault::steward::guard::Ledger;
use steward_workflows::activities::ExtractEventOutput;
use temporalio_common::ActivityError;
use temporalio_macros::activities;
use temporalio_sdk::activities::ActivityContext;
use tracing::Instrument;

/// Most attempts at one question: 2, and the second is stricter.
const ATTEMPTS: u32 = 2;
/// How long a cached answer is used again: 30 days, far longer than an event waits.
const KEEP_ANSWERS: TimeDelta = TimeDelta::days(30);
/// How long to wait for the answer to a probe that another call has sent: 2 s, which most calls take.
const PROBE_WAIT_SECONDS: u32 = 2;
/// Longest reason that is written into an event's file, in characters.
const MAX_REASON_CHARS: usize = 300;

/// Extracts signals from events with its clerk. Cheap to clone.
#[derive(Clone)]
pub struct Extractor {
    vault: VaultContext,
    ledger: Arc<Ledger>,
    clerk: Arc<Clerk>,
    memory: ExtractionMemory,
}

impl Extractor {
    /// Creates an extractor that asks `clerk` and writes to `vault`.
    #[must_use]
    pub fn new(vault: VaultContext, ledger: Arc<Ledger>, clerk: Clerk) -> Self {
        Self { vault, ledger, clerk: Arc::new(clerk), memory: ExtractionMemory::default() }
    }

    /// Lists events to read. Those that got no answer a moment ago come last.
    fn cursors(&self) -> CursorsView<'_> {
        self.vault.index.cursors()
    }

    async fn list_waiting_events(&self, limit: usize) -> Result<Vec<RecordPath>, ActivityError> {
        let resting = self.memory.list_resting_events();
        // If the ledger cannot be read, the error is ignored here: every reservation is refused with the reason.
        let spent = self.ledger.find_exhausted_shares(Utc::now()).await.unwrap_or_default();
        let events = self
            .vault
            .index
            .signals()
            .list_events_to_extract(limit + resting.len(), &spent)
            .await
            .map_err(retryable_failure)?;
        let (last, mut ordered): (Vec<_>, Vec<_>) = events.into_iter().partition(|e| resting.contains(e));
        ordered.extend(last);
        ordered.truncate(limit);
        Ok(ordered)
    }

    async fn read_event(&self, path: &RecordPath, reading: &str) -> Result<ExtractEventOutput, ActivityError> {
        let Some(_claim) = self.memory.claim_event(path) else { return Ok(ExtractEventOutput::NotNew) };
        let Some((event, question)) = self.prepare_question(path).await? else { return Ok(ExtractEventOutput::NotNew) };
        let key = answer_key(path, &event);
        if let Some(answer) = self.find_answer_in_progress(&key, &question).await? {
            return self.complete_event(path, &event, &answer, &key, true).await;
        }
        if question.offers.is_empty() {
            self.update_event(path, extracted_edits("no open task or matter shares a word with this event")).await?;
            return Ok(ExtractEventOutput::Done { signals: 0, cached: false });
        }
        let offers = question.offers.clone();
        match self.ask_clerk(path, question.clone(), reading).await? {
            EventReading::Answer { text, cached } => {
                let answer = ExtractAnswer::parse_answer(&text, &question).map_err(non_retryable_failure)?;
                let in_progress = json!(AnswerInProgress { offers, text }).to_string();
                self.cursors().cache_answer(&key, &in_progress, Utc::now()).await.map_err(retryable_failure)?;
                crash::die_if_armed("after-keeping-the-answer");
                self.complete_event(path, &event, &answer, &key, cached).await
            }
            EventReading::Bad(reason) => self.record_failure(path, &event, &reason).await,
            EventReading::Unanswered { reason, crowded } => {
                if self.memory.record_missed_answer(path, crowded, Instant::now()) {
                    return self.record_failure(path, &event, &reason).await;
                }
                tracing::warn!(event = %path, reason, "the clerk gave no answer about an event; the event waits");
                Ok(ExtractEventOutput::Unanswered)
            }
            EventReading::Held { reason, wait_seconds } => {
                tracing::warn!(event = %path, reason, wait_seconds, "no call is possible now; the event waits");
                Ok(ExtractEventOutput::Held { wait_seconds })
            }
            EventReading::OverShare(reason) => {
                tracing::info!(event = %path, reason, "the event waits until its sender or stream has calls left");
                Ok(ExtractEventOutput::OverShare)
            }
        }
    }

    /// Reads the event and builds its question; `None` if the event is not new, is gone, or cannot be parsed.
    async fn prepare_question(
        &self,
        path: &RecordPath,
    ) -> Result<Option<(StreamEvent, ExtractQuestion)>, ActivityError> {
        let candidates = self.load_candidates().await?;
        let (writer, path) = (Arc::clone(&self.vault.writer), path.clone());
        run_blocking(move || {
            let file = match writer.root().read_file(&path) {
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

    /// Returns the matcher over all open records. It is cached, because the names are many and seldom change.
    async fn load_candidates(&self) -> Result<Arc<CandidateMatcher>, ActivityError> {
        let revision = self.vault.index.records_revision();
        if let Some(candidates) = self.memory.cached_candidates(revision) {
            return Ok(candidates);
        }
        let records = self.vault.index.signals().list_open_records().await.map_err(retryable_failure)?;
        let candidates = Arc::new(run_blocking(move || CandidateMatcher::new(records)).await?);
        self.memory.cache_candidates(revision, &candidates);
        Ok(candidates)
    }

    /// Asks about an event, at most twice. `reading` is the id of this reading: each one has reservations of its own.
    async fn ask_clerk(
        &self,
        path: &RecordPath,
        mut question: ExtractQuestion,
        reading: &str,
    ) -> Result<EventReading, ActivityError> {
        for attempt in 1..=ATTEMPTS {
            let key = self.clerk.extract_key(&question);
            let cached =
                self.cursors().find_cached_answer(&key, Utc::now() - KEEP_ANSWERS).await.map_err(retryable_failure)?;
            if let Some(text) = cached.filter(|text| ExtractAnswer::parse_answer(text, &question).is_ok()) {
                return Ok(EventReading::Answer { text, cached: true });
            }
            let call_id = CallId(format!("extract/{reading}/{path}/{attempt}"));
            let request = self.build_reserve_request(path, call_id, &question).await?;
            match self.attempt_call(request, &question).await? {
                ExtractCallOutcome::Text(text) => {
                    self.cursors().cache_answer(&key, &text, Utc::now()).await.map_err(retryable_failure)?;
                    return Ok(EventReading::Answer { text, cached: false });
                }
                ExtractCallOutcome::Complaint(complaint) => question.complaint = Some(complaint),
                ExtractCallOutcome::Ends(reading) => return Ok(reading),
            }
        }
        Ok(EventReading::Bad(question.complaint.unwrap_or_default()))
    }

    /// Reserves a call, asks, and settles.
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
                let held = EventReading::Held { reason: "the provider asked Steward to wait".to_owned(), wait_seconds };
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
        // An answer is not thrown away because its settlement failed: the reservation still counts.
        if let Err(e) = self.ledger.settle(&Settlement { call_id, outcome }, Utc::now()).await {
            tracing::warn!(error = %e, "failed to settle a clerk call");
        }
        Ok(call)
    }

    /// Builds a request that names no task or matter. It counts against the event's stream and sender.
    async fn build_reserve_request(
        &self,
        path: &RecordPath,
        call_id: CallId,
        question: &ExtractQuestion,
    ) -> Result<ReserveRequest, ActivityError> {
        let known = self.cursors().is_known_source(&source_key(&question.source)).await.map_err(retryable_failure)?;
        let stream = path.slug().split('/').next().map(str::to_owned);
        let speakers = vec![CallSource { source: question.source.clone(), known }];
        let tokens = self.clerk.estimate_extract_tokens(question);
        Ok(ReserveRequest { call_id, stream, sources: speakers, tokens, ..ReserveRequest::default() })
    }

    /// Reserves a call at the rate guard.
    ///
    /// Only a wait that the provider asked for is waited for within a run. A full window of the rate guard may take
    /// hours to clear, so the next run of the schedule tries again.
    async fn reserve_call(&self, request: &ReserveRequest) -> Result<Reservation, EventReading> {
        if let Some(reason) = self.vault.find_hold().await {
            return Err(EventReading::Held { reason, wait_seconds: None });
        }
        let now = Utc::now();
        match reserve_in_turn(&self.ledger, &self.clerk, request).await {
            ReserveOutcome::Reserved(reservation) => Ok(reservation),
            ReserveOutcome::Refused(GuardRefusal { cap: GuardCap::Sender | GuardCap::Stream, reason, .. }) => {
                Err(EventReading::OverShare(reason))
            }
            ReserveOutcome::Refused(refusal) => {
                let wait_seconds = if refusal.cap == GuardCap::BackOff {
                    refusal.clears_at.and_then(|clears_at| whole_seconds(clears_at - now))
                } else {
                    (refusal.cap == GuardCap::ProbePending).then_some(PROBE_WAIT_SECONDS)
                };
                Err(EventReading::Held { reason: refusal.reason, wait_seconds })
            }
        }
    }

    /// Finds the answer whose signals an earlier run began to write.
    ///
    /// It is parsed against the offers of that time: its own signals may have closed their targets by now.
    async fn find_answer_in_progress(
        &self,
        key: &str,
        question: &ExtractQuestion,
    ) -> Result<Option<ExtractAnswer>, ActivityError> {
        let cached =
            self.cursors().find_cached_answer(key, Utc::now() - KEEP_ANSWERS).await.map_err(retryable_failure)?;
        let in_progress: Option<AnswerInProgress> = cached.and_then(|text| serde_json::from_str(&text).ok());
        Ok(in_progress.and_then(|AnswerInProgress { offers, text }| {
            ExtractAnswer::parse_answer(&text, &ExtractQuestion { offers, ..question.clone() }).ok()
        }))
    }

    async fn complete_event(
        &self,
        path: &RecordPath,
        event: &StreamEvent,
        answer: &ExtractAnswer,
        key: &str,
        cached: bool,
    ) -> Result<ExtractEventOutput, ActivityError> {
        let signals = self.write_signals(path, event, answer).await?;
        crash::die_if_armed("after-writing-signals");
        self.update_event(path, extracted_edits("")).await?;
        // A person who sets the event to `new` again wants the clerk to be asked again.
        self.cursors().forget_answer(key).await.map_err(retryable_failure)?;
        tracing::info!(event = %path, signals, cached, "event extracted");
        Ok(ExtractEventOutput::Done { signals, cached })
    }

    /// Writes the signals, and returns their count, including those that were written before.
    async fn write_signals(
        &self,
        path: &RecordPath,
        event: &StreamEvent,
        answer: &ExtractAnswer,
    ) -> Result<u32, ActivityError> {
        let signals = answer.to_signals(path, event).map_err(non_retryable_failure)?;
        let count = u32::try_from(signals.len()).unwrap_or(u32::MAX);
        let writer = Arc::clone(&self.vault.writer);
        run_blocking(move || {
            for (path, signal) in signals {
                match writer.create_file(&path, signal.render().as_bytes()) {
                    // A signal that was written before a crash may have been routed or edited since. It stays as it is.
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
        tracing::warn!(event = %path, tries, parked, "failed to extract an event");
        Ok(ExtractEventOutput::Failed { parked })
    }

    /// Writes the event's status to its file and updates the index.
    ///
    /// The signals are left to the watcher, which wakes their matters.
    async fn update_event(&self, path: &RecordPath, edits: Vec<FieldEdit>) -> Result<(), ActivityError> {
        let (writer, event) = (Arc::clone(&self.vault.writer), path.clone());
        run_blocking(move || writer.update_status_fields(&event, &edits)).await?.map_err(retryable_failure)?;
        let root = self.vault.writer.root();
        self.vault.index.sync_paths(root, std::slice::from_ref(path), Utc::now()).await.map_err(retryable_failure)?;
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
        if ended.is_err() && !self.vault.can_write().await {
            self.cursors().run_routines_again();
        }
        ended
    }
}
