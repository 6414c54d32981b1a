//! Reads a calendar, an `.ics` file or address: one event for each entry, and one for each new version of it.
//!
//! An entry is known by its id, its sequence and its text, because some servers change `DTSTAMP`, `LAST-MODIFIED` and
//! `CREATED` at every export. A repeating entry is one event and is never expanded, so an endless rule costs nothing.
//! Each entry is parsed by itself: an invalid one is counted once, and the others go on. The address often is the only
//! secret of a calendar, so it must not be shown.

use super::BATCH;
use super::FIRST_DAYS;
use super::FoundMessage;
use super::Intake;
use super::IntakeBatch;
use super::NextRound;
use super::StreamAdapter;
use super::StreamError;
use super::StreamKeys;
use super::StreamOpener;
use super::StreamSource;
use super::hash_id;
use super::redirects::limit_redirects;
use super::run_blocking;
use super::source_pattern;
use chrono::{DateTime, NaiveDate, NaiveDateTime, TimeDelta, Utc};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use icalendar::parser::{Component, read_calendar, unfold};
use reqwest::{Client, Url};
use serde::Deserialize;
use std::collections::BTreeSet;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Largest calendar that is read, in bytes: 16 MiB, some ten thousand entries.
const MAX_CALENDAR_BYTES: u64 = 16 * 1024 * 1024;
/// Longest time from connecting to the last byte: 60 s.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Fields that change although the entry did not.
const VOLATILE_FIELDS: [&str; 3] = ["DTSTAMP", "LAST-MODIFIED", "CREATED"];

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct IcsSettings {
    path: Option<PathBuf>,
    url: Option<String>,
    url_env: Option<String>,
    url_file: Option<PathBuf>,
    /// How many days ago an entry may have begun that does not repeat.
    #[serde(default = "first_days")]
    past_days: u64,
}

enum CalendarPlace {
    File(PathBuf),
    Web(Url, Client),
}

struct IcsCalendar {
    name: String,
    place: CalendarPlace,
    past_days: u64,
    max_bytes: u64,
}

fn first_days() -> u64 {
    FIRST_DAYS
}

pub(super) fn read(keys: StreamKeys) -> Result<StreamOpener, String> {
    let (name, max_bytes) = (keys.name.clone(), keys.max_message_bytes);
    let settings: IcsSettings = keys.read()?;
    let url = settings.url.as_deref().map(parse_address).transpose()?;
    let IcsSettings { path, url_env, url_file, past_days, .. } = settings;
    let places = [path.is_some(), url.is_some(), url_env.is_some(), url_file.is_some()];
    if places.iter().filter(|is_set| **is_set).count() != 1 {
        return Err("set exactly one of `path`, `url`, `url_env` and `url_file`".into());
    }
    Ok(Box::new(move |_| {
        let place = match (&path, &url) {
            (Some(path), _) => CalendarPlace::File(path.clone()),
            (None, Some(url)) => open_web_place(url.clone())?,
            (None, None) => {
                let secret = super::settings::read_secret("url", url_env.as_deref(), url_file.as_ref())?;
                open_web_place(parse_address(secret.expose()).map_err(StreamError::Secret)?)?
            }
        };
        Ok(StreamSource::Polled(Box::new(IcsCalendar { name: name.clone(), place, past_days, max_bytes })))
    }))
}

fn open_web_place(url: Url) -> Result<CalendarPlace, StreamError> {
    let client = build_client(&url).map_err(|e| server_error(&url, &e))?;
    Ok(CalendarPlace::Web(url, client))
}

/// Parses the address. Calendars write `webcal:` for `https:`.
fn parse_address(url: &str) -> Result<Url, String> {
    let url = url.strip_prefix("webcal://").map_or_else(|| url.to_owned(), |rest| format!("https://{rest}"));
    let url = Url::parse(&url).map_err(|e| format!("`url`: {e}"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err("`url` must begin with https:// or http://".into());
    }
    Ok(url)
}

fn build_client(url: &Url) -> reqwest::Result<Client> {
    // This fails if a provider is installed already, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    limit_redirects(Client::builder(), url)
        .user_agent(concat!("steward/", env!("CARGO_PKG_VERSION")))
        .timeout(TIMEOUT)
        // The header would send the address to the next host.
        .referer(false)
        .no_proxy()
        .build()
}

impl StreamAdapter for IcsCalendar {
    fn read_round<'a>(&'a mut self, intake: &'a mut Intake) -> BoxFuture<'a, Result<NextRound, StreamError>> {
        self.read_entries(intake).boxed()
    }
}

impl IcsCalendar {
    async fn read_entries(&self, intake: &mut Intake) -> Result<NextRound, StreamError> {
        let bytes = match &self.place {
            CalendarPlace::File(path) => {
                let from = path.clone();
                let read = run_blocking(move || read_file(&from)).await?;
                read.map_err(|source| StreamError::Io { path: path.display().to_string(), source })?
            }
            CalendarPlace::Web(url, client) => fetch_calendar(client, url).await?,
        };
        let (name, oldest, max) = (self.name.clone(), Utc::now() - days_delta(self.past_days), self.max_bytes);
        let (mut found, invalid) = run_blocking(move || parse_entries(&bytes, &name, oldest, max)).await?;
        let keys = intake.filter_unknown(invalid.into_iter().collect()).await?;
        let mut batch = IntakeBatch { refused: keys.len() as u64, keys, ..IntakeBatch::default() };
        while !found.is_empty() || batch.refused > 0 {
            let rest = found.split_off(found.len().min(BATCH));
            batch.found = std::mem::replace(&mut found, rest);
            intake.ingest_batch(std::mem::take(&mut batch)).await?;
        }
        Ok(NextRound::Usual)
    }
}

fn days_delta(days: u64) -> TimeDelta {
    i64::try_from(days).ok().and_then(TimeDelta::try_days).unwrap_or(TimeDelta::MAX / 4)
}

fn read_file(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut options = std::fs::OpenOptions::new();
    options.read(true).custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed());
    let mut bytes = Vec::new();
    options.open(path)?.take(MAX_CALENDAR_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_CALENDAR_BYTES {
        return Err(std::io::Error::new(
            std::io::ErrorKind::FileTooLarge,
            format!("larger than the {MAX_CALENDAR_BYTES} bytes that a calendar may have: split it"),
        ));
    }
    Ok(bytes)
}

async fn fetch_calendar(client: &Client, url: &Url) -> Result<Vec<u8>, StreamError> {
    let mut response = client.get(url.clone()).send().await.map_err(|e| server_error(url, &e))?;
    let failed = |message: String| StreamError::Server { server: host_name(url), message };
    if !response.status().is_success() {
        return Err(failed(format!("answered {}", response.status())));
    }
    let mut bytes = Vec::new();
    while let Some(part) = response.chunk().await.map_err(|e| server_error(url, &e))? {
        if (bytes.len() + part.len()) as u64 > MAX_CALENDAR_BYTES {
            return Err(failed(format!("larger than the {MAX_CALENDAR_BYTES} bytes that a calendar may have")));
        }
        bytes.extend_from_slice(&part);
    }
    Ok(bytes)
}

/// Only the host of the address is shown, because private calendars have a secret in the path.
fn host_name(url: &Url) -> String {
    url.host_str().unwrap_or_default().to_owned()
}

fn server_error(url: &Url, e: &reqwest::Error) -> StreamError {
    let kind = if e.is_timeout() {
        "no answer in time"
    } else if e.is_connect() {
        "failed to connect"
    } else if e.is_redirect() {
        "redirects more than 3 times, or to where it must not: set `url` to its final address"
    } else {
        "the answer broke off"
    };
    StreamError::Server { server: host_name(url), message: kind.to_owned() }
}

/// Parses the entries of a calendar, and returns the keys of the invalid ones too.
fn parse_entries(
    bytes: &[u8],
    stream: &str,
    oldest: DateTime<Utc>,
    max_bytes: u64,
) -> (Vec<FoundMessage>, BTreeSet<String>) {
    let text = String::from_utf8_lossy(bytes).replace("\r\n", "\n");
    let (mut found, mut invalid) = (Vec::new(), BTreeSet::new());
    for block in split_blocks(&unfold(&text)) {
        let read = || catch_unwind(AssertUnwindSafe(|| parse_entry(&block, stream, oldest)));
        match if block.len() as u64 > max_bytes { Ok(Err(())) } else { read() } {
            Ok(Ok(Some(entry))) => found.push(entry),
            Ok(Ok(None)) => {}
            Ok(Err(())) | Err(_) => drop(invalid.insert(entry_key(&block))),
        }
    }
    (found, invalid)
}

/// The key of an invalid entry, by which it is known again.
fn entry_key(block: &str) -> String {
    let is_volatile = |line: &&str| {
        let name = line.split([':', ';']).next().unwrap_or_default();
        VOLATILE_FIELDS.iter().any(|field| field.eq_ignore_ascii_case(name))
    };
    let lines: Vec<&str> = block.lines().filter(|line| !is_volatile(line)).collect();
    format!("ics:{}", hash_id(lines.join("\n").as_bytes()))
}

/// Splits a calendar into the lines of each `VEVENT`, without nested components.
///
/// Alarms are no news, and endless nesting must not reach the recursive parser.
fn split_blocks(text: &str) -> Vec<String> {
    let (mut blocks, mut current, mut depth) = (Vec::new(), String::new(), 0_u32);
    for line in text.lines() {
        let (key, value) = line.split_once(':').unwrap_or((line, ""));
        let begins = key.eq_ignore_ascii_case("BEGIN");
        let is_event = value.trim().eq_ignore_ascii_case("VEVENT");
        if begins && (depth > 0 || is_event) {
            depth += 1;
        } else if key.eq_ignore_ascii_case("END") && depth > 0 {
            depth -= 1;
            if depth == 0 {
                blocks.push(std::mem::take(&mut current));
            }
        } else if depth == 1 && !line.trim().is_empty() {
            current.push_str(line);
            current.push('\n');
        }
    }
    blocks
}

/// Parses one entry; `None` if it began too long ago.
fn parse_entry(block: &str, stream: &str, oldest: DateTime<Utc>) -> Result<Option<FoundMessage>, ()> {
    let whole = format!("BEGIN:VCALENDAR\nBEGIN:VEVENT\n{block}END:VEVENT\nEND:VCALENDAR\n");
    let calendar = read_calendar(&whole).map_err(drop)?;
    let entry = calendar.components.first().ok_or(())?;
    let uid = property_value(entry, "UID").ok_or(())?;
    let starts = property_value(entry, "DTSTART");
    let repeats = property_value(entry, "RRULE").or_else(|| property_value(entry, "RDATE"));
    if repeats.is_none() && starts.as_deref().and_then(parse_instant).is_some_and(|at| at < oldest) {
        return Ok(None);
    }
    let mut id = uid;
    for part in ["RECURRENCE-ID", "SEQUENCE"] {
        id.extend(property_value(entry, part).map(|value| format!(" {} {value}", part.to_ascii_lowercase())));
    }
    let organizer = property_value(entry, "ORGANIZER").map(|o| o.trim_start_matches("mailto:").to_owned());
    let zone = |name: &str| {
        let params =
            entry.find_prop(name).map(|p| p.params.iter().find(|p| p.key == "TZID").and_then(|p| p.val.as_ref()));
        params.flatten().map(|zone| format!(" ({zone})")).unwrap_or_default()
    };
    let mut text = String::new();
    let mut line = |label: &str, name: &str| {
        if let Some(value) = property_value(entry, name) {
            let shown = parse_instant(&value)
                .filter(|_| name.starts_with("DT"))
                .map_or(value, |_| format_readable_time(entry, name));
            text.push_str(&format!("{label}: {shown}{}\n", zone(name)));
        }
    };
    line("Starts", "DTSTART");
    line("Ends", "DTEND");
    line("Lasts", "DURATION");
    line("Repeats", "RRULE");
    line("Where", "LOCATION");
    line("Status", "STATUS");
    if let Some(description) = property_value(entry, "DESCRIPTION") {
        text.push_str(&format!("\n{description}\n"));
    }
    Ok(Some(FoundMessage {
        source_id: id,
        pattern: source_pattern("calendar", Some(organizer.as_deref().unwrap_or(stream))),
        origin_at: None,
        author: organizer,
        subject: property_value(entry, "SUMMARY"),
        text,
    }))
}

fn property_value(entry: &Component<'_>, name: &str) -> Option<String> {
    let text = entry.find_prop(name)?.val.clone().unescape_text().to_string();
    (!text.trim().is_empty()).then(|| text.trim().to_owned())
}

/// Reads the three forms of a time. A time without a zone counts as UTC, which is exact enough to skip old entries.
fn parse_instant(text: &str) -> Option<DateTime<Utc>> {
    let plain = text.trim().trim_end_matches('Z');
    let time = NaiveDateTime::parse_from_str(plain, "%Y%m%dT%H%M%S").ok();
    let date = || NaiveDate::parse_from_str(plain, "%Y%m%d").ok().and_then(|date| date.and_hms_opt(0, 0, 0));
    time.or_else(date).map(|at| at.and_utc())
}

/// Formats a time for people, with its zone as it was written.
fn format_readable_time(entry: &Component<'_>, name: &str) -> String {
    let text = property_value(entry, name).unwrap_or_default();
    match parse_instant(&text) {
        Some(at) if text.len() == 8 => at.format("%Y-%m-%d").to_string(),
        Some(at) => at.format("%Y-%m-%d %H:%M").to_string() + if text.ends_with('Z') { " UTC" } else { "" },
        None => text,
    }
}

#[cfg(test)]
mod tests;
