//! Writes the example vault: a dozen matters of one household and its workshop.
//!
//! The records are templates in `worker/example/`, compiled into the binary. Their times are relative (`{{-3d2h}}`), so
//! the signals are always a few days old. Two calls with the same `now` write the same bytes. Nothing else in a
//! template is changed: its line endings, comments, quotes and the one broken record are intended.
//!
//! It must not write into a folder that holds anything, and it never overwrites a file. `worker/example/README.md`
//! describes what the stewards do with each matter; that file is not written into the vault. Afterwards the folder is a
//! vault like any other: `steward up` indexes it and registers its schedules.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};

mod templates;
#[cfg(test)]
mod tests;

use templates::{TEMPLATES, Template};

/// The number of records written, by kind.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize)]
pub(crate) struct ExampleSummary {
    /// The folder that is now a vault, as the caller named it.
    pub(crate) dir: PathBuf,
    /// Matters, 12 or more.
    pub(crate) matters: usize,
    /// Tasks, 30 or more, one of them broken on purpose.
    pub(crate) tasks: usize,
    /// Signals, 50 or more, all from the last ten days.
    pub(crate) signals: usize,
    /// Sources with a history of their own.
    pub(crate) instincts: usize,
}

/// Why writing the example vault failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ExampleError {
    /// The folder is not empty.
    #[error(
        "write the example vault: {} already holds {found:?}; name a folder that is empty or does not exist",
        dir.display()
    )]
    NotEmpty {
        /// The folder that was named.
        dir: PathBuf,
        /// The first entry in it, by name.
        found: String,
    },
    /// The folder, or a file in it, could not be read or written.
    #[error(
        "write the example vault at {}: {source}; check the permissions and the free space, remove what was written, \
         and try again",
        path.display()
    )]
    Io {
        /// The path that failed.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A template holds an invalid time, or one outside the calendar.
    #[error("fill in the time {placeholder:?} of {path}; the clock may be wrong: check the date of this machine")]
    Time {
        /// The template, as a path inside the vault.
        path: &'static str,
        /// The text between the braces, or the age in the file name.
        placeholder: String,
    },
}

/// Writes the example vault into `dir`, with all times relative to `now`.
///
/// It creates `dir` and its parents if they do not exist. Fractions of a second in `now` are dropped.
///
/// # Errors
/// [`ExampleError::NotEmpty`] if `dir` holds anything, hidden files included; nothing is written then.
/// [`ExampleError::Io`] if a file cannot be written; files written before that stay.
/// [`ExampleError::Time`] if `now` is too close to the ends of the calendar; nothing is written then.
pub(crate) fn write_example_vault(dir: &Path, now: DateTime<Utc>) -> Result<ExampleSummary, ExampleError> {
    let records = TEMPLATES
        .iter()
        .map(|template| Ok((build_file_name(template, now)?, fill_times(template, now)?)))
        .collect::<Result<Vec<_>, ExampleError>>()?;
    refuse_unless_empty(dir)?;

    let mut summary = ExampleSummary { dir: dir.to_path_buf(), ..ExampleSummary::default() };
    for (path, text) in &records {
        write_new_file(&dir.join(path), text)?;
        match path.split('/').next() {
            Some("matter") => summary.matters += 1,
            Some("task") => summary.tasks += 1,
            Some("signal") => summary.signals += 1,
            Some("instinct") => summary.instincts += 1,
            _ => {}
        }
    }
    Ok(summary)
}

fn refuse_unless_empty(dir: &Path) -> Result<(), ExampleError> {
    match find_first_entry(dir).map_err(|source| ExampleError::Io { path: dir.to_path_buf(), source })? {
        None => Ok(()),
        Some(found) => Err(ExampleError::NotEmpty { dir: dir.to_path_buf(), found }),
    }
}

/// The first entry of a folder, by name; `None` if the folder is empty or does not exist.
///
/// # Errors
/// The folder cannot be listed.
pub(crate) fn find_first_entry(dir: &Path) -> io::Result<Option<String>> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let names = entries.map(|entry| entry.map(|entry| entry.file_name().to_string_lossy().into_owned()));
    Ok(names.collect::<Result<Vec<_>, _>>()?.into_iter().min())
}

fn write_new_file(path: &Path, text: &str) -> Result<(), ExampleError> {
    let write = || {
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        OpenOptions::new().write(true).create_new(true).open(path)?.write_all(text.as_bytes())
    };
    write().map_err(|source| ExampleError::Io { path: path.to_path_buf(), source })
}

/// `signal/ago-3d2h-1a2b3c4d.md` → `signal/20261118090000-1a2b3c4d.md`; others keep their name.
fn build_file_name(template: &Template, now: DateTime<Utc>) -> Result<String, ExampleError> {
    let Some(rest) = template.path.strip_prefix("signal/ago-") else {
        return Ok(template.path.to_owned());
    };
    let bad = || invalid_time_error(template, rest);
    let (age, hash) = rest.split_once('-').ok_or_else(bad)?;
    let at = shift_time(now, &format!("-{age}")).ok_or_else(bad)?;
    Ok(format!("signal/{}-{hash}", at.format("%Y%m%d%H%M%S")))
}

/// Replaces `{{-3d2h}}` by an instant (UTC, seconds) and `{{date +5d}}` by a day.
fn fill_times(template: &Template, now: DateTime<Utc>) -> Result<String, ExampleError> {
    let mut out = String::with_capacity(template.text.len());
    let mut rest = template.text;
    while let Some((before, after)) = rest.split_once("{{") {
        let bad = || invalid_time_error(template, after.lines().next().unwrap_or_default());
        let (placeholder, tail) = after.split_once("}}").ok_or_else(bad)?;
        out.push_str(before);
        match placeholder.strip_prefix("date ") {
            Some(offset) => {
                let at = shift_time(now, offset).ok_or_else(bad)?;
                out.push_str(&at.format("%Y-%m-%d").to_string());
            }
            None => {
                let at = shift_time(now, placeholder).ok_or_else(bad)?;
                out.push_str(&at.to_rfc3339_opts(SecondsFormat::Secs, true));
            }
        }
        rest = tail;
    }
    out.push_str(rest);
    Ok(out)
}

fn invalid_time_error(template: &Template, placeholder: &str) -> ExampleError {
    ExampleError::Time { path: template.path, placeholder: placeholder.to_owned() }
}

/// Moves `now` by a signed offset such as `-3d2h7m` or `+18h`; units are d, h, m and s.
fn shift_time(now: DateTime<Utc>, offset: &str) -> Option<DateTime<Utc>> {
    let (sign, parts) = match offset.split_at_checked(1)? {
        ("-", parts) => (-1, parts),
        ("+", parts) => (1, parts),
        _ => return None,
    };
    let mut seconds: i64 = 0;
    for part in parts.split_inclusive(|c: char| c.is_ascii_alphabetic()) {
        let unit = match part.chars().last()? {
            'd' => 86_400,
            'h' => 3_600,
            'm' => 60,
            's' => 1,
            _ => return None,
        };
        let count: u32 = part[..part.len() - 1].parse().ok()?;
        seconds += i64::from(count) * unit;
    }
    if parts.is_empty() {
        return None;
    }
    now.checked_add_signed(TimeDelta::try_seconds(sign * seconds)?)
        .filter(|at| (0..=9999).contains(&chrono::Datelike::year(at)))
}
