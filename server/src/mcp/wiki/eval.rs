//! `eval`: how a wiki stands by its metrics, and a new measurement of one.
//!
//! A measurement asks models, so it needs the right to write, and goes through the rate guard. It changes no page. A broken metric holds runs; nothing here
//! ends that.

use super::PATIENCE;
use super::search::read_moment;
use crate::mcp::caller::ToolNeed;
use crate::mcp::error::{REASON, ToolError, ToolErrorCode, refuse_request};
use crate::mcp::schema::{describe_arguments, describe_result};
use crate::mcp::tool::{ToolAnswer, ToolCall, ToolDefinition, ToolKind, answer_value};
use crate::mcp::workspace::Workspace;
use crate::temporal::resolve::ResolutionRequestError;
use chrono::{DateTime, TimeDelta, Utc};
use rmcp::schemars::{self, JsonSchema};
use serde::{Deserialize, Serialize};
use steward_domain::time::format_seconds;
use steward_domain::wiki::fidelity::EvalMethod;
use steward_domain::wiki::metrics::{MetricReading, WikiMetric};
use steward_vault::wiki::cost::read_cost;
use steward_vault::wiki::evals::read_evals;
use steward_vault::wiki::metrics::read_metrics;
use steward_workflows::{EvalInput, EvalOutput};
use tokio::runtime::Handle;

/// How many measurements of a wiki a caller may have in a day. One that was refused does not count.
const MAX_RUNS_A_DAY: usize = 6;
/// How many claims or pairs of them a measurement asks about, as the command does.
const MEASURED_CLAIMS: u32 = 50;
/// The status of a refusal by the rate guard.
const TOO_MANY_REQUESTS: u16 = 429;

pub(super) const TOOL: ToolDefinition = ToolDefinition {
    name: "eval",
    title: "Metrics",
    description: "Shows how the wiki stands: citation fidelity M1, coverage M2, answers to gold questions M3, cost M4, self-consistency M5; with action=run it measures M1, M3 or M5 anew by models. Example: eval(metric=\"M1\")",
    kind: ToolKind { read_only: false, idempotent: false, ..ToolKind::READ_WIKI },
    arguments: describe_arguments::<EvalArguments>,
    result: Some(describe_result::<EvalResult>),
    run: show_or_measure,
};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema, strum::Display)]
#[schemars(inline)]
enum MetricArgument {
    M1,
    M2,
    M3,
    M4,
    M5,
    #[default]
    #[serde(rename = "all")]
    All,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[schemars(inline)]
#[serde(rename_all = "snake_case")]
enum EvalAction {
    #[default]
    Report,
    Run,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct EvalArguments {
    #[serde(default)]
    metric: MetricArgument,
    /// What was measured from this day or moment on.
    #[schemars(length(max = 40))]
    since: Option<String>,
    #[serde(default)]
    action: EvalAction,
}

#[derive(Debug, Serialize, JsonSchema)]
struct EvalResult {
    metrics: Vec<MetricEntry>,
    /// Of a new measurement: `measured`, or `running`; then ask for the report later.
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<&'static str>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
struct MetricEntry {
    metric: &'static str,
    name: String,
    /// `unknown`, `healthy`, `degraded`, `broken`, or `informs`.
    state: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    score: Option<f64>,
    /// Below it the metric is broken.
    #[serde(skip_serializing_if = "Option::is_none")]
    floor: Option<f64>,
    /// Which runs wait for a person.
    #[serde(skip_serializing_if = "Option::is_none")]
    holds: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    measured_at: Option<String>,
    /// Of M4: what an ingested source took, and about what one question to all sources would.
    #[serde(skip_serializing_if = "Option::is_none")]
    ingest_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    question_tokens: Option<u64>,
}

impl MetricArgument {
    fn shows(self, id: &str) -> bool {
        self == Self::All || self.to_string() == id
    }

    /// How it is measured.
    ///
    /// # Errors
    /// It is not measured by itself.
    fn find_method(self) -> Result<EvalMethod, ToolError> {
        match self {
            Self::M1 => Ok(EvalMethod::Fidelity),
            Self::M3 => Ok(EvalMethod::Gold),
            Self::M5 => Ok(EvalMethod::Consistency),
            Self::M2 | Self::M4 | Self::All => {
                let what = "one metric is measured at once, and M2 and M4 follow from the ingests";
                Err(ToolError::new(ToolErrorCode::BadArguments, what, "Name M1, M3 or M5"))
            }
        }
    }
}

fn show_or_measure(call: &ToolCall) -> Result<ToolAnswer, ToolError> {
    let (workspace, arguments) = call.open::<EvalArguments>()?;
    let since = arguments.since.as_deref().map(read_moment).transpose()?;
    let run = match arguments.action {
        EvalAction::Report => None,
        EvalAction::Run => Some(measure(call, &workspace, arguments.metric.find_method()?)?),
    };
    answer_value(&EvalResult { metrics: list_metrics(&workspace, arguments.metric, since)?, run })
}

fn list_metrics(
    workspace: &Workspace<'_>,
    wanted: MetricArgument,
    since: Option<DateTime<Utc>>,
) -> Result<Vec<MetricEntry>, ToolError> {
    let root = workspace.vault.root();
    let readings = read_metrics(root, &workspace.name).map_err(ToolError::internal)?;
    let is_recent = |reading: &MetricReading| since.is_none_or(|since| reading.at.is_some_and(|at| at >= since));
    let chosen = readings.iter().filter(|reading| wanted.shows(reading.metric.id()) && is_recent(reading));
    let mut entries: Vec<MetricEntry> = chosen.map(describe_reading).collect();
    // The cost has no moment.
    if wanted.shows("M4") && since.is_none() {
        let cost = read_cost(root, &workspace.name).map_err(ToolError::internal)?;
        entries.push(MetricEntry {
            metric: "M4",
            name: "cost".to_owned(),
            state: "informs".to_owned(),
            score: None,
            floor: None,
            holds: None,
            measured_at: None,
            ingest_tokens: Some(cost.tokens_per_source()),
            question_tokens: Some(cost.question_tokens),
        });
    }
    entries.sort_by_key(|entry| entry.metric);
    Ok(entries)
}

fn describe_reading(reading: &MetricReading) -> MetricEntry {
    let metric = reading.metric;
    let holds = match (reading.is_broken(), metric.holds_attended()) {
        (false, _) => None,
        (true, true) => Some("all runs"),
        (true, false) => Some("runs that nobody asked for"),
    };
    MetricEntry {
        metric: metric.id(),
        name: metric.to_string(),
        state: reading.state.to_string(),
        score: reading.rate.share,
        // Only a fall breaks the answers to gold questions.
        floor: (metric != WikiMetric::Retroactive).then(|| metric.thresholds().1),
        holds,
        measured_at: reading.at.map(format_seconds),
        ingest_tokens: None,
        question_tokens: None,
    }
}

/// Measures anew, one measurement of a wiki at a time.
fn measure(call: &ToolCall, workspace: &Workspace<'_>, method: EvalMethod) -> Result<&'static str, ToolError> {
    if !call.caller.has(ToolNeed::Write) {
        let what = "a measurement asks models, and your rights allow reading alone";
        return Err(ToolError::new(ToolErrorCode::ScopeTooSmall, what, "Ask for the report, with action=\"report\""));
    }
    let now = Utc::now();
    let reports = read_evals(workspace.vault.root(), &workspace.name).map_err(ToolError::internal)?;
    let is_recent = |at: DateTime<Utc>| now - at < TimeDelta::days(1);
    let own =
        reports.iter().map(|report| report.find_request()).filter(|(by, at)| *by == call.caller.name && is_recent(*at));
    if own.count() >= MAX_RUNS_A_DAY {
        let what = format!("you measured this wiki {MAX_RUNS_A_DAY} times within a day");
        return Err(ToolError::new(ToolErrorCode::TooFast, what, "A person can measure: `steward wiki eval run`"));
    }
    let holder = Handle::current().block_on(workspace.vault.reach_holder())?;
    let by = call.caller.name.clone();
    let input =
        EvalInput { wiki: workspace.name.clone(), method, claims: MEASURED_CLAIMS, by, at: now, needs_room: true };
    match Handle::current().block_on(holder.request_assistant_eval(input, PATIENCE)) {
        Ok(EvalOutput::Measured) => Ok("measured"),
        Ok(EvalOutput::Refused { status: TOO_MANY_REQUESTS, message }) => {
            let what = "the rate guard refuses the calls of a measurement";
            Err(ToolError::new(ToolErrorCode::GuardRefused, what, "Ask again when the cap has room")
                .with_outside(REASON, &message))
        }
        Ok(EvalOutput::Refused { message, .. }) => {
            let fix = "A person can see more: `steward wiki eval report`";
            Err(ToolError::new(ToolErrorCode::Refused, "the wiki is not measured now", fix)
                .with_outside(REASON, &message))
        }
        Err(ResolutionRequestError::Late { .. }) => Ok("running"),
        Err(error) => Err(refuse_request(&error)),
    }
}
