//! The commands `steward streams list|add|pause|resume|test`.
//!
//! `add` edits `steward.toml` and keeps everything else in it. `pause` and `resume` write a mark into the state
//! database, which a running worker sees within seconds. `test` reads a source once and must not store anything.

use crate::cli;
use crate::cli::alike::name_the_meant_key;
use crate::cli::output::{CommandExit, CommandOutput, escape_text};
use crate::cli::style::TextStyle;
use crate::cli::table::create_wide_table;
use crate::config::StewardConfig;
use crate::remote::RemoteStewardClient;
use anyhow::{Context, bail};
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::json;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use steward_activities::signals::streams::{Intake, StreamConfig, StreamSource};
use steward_domain::signals::stream::StreamEvent;
use steward_domain::time::format_millis;
use steward_server::views::streams::StreamRow;
use steward_vault::files::operator_log::OperatorEventKind;
use steward_vault::files::root::VaultRoot;
use toml_edit::{DocumentMut, Item, Table, Value};

/// How long one reading of a source may take: 2 min.
const READ_PATIENCE: Duration = Duration::from_secs(120);
/// The most events that `test` prints.
const MAX_EVENTS: usize = 20;

pub(crate) async fn run(
    config: &StewardConfig,
    command: cli::StreamsCommand,
    out: CommandOutput,
) -> anyhow::Result<CommandExit> {
    match command {
        cli::StreamsCommand::List => list_streams(config, out).await,
        cli::StreamsCommand::Add { name, kind, set } => add_stream(config, &name, &kind, &set, out),
        cli::StreamsCommand::Pause { name } => set_stream_paused(config, &name, true, out).await,
        cli::StreamsCommand::Resume { name } => set_stream_paused(config, &name, false, out).await,
        cli::StreamsCommand::Test { name } => test_stream(config, &name, out).await,
    }
}

fn find_stream<'c>(config: &'c StewardConfig, name: &str) -> anyhow::Result<&'c StreamConfig> {
    config.streams.iter().find(|s| s.name == name).with_context(|| {
        let names: Vec<&str> = config.streams.iter().map(|s| s.name.as_str()).collect();
        format!("no stream is named `{}`: the streams are {}", escape_text(name), names.join(", "))
    })
}

async fn list_streams(config: &StewardConfig, out: CommandOutput) -> anyhow::Result<CommandExit> {
    let vault = super::open_read_only(config).await?;
    let rows = vault.views.list_streams(&config.list_stream_names()).await?;
    let now = Utc::now();
    out.print_value(&rows, || render_stream_table(&rows, now))?;
    Ok(CommandExit::Ok)
}

fn render_stream_table(rows: &[StreamRow], now: DateTime<Utc>) -> String {
    let mut table = create_wide_table(
        &["stream", "kind", "state", "new", "extracted", "parked", "refused", "newest", "oldest waiting", "last error"],
        &["stream", "last error"],
        &["kind", "extracted", "refused"],
    );
    for StreamRow { kind, count } in rows {
        let state = match (kind, count.paused, &count.last_error) {
            (None, _, _) => "not configured",
            (Some(_), true, _) => "paused",
            (Some(_), false, Some(_)) => "failing",
            (Some(_), false, None) => "active",
        };
        table.add_row([
            escape_text(&count.source),
            kind.unwrap_or("–").to_owned(),
            state.to_owned(),
            count.new.to_string(),
            count.extracted.to_string(),
            count.parked.to_string(),
            count.refused.to_string(),
            count.newest_at.map(|at| TextStyle::current().show_moment(at)).unwrap_or_default(),
            count.waits_since.map(|since| format_duration(now - since)).unwrap_or_default(),
            count.last_error.as_deref().map(escape_text).unwrap_or_default(),
        ]);
    }
    table.to_string()
}

pub(super) fn format_duration(span: TimeDelta) -> String {
    match span.num_seconds().max(0) {
        seconds @ ..120 => format!("{seconds} s"),
        seconds @ 120..7_200 => format!("{} min", seconds / 60),
        seconds => format!("{} h", seconds / 3_600),
    }
}

fn add_stream(
    config: &StewardConfig,
    name: &str,
    kind: &str,
    set: &[String],
    out: CommandOutput,
) -> anyhow::Result<CommandExit> {
    let path = &config.file;
    let text = insert_stream(&read_config_file(path)?, name, kind, set)
        .with_context(|| format!("failed to add the stream to {}", path.display()))?;
    write_config_file(path, &text).with_context(|| format!("failed to write {}", path.display()))?;
    out.print_value(&json!({"stream": name, "file": path}), || {
        format!(
            "added to {}; `steward streams test {name}` reads it once, and a worker uses it after its next start",
            path.display()
        )
    })?;
    Ok(CommandExit::Ok)
}

/// Adds a stream to the text of the configuration; everything else stays as it is.
fn insert_stream(text: &str, name: &str, kind: &str, set: &[String]) -> anyhow::Result<String> {
    let mut document: DocumentMut = text.parse()?;
    let mut table = Table::new();
    table["kind"] = toml_edit::value(kind);
    for pair in set {
        let (key, value) = pair.split_once('=').with_context(|| format!("`{}` is not KEY=VALUE", escape_text(pair)))?;
        let key = key.trim();
        if key == "kind" || table.contains_key(key) {
            bail!("`{}` is given twice", escape_text(key));
        }
        // A value that parses as an integer or a boolean is one; any other value is text as given.
        let typed = value.parse::<Value>().ok().filter(|v| v.is_integer() || v.is_bool());
        table[key] = Item::Value(typed.unwrap_or_else(|| value.into()));
    }
    let keys = serde_json::to_value(toml::from_str::<toml::Table>(&table.to_string())?)?;
    StreamConfig::read(name, keys.as_object().cloned().unwrap_or_default())
        .map_err(|e| anyhow::anyhow!(name_the_meant_key(&format!("{e:#}"))))?;
    let streams = document.entry("streams").or_insert_with(|| {
        let mut streams = Table::new();
        streams.set_implicit(true);
        Item::Table(streams)
    });
    let streams = streams.as_table_mut().context("`streams` is not a table")?;
    if streams.contains_key(name) {
        bail!("streams.{name} exists already: edit the file to change it");
    }
    streams.insert(name, Item::Table(table));
    Ok(document.to_string())
}

/// Reads the configuration file; a missing file is empty text.
fn read_config_file(path: &Path) -> anyhow::Result<String> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(text),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
        Err(e) => Err(e).with_context(|| format!("failed to read {}", path.display())),
    }
}

/// Replaces the configuration file atomically and keeps its permissions.
fn write_config_file(path: &Path, text: &str) -> std::io::Result<()> {
    let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let mut staged = real.clone().into_os_string();
    staged.push(".new");
    std::fs::write(&staged, text)?;
    if let Ok(meta) = std::fs::metadata(&real) {
        std::fs::set_permissions(&staged, meta.permissions())?;
    }
    std::fs::File::open(&staged)?.sync_all()?;
    std::fs::rename(&staged, &real)
}

async fn set_stream_paused(
    config: &StewardConfig,
    name: &str,
    paused: bool,
    out: CommandOutput,
) -> anyhow::Result<CommandExit> {
    if let Some(server) = RemoteStewardClient::connect_if_named(config).await? {
        server.request_stream_pause(name, paused).await?;
    } else {
        let stream = find_stream(config, name)?;
        let index = super::open_index(config).await?;
        let kind = if paused { OperatorEventKind::StreamPaused } else { OperatorEventKind::StreamResumed };
        let root = VaultRoot::open(config.vault_folder()?)?;
        super::token::record_operator_event(config, &root, kind, stream.name.clone())?;
        index.signals().update_stream_pause(&stream.name, paused).await?;
    }
    out.print_value(&json!({"stream": name, "paused": paused}), || {
        if paused {
            format!("{name} is paused until `steward streams resume {name}`")
        } else {
            format!("{name} is resumed")
        }
    })?;
    Ok(CommandExit::Ok)
}

async fn test_stream(config: &StewardConfig, name: &str, out: CommandOutput) -> anyhow::Result<CommandExit> {
    let stream = find_stream(config, name)?;
    let vault = super::open_read_only(config).await?;
    let mut adapter = match stream.open(&vault.root)? {
        StreamSource::Polled(adapter) => adapter,
        StreamSource::Pushed(_) => {
            let address = format!("http://{}/hooks/{name}", config.webhook_listen);
            out.print_value(&json!({"stream": name, "address": address}), || {
                format!("the secret can be read; send events by POST to {address}")
            })?;
            return Ok(CommandExit::Ok);
        }
    };
    let mut intake = Intake::new_dry(name, vault.root.clone(), Arc::new(vault.index.clone()));
    let round = tokio::time::timeout(READ_PATIENCE, adapter.read_round(&mut intake));
    round.await.context("failed to read the source in time")??;
    let tally = intake.current_tally();
    let value =
        json!({"stream": name, "would_store": intake.would_store(), "known": tally.known, "refused": tally.refused});
    out.print_value(&value, || {
        let mut lines: Vec<String> = intake.would_store().iter().take(MAX_EVENTS).map(describe_event).collect();
        lines.push(format!(
            "{} would be stored, {} are known already, {} would be refused; nothing was stored",
            tally.stored, tally.known, tally.refused
        ));
        lines.join("\n")
    })?;
    Ok(CommandExit::Ok)
}

fn describe_event(event: &StreamEvent) -> String {
    let at = event.origin_at.unwrap_or(event.received_at);
    let text: String = event.text.chars().take(60).collect();
    format!(
        "{}  {}  {}  {}",
        format_millis(at),
        escape_text(&event.pattern),
        escape_text(event.subject.as_deref().unwrap_or("–")),
        escape_text(&text)
    )
}

#[cfg(test)]
mod tests;
