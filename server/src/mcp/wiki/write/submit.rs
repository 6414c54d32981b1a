//! Submits a run by its entry for the log, and says what became of it.
//!
//! The process that holds the vault is reached first: without it the run stays open. Then the run is closed, and a workflow carries it out.

use super::header::{LogHeader, read_header};
use super::result::{ChangeResult, MAX_WARNING};
use super::runs::{RunChoice, open_run, refuse_change};
use super::{WriteArguments, WriteOperation, to_written_file};
use crate::mcp::error::{ToolError, ToolErrorCode, show_reason};
use crate::mcp::steward::find_card_address;
use crate::mcp::tool::ToolCall;
use crate::mcp::wiki::PATIENCE;
use crate::mcp::wiki::excerpt::shorten_words;
use crate::mcp::workspace::Workspace;
use crate::temporal::resolve::ResolutionRequestError;
use crate::views::wiki::shorten_run;
use chrono::Utc;
use steward_domain::action::audit::ActionKind;
use steward_domain::wiki::run::{RunId, derive_record_id};
use steward_domain::wiki::writer::draft::PageChange;
use steward_vault::wiki::guardian::{GuardianSession, Submission};
use steward_vault::wiki::staged::StagedRuns;
use steward_vault::wiki::state::read_wiki_to_stage;
use steward_workflows::{AssistantRunInput, IngestOutput};
use tokio::runtime::Handle;

/// The most notes about a commit, and the most characters of why a run was refused.
const MAX_NOTES: usize = 20;
const MAX_MESSAGE: usize = 4_000;

/// Submits the run that the call names.
///
/// # Errors
/// The entry, the run or its pages are not right, or the process that holds the vault is not reached. Then the run is open.
pub(super) fn submit_run(
    call: &ToolCall,
    workspace: &Workspace<'_>,
    arguments: &WriteArguments,
) -> Result<ChangeResult, ToolError> {
    let (WriteOperation::Append, Some(content)) = (arguments.op, &arguments.content) else {
        let what = "the log only grows";
        return Err(ToolError::new(ToolErrorCode::BadArguments, what, "Use op=\"append\" with `content`"));
    };
    let header = read_header(content)?;
    let Some(name) = arguments.run_id.as_deref() else {
        let what = "the entry names no run";
        return Err(ToolError::new(
            ToolErrorCode::RunIncomplete,
            what,
            "Stage pages first, and give the `run_id` of the answer",
        ));
    };
    let keeps = read_keeps(arguments)?;
    let (mut session, _) = open_run(call, workspace, &RunChoice { run: Some(name), run_type: None, source: None })?;
    check_type(&session, &header)?;
    let touched = find_touched(&session, &header)?;
    let holder = Handle::current().block_on(workspace.vault.reach_holder())?;
    session
        .submit(&Submission { subject: &header.subject, touched: &touched, keeps: &keeps }, Utc::now())
        .map_err(refuse_change)?;
    let submission = u32::try_from(session.count_submissions()).unwrap_or(u32::MAX);
    let run = session.run().meta.run.clone();
    // The process that holds the vault needs the run now.
    drop(session);
    let input = AssistantRunInput { wiki: workspace.name.clone(), run: run.clone(), submission };
    let outcome = Handle::current().block_on(holder.request_assistant_run(input, PATIENCE));
    if let Err(ResolutionRequestError::Away { .. } | ResolutionRequestError::Paused { .. }) = &outcome {
        reopen_run(call, workspace, &run)?;
    }
    // A person decides on the page of the run, if a dashboard runs.
    let find_card = || find_card_address(call, &workspace.name, run.short());
    describe_outcome(&workspace.name, run.as_str(), outcome, find_card)
}

/// Opens a run again that could not be submitted.
fn reopen_run(call: &ToolCall, workspace: &Workspace<'_>, run: &RunId) -> Result<(), ToolError> {
    let root = workspace.vault.root();
    let staged = StagedRuns::new(root).open(run).map_err(ToolError::internal)?;
    let wiki = read_wiki_to_stage(root, &workspace.name, &staged.meta.folder).map_err(ToolError::internal)?;
    let mut session = GuardianSession::resume(root, wiki, staged).map_err(ToolError::internal)?;
    if session.run().meta.by == call.caller.name && session.is_submitted() {
        session.withdraw_submission(Utc::now(), "it could not be submitted").map_err(ToolError::internal)?;
    }
    Ok(())
}

fn read_keeps(arguments: &WriteArguments) -> Result<Vec<PageChange>, ToolError> {
    let keep = |page: &super::UnchangedPage| {
        let path = if page.page.contains('/') { page.page.clone() } else { format!("wiki/{}", page.page) };
        Ok(PageChange::Keep { file: to_written_file(&path)?, reason: page.reason.clone() })
    };
    arguments.no_change.iter().map(keep).collect()
}

fn check_type(session: &GuardianSession, header: &LogHeader) -> Result<(), ToolError> {
    let own = session.run().meta.run_type;
    if own == header.run_type {
        return Ok(());
    }
    let what = format!("the entry says `{}`, and the run is of the type {own}", header.run_type);
    Err(ToolError::new(ToolErrorCode::LogHeaderUnparseable, what, "Name the type of the run; an archive is `query`"))
}

/// The staged files that the entry names, by path or slug. What names no staged file stays as it is, so that it is reported.
fn find_touched(session: &GuardianSession, header: &LogHeader) -> Result<Vec<String>, ToolError> {
    let staged = session.list_pages().map_err(refuse_change)?;
    let find = |name: &String| {
        let wanted = name.trim_start_matches('/').trim_start_matches("wiki/").trim_end_matches(".md");
        let is_meant = |file: &str| {
            let stem = file.trim_end_matches(".md");
            stem == wanted || stem.rsplit('/').next() == Some(wanted)
        };
        staged.iter().find(|page| is_meant(&page.file)).map_or_else(|| name.clone(), |page| page.file.clone())
    };
    let is_rendered =
        |file: &String| matches!(file.as_str(), "index" | "log" | "overview" | "index.md" | "log.md" | "overview.md");
    Ok(header.touched.iter().map(find).filter(|file| !is_rendered(file)).collect())
}

/// What became of a run that was submitted.
fn describe_outcome(
    wiki: &str,
    run: &str,
    outcome: Result<IngestOutput, ResolutionRequestError>,
    find_card: impl FnOnce() -> Option<String>,
) -> Result<ChangeResult, ToolError> {
    let short = shorten_run(run);
    let describe = |state: &str, next: String| ChangeResult::of_run(run, state, next);
    let submitted = |state: &str, next: String| ChangeResult {
        action: Some(derive_record_id(ActionKind::Wiki, run, wiki).to_string()),
        ..describe(state, next)
    };
    Ok(match outcome {
        Ok(IngestOutput::Committed { notes, .. }) => ChangeResult {
            warnings: notes.iter().take(MAX_NOTES).map(|note| shorten_words(note, MAX_WARNING)).collect(),
            ..submitted("committed", format!("Done. `steward wiki runs revert {short}` takes it back"))
        },
        Ok(IngestOutput::Pending { .. }) => {
            let card = find_card();
            let place = match &card {
                Some(_) => "show them `card`".to_owned(),
                None => format!("`steward wiki runs approve {short}`, or its page in the dashboard"),
            };
            let next = format!("A person decides about it: {place}. `history(run_id=\"{short}\")` shows why it waits");
            ChangeResult { card, ..submitted("pending", next) }
        }
        Ok(IngestOutput::Nothing { reason }) => ChangeResult {
            warnings: vec![shorten_words(&reason, MAX_MESSAGE)],
            ..describe("rejected", "The run has ended, and nothing was changed".to_owned())
        },
        Ok(IngestOutput::Refused { message, .. }) => {
            let (state, next) = match message.starts_with("revise: ") {
                true => (
                    "open",
                    format!(
                        "Correct what was found within 60 minutes and append the entry again; `history(run_id=\"{short}\")` shows it"
                    ),
                ),
                false => ("rejected", "The run has ended, and nothing was changed".to_owned()),
            };
            ChangeResult { warnings: vec![shorten_words(&message, MAX_MESSAGE)], ..describe(state, next) }
        }
        Err(ResolutionRequestError::Late { .. }) => {
            submitted("verifying", format!("It goes on without you. Ask `history(run_id=\"{short}\")` in a minute"))
        }
        Err(error @ (ResolutionRequestError::Away { .. } | ResolutionRequestError::Paused { .. })) => {
            let what = format!("the run is open as before: {}", show_reason(&error.to_string()));
            let fix = "Start `steward up`, then append the entry again";
            return Err(ToolError::new(ToolErrorCode::EngineAway, what, fix));
        }
        Err(ResolutionRequestError::Failed { reason, .. }) => return Err(ToolError::internal(reason)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_waits_names_its_card_or_the_command() {
        let run: RunId = "r-20261124T091504Z-3f9a1c22".parse().unwrap();
        let describe = |outcome: IngestOutput, card: Option<&str>| {
            describe_outcome("allotment", run.as_str(), Ok(outcome), || card.map(str::to_owned)).unwrap()
        };
        let card = "http://127.0.0.1:8420/wikis/allotment/runs/3f9a1c22";
        let shown = describe(IngestOutput::Pending { run: run.clone() }, Some(card));
        assert_eq!(
            (shown.state.as_str(), shown.card.as_deref(), shown.action.is_some()),
            ("pending", Some(card), true)
        );
        assert!(!shown.next.contains("steward wiki runs approve"), "{}", shown.next);
        let hidden = describe(IngestOutput::Pending { run: run.clone() }, None);
        assert!(hidden.card.is_none() && hidden.next.contains("steward wiki runs approve 3f9a1c22"), "{}", hidden.next);
        let refused =
            IngestOutput::Refused { run: None, status: 422, message: format!("revise: {}", "x".repeat(9_000)) };
        let refused = describe(refused, Some(card));
        assert!(refused.card.is_none() && refused.warnings[0].0.chars().count() <= MAX_MESSAGE + 1);
    }
}
