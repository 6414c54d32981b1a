//! `steward signals list|show|explain`: what was read from outside, and why each signal stands where it does.
//!
//! It reads the files of the vault and changes nothing. Every quote, subject and reasoning is a stranger's
//! or a model's, so whatever is printed goes through [`shown`].

use crate::cli;
use crate::config::Config;
use crate::out::{Exit, Out, shown, table};
use anyhow::{Context, bail};
use serde::Serialize;
use std::collections::BTreeSet;
use steward_domain::frontmatter;
use steward_domain::path::{RecordKind, RecordPath, parse_link};
use steward_domain::record::Effect;
use steward_domain::signal::{Signal, SignalStatus};
use steward_domain::stream::StreamEvent;
use steward_domain::time::stamp;
use steward_vault::index::Index;
use steward_vault::root::Root;

/// A signal and where it lies.
#[derive(Serialize)]
struct Filed {
    path: RecordPath,
    #[serde(flatten)]
    signal: Signal,
}

/// Why a signal stands where it does.
#[derive(Serialize)]
struct Explained {
    #[serde(flatten)]
    filed: Filed,
    /// The event it was read from, if that is still there.
    event: Option<Event>,
    why: String,
    what_would_change_it: String,
}

#[derive(Serialize)]
struct Event {
    path: RecordPath,
    source: String,
    author: Option<String>,
    subject: Option<String>,
    received_at: String,
    status: &'static str,
}

pub(crate) async fn run(config: &Config, what: &cli::Signals, out: Out) -> anyhow::Result<Exit> {
    let look = super::look(config).await?;
    let (root, index) = (&look.root, &look.index);
    match what {
        cli::Signals::List { status, matter, limit } => {
            let filter = Filter::new(index, status.as_deref(), matter.as_deref()).await?;
            let mut rows = all(root)?;
            rows.retain(|filed| filter.takes(&filed.signal));
            rows.sort_by(|a, b| b.signal.created.cmp(&a.signal.created).then_with(|| b.path.cmp(&a.path)));
            rows.truncate(*limit);
            out.value(&rows, || list(&rows))?;
        }
        cli::Signals::Show { path } => {
            let filed = one(root, path)?;
            out.value(&filed, || lines(&filed).join("\n"))?;
        }
        cli::Signals::Explain { path } => {
            let filed = one(root, path)?;
            let explained = explain(root, filed);
            out.value(&explained, || describe(&explained))?;
        }
    }
    Ok(Exit::Ok)
}

/// Which signals are listed.
struct Filter {
    status: Option<SignalStatus>,
    records: Option<BTreeSet<RecordPath>>,
}

impl Filter {
    async fn new(index: &Index, status: Option<&str>, matter: Option<&str>) -> anyhow::Result<Self> {
        let status = match status {
            Some(word) if SignalStatus::read(word).word() == word.trim() => Some(SignalStatus::read(word)),
            Some(word) => bail!(
                "no signal has the status `{}`: it is unrouted, applied, skipped, pending or action_pending",
                shown(word)
            ),
            None => None,
        };
        let records = match matter {
            Some(text) => {
                let matter = super::matter(text)?;
                let tasks = index.tasks_of(&matter).await?.into_iter().map(|t| t.path);
                Some(tasks.chain([matter]).collect())
            }
            None => None,
        };
        Ok(Self { status, records })
    }

    /// Of one without a target its candidates count.
    fn takes(&self, signal: &Signal) -> bool {
        let about = |records: &BTreeSet<RecordPath>| match &signal.target {
            Some(target) => records.contains(target),
            None => signal.candidates.iter().any(|c| records.contains(&c.path)),
        };
        self.status.is_none_or(|s| s == signal.status) && self.records.as_ref().is_none_or(about)
    }
}

/// Every signal that can be read; the others are among the problems of `steward status`.
fn all(root: &Root) -> anyhow::Result<Vec<Filed>> {
    let entries = root.list(RecordKind::Signal)?;
    let paths = entries.iter().filter_map(|e| RecordPath::parse(&format!("signal/{}", e.name)).ok());
    Ok(paths.filter_map(|path| read(root, path).ok()).collect())
}

fn one(root: &Root, text: &str) -> anyhow::Result<Filed> {
    let path = parse_link(RecordKind::Signal, text).with_context(|| {
        format!("failed to read `{}` as a signal: list them with `steward signals list`", shown(text))
    })?;
    read(root, path)
}

fn read(root: &Root, path: RecordPath) -> anyhow::Result<Filed> {
    let file = root.read(&path)?;
    let document = frontmatter::read(&file.bytes).with_context(|| format!("failed to read {path}"))?;
    let signal = Signal::read(document.fields()).with_context(|| format!("failed to understand {path}"))?;
    Ok(Filed { path, signal })
}

fn explain(root: &Root, filed: Filed) -> Explained {
    let event = filed.signal.source_event.as_ref().and_then(|path| event(root, path));
    let (why, what_would_change_it) = (why(&filed.signal), what_would_change(&filed.signal));
    Explained { filed, event, why, what_would_change_it }
}

fn event(root: &Root, path: &RecordPath) -> Option<Event> {
    let file = root.read(path).ok()?;
    let document = frontmatter::read(&file.bytes).ok()?;
    let event = StreamEvent::read(document.fields(), document.body()).ok()?;
    Some(Event {
        path: path.clone(),
        source: event.pattern,
        author: event.author,
        subject: event.subject,
        received_at: stamp(event.received_at),
        status: event.status.word(),
    })
}

fn why(signal: &Signal) -> String {
    let reason = signal.reason.clone();
    match signal.status {
        SignalStatus::Unrouted => reason.unwrap_or_else(|| "nobody has acted upon it yet".to_owned()),
        SignalStatus::Applied => reason.unwrap_or_else(|| "it was acted upon".to_owned()),
        SignalStatus::Skipped | SignalStatus::Pending | SignalStatus::ActionPending => {
            reason.unwrap_or_else(|| "no reason is written down".to_owned())
        }
    }
}

fn what_would_change(signal: &Signal) -> String {
    let text = match (signal.status, &signal.target, signal.effect) {
        (SignalStatus::Applied, _, _) => "take the action back with `steward undo` (see `steward audit list`)",
        (_, None, _) => "write `target_path` with one of the candidates, and `status: unrouted`",
        (_, Some(_), Effect::None) => "nothing: it states no change; edit the record by hand if it should change",
        (_, Some(_), Effect::Action) => "do what it asks, then set `status: applied`",
        (SignalStatus::Unrouted, Some(_), Effect::Mutation) => {
            "its matter's steward judges it at its next look: `steward tick <matter> --wait` asks at once"
        }
        (SignalStatus::Pending, Some(_), Effect::Mutation) => {
            "confirm what it led to with `steward confirm`, or let the stewards act (`STEWARD_LIVE_MODE`)"
        }
        (SignalStatus::Skipped | SignalStatus::ActionPending, Some(_), Effect::Mutation) => {
            "mend what the reason names, and set `status: unrouted`"
        }
    };
    text.to_owned()
}

fn target(signal: &Signal) -> String {
    signal.target.as_ref().map_or_else(|| "not told".to_owned(), ToString::to_string)
}

fn effect(signal: &Signal) -> String {
    match (&signal.proposal, signal.effect) {
        (Some(proposal), _) => shown(&proposal.to_proposal().to_string()),
        (None, Effect::Mutation) => "mutation without a usable proposal".to_owned(),
        (None, Effect::Action) => "asks something".to_owned(),
        (None, Effect::None) => "none".to_owned(),
    }
}

fn list(rows: &[Filed]) -> String {
    let mut shown_rows = table(&["signal", "source", "about", "effect", "status", "quote"]);
    for Filed { path, signal } in rows {
        let kind = match signal.effect {
            Effect::Mutation => signal.proposal.as_ref().map_or("mutation", |p| p.class().word()),
            Effect::Action => "action",
            Effect::None => "none",
        };
        shown_rows.add_row(vec![
            path.slug().to_owned(),
            shown(&signal.source_type),
            target(signal),
            kind.to_owned(),
            signal.status.word().to_owned(),
            shown(&signal.note()),
        ]);
    }
    format!("{shown_rows}\n{} signals", rows.len())
}

fn lines(filed: &Filed) -> Vec<String> {
    let signal = &filed.signal;
    let row = |name: &str, value: &str| format!("{name:<12} {}", shown(value));
    let mut lines = vec![
        row("signal", filed.path.as_str()),
        row("created", &stamp(signal.created)),
        row("source", &signal.source_type),
        row("quote", &signal.raw_quote),
        row("about", &format!("{} ({:.2})", target(signal), signal.target_confidence)),
        row("effect", &format!("{} ({:.2})", effect(signal), signal.effect_confidence)),
        row("reasoning", &signal.reasoning),
        row("status", signal.status.word()),
    ];
    lines.extend(signal.candidates.iter().map(|c| row("candidate", &format!("{} {:.2}", c.path, c.score))));
    lines
}

fn describe(explained: &Explained) -> String {
    let mut lines = Vec::new();
    let row = |name: &str, value: &str| format!("{name:<12} {}", shown(value));
    match &explained.event {
        Some(event) => {
            lines.push(row("event", event.path.as_str()));
            lines.push(row("from", event.author.as_deref().unwrap_or(&event.source)));
            lines.push(row("subject", event.subject.as_deref().unwrap_or("none")));
            lines.push(row("received", &event.received_at));
        }
        None => lines.push(row("event", "gone: extracted events are dropped after 7 days")),
    }
    lines.extend(self::lines(&explained.filed));
    lines.push(row("why", &explained.why));
    lines.push(row("to change it", &explained.what_would_change_it));
    lines.join("\n")
}
