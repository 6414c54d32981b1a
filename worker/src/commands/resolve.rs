//! The commands `steward undo`, `confirm` and `dismiss`: a person's resolution of an action, carried out by a workflow.
//!
//! The command itself writes nothing. The process that holds the vault writes, on the one write path. The command
//! reaches it through Temporal, or through gRPC if a server is named; the result is the same. If nothing runs, the
//! command starts what it needs and stops it again. A refusal has an exit code of its own.

mod standalone;

use crate::cli;
use crate::cli::output::{CommandExit, CommandOutput, escape_text};
use crate::config::StewardConfig;
use crate::registrar::desired;
use crate::remote::RemoteStewardClient;
use crate::temporal;
use crate::temporal::note::VaultHolder;
use anyhow::{Context, bail};
use steward_domain::action::audit::ResolverKind;
use steward_domain::action::mutation::Mutation;
use steward_domain::action::undo::ResolutionKind;
use steward_domain::record::entity::RecordState;
use steward_domain::record::path::RecordPath;
use steward_domain::trust::mark::TrustSubject;
use steward_server::temporal::resolve::{ResolutionClient, ResolutionRequestError, describe_resolution};
use steward_server::temporal::service_pause::read_service_pause;
use steward_vault::files::root::VaultRoot;
use steward_workflows::ResolveBatchInput;
use steward_workflows::activities::{ResolveInput, ResolveOutput};

pub(crate) async fn undo_actions(
    config: &StewardConfig,
    resolution: cli::ResolveArgs,
    out: CommandOutput,
) -> anyhow::Result<CommandExit> {
    submit_resolution(config, ResolutionKind::Undo, None, resolution, out).await
}

pub(crate) async fn confirm_actions(
    config: &StewardConfig,
    confirm: cli::ConfirmArgs,
    out: CommandOutput,
) -> anyhow::Result<CommandExit> {
    let cli::ConfirmArgs { resolution, set } = confirm;
    let edited = match set {
        Some(value) => {
            let [action] = resolution.actions.as_slice() else {
                bail!("--set needs exactly one action: run the command once for each action")
            };
            Some(edit_proposal(config, action, &value).await?)
        }
        None => None,
    };
    submit_resolution(config, ResolutionKind::Confirm, edited, resolution, out).await
}

/// Reads the proposed change of an action and replaces its value.
async fn edit_proposal(config: &StewardConfig, action: &str, value: &str) -> anyhow::Result<Mutation> {
    let answer = value.parse::<RecordState>().ok().map(|to| Mutation::StateChange { to });
    let proposed = match RemoteStewardClient::connect_if_named(config).await? {
        // A question proposes nothing. The server refuses a state for anything else.
        Some(server) => server.fetch_proposed_change(action).await?.or(answer),
        None => {
            let vault = super::open_read_only(config).await?;
            let record =
                super::audit::read_record(&vault.root, &super::find_action_record(&vault.index, action).await?)?.draft;
            // A question proposes nothing. A state answers it.
            if let Some(answer) = answer.filter(|_| record.is_question()) {
                return Ok(answer);
            }
            let state_change = record.proposed_state.map(|to| Mutation::StateChange { to });
            record.proposal.map(|proposal| proposal.mutation).or(state_change)
        }
    };
    let proposed = proposed
        .with_context(|| format!("{} proposes no change whose value --set could replace", escape_text(action)))?;
    let shown = escape_text(value);
    proposed.with_value(value).with_context(|| format!("`{shown}` cannot be written into `{}`", proposed.field()))
}

pub(crate) async fn dismiss_actions(
    config: &StewardConfig,
    resolution: cli::ResolveArgs,
    out: CommandOutput,
) -> anyhow::Result<CommandExit> {
    submit_resolution(config, ResolutionKind::Dismiss, None, resolution, out).await
}

/// Answers actions in a way that only a person at this machine may: right, wrong, or an answer taken back.
pub(crate) async fn answer_in_person(
    config: &StewardConfig,
    kind: ResolutionKind,
    answer: cli::AnswerArgs,
    out: CommandOutput,
) -> anyhow::Result<CommandExit> {
    let cli::AnswerArgs { action, reason, by } = answer;
    submit_resolution(config, kind, None, cli::ResolveArgs { actions: vec![action], reason, by }, out).await
}

/// Restores a source or a class from its last demotion.
pub(crate) async fn restore_subject(
    config: &StewardConfig,
    restore: cli::RestoreTrustArgs,
    out: CommandOutput,
) -> anyhow::Result<CommandExit> {
    let cli::RestoreTrustArgs { subject, reason, by } = restore;
    let vault = super::open_read_only(config).await?;
    let caps = vault.index.trust().read_mode_caps().await?;
    let demoted: Vec<&TrustSubject> = caps.iter().filter(|(_, cap)| cap.mode.is_some()).map(|(s, _)| s).collect();
    let subject = match_subject(&demoted, &subject);
    let action =
        if demoted.contains(&&subject) { vault.index.trust().find_last_demotion(&subject).await? } else { None };
    let Some(action) = action else {
        let mut others = Vec::new();
        for other in &demoted {
            others.push(escape_text(&other.describe(vault.index.trust().find_subject_name(other).await?.as_deref())));
        }
        let others = if others.is_empty() { "nothing is".into() } else { format!("these are: {}", others.join(", ")) };
        bail!("{} is not demoted; {others}", escape_text(&subject.to_string()));
    };
    drop(vault);
    submit_resolution(
        config,
        ResolutionKind::Raise,
        None,
        cli::ResolveArgs { actions: vec![action.to_string()], reason, by },
        out,
    )
    .await
}

/// Finds the subject that a person names: first a demoted one with exactly this name, as `status` prints it, classes
/// before sources.
fn match_subject(demoted: &[&TrustSubject], text: &str) -> TrustSubject {
    let named = demoted.iter().rev().find(|subject| subject.to_string() == text.trim());
    named.map_or_else(|| TrustSubject::parse(text), |subject| (*subject).clone())
}

async fn submit_resolution(
    config: &StewardConfig,
    kind: ResolutionKind,
    edited: Option<Mutation>,
    resolution: cli::ResolveArgs,
    out: CommandOutput,
) -> anyhow::Result<CommandExit> {
    let by = steward_server::access::parse_caller_name(resolution.by.as_deref().unwrap_or(&config.operator))?;
    let [action] = resolution.actions.as_slice() else {
        let input = ResolveBatchInput::new(kind, resolution.actions, by, resolution.reason);
        return submit_batch(config, input, out).await;
    };
    if edited.is_none()
        && let Some(exit) = super::wiki::resolve_run(config, kind, &resolution, out).await?
    {
        return Ok(exit);
    }
    let input = ResolveInput {
        kind,
        action: action.clone(),
        by,
        reason: resolution.reason,
        edited,
        batch_id: None,
        resolved_by: ResolverKind::Human,
    };
    let server =
        if kind == ResolutionKind::Raise { None } else { RemoteStewardClient::connect_if_named(config).await? };
    let output = match server {
        Some(server) => server.resolve_action(input).await?,
        None => {
            request_from_vault(config, async |client: ResolutionClient| client.request_resolution(input).await).await?
        }
    };
    out.print_value(&output, || format_resolution(config, kind, &output))?;
    Ok(match output {
        ResolveOutput::Done { .. } => CommandExit::Ok,
        ResolveOutput::Refused { .. } => CommandExit::Refused,
    })
}

/// Requests something of the process that holds the vault, by the configured or running Temporal server. If nothing runs, the
/// command starts a server of its own.
pub(crate) async fn request_from_vault<T>(
    config: &StewardConfig,
    request: impl AsyncFnOnce(ResolutionClient) -> Result<T, ResolutionRequestError>,
) -> anyhow::Result<T> {
    let (root, state) = (VaultRoot::open(config.vault_folder()?)?, config.state_dir()?);
    let pause = read_service_pause(&root, &state);
    if pause.is_none()
        && let Some(parts) = standalone::open_idle_vault(config).await?
    {
        return standalone::resolve_standalone(config, parts, request).await;
    }
    Ok(request(connect_to_holder(config).await?).await?)
}

/// Connects to the process that holds the vault, by the configured or running Temporal server.
pub(crate) async fn connect_to_holder(config: &StewardConfig) -> anyhow::Result<ResolutionClient> {
    let (root, state) = (VaultRoot::open(config.vault_folder()?)?, config.state_dir()?);
    let client = temporal::connect_client(config, Vec::new()).await?;
    desired::check_owner(config, &client).await?;
    // Who holds the vault may serve another queue than the one that is set here.
    let queue = temporal::read_served_queue(config, &VaultHolder::read(&root, &state));
    Ok(ResolutionClient::new(client, config.vault_names(), &queue, read_service_pause(&root, &state)))
}

/// Resolves several actions in one batch.
async fn submit_batch(
    config: &StewardConfig,
    input: ResolveBatchInput,
    out: CommandOutput,
) -> anyhow::Result<CommandExit> {
    let kind = input.kind;
    let all = match RemoteStewardClient::connect_if_named(config).await? {
        Some(server) => server.resolve_batch(input).await?,
        None => {
            request_from_vault(config, async |client: ResolutionClient| client.request_batch_resolution(input).await)
                .await?
        }
    };
    let refused = all.count_refused();
    out.print_value(&all, || {
        let lines = all
            .resolutions
            .iter()
            .map(|one| format!("{}: {}", escape_text(&one.action), format_resolution(config, kind, &one.resolution)));
        let count = format!("{} {}, {refused} refused", all.resolutions.len() - refused, describe_resolution(kind));
        lines.chain([count]).collect::<Vec<_>>().join("\n")
    })?;
    Ok(if refused == 0 { CommandExit::Ok } else { CommandExit::Refused })
}

/// Whether a confirmation changed its record, so that it can be undone. It changed nothing if a person had made the change
/// before. Without the vault on this machine the usual case is assumed.
fn is_undoable(config: &StewardConfig, confirmation: &RecordPath) -> bool {
    let root = config.vault.as_ref().and_then(|vault| VaultRoot::open(vault).ok());
    let record = root.and_then(|root| super::audit::read_record(&root, confirmation).ok());
    record.is_none_or(|record| record.undo_recipe.is_some())
}

fn format_resolution(config: &StewardConfig, kind: ResolutionKind, output: &ResolveOutput) -> String {
    match output {
        ResolveOutput::Done { action_id, target, record, tracker, lowered, .. } => {
            let tracker =
                tracker.as_deref().map(|outcome| format!("; tracker: {}", escape_text(outcome))).unwrap_or_default();
            let demotions: String = lowered.iter().map(|step| format!("\ndemoted: {}", escape_text(step))).collect();
            let summary = match kind {
                ResolutionKind::Undo
                | ResolutionKind::Confirm
                | ResolutionKind::Dismiss
                | ResolutionKind::Right
                | ResolutionKind::RightDone
                | ResolutionKind::Wrong
                | ResolutionKind::Reopen => {
                    format!("{}: {target} (action {action_id})", describe_resolution(kind))
                }
                ResolutionKind::Raise => format!(
                    "restored: {} may act as far as the mode allows again (`steward trust report` shows what its cases \
                     support)",
                    escape_text(target.slug())
                ),
            };
            let undo = match kind {
                ResolutionKind::Confirm if is_undoable(config, record) => format!("\nundo: steward undo {action_id}"),
                kind if kind.record_kind().can_be_taken_back() => format!("\ntake it back: steward reopen {action_id}"),
                _ => String::new(),
            };
            format!("{summary}; see {record}{tracker}{demotions}{undo}")
        }
        ResolveOutput::Refused { message, .. } => format!("refused: {}", escape_text(message)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use steward_domain::action::mutation::MutationClass;

    #[test]
    fn the_command_that_status_prints_restores_its_subject_whatever_the_name() {
        assert_eq!(match_subject(&[], "unknown_sources"), TrustSubject::UnknownSources);
        let long = format!("{}-0123456789abcdef", "a".repeat(80));
        let (key, named_so) = (TrustSubject::Source(long.clone()), TrustSubject::Source("related".into()));
        let class = TrustSubject::Class(MutationClass::Related);
        assert_eq!(match_subject(&[&key], &long), key, "a key is not hashed again");
        assert_eq!(match_subject(&[&named_so], "related"), named_so, "the class is not demoted");
        assert_eq!(
            match_subject(&[&named_so, &class], "related"),
            class,
            "the class first, the source by the next command"
        );
        assert_eq!(match_subject(&[&class], "Gmail"), TrustSubject::Source("gmail".into()));
    }
}
