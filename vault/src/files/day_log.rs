//! Logs with a file for each day: `.steward/logs/<name>-<date>.jsonl`, one JSON value on each line.
//!
//! Only their owner can read them. The date is that of UTC. A file is removed after 30 days, or earlier if all files together have more than 200 MB.
//! Several processes may append to one file: a line is one write, and one that a crash cut off stays alone. A line that could not be appended is
//! owed: it is appended before the file can be opened again.

use crate::files::disk::{check_writable, measure_space};
use crate::files::durable;
use crate::files::root::{OWN_FOLDER, VaultRoot};
use cap_std::fs::{Dir, OpenOptions};
use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use serde::Serialize;
use serde_json::Value;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::sync::{Arc, Mutex, PoisonError};

/// The folder of the logs, in our own folder.
const LOGS: &str = "logs";
const LOCK: &str = "lock";
/// How long a log is kept, in days.
const KEEP_DAYS: i64 = 30;
/// How much all files of a log may have together, in bytes: 200 MB are some hundred thousand lines. The file of the day stays, whatever it has.
const KEEP_BYTES: u64 = 200_000_000;
/// After how many new bytes the files are measured again: 1 MiB, so that it costs nothing for a single line.
const MEASURE_INTERVAL: u64 = 1024 * 1024;
/// The least space that must be free before something is done that is to be logged: some thousand lines.
const LEAST_FREE_BYTES: u64 = 1024 * 1024;

/// A log with a file for each day.
#[derive(Clone, Debug)]
pub struct DayLog {
    root: VaultRoot,
    name: &'static str,
    keep_bytes: u64,
    /// Lines that could not be appended. All clones share them.
    owed: Arc<Mutex<Vec<Vec<u8>>>>,
}

/// The file of one day, opened for lines.
#[derive(Debug)]
pub struct OpenDayLog {
    file: File,
    day: NaiveDate,
    log: DayLog,
}

impl DayLog {
    #[must_use]
    pub fn new(root: VaultRoot, name: &'static str) -> Self {
        Self { root, name, keep_bytes: KEEP_BYTES, owed: Arc::default() }
    }

    /// Opens the file of a day, and makes it if it is missing. Files of days that are long past are removed then. What is owed is appended.
    ///
    /// # Errors
    /// The file cannot be opened or is none, the disk is full, or a line that is owed cannot be appended yet.
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
        let file = dir.open_with(name, OpenOptions::new().read(true).append(true))?.into_std();
        let mut opened = OpenDayLog { file, day: at.date_naive(), log: self.clone() };
        opened.append_owed(&dir)?;
        Ok(opened)
    }

    /// What keeps the log from being complete, with the fix; `None` if nothing does.
    #[must_use]
    pub fn find_fault(&self) -> Option<String> {
        let dir = match self.root.find_own_folder(Some(LOGS)) {
            Ok(dir) => dir?,
            Err(e) => return Some(format!("{OWN_FOLDER}/{LOGS}: {e}")),
        };
        if let Err(e) = check_writable(&self.root.path().join(OWN_FOLDER).join(LOGS)) {
            return Some(e.to_string());
        }
        let mark = self.name_mark();
        dir.symlink_metadata(&mark).ok()?;
        Some(format!(
            "a call has no line yet, because writing failed. The process that served it adds the line before its next call. If that process has ended, the line is lost: remove {OWN_FOLDER}/{LOGS}/{mark}"
        ))
    }

    /// Keeps a line until it can be appended.
    fn owe(&self, line: Vec<u8>) {
        self.owed.lock().unwrap_or_else(PoisonError::into_inner).push(line);
        // A full disk may not take the mark either; then a check finds the disk itself.
        let dir = self.root.make_own_folder(Some(LOGS));
        let _ = dir.and_then(|dir| durable::replace_private_file(&dir, &self.name_mark(), b""));
    }

    /// The file that says that lines are owed.
    fn name_mark(&self) -> String {
        format!("{}-incomplete", self.name)
    }

    /// Makes the file of a day, unless another process does.
    fn create(&self, dir: &Dir, name: &str, at: DateTime<Utc>) -> io::Result<()> {
        let lock: File = dir.open_with(LOCK, OpenOptions::new().create(true).write(true))?.into_std();
        lock.lock()?;
        if dir.symlink_metadata(name).is_ok() {
            return Ok(());
        }
        self.remove_old(dir, at.date_naive())?;
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

    /// Removes the files of days that are long past, and the oldest of the others while all together are too large.
    fn remove_old(&self, dir: &Dir, today: NaiveDate) -> io::Result<()> {
        let mut days = self.list_days(dir)?;
        days.sort_unstable_by_key(|day| std::cmp::Reverse(*day));
        let mut bytes = 0_u64;
        for day in days {
            let name = self.name_file(day);
            bytes = bytes.saturating_add(dir.symlink_metadata(&name).map_or(0, |meta| meta.len()));
            let is_recent = today - day <= TimeDelta::days(KEEP_DAYS) && bytes <= self.keep_bytes;
            if day < today && !is_recent {
                durable::remove_file(dir, name)?;
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
        self.append_text(&serde_json::to_vec(line)?)
    }

    /// As [`Self::append`]; a line that cannot be written is owed. Until it is written, the file cannot be opened again.
    ///
    /// # Errors
    /// It cannot be written now.
    pub fn append_or_owe<T: Serialize>(&mut self, line: &T) -> io::Result<()> {
        let line = serde_json::to_vec(line)?;
        let appended = self.append_text(&line);
        if appended.is_err() {
            self.log.owe(line);
        }
        appended
    }

    /// Appends the lines that are owed, the oldest first.
    fn append_owed(&mut self, dir: &Dir) -> io::Result<()> {
        let owed = Arc::clone(&self.log.owed);
        let mut owed = owed.lock().unwrap_or_else(PoisonError::into_inner);
        if owed.is_empty() {
            return Ok(());
        }
        while let Some(line) = owed.first() {
            self.append_text(line)?;
            owed.remove(0);
        }
        // A mark that stays is reported once more than necessary.
        let _ = durable::remove_file(dir, self.log.name_mark());
        Ok(())
    }

    fn append_text(&mut self, line: &[u8]) -> io::Result<()> {
        let size = self.file.seek(SeekFrom::End(0))?;
        let mut last = [b'\n'];
        if size > 0 {
            self.file.seek(SeekFrom::End(-1))?;
            self.file.read_exact(&mut last)?;
        }
        let mut text = Vec::with_capacity(line.len() + 2);
        if last != [b'\n'] {
            text.push(b'\n');
        }
        text.extend_from_slice(line);
        text.push(b'\n');
        self.file.write_all(&text)?;
        if size / MEASURE_INTERVAL != (size + text.len() as u64) / MEASURE_INTERVAL
            && let Ok(Some(dir)) = self.log.root.find_own_folder(Some(LOGS))
        {
            // The line is written. What is not removed now is removed later.
            let _ = self.log.remove_old(&dir, self.day);
        }
        Ok(())
    }

    /// Waits until what was appended outlives a power cut.
    ///
    /// # Errors
    /// The disk refuses it.
    pub fn sync(&self) -> io::Result<()> {
        self.file.sync_all()
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

    #[test]
    fn the_oldest_files_go_first_when_all_are_too_large_and_that_of_the_day_stays() {
        let dir = tempfile::tempdir().unwrap();
        let log = DayLog { keep_bytes: 100, ..DayLog::new(VaultRoot::open(dir.path()).unwrap(), "calls") };
        let at = |day: &str| format!("2026-11-{day}T09:00:00Z").parse::<DateTime<Utc>>().unwrap();
        log.open(at("01")).unwrap();
        let logs = dir.path().join(".steward/logs");
        let list = || {
            let mut names: Vec<String> = std::fs::read_dir(&logs)
                .unwrap()
                .filter_map(|entry| entry.unwrap().file_name().into_string().ok())
                .filter_map(|name| Some(name.strip_prefix("calls-2026-11-")?.strip_suffix(".jsonl")?.to_owned()))
                .collect();
            names.sort();
            names
        };
        for (day, size) in [("17", 40), ("18", 70), ("19", 50), ("20", 40)] {
            std::fs::write(logs.join(format!("calls-2026-11-{day}.jsonl")), "x".repeat(size)).unwrap();
        }
        let mut today = log.open(at("21")).unwrap();
        assert_eq!(list(), ["19", "20", "21"]);
        today.append(&"x".repeat(1024 * 1024)).unwrap();
        assert_eq!(list(), ["21"]);
        log.open("2027-01-01T09:00:00Z".parse().unwrap()).unwrap();
        assert!(list().is_empty(), "it is older than 30 days");
    }

    #[test]
    fn a_line_that_could_not_be_appended_comes_before_any_other_one() {
        let dir = tempfile::tempdir().unwrap();
        let log = DayLog::new(VaultRoot::open(dir.path()).unwrap(), "calls");
        assert_eq!(log.find_fault(), None, "there is no folder yet");
        let at: DateTime<Utc> = "2026-11-22T09:00:00Z".parse().unwrap();
        log.open(at).unwrap().append_or_owe(&1).unwrap();
        assert_eq!(log.find_fault(), None);
        // Nothing can be written to a file that is open for reading.
        let path = dir.path().join(".steward/logs/calls-2026-11-22.jsonl");
        let mut broken = log.open(at).unwrap();
        broken.file = File::open(path).unwrap();
        assert!(broken.append_or_owe(&2).is_err() && broken.append_or_owe(&3).is_err());
        let logs = log.root.find_own_folder(Some(LOGS)).unwrap().unwrap();
        assert!(broken.append_owed(&logs).is_err());
        let fault = log.find_fault().unwrap();
        assert!(fault.contains(".steward/logs/calls-incomplete"), "{fault}");
        log.clone().open(at).unwrap().append(&4).unwrap();
        assert_eq!(log.read_lines(at.date_naive()).unwrap(), [1, 2, 3, 4]);
        assert_eq!(log.find_fault(), None);
    }
}
