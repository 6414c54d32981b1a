//! `steward undo`, `confirm`, `dismiss`: a human's answer, taken by a workflow.
//!
//! The command itself writes nothing: the process that holds the vault does, on the one write path. It is asked by
//! gRPC where it listens, and else by way of Temporal; either way the same comes of it. Where nothing runs, the command
//! brings up what it needs for as long as it takes.
//! A refusal is an answer too, with its own exit code.

mod standalone;

use crate::cli;
use crate::cli::output::{CommandExit, CommandOutput, escape_text};
use crate::config::StewardConfig;
use crate::registrar::desired;
use crate::remote;
use crate::temporal;
use anyhow::{Context, bail};
use steward_domain::action::mutation::Mutation;
use steward_domain::action::undo::ResolutionKind;
use steward_domain::trust::mark::TrustSubject;
use steward_server::temporal::resolve::{ResolutionClient, ResolutionRequestError, describe_resolution};
use steward_workflows::ResolveBatchInput;
use steward_workflows::activities::{ResolveInput, ResolveOutput};

pub(crate) async fn undo_actions(
    config: &StewardConfig,
    answer: cli::ResolveArgs,
    out: CommandOutput,
) -> anyhow::Result<CommandExit> {
    submit_resolution(config, (ResolutionKind::Undo, None), answer, out).await
}

pub(crate) async fn confirm_actions(
    config: &StewardConfig,
    confirm: cli::ConfirmArgs,
    out: CommandOutput,
) -> anyhow::Result<CommandExit> {
    let cli::ConfirmArgs { answer, set } = confirm;
    let edited = match set {
        Some(value) => {
            let [action] = answer.actions.as_slice() else { bail!("--set is for one action at a time") };
            let by = answer.by.as_deref().unwrap_or(&config.operator);
            Some(edit_proposal(config, (action, by), &value).await?)
        }
        None => None,
    };
    submit_resolution(config, (ResolutionKind::Confirm, edited), answer, out).await
}

/// What is proposed, with another value.
async fn edit_proposal(config: &StewardConfig, (action, by): (&str, &str), value: &str) -> anyhow::Result<Mutation> {
    let proposed = match &config.server {
        Some(_) => match remote::RemoteStewardClient::find(config, by).await? {
            Some(server) => server.fetch_proposed_change(action).await?,
            None => None,
        },
        None => {
            let look = super::open_read_only(config).await?;
            let record =
                super::audit::read_record(&look.root, &super::find_action_record(&look.index, action).await?)?.draft;
            let of_the_state = record.proposed_state.map(|to| Mutation::StateChange { to });
            record.proposal.map(|proposal| proposal.mutation).or(of_the_state)
        }
    };
    let proposed = proposed.with_context(|| format!("{} proposes no change", escape_text(action)))?;
    let shown = escape_text(value);
    proposed.with_value(value).with_context(|| format!("`{shown}` cannot be written into `{}`", proposed.field()))
}

pub(crate) async fn dismiss_actions(
    config: &StewardConfig,
    answer: cli::ResolveArgs,
    out: CommandOutput,
) -> anyhow::Result<CommandExit> {
    submit_resolution(config, (ResolutionKind::Dismiss, None), answer, out).await
}

/// Raises what was last lowered of a source or a class.
pub(crate) async fn restore_subject(
    config: &StewardConfig,
    raise: cli::RestoreTrustArgs,
    out: CommandOutput,
) -> anyhow::Result<CommandExit> {
    let cli::RestoreTrustArgs { subject, reason, by } = raise;
    let look = super::open_read_only(config).await?;
    let caps = look.index.read_mode_caps().await?;
    let lowered: Vec<&TrustSubject> = caps.iter().filter(|(_, cap)| cap.mode.is_some()).map(|(s, _)| s).collect();
    let subject = match_subject(&lowered, &subject);
    let action = if lowered.contains(&&subject) { look.index.find_last_demotion(&subject).await? } else { None };
    let Some(action) = action else {
        let mut others = Vec::new();
        for other in &lowered {
            others.push(escape_text(&other.describe(look.index.find_subject_name(other).await?.as_deref())));
        }
        let others = if others.is_empty() { "nothing is".into() } else { format!("these are: {}", others.join(", ")) };
        bail!("{} is not lowered; {others}", escape_text(&subject.to_string()));
    };
    drop(look);
    submit_resolution(
        config,
        (ResolutionKind::Raise, None),
        cli::ResolveArgs { actions: vec![action.to_string()], reason, by },
        out,
    )
    .await
}

/// Whom a person means: of what is lowered what goes by that very word, classes first, as it was told to them.
fn match_subject(lowered: &[&TrustSubject], text: &str) -> TrustSubject {
    let told = lowered.iter().rev().find(|subject| subject.to_string() == text.trim());
    told.map_or_else(|| TrustSubject::parse(text), |subject| (*subject).clone())
}

async fn submit_resolution(
    config: &StewardConfig,
    (kind, edited): (ResolutionKind, Option<Mutation>),
    answer: cli::ResolveArgs,
    out: CommandOutput,
) -> anyhow::Result<CommandExit> {
    let by = steward_server::access::parse_caller_name(answer.by.as_deref().unwrap_or(&config.operator))?;
    let [action] = answer.actions.as_slice() else {
        let ask = ResolveBatchInput::new(kind, answer.actions, by, answer.reason);
        return submit_batch(config, ask, out).await;
    };
    let ask = ResolveInput { kind, action: action.clone(), by, reason: answer.reason, edited, together: None };
    let server =
        if kind == ResolutionKind::Raise { None } else { remote::RemoteStewardClient::find(config, &ask.by).await? };
    let answered = match server {
        Some(server) => server.resolve_action(ask.clone()).await?,
        None => None,
    };
    let answered = match answered {
        Some(answered) => answered,
        None => {
            request_resolution(config, async |answers: ResolutionClient| answers.request_resolution(ask).await).await?
        }
    };
    out.print_value(&answered, || format_resolution(kind, &answered))?;
    Ok(match answered {
        ResolveOutput::Done { .. } => CommandExit::Ok,
        ResolveOutput::Refused { .. } => CommandExit::Refused,
    })
}

/// By way of the Temporal server that is set or that runs; where nothing runs, by one of this command's own.
async fn request_resolution<T>(
    config: &StewardConfig,
    request: impl AsyncFnOnce(ResolutionClient) -> Result<T, ResolutionRequestError>,
) -> anyhow::Result<T> {
    if let Some(parts) = standalone::open_idle_vault(config).await? {
        return standalone::resolve_standalone(config, parts, request).await;
    }
    let client = temporal::connect_client(config, Vec::new()).await?;
    desired::check_owner(config, &client).await?;
    Ok(request(ResolutionClient::new(client, &config.task_queue)).await?)
}

/// One answer to several actions.
async fn submit_batch(
    config: &StewardConfig,
    ask: ResolveBatchInput,
    out: CommandOutput,
) -> anyhow::Result<CommandExit> {
    let kind = ask.kind;
    let all = match remote::RemoteStewardClient::find(config, &ask.by).await?.filter(|server| server.can_batch(&ask)) {
        Some(server) => server.resolve_batch(ask.clone()).await?,
        None => None,
    };
    let all = match all {
        Some(all) => all,
        None => {
            request_resolution(config, async |answers: ResolutionClient| answers.request_batch_resolution(ask).await)
                .await?
        }
    };
    let refused = all.count_refused();
    out.print_value(&all, || {
        let lines = all
            .answers
            .iter()
            .map(|one| format!("{}: {}", escape_text(&one.action), format_resolution(kind, &one.answered)));
        let count = format!("{} {}, {refused} refused", all.answers.len() - refused, describe_resolution(kind));
        lines.chain([count]).collect::<Vec<_>>().join("\n")
    })?;
    Ok(if refused == 0 { CommandExit::Ok } else { CommandExit::Refused })
}

fn format_resolution(kind: ResolutionKind, answered: &ResolveOutput) -> String {
    match answered {
        ResolveOutput::Done { target, record, tracker, lowered, .. } => {
            let came = tracker.as_deref().map(|came| format!("; tracker: {}", escape_text(came))).unwrap_or_default();
            let steps: String = lowered.iter().map(|step| format!("\none step back: {}", escape_text(step))).collect();
            let what = match kind {
                ResolutionKind::Undo | ResolutionKind::Confirm | ResolutionKind::Dismiss => {
                    format!("{}: {target}", describe_resolution(kind))
                }
                ResolutionKind::Raise => format!(
                    "raised: {} may go as far as the mode allows again (`steward trust report` says what its cases support)",
                    escape_text(target.slug())
                ),
            };
            format!("{what}; see {record}{came}{steps}")
        }
        ResolveOutput::Refused { status, message, .. } => format!("refused ({status}): {}", escape_text(message)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use steward_domain::action::mutation::MutationClass;

    #[test]
    fn what_status_tells_to_raise_is_raised_however_it_is_named() {
        let (all, of_that_name) = (TrustSubject::Strangers, TrustSubject::Source("strangers".into()));
        assert_eq!(match_subject(&[&of_that_name, &all], "strangers"), all, "all of them first");
        assert_eq!(
            match_subject(&[&of_that_name], "strangers"),
            of_that_name,
            "the source of that name by the next word"
        );
        assert_eq!(match_subject(&[], "strangers"), all);
        let long = format!("{}-0123456789abcdef", "a".repeat(80));
        let (key, named_so) = (TrustSubject::Source(long.clone()), TrustSubject::Source("related".into()));
        let class = TrustSubject::Class(MutationClass::Related);
        assert_eq!(match_subject(&[&key], &long), key, "a key is not hashed again");
        assert_eq!(match_subject(&[&named_so], "related"), named_so, "the class is not lowered");
        assert_eq!(
            match_subject(&[&named_so, &class], "related"),
            class,
            "the class first, the source by the next word"
        );
        assert_eq!(match_subject(&[&class], "Gmail"), TrustSubject::Source("gmail".into()));
    }
}
