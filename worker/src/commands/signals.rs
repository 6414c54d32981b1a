//! The commands `steward signals list|show|explain`: the signals of a vault, and the reason for their status.
//!
//! They read the files of the vault and the router's last reason for each signal. They change nothing. Quotes, subjects
//! and reasonings come from unknown senders or from a model, so every printed text goes through [`escape_text`].

use super::names;
use super::why::describe_mutation;
use crate::cli;
use crate::cli::output::{CommandExit, CommandOutput, escape_text};
use crate::cli::style::TextStyle;
use crate::cli::table::create_wide_table;
use crate::config::StewardConfig;
use anyhow::{Context, bail};
use serde::Serialize;
use std::collections::BTreeSet;
use steward_domain::record::entity::SignalEffect;
use steward_domain::record::path::{RecordKind, RecordPath, parse_link};
use steward_domain::record::plain_text::count_noun;
use steward_domain::signals::signal::{Signal, SignalStatus};
use steward_domain::time::format_millis;
use steward_server::views::quote::mark_cut_quote;
use steward_server::views::signal::{self, SignalExplanation, SignalFile};
use steward_vault::files::root::VaultRoot;
use steward_vault::index::Index;

/// The fewest characters of a signal's name that find it.
const MIN_PART: usize = 4;

pub(crate) async fn run(
    config: &StewardConfig,
    command: &cli::SignalsCommand,
    out: CommandOutput,
) -> anyhow::Result<CommandExit> {
    let vault = super::open_read_only(config).await?;
    let (root, index) = (&vault.root, &vault.index);
    match command {
        cli::SignalsCommand::List { status, matter, limit } => {
            let filter = SignalListFilter::new(index, status.as_deref(), matter.as_deref()).await?;
            let mut rows = read_all_signals(root)?;
            let (names, moves) = (index.read_note_names().await?, index.note_moves());
            rows.iter_mut().for_each(|filed| filed.signal = filed.signal.clone().resolve_links(&names, &moves));
            rows.retain(|filed| filter.is_match(&filed.signal));
            rows.sort_by(|a, b| b.signal.created.cmp(&a.signal.created).then_with(|| b.path.cmp(&a.path)));
            let total = rows.len();
            rows.truncate(*limit);
            let paths: Vec<RecordPath> = rows.iter().map(|filed| filed.path.clone()).collect();
            let mut reasons = index.signals().list_route_reasons(&paths).await?;
            let rows: Vec<ListedSignal> =
                rows.into_iter().map(|filed| ListedSignal { routed: reasons.remove(&filed.path), filed }).collect();
            out.print_value(&rows, || render_signal_table(&rows, total))?;
        }
        cli::SignalsCommand::Show { path } => {
            let filed = read_signal(root, path)?;
            out.print_value(&filed, || TextStyle::current().wrap_lines(&describe_signal(&filed).join("\n")))?;
        }
        cli::SignalsCommand::Explain { path } => {
            let filed = read_signal(root, path)?;
            let history = vault.views.read_signal_history(&filed.path).await?;
            let explained = signal::explain_signal(root, index.note_schema(), filed, &history);
            out.print_value(&explained, || TextStyle::current().wrap_lines(&describe_explanation(&explained)))?;
        }
    }
    Ok(CommandExit::Ok)
}

/// A row of the list.
#[derive(Serialize)]
struct ListedSignal {
    #[serde(flatten)]
    filed: SignalFile,
    /// The router's last reason. It comes from the state database, because the file does not always hold it.
    routed: Option<String>,
}

/// The filter of the list.
struct SignalListFilter {
    status: Option<SignalStatus>,
    records: Option<BTreeSet<RecordPath>>,
}

impl SignalListFilter {
    async fn new(index: &Index, status: Option<&str>, matter: Option<&str>) -> anyhow::Result<Self> {
        let status = match status {
            Some(word) if SignalStatus::parse_or_unrouted(word).as_str() == word.trim() => {
                Some(SignalStatus::parse_or_unrouted(word))
            }
            Some(word) => bail!(
                "`{}` is not a status: use unrouted, applied, skipped, pending or action_pending",
                escape_text(word)
            ),
            None => None,
        };
        let records = match matter {
            Some(text) => {
                let mut matter = names::find_matter(index, text).await?;
                let mut tasks = index.read().list_tasks_of_matter(&matter).await?;
                // A matter without a note may still have tasks.
                if tasks.is_empty() && index.read().find_subject(&matter).await?.is_none() {
                    matter = names::find_by_title(index, Some(RecordKind::Matter), text).await?;
                    tasks = index.read().list_tasks_of_matter(&matter).await?;
                }
                Some(tasks.into_iter().map(|task| task.path).chain([matter]).collect())
            }
            None => None,
        };
        Ok(Self { status, records })
    }

    /// Whether a signal is listed. A signal without a target matches by its candidates.
    fn is_match(&self, signal: &Signal) -> bool {
        let about = |records: &BTreeSet<RecordPath>| match &signal.target {
            Some(target) => records.contains(target),
            None => signal.candidates.iter().any(|c| records.contains(&c.path)),
        };
        self.status.is_none_or(|s| s == signal.status) && self.records.as_ref().is_none_or(about)
    }
}

/// Reads every valid signal; `steward status` lists the invalid ones as problems.
fn read_all_signals(root: &VaultRoot) -> anyhow::Result<Vec<SignalFile>> {
    let entries = root.list_files(RecordKind::Signal)?;
    let paths = entries.iter().filter_map(|e| RecordPath::parse(&format!("signal/{}", e.name)).ok());
    Ok(paths.filter_map(|path| signal::read_signal(root, path).ok()).collect())
}

fn read_signal(root: &VaultRoot, text: &str) -> anyhow::Result<SignalFile> {
    let path = parse_link(RecordKind::Signal, text).with_context(|| {
        format!("failed to read `{}` as a signal: list them with `steward signals list`", escape_text(text))
    })?;
    if root.exists(&path) {
        return Ok(signal::read_signal(root, path)?);
    }
    let entries = root.list_files(RecordKind::Signal)?;
    let mut like = entries.iter().filter(|entry| path.slug().len() >= MIN_PART && entry.name.contains(path.slug()));
    match (like.next(), like.next()) {
        (Some(one), None) => Ok(signal::read_signal(root, RecordPath::parse(&format!("signal/{}", one.name))?)?),
        (Some(_), Some(_)) => bail!("several signals have `{}` in their name: give more of it", escape_text(text)),
        (None, _) => bail!("no signal is called `{}`: list them with `steward signals list`", escape_text(text)),
    }
}

fn describe_target(signal: &Signal) -> String {
    signal.target.as_ref().map_or_else(|| "unknown".to_owned(), ToString::to_string)
}

fn describe_effect(signal: &Signal) -> String {
    match (&signal.proposal, signal.effect) {
        (Some(proposal), _) => describe_mutation(proposal),
        (None, SignalEffect::Mutation) => "mutation without a usable proposal".to_owned(),
        (None, SignalEffect::Action) => "asks something of you".to_owned(),
        (None, SignalEffect::None) => "none".to_owned(),
    }
}

fn render_signal_table(rows: &[ListedSignal], total: usize) -> String {
    let mut shown_rows = create_wide_table(
        &["signal", "source", "about", "effect", "status", "reason", "quote"],
        &["about", "quote"],
        &["effect", "reason"],
    );
    for ListedSignal { filed: SignalFile { path, signal, .. }, routed } in rows {
        let kind = match signal.effect {
            SignalEffect::Mutation => signal.proposal.as_ref().map_or("mutation", |p| p.class().as_str()),
            SignalEffect::Action => "action",
            SignalEffect::None => "none",
        };
        shown_rows.add_row(vec![
            path.slug().to_owned(),
            escape_text(&signal.source_type),
            signal.target.as_ref().map_or_else(|| "unknown".to_owned(), |path| TextStyle::current().show_record(path)),
            kind.to_owned(),
            signal.status.as_str().to_owned(),
            escape_text(signal.reason.as_deref().or(routed.as_deref()).unwrap_or_default()),
            escape_text(&mark_cut_quote(&signal.clerk_note()).replace('\n', " ")),
        ]);
    }
    let count = count_noun(rows.len() as u64, "signal");
    let more = if rows.len() < total { format!(" of {total}; a higher `--limit` shows more") } else { String::new() };
    format!("{shown_rows}\n{count}{more}")
}

fn describe_signal(filed: &SignalFile) -> Vec<String> {
    let signal = &filed.signal;
    let row = |name: &str, value: &str| format!("{name:<12} {}", escape_text(value));
    let mut lines = vec![
        row("signal", filed.path.as_str()),
        row("created", &format_millis(signal.created)),
        row("source", &signal.source_type),
        row("quote", &signal.raw_quote),
        row("about", &format!("{} (confidence {:.2})", describe_target(signal), signal.target_confidence)),
        row("effect", &format!("{} (confidence {:.2})", describe_effect(signal), signal.effect_confidence)),
        row("reasoning", &signal.reasoning),
        row("status", signal.status.as_str()),
    ];
    lines.extend(signal.candidates.iter().map(|c| row("candidate", &format!("{} {:.2}", c.path, c.score))));
    lines
}

fn describe_explanation(explained: &SignalExplanation) -> String {
    let mut lines = Vec::new();
    let row = |name: &str, value: &str| format!("{name:<12} {}", escape_text(value));
    match &explained.event {
        Some(event) => {
            lines.push(row("event", event.path.as_str()));
            lines.push(row("from", event.author.as_deref().unwrap_or(&event.source)));
            lines.push(row("subject", event.subject.as_deref().unwrap_or("none")));
            lines.push(row("received", &event.received_at));
        }
        None => lines.push(row("event", "not in the vault; events are removed 7 days after they were read")),
    }
    lines.extend(self::describe_signal(&explained.filed));
    lines.push(row("why", &explained.why));
    lines.push(row("to change", &explained.what_would_change_it));
    lines.join("\n")
}
