//! A run in which a model writes the pages of a source, turn by turn.
//!
//! The transcript is the truth: the pages are what its accepted calls give on the wiki as it is. A turn is kept before its calls
//! are carried out, so a crash repeats no answer that was paid for. Nothing is sent here.

use crate::files::root::VaultRoot;
use crate::wiki::ingest::read_source;
use crate::wiki::request::WikiRunError;
use crate::wiki::staged::{StagedPlan, StagedRun, StagedRunError};
use crate::wiki::state::ReadWiki;
use std::collections::BTreeMap;
use steward_domain::steward::conversation::{Conversation, ToolReply};
use steward_domain::wiki::GUIDE_FILE;
use steward_domain::wiki::assemble::render_idea;
use steward_domain::wiki::graph::choose_new_relations;
use steward_domain::wiki::registry::list_replaced;
use steward_domain::wiki::run::{RunSource, WikiRunType};
use steward_domain::wiki::source_text::SourceText;
use steward_domain::wiki::verify::RunFinding;
use steward_domain::wiki::writer::draft::{DraftInput, RunDraft};
use steward_domain::wiki::writer::prompt::{WindowFacts, build_revision, build_window};
use steward_domain::wiki::writer::related::find_related;
use steward_domain::wiki::writer::transcript::{NextStep, Transcript, TranscriptLine, WriterFailure};
use steward_domain::wiki::writer::windows::cut_windows;

/// The most calls of one turn that are carried out.
const MAX_CALLS: usize = 32;
const TOO_MANY_CALLS: &str = "error: too many calls in one turn: make fewer";

/// A run with the wiki, the source and everything that was said.
pub struct WriterSession {
    run: StagedRun,
    wiki: ReadWiki,
    source: RunSource,
    text: SourceText,
    transcript: Transcript,
}

/// What a session needs next.
#[derive(Debug)]
pub enum SessionStep {
    /// A turn with this number is sent.
    Send {
        n: u32,
        conversation: Box<Conversation>,
    },
    /// Everything is written.
    Done,
    Failed(WriterFailure),
}

impl WriterSession {
    /// Opens the session of a run on a wiki that was read.
    ///
    /// # Errors
    /// [`WikiRunError`]; it is refused if the source cannot be read, or has too many windows.
    pub fn open(root: &VaultRoot, wiki: ReadWiki, run: StagedRun) -> Result<Self, WikiRunError> {
        let source = run.meta.source.clone().ok_or_else(|| WikiRunError::refuse("the run names no source"))?;
        let text = read_source(root, &wiki, &source)?;
        let transcript = run.read_transcript()?;
        let session = Self { run, wiki, source, text, transcript };
        let windows = session.windows().len();
        session.run.meta.limits.check_parts(windows).map_err(WikiRunError::Refused)?;
        Ok(session)
    }

    #[must_use]
    pub fn run(&self) -> &StagedRun {
        &self.run
    }

    /// The wiki as it was read.
    #[must_use]
    pub fn wiki(&self) -> &ReadWiki {
        &self.wiki
    }

    #[must_use]
    pub fn transcript(&self) -> &Transcript {
        &self.transcript
    }

    /// Gives the run back.
    #[must_use]
    pub fn into_run(self) -> (StagedRun, ReadWiki) {
        (self.run, self.wiki)
    }

    /// Keeps a line.
    ///
    /// # Errors
    /// [`StagedRunError::Io`].
    pub fn append(&mut self, line: TranscriptLine) -> Result<(), StagedRunError> {
        self.run.append_transcript(&line)?;
        self.transcript.lines.push(line);
        Ok(())
    }

    /// Carries out what the model called last, and goes on until something must be sent or the run is over.
    ///
    /// # Errors
    /// [`WikiRunError`]; it is refused if the pages changed so that the calls before do not fit any more.
    pub fn advance(&mut self) -> Result<SessionStep, WikiRunError> {
        loop {
            if let Some(turn) = self.transcript.open_turn().cloned() {
                let run = |draft: &mut RunDraft<'_>| -> Vec<ToolReply> {
                    let reply = |(at, call)| {
                        if at < MAX_CALLS { draft.run_call(call) } else { ToolReply::error(TOO_MANY_CALLS) }
                    };
                    turn.calls.iter().enumerate().map(reply).collect()
                };
                let replies = self.replay(false, run)?;
                self.append(TranscriptLine::Replies { replies })?;
            }
            let has_summary = self.replay(false, |draft| draft.has_summary())?;
            match self.transcript.find_next_step(self.windows().len(), &self.run.meta.limits, has_summary) {
                NextStep::Begin(window) => {
                    let data = self.build_data(window)?;
                    self.append(TranscriptLine::Window { window, data })?;
                }
                NextStep::Remind => self.append(TranscriptLine::Reminder)?,
                NextStep::Send { n, conversation } => {
                    return Ok(SessionStep::Send { n, conversation: Box::new(conversation) });
                }
                NextStep::Done => return Ok(SessionStep::Done),
                NextStep::Failed(failure) => return Ok(SessionStep::Failed(failure)),
            }
        }
    }

    /// Tells the writer what a verifier found.
    ///
    /// # Errors
    /// [`StagedRunError::Io`].
    pub fn begin_revision(&mut self, findings: &[RunFinding]) -> Result<(), StagedRunError> {
        let Some((window, data)) = self.transcript.last_window() else { return Ok(()) };
        let data = build_revision(data, findings);
        self.append(TranscriptLine::Window { window, data })
    }

    /// Stages what was written, judged again on the wiki as it is.
    ///
    /// # Errors
    /// [`WikiRunError`]; it is refused if the pages changed so that it does not fit any more.
    pub fn stage(&self) -> Result<(), WikiRunError> {
        let links = self.wiki.state.manifest.find_text(&["curation", "autoLink"]) == Some("byName");
        let finished = self.replay(true, |draft| {
            draft.finish(links)?;
            let graph = self.wiki.state.texts.graph.as_deref();
            let relations = choose_new_relations(&draft.list_relations(), graph, |_| true);
            Ok::<_, String>((
                draft.list_files(),
                draft.state().ideas.clone(),
                draft.state().unchanged.clone(),
                relations,
            ))
        })?;
        let (files, ideas, unchanged, relations) = finished.map_err(WikiRunError::Refused)?;
        // Pages that the run made itself are offered in later windows.
        let mut offered = self.transcript.list_offered();
        offered.retain(|slug| self.wiki.state.pages.iter().any(|page| page.slug == *slug));
        let ideas = ideas.iter().map(|idea| render_idea(idea, &self.source.id, self.run.meta.began)).collect();
        let notes = unchanged.iter().map(|page| format!("{} needs no change: {}", page.slug, page.reason)).collect();
        let unchanged = unchanged.into_iter().map(|page| page.slug).collect();
        let plan = StagedPlan {
            ideas,
            relations,
            notes,
            offered: offered.into_iter().collect(),
            unchanged,
            ..StagedPlan::default()
        };
        Ok(self.run.stage(&files, plan)?)
    }

    fn windows(&self) -> Vec<&str> {
        cut_windows(self.text.as_str(), self.text.is_markdown)
    }

    /// What the model is told about a window.
    fn build_data(&self, window: usize) -> Result<serde_json::Value, WikiRunError> {
        let windows = self.windows();
        let text = windows.get(window).copied().unwrap_or_default();
        let guide =
            self.wiki.accepted.as_ref().and_then(|accepted| accepted.files.get(GUIDE_FILE)).map_or("", String::as_str);
        let replaces = list_replaced(&self.wiki.contents.sources, &self.source.id);
        self.replay(false, |draft| {
            build_window(&WindowFacts {
                manifest: &self.wiki.state.manifest,
                guide,
                pages: draft.pages(),
                related: &find_related(draft.pages(), text, &replaces),
                source_id: &self.source.id,
                source_title: self.source_title(),
                replaces: &replaces,
                part: (window + 1, windows.len()),
                text,
            })
        })
    }

    fn source_title(&self) -> &str {
        self.wiki.contents.sources.get(&self.source.id).map_or(&self.source.id, |known| &known.title)
    }

    /// Carries out the accepted calls on the wiki as it is, and then something with the draft.
    fn replay<T>(&self, judge: bool, work: impl FnOnce(&mut RunDraft<'_>) -> T) -> Result<T, WikiRunError> {
        let texts = BTreeMap::from([(self.source.id.clone(), self.text.finder())]);
        let input = DraftInput {
            folder: &self.run.meta.folder,
            manifest: &self.wiki.state.manifest,
            pages: &self.wiki.state.pages,
            source: Some(&self.source.id),
            texts: &texts,
            paths: &BTreeMap::new(),
            files: &self.wiki.contents.files,
            began: self.run.meta.began,
            // The summary may still come.
            run_type: WikiRunType::Manual,
        };
        let mut draft = RunDraft::new(&input);
        for call in self.transcript.list_accepted() {
            if draft.replay_call(call, judge).is_err() {
                let reason = "stale_plan: pages changed while they were written, and the changes do not fit any more";
                return Err(WikiRunError::refuse(reason));
            }
        }
        Ok(work(&mut draft))
    }
}
