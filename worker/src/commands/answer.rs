//! `steward undo`, `confirm`, `dismiss`: a human's answer, taken by a workflow.
//!
//! The command itself writes nothing: the process that holds the vault does, on the one write path. It is asked by
//! gRPC where it listens, and else by way of Temporal; either way the same comes of it. Where nothing runs, the command
//! brings up what it needs for as long as it takes.
//! A refusal is an answer too, with its own exit code.

mod standalone;

use crate::cli;
use crate::config::Config;
use crate::out::{Exit, Out, shown};
use crate::remote;
use crate::schedules;
use crate::temporal;
use anyhow::{Context, bail};
use steward_domain::mutation::Mutation;
use steward_domain::trust::mark::TrustSubject;
use steward_domain::undo::ResolutionKind;
use steward_server::answer::{Answers, AskError, done};
use steward_workflows::ResolveBatchInput;
use steward_workflows::activities::{ResolveInput, ResolveOutput};

pub(crate) async fn undo(config: &Config, answer: cli::Answer, out: Out) -> anyhow::Result<Exit> {
    run(config, (ResolutionKind::Undo, None), answer, out).await
}

pub(crate) async fn confirm(config: &Config, confirm: cli::Confirm, out: Out) -> anyhow::Result<Exit> {
    let cli::Confirm { answer, set } = confirm;
    let edited = match set {
        Some(value) => {
            let [action] = answer.actions.as_slice() else { bail!("--set is for one action at a time") };
            let by = answer.by.as_deref().unwrap_or(&config.operator);
            Some(chosen(config, (action, by), &value).await?)
        }
        None => None,
    };
    run(config, (ResolutionKind::Confirm, edited), answer, out).await
}

/// What is proposed, with another value.
async fn chosen(config: &Config, (action, by): (&str, &str), value: &str) -> anyhow::Result<Mutation> {
    let proposed = match &config.server {
        Some(_) => match remote::Server::find(config, by).await? {
            Some(server) => server.proposed(action).await?,
            None => None,
        },
        None => {
            let look = super::look(config).await?;
            let record = super::audit::read(&look.root, &super::find(&look.index, action).await?)?.draft;
            let of_the_state = record.proposed_state.map(|to| Mutation::StateChange { to });
            record.proposal.map(|proposal| proposal.mutation).or(of_the_state)
        }
    };
    let proposed = proposed.with_context(|| format!("{} proposes no change", shown(action)))?;
    let shown = shown(value);
    proposed.with_value(value).with_context(|| format!("`{shown}` cannot be written into `{}`", proposed.field()))
}

pub(crate) async fn dismiss(config: &Config, answer: cli::Answer, out: Out) -> anyhow::Result<Exit> {
    run(config, (ResolutionKind::Dismiss, None), answer, out).await
}

/// Raises what was last lowered of a source or a class.
pub(crate) async fn raise(config: &Config, raise: cli::Raise, out: Out) -> anyhow::Result<Exit> {
    let cli::Raise { subject, reason, by } = raise;
    let look = super::look(config).await?;
    let caps = look.index.read_mode_caps().await?;
    let lowered: Vec<&TrustSubject> = caps.iter().filter(|(_, cap)| cap.mode.is_some()).map(|(s, _)| s).collect();
    let subject = named(&lowered, &subject);
    let action = if lowered.contains(&&subject) { look.index.find_last_demotion(&subject).await? } else { None };
    let Some(action) = action else {
        let mut others = Vec::new();
        for other in &lowered {
            others.push(shown(&other.describe(look.index.find_subject_name(other).await?.as_deref())));
        }
        let others = if others.is_empty() { "nothing is".into() } else { format!("these are: {}", others.join(", ")) };
        bail!("{} is not lowered; {others}", shown(&subject.to_string()));
    };
    drop(look);
    run(config, (ResolutionKind::Raise, None), cli::Answer { actions: vec![action.to_string()], reason, by }, out).await
}

/// Whom a person means: of what is lowered what goes by that very word, classes first, as it was told to them.
fn named(lowered: &[&TrustSubject], text: &str) -> TrustSubject {
    let told = lowered.iter().rev().find(|subject| subject.to_string() == text.trim());
    told.map_or_else(|| TrustSubject::parse(text), |subject| (*subject).clone())
}

async fn run(
    config: &Config,
    (kind, edited): (ResolutionKind, Option<Mutation>),
    answer: cli::Answer,
    out: Out,
) -> anyhow::Result<Exit> {
    let by = steward_server::access::name(answer.by.as_deref().unwrap_or(&config.operator))?;
    let [action] = answer.actions.as_slice() else {
        let ask = ResolveBatchInput::new(kind, answer.actions, (by, answer.reason));
        return together(config, ask, out).await;
    };
    let ask = ResolveInput { kind, action: action.clone(), by, reason: answer.reason, edited, together: None };
    let server = if kind == ResolutionKind::Raise { None } else { remote::Server::find(config, &ask.by).await? };
    let answered = match server {
        Some(server) => server.answer(ask.clone()).await?,
        None => None,
    };
    let answered = match answered {
        Some(answered) => answered,
        None => request_answer(config, async |answers: Answers| answers.ask(ask).await).await?,
    };
    out.value(&answered, || told(kind, &answered))?;
    Ok(match answered {
        ResolveOutput::Done { .. } => Exit::Ok,
        ResolveOutput::Refused { .. } => Exit::Refused,
    })
}

/// By way of the Temporal server that is set or that runs; where nothing runs, by one of this command's own.
async fn request_answer<T>(
    config: &Config,
    request: impl AsyncFnOnce(Answers) -> Result<T, AskError>,
) -> anyhow::Result<T> {
    if let Some(parts) = standalone::open_alone(config).await? {
        return standalone::answer_alone(config, parts, request).await;
    }
    let client = temporal::connect(config, Vec::new()).await?;
    schedules::check_owner(config, &client).await?;
    Ok(request(Answers::new(client, &config.task_queue)).await?)
}

/// One answer to several actions.
async fn together(config: &Config, ask: ResolveBatchInput, out: Out) -> anyhow::Result<Exit> {
    let kind = ask.kind;
    let all = match remote::Server::find(config, &ask.by).await?.filter(|server| server.takes(&ask)) {
        Some(server) => server.answer_together(ask.clone()).await?,
        None => None,
    };
    let all = match all {
        Some(all) => all,
        None => request_answer(config, async |answers: Answers| answers.ask_together(ask).await).await?,
    };
    let refused = all.count_refused();
    out.value(&all, || {
        let lines = all.answers.iter().map(|one| format!("{}: {}", shown(&one.action), told(kind, &one.answered)));
        let count = format!("{} {}, {refused} refused", all.answers.len() - refused, done(kind));
        lines.chain([count]).collect::<Vec<_>>().join("\n")
    })?;
    Ok(if refused == 0 { Exit::Ok } else { Exit::Refused })
}

fn told(kind: ResolutionKind, answered: &ResolveOutput) -> String {
    match answered {
        ResolveOutput::Done { target, record, tracker, lowered, .. } => {
            let came = tracker.as_deref().map(|came| format!("; tracker: {}", shown(came))).unwrap_or_default();
            let steps: String = lowered.iter().map(|step| format!("\none step back: {}", shown(step))).collect();
            let what = match kind {
                ResolutionKind::Undo | ResolutionKind::Confirm | ResolutionKind::Dismiss => {
                    format!("{}: {target}", done(kind))
                }
                ResolutionKind::Raise => format!(
                    "raised: {} may go as far as the mode allows again (`steward trust report` says what its cases support)",
                    shown(target.slug())
                ),
            };
            format!("{what}; see {record}{came}{steps}")
        }
        ResolveOutput::Refused { status, message, .. } => format!("refused ({status}): {}", shown(message)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use steward_domain::mutation::MutationClass;

    #[test]
    fn what_status_tells_to_raise_is_raised_however_it_is_named() {
        let (all, of_that_name) = (TrustSubject::Strangers, TrustSubject::Source("strangers".into()));
        assert_eq!(named(&[&of_that_name, &all], "strangers"), all, "all of them first");
        assert_eq!(named(&[&of_that_name], "strangers"), of_that_name, "the source of that name by the next word");
        assert_eq!(named(&[], "strangers"), all);
        let long = format!("{}-0123456789abcdef", "a".repeat(80));
        let (key, named_so) = (TrustSubject::Source(long.clone()), TrustSubject::Source("related".into()));
        let class = TrustSubject::Class(MutationClass::Related);
        assert_eq!(named(&[&key], &long), key, "a key is not hashed again");
        assert_eq!(named(&[&named_so], "related"), named_so, "the class is not lowered");
        assert_eq!(named(&[&named_so, &class], "related"), class, "the class first, the source by the next word");
        assert_eq!(named(&[&class], "Gmail"), TrustSubject::Source("gmail".into()));
    }
}
