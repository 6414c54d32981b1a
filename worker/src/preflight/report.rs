//! What a preflight found, as one line for each shape and outcome.
//!
//! It counts and sorts; it must not judge.

use super::history::RunShape;
use super::replay::ReplayOutcome;
use super::runs::WorkflowRun;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

/// Most open runs that one line names.
const NAMED_RUNS: usize = 3;

/// Where the ways to deploy a breaking change are explained.
const GUIDE: &str = "docs/operations.md#deploy-a-new-version";

/// The outcome for a person, if nothing breaks and everything was looked at.
pub(crate) const ALL_SAFE: &str = "This build can continue all of them.";

/// What a preflight found.
#[derive(Debug, Default, Serialize)]
pub(crate) struct PreflightReport {
    /// Open runs that were looked at.
    pub(crate) open: usize,
    /// How many of them have no completed workflow task, so that any build can begin them.
    pub(crate) not_begun: usize,
    /// Ended runs that were looked at.
    pub(crate) closed: usize,
    /// How many of them were replayed.
    pub(crate) closed_replayed: usize,
    /// One entry for each shape and outcome; what is not safe comes first.
    pub(crate) shapes: Vec<ShapeReport>,
    /// What could not be looked at, and why.
    pub(crate) not_checked: Vec<String>,
    #[serde(skip)]
    places: BTreeMap<(RunShape, ReplayOutcome), usize>,
}

/// The runs of one shape with one outcome.
#[derive(Debug, Serialize)]
pub(crate) struct ShapeReport {
    pub(crate) workflow_type: String,
    pub(crate) events: usize,
    pub(crate) outcome: ReplayOutcome,
    /// The open runs, or the files, by name.
    pub(crate) open: Vec<String>,
    /// The number of ended runs that were replayed.
    pub(crate) closed: usize,
}

impl PreflightReport {
    /// Nothing could be looked at.
    pub(crate) fn new_unread(reason: String) -> Self {
        Self { not_checked: vec![reason], ..Self::default() }
    }

    pub(super) fn add_outcome(&mut self, shape: RunShape, outcome: ReplayOutcome, open: Option<String>) {
        if let ReplayOutcome::NoHistory { message } = outcome {
            return self.add_unreadable_file(&open.unwrap_or(shape.workflow_type), message);
        }
        let (workflow_type, events) = (shape.workflow_type.clone(), shape.events);
        let next = self.shapes.len();
        let place = *self.places.entry((shape, outcome.clone())).or_insert(next);
        if place == next {
            self.shapes.push(ShapeReport { workflow_type, events, outcome, open: Vec::new(), closed: 0 });
        }
        let Some(entry) = self.shapes.get_mut(place) else { return };
        match open {
            Some(name) => entry.open.push(name),
            None => entry.closed += 1,
        }
    }

    pub(super) fn add_unreadable_file(&mut self, name: &str, message: String) {
        self.not_checked.push(format!("{name}: {}", ReplayOutcome::NoHistory { message }));
    }

    pub(super) fn add_unread_run(&mut self, run: &WorkflowRun, error: &anyhow::Error) {
        self.not_checked.push(format!("failed to read the run {}: {error:#}", run.workflow_id));
    }

    /// Sorts the shapes: what is not safe first, then by workflow and length.
    pub(crate) fn sort(&mut self) {
        self.places.clear();
        self.shapes.sort_by(|one, other| {
            let key = |each: &ShapeReport| (each.outcome.is_safe(), each.workflow_type.clone(), each.events);
            key(one).cmp(&key(other))
        });
        self.shapes.iter_mut().for_each(|each| each.open.sort());
    }

    /// The shapes that this build would break.
    pub(crate) fn list_breaking(&self) -> impl Iterator<Item = &ShapeReport> {
        self.shapes.iter().filter(|each| !each.outcome.is_safe())
    }

    pub(crate) fn is_safe(&self) -> bool {
        self.list_breaking().next().is_none()
    }

    /// Describes the shapes for a person, a line for each, and what to do.
    pub(crate) fn describe(&self, heading: &str) -> String {
        let mut text = heading.to_owned();
        for each in &self.shapes {
            let _ = write!(text, "\n  {each}");
        }
        for problem in &self.not_checked {
            let _ = write!(text, "\nNot checked: {problem}");
        }
        let outcome = match (self.is_safe(), self.not_checked.is_empty()) {
            (true, true) => ALL_SAFE.to_owned(),
            (true, false) => "Not everything could be checked. Run the command again.".to_owned(),
            (false, _) => format!(
                "This build would break them. Guard the change with ctx.patched(..), drain the vault with \
                 `steward drain`, or terminate the runs that may simply be repeated: {GUIDE}"
            ),
        };
        let _ = write!(
            text,
            "\n{outcome}\nNo check sees changed timeouts or durations, nor a step that is added after the end of an open \
             run's history."
        );
        text
    }
}

impl fmt::Display for ShapeReport {
    /// One line: the workflow, the outcome and the runs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {} events: {}", self.workflow_type, self.events, self.outcome)?;
        let named = self.open.iter().take(NAMED_RUNS).map(String::as_str).collect::<Vec<_>>().join(", ");
        let more = self.open.len().saturating_sub(NAMED_RUNS);
        let runs = match (self.open.len(), more) {
            (0, _) => format!("{} ended", self.closed),
            (open, _) if self.outcome.is_safe() && self.closed > 0 => format!("{open} open, {} ended", self.closed),
            (open, _) if self.outcome.is_safe() && open > 1 => format!("{open} runs"),
            (_, 0) => named,
            (_, more) => format!("{named} and {more} more"),
        };
        write!(f, " [{runs}]")
    }
}
