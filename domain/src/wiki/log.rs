//! `_log.md`, the history of a wiki: one entry for each thing that happened, the newest last.
//!
//! An entry is written as `## [2026-11-22T09:15:04Z] ingest | Letter of the council` with bullets below. Two older
//! headers are read as well: `[2026-11-22]` and `[2026-11-22 09:15 UTC]`, with any type.

use super::LOG_FILE;
use super::finding::{FindingCode, Severity, WikiFinding};
use super::index_page::escape;
use super::page::shorten;
use crate::record::plain_text::to_one_line;
use chrono::{DateTime, NaiveDate, NaiveDateTime, SecondsFormat, Utc};
use serde::Serialize;

/// The longest subject and the longest bullet of an entry that is written here, in characters.
const MAX_SUBJECT: usize = 120;
const MAX_BULLET: usize = 200;

/// What an entry is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, strum::Display, strum::EnumString, strum::EnumIter)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum LogType {
    Ingest,
    /// Also a filed answer and an archive.
    #[strum(to_string = "query", serialize = "filed", serialize = "archive")]
    Query,
    Lint,
    /// Also a rollback, a source that was added or purged, and a manifest that was accepted.
    Manual,
}

/// One entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LogEntry {
    pub at: DateTime<Utc>,
    /// `None` for a type of an older wiki that is none of today's.
    pub log_type: Option<LogType>,
    pub subject: String,
    pub bullets: Vec<String>,
    /// The line of its header, from 1.
    pub line: usize,
}

impl LogEntry {
    /// The run that the entry names, as it stands there.
    #[must_use]
    pub fn find_run(&self) -> Option<&str> {
        let rest = self.bullets.iter().find_map(|bullet| bullet.strip_prefix("run: "))?;
        rest.split([',', ' ', ';']).next()
    }

    /// The pages that the entry names as touched: slugs, or in older logs paths.
    #[must_use]
    pub fn list_touched(&self) -> Vec<&str> {
        let Some(list) = self.bullets.iter().find_map(|bullet| Some(bullet.split_once("touched: ")?.1)) else {
            return Vec::new();
        };
        let names = list.split(',').map(|name| name.trim().trim_start_matches("[[").trim_end_matches("]]"));
        names.filter(|name| !name.is_empty()).collect()
    }
}

/// What reading a log came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogReading {
    /// In the order of the file.
    pub entries: Vec<LogEntry>,
    pub findings: Vec<WikiFinding>,
}

/// Reads a log. What stands above the first entry is a person's introduction.
#[must_use]
pub fn read_log(text: &str) -> LogReading {
    let mut read = LogReading::default();
    for (at, line) in text.lines().enumerate() {
        if let Some(header) = line.strip_prefix("## ") {
            match (read_header(header, at + 1), read.entries.last_mut()) {
                // An older wiki gave what an ingest added to its graph a header of its own.
                (Some(entry), Some(ingest)) if entry.is_graph => {
                    ingest.bullets.push(format!("graph: {}", entry.entry.subject))
                }
                (Some(entry), _) => read.entries.push(entry.entry),
                (None, _) => {
                    let problem = "not the header of an entry";
                    let fix = "write `## [<time>] ingest | <subject>`, with query, lint or manual for other entries";
                    let finding = WikiFinding::new(FindingCode::LogUnreadable, Severity::Error, LOG_FILE, problem, fix);
                    read.findings.push(finding.with_line(Some(at + 1)));
                }
            }
        } else if let (Some(entry), Some(bullet)) = (read.entries.last_mut(), line.strip_prefix("- ")) {
            entry.bullets.push(bullet.trim().to_owned());
        }
    }
    read
}

/// A header that was read.
struct LogHeader {
    entry: LogEntry,
    is_graph: bool,
}

fn read_header(header: &str, line: usize) -> Option<LogHeader> {
    let (time, rest) = header.trim().strip_prefix('[')?.split_once(']')?;
    let (word, subject) = rest.split_once('|')?;
    let (at, word) = (read_time(time.trim())?, word.trim());
    if word.is_empty() || word.contains(char::is_whitespace) {
        return None;
    }
    let entry =
        LogEntry { at, log_type: word.parse().ok(), subject: subject.trim().to_owned(), bullets: Vec::new(), line };
    Some(LogHeader { entry, is_graph: word == "graph" })
}

fn read_time(text: &str) -> Option<DateTime<Utc>> {
    let standard = DateTime::parse_from_rfc3339(text).ok().map(|at| at.to_utc());
    let minute =
        || text.strip_suffix(" UTC").and_then(|text| NaiveDateTime::parse_from_str(text, "%Y-%m-%d %H:%M").ok());
    let day = || NaiveDate::parse_from_str(text, "%Y-%m-%d").ok().and_then(|day| day.and_hms_opt(0, 0, 0));
    standard.or_else(|| minute().or_else(day).map(|naive| naive.and_utc()))
}

/// Renders an entry, with a blank line before it.
#[must_use]
pub fn render_entry(at: DateTime<Utc>, log_type: LogType, subject: &str, bullets: &[String]) -> String {
    let time = at.to_rfc3339_opts(SecondsFormat::Secs, true);
    let mut text = format!("\n## [{time}] {log_type} | {}\n", shorten(&escape(subject), MAX_SUBJECT));
    for bullet in bullets {
        text.push_str(&format!("- {}\n", shorten(&to_one_line(bullet), MAX_BULLET)));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_reads_back_as_it_was_written() {
        let at = "2026-11-22T09:15:04Z".parse().unwrap();
        let bullets = vec!["run: r-1, verdict: commit".to_owned(), "touched: [[plot-12]]".to_owned()];
        let text = format!("# Log\n{}", render_entry(at, LogType::Ingest, "Letter | of [the]\ncouncil", &bullets));
        assert_eq!(text.lines().nth(2), Some("## [2026-11-22T09:15:04Z] ingest | Letter \\| of \\[the\\] council"));
        let read = read_log(&text);
        let [entry] = read.entries.as_slice() else { panic!("{read:?}") };
        assert_eq!((entry.at, entry.log_type, &entry.bullets, entry.line), (at, Some(LogType::Ingest), &bullets, 3));
        assert_eq!(read.findings, []);
        assert_eq!((entry.find_run(), entry.list_touched()), (Some("r-1"), vec!["plot-12"]));
        let text = "## [2026-04-05] ingest | a\n- source: lease; touched: [[a]], concepts/b.md, [[overview]]\n## [2026-04-06] lint | b\n";
        let read = read_log(text);
        assert_eq!(read.entries[0].list_touched(), ["a", "concepts/b.md", "overview"]);
        assert_eq!((read.entries[1].find_run(), read.entries[1].list_touched()), (None, Vec::new()));
    }

    #[test]
    fn older_headers_are_read_and_others_are_named_by_line() {
        let text = "# Log\n\n## [2026-04-05] ingest | a\n## [2026-04-05 08:30 UTC] filed | b\n## [2026-04-06] graph | c\n- d\n## [2026-04-07] notes | e\n\
            ## Notes\n## [yesterday] lint | d\n";
        let read = read_log(text);
        let found: Vec<(String, Option<LogType>)> =
            read.entries.iter().map(|entry| (entry.at.to_rfc3339(), entry.log_type)).collect();
        let expected = [
            ("2026-04-05T00:00:00+00:00", Some(LogType::Ingest)),
            ("2026-04-05T08:30:00+00:00", Some(LogType::Query)),
            ("2026-04-07T00:00:00+00:00", None),
        ];
        assert_eq!(found, expected.map(|(at, log_type)| (at.to_owned(), log_type)));
        let lines: Vec<Option<usize>> = read.findings.iter().map(|finding| finding.line).collect();
        assert_eq!(lines, [Some(8), Some(9)]);
        assert_eq!(read.entries[1].bullets, ["graph: c", "d"]);
    }

    #[test]
    fn a_subject_is_one_short_line() {
        let text = render_entry(DateTime::UNIX_EPOCH, LogType::Manual, &"long words ".repeat(40), &["b ".repeat(300)]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3);
        assert!(lines[1].chars().count() < 170 && lines[2].chars().count() <= MAX_BULLET + 2, "{text}");
    }
}
