//! Logs with a file for each day: `.steward/logs/<name>-<date>.jsonl`, one JSON value on each line.
//!
//! Only their owner can read them. The date is that of UTC, and a file is removed after 30 days. Several processes may append to one file: a line is
//! one write, and one that a crash cut off stays alone.

use crate::files::disk::measure_space;
use crate::files::durable;
use crate::files::root::{OWN_FOLDER, VaultRoot};
use cap_std::fs::{Dir, OpenOptions};
use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use serde::Serialize;
use serde_json::Value;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};

/// The folder of the logs, in our own folder.
const LOGS: &str = "logs";
const LOCK: &str = "lock";
/// How long a log is kept, in days.
const KEEP_DAYS: i64 = 30;
/// The least space that must be free before something is done that is to be logged: some thousand lines.
const LEAST_FREE_BYTES: u64 = 1024 * 1024;

/// A log with a file for each day.
#[derive(Clone, Debug)]
pub struct DayLog {
    root: VaultRoot,
    name: &'static str,
}

/// The file of one day, opened for lines.
#[derive(Debug)]
pub struct OpenDayLog(File);

impl DayLog {
    #[must_use]
    pub fn new(root: VaultRoot, name: &'static str) -> Self {
        Self { root, name }
    }

    /// Opens the file of a day, and makes it if it is missing. Files of days that are long past are removed then.
    ///
    /// # Errors
    /// The file cannot be opened or is none, or the disk is full.
    pub fn open(&self, at: DateTime<Utc>) -> io::Result<OpenDayLog> {
        let dir = self.root.make_own_folder(Some(LOGS))?;
        if measure_space(&self.root.path().join(OWN_FOLDER)).is_some_and(|space| space.free_bytes < LEAST_FREE_BYTES) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let name = self.name_file(at.date_naive());
        match dir.symlink_metadata(&name) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => self.create(&dir, &name, at)?,
            Ok(meta) if !meta.is_file() => return Err(io::Error::other(format!("{name} is not a file"))),
            Ok(_) => {}
            Err(e) => return Err(e),
        }
        let file = dir.open_with(name, OpenOptions::new().read(true).append(true))?;
        Ok(OpenDayLog(file.into_std()))
    }

    /// Makes the file of a day, unless another process does.
    fn create(&self, dir: &Dir, name: &str, at: DateTime<Utc>) -> io::Result<()> {
        let lock: File = dir.open_with(LOCK, OpenOptions::new().create(true).write(true))?.into_std();
        lock.lock()?;
        if dir.symlink_metadata(name).is_ok() {
            return Ok(());
        }
        self.remove_old(dir, at)?;
        durable::replace_private_file(dir, name, b"")?;
        durable::sync_folder(dir)
    }

    /// The lines of all days from one on, oldest first. A line that a crash cut off is left out.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn read_lines(&self, from: NaiveDate) -> io::Result<Vec<Value>> {
        let Some(dir) = self.root.find_own_folder(Some(LOGS))? else { return Ok(Vec::new()) };
        let mut days = self.list_days(&dir)?;
        days.retain(|day| *day >= from);
        days.sort_unstable();
        let mut lines = Vec::new();
        for day in days {
            let text = dir.read(self.name_file(day))?;
            lines.extend(
                text.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice::<Value>(line).ok()),
            );
        }
        Ok(lines)
    }

    /// The days that have a file, in no order.
    fn list_days(&self, dir: &Dir) -> io::Result<Vec<NaiveDate>> {
        let read = |name: &OsStr| -> Option<NaiveDate> {
            let rest = name.to_str()?.strip_prefix(self.name)?.strip_prefix('-')?;
            rest.strip_suffix(".jsonl")?.parse().ok()
        };
        let mut days = Vec::new();
        for entry in dir.entries()? {
            days.extend(read(&entry?.file_name()));
        }
        Ok(days)
    }

    fn name_file(&self, day: NaiveDate) -> String {
        format!("{}-{day}.jsonl", self.name)
    }

    /// Removes the files of days that are long past.
    fn remove_old(&self, dir: &Dir, now: DateTime<Utc>) -> io::Result<()> {
        for day in self.list_days(dir)? {
            if now.date_naive() - day > TimeDelta::days(KEEP_DAYS) {
                durable::remove_file(dir, self.name_file(day))?;
            }
        }
        Ok(())
    }
}

impl OpenDayLog {
    /// Appends a line in one write.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn append<T: Serialize>(&mut self, line: &T) -> io::Result<()> {
        let mut text = serde_json::to_vec(line)?;
        text.push(b'\n');
        let mut last = [b'\n'];
        if self.0.seek(SeekFrom::End(0))? > 0 {
            self.0.seek(SeekFrom::End(-1))?;
            self.0.read_exact(&mut last)?;
        }
        if last != [b'\n'] {
            text.insert(0, b'\n');
        }
        self.0.write_all(&text)
    }

    /// Waits until what was appended outlives a power cut.
    ///
    /// # Errors
    /// The disk refuses it.
    pub fn sync(&self) -> io::Result<()> {
        self.0.sync_all()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_that_append_at_once_tear_no_line() {
        let dir = tempfile::tempdir().unwrap();
        let log = DayLog::new(VaultRoot::open(dir.path()).unwrap(), "calls");
        let at: DateTime<Utc> = "2026-11-22T09:00:00Z".parse().unwrap();
        std::thread::scope(|scope| {
            for number in 0..8 {
                let log = log.clone();
                scope.spawn(move || (0..50).for_each(|line| log.open(at).unwrap().append(&(number, line)).unwrap()));
            }
        });
        let text = std::fs::read_to_string(dir.path().join(".steward/logs/calls-2026-11-22.jsonl")).unwrap();
        let lines: Vec<(u32, u32)> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines.len(), 400);
    }

    #[test]
    fn lines_are_read_from_a_day_on_without_those_that_a_crash_cut_off() {
        let dir = tempfile::tempdir().unwrap();
        let log = DayLog::new(VaultRoot::open(dir.path()).unwrap(), "calls");
        let day = |day: &str| day.parse::<NaiveDate>().unwrap();
        assert!(log.read_lines(day("2026-11-01")).unwrap().is_empty(), "there is no folder yet");
        for (at, line) in [("2026-11-22T09:00:00Z", 2), ("2026-11-21T09:00:00Z", 1), ("2026-11-23T09:00:00Z", 3)] {
            log.open(at.parse().unwrap()).unwrap().append(&line).unwrap();
        }
        let logs = dir.path().join(".steward/logs");
        std::fs::write(logs.join("calls-2026-11-22.jsonl"), "2\n{\"cut").unwrap();
        std::fs::write(logs.join("others-2026-11-22.jsonl"), "7\n").unwrap();
        assert_eq!(log.read_lines(day("2026-11-22")).unwrap(), [2, 3]);
    }
}
