//! The command `steward tick`: one tick of one matter, now.
//!
//! It starts the same workflow as the matter's schedule. It prints the workflow's id, or with `--wait` the report.
//! With `--shadow` the tick decides but changes nothing.

use crate::cli::output::{CommandExit, CommandOutput, escape_text};
use crate::cli::style::TextStyle;
use crate::cli::table::create_table;
use crate::config::StewardConfig;
use crate::registrar::desired;
use crate::temporal;
use anyhow::bail;
use serde_json::json;
use std::time::Duration;
use steward_domain::fleet::names::VaultNames;
use steward_domain::record::path::RecordPath;
use steward_domain::record::plain_text::count_noun;
use steward_domain::steward::tick::{TaskCheckOutcome, TaskCheckReport, TaskSkipReason, TickReport};
use steward_server::temporal::service_pause::read_service_pause;
use steward_server::views::quote_argument;
use steward_vault::files::root::{VaultRoot, VaultRootError};
use steward_vault::gates::stop::{self, VaultStop};
use steward_workflows::CALLER_MEMO;
use steward_workflows::StewardWorkflow;
use steward_workflows::schedule_id;
use temporalio_client::{Client, WorkflowIdConflictPolicy, WorkflowStartOptions};
use temporalio_common::MemoValues;

/// The timeouts of a tick, as in its schedule: 5 min.
const RUN_TIMEOUT: Duration = Duration::from_secs(300);

pub(crate) async fn run(
    config: &StewardConfig,
    tick: &crate::cli::TickArgs,
    out: CommandOutput,
) -> anyhow::Result<CommandExit> {
    let mut matter = super::names::parse_matter(&tick.matter)?;
    if let Some(vault) = &config.vault {
        let root = VaultRoot::open(vault)?;
        if !root.exists(&matter) {
            matter = super::names::find_matter(&super::open_index(config).await?, &tick.matter).await?;
        }
        if let Err(VaultRootError::Missing { path }) = root.read_file(&matter) {
            bail!("{path} is not in the vault {}: give the path, name or title of an existing matter", vault.display());
        }
        if let Some(pause) = read_service_pause(&root, &config.state_dir()?) {
            out.print_value(&json!({"paused": pause.reason}), || {
                format!("nothing was started: {}", escape_text(&pause.reason))
            })?;
            return Ok(CommandExit::Refused);
        }
        // With --wait the report says it. Without it nobody would learn that the started tick does nothing.
        if let Some(stop) = stop::read_stop(&root).filter(|_| !tick.wait) {
            out.print_value(&json!({"stopped": true, "stop": stop}), || describe_refusal(&stop))?;
            return Ok(CommandExit::Refused);
        }
    }
    let client = temporal::connect_client(config, Vec::new()).await?;
    desired::check_owner(config, &client).await?;
    let id = build_workflow_id(&config.vault_names(), &matter, tick.shadow);
    if !tick.wait {
        client
            .start_workflow(
                StewardWorkflow::run,
                matter.to_string().into(),
                build_start_options(config, &matter, tick.shadow),
            )
            .await?;
        out.print_value(&json!({"workflow_id": id}), || format!("started {id}"))?;
        return Ok(CommandExit::Ok);
    }
    let report = tick_matter(&client, config, &matter, tick.shadow).await?;
    out.print_value(&report, || TextStyle::current().wrap_lines(&describe_tick(&report)))?;
    Ok(exit_code(&report))
}

fn describe_refusal(stop: &VaultStop) -> String {
    let reason = stop.reason.as_deref().map(|reason| format!(": {}", escape_text(reason))).unwrap_or_default();
    let (by, at) = (escape_text(&stop.by), escape_text(&stop.at));
    format!("nothing was started: the vault was stopped by {by} at {at}{reason}; `steward resume` ends the stop")
}

/// The exit code for scripts: 4 if anything failed, 3 if the vault is stopped, otherwise 0.
fn exit_code(report: &TickReport) -> CommandExit {
    let failed = |task: &TaskCheckReport| {
        matches!(task.ended, TaskCheckOutcome::ClerkFailed { .. } | TaskCheckOutcome::Error { .. })
    };
    if !report.errors.is_empty() || report.evaluated.iter().any(failed) {
        CommandExit::Faults
    } else if report.stopped {
        CommandExit::Refused
    } else {
        CommandExit::Ok
    }
}

/// A shadow tick has an id of its own. Under the id of a tick that is still running it would join that tick, which may
/// change files.
fn build_workflow_id(names: &VaultNames, matter: &RecordPath, shadow: bool) -> String {
    names.qualify_id(&format!("{}-by-hand{}", schedule_id(matter), if shadow { "-shadow" } else { "" }))
}

fn build_start_options(config: &StewardConfig, matter: &RecordPath, shadow: bool) -> WorkflowStartOptions {
    let options =
        WorkflowStartOptions::new(config.task_queue.clone(), build_workflow_id(&config.vault_names(), matter, shadow))
            .execution_timeout(RUN_TIMEOUT)
            .run_timeout(RUN_TIMEOUT)
            .id_conflict_policy(WorkflowIdConflictPolicy::UseExisting)
            .static_summary(format!("Steward of {matter}, by hand"));
    if shadow {
        let mut memo = MemoValues::new();
        memo.insert(CALLER_MEMO, "shadow".to_owned());
        options.memo(memo).build()
    } else {
        options.build()
    }
}

/// Ticks a matter and waits for the report.
pub(crate) async fn tick_matter(
    client: &Client,
    config: &StewardConfig,
    matter: &RecordPath,
    shadow: bool,
) -> anyhow::Result<TickReport> {
    let options = build_start_options(config, matter, shadow);
    let handle = client.start_workflow(StewardWorkflow::run, matter.to_string().into(), options).await?;
    Ok(handle.get_result(Default::default()).await?)
}

fn describe_tick(report: &TickReport) -> String {
    let mut lines = Vec::new();
    if report.stopped {
        lines.push("The vault is stopped: `steward resume` ends the stop.".to_owned());
    }
    if !report.evaluated.is_empty() {
        let mut rows =
            create_table(&["task", "decision", "confidence", "disposition", "action"], &["task", "decision"]);
        for task in &report.evaluated {
            rows.add_row(build_task_row(&task.task, &task.ended));
        }
        lines.push(rows.to_string());
    }
    lines.push(format!(
        "{}: {} evaluated, {} without news, {} skipped, {} still due, {}; a check every {} min",
        report.matter,
        count_noun(report.evaluated.len() as u64, "task"),
        report.quiet,
        report.skipped.values().sum::<u32>(),
        report.left_due,
        count_noun(report.signals.into(), "signal"),
        report.interval_seconds / 60
    ));
    if let Some(tasks) = report.skipped.get(&TaskSkipReason::QuietHours) {
        lines.push(format!(
            "{} for the end of the quiet hours: see `steward policy check {}`",
            if *tasks == 1 { "1 task waits".to_owned() } else { format!("{tasks} tasks wait") },
            quote_argument(
                report.matter.strip_prefix("matter/").and_then(|m| m.strip_suffix(".md")).unwrap_or(&report.matter)
            )
        ));
    }
    lines.extend(report.errors.iter().map(|e| escape_text(e)));
    lines.join("\n")
}

fn build_task_row(task: &RecordPath, ended: &TaskCheckOutcome) -> Vec<String> {
    let (decision, confidence, disposition, action) = match ended {
        TaskCheckOutcome::Decided { decision, confidence, disposition, action_id } => {
            (decision.as_str().to_owned(), format!("{confidence:.2}"), disposition.as_str(), action_id.to_string())
        }
        TaskCheckOutcome::RateGuarded { confidence, reason } => {
            (format!("rate guarded: {}", escape_text(reason)), format!("{confidence:.2}"), "", String::new())
        }
        TaskCheckOutcome::ClerkFailed { reason } => {
            (format!("no answer from the clerk: {}", escape_text(reason)), String::new(), "", String::new())
        }
        TaskCheckOutcome::ChangedMeanwhile => ("changed meanwhile, stays due".into(), String::new(), "", String::new()),
        TaskCheckOutcome::NoTimeLeft => ("no time left, stays due".into(), String::new(), "", String::new()),
        TaskCheckOutcome::Stopped => ("stopped, stays due".into(), String::new(), "", String::new()),
        TaskCheckOutcome::Error { reason } => {
            (format!("error: {}", escape_text(reason)), String::new(), "", String::new())
        }
    };
    vec![task.slug().to_owned(), decision, confidence, disposition.to_owned(), action]
}
