//! Finds the lines of texts in which a regular expression matches, in time that grows with the text alone.
//!
//! A pattern never matches across lines. [`PathGlob`] says which files are searched.

use regex::{Regex, RegexBuilder};
use serde::Serialize;

/// The longest pattern, in characters.
pub const MAX_PATTERN: usize = 1_000;
/// The longest glob, in characters.
pub const MAX_GLOB: usize = 200;
/// The most characters of a line that are shown.
pub const MAX_LINE: usize = 400;
/// The most memory of a compiled pattern, in bytes. Repetitions of repetitions would take any amount.
const MAX_COMPILED_BYTES: usize = 4 * 1024 * 1024;

/// Why a pattern or a glob cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    #[error("it has {count} characters, more than the {limit} that it may have")]
    TooLong { count: usize, limit: usize },
    #[error("{0}")]
    Syntax(String),
}

/// A regular expression, or words that are taken as they are.
#[derive(Clone, Debug)]
pub struct LinePattern(Regex);

/// A line in which a pattern matches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LineHit {
    /// From 1.
    pub line: usize,
    /// Where the first match begins, in characters from 1.
    pub column: usize,
    /// The line, at most [`MAX_LINE`] characters of it.
    pub text: String,
    /// The lines above it, and below.
    pub before: Vec<String>,
    pub after: Vec<String>,
}

impl LinePattern {
    /// Compiles a pattern. A fixed one means its own signs, and nothing else.
    ///
    /// # Errors
    /// [`PatternError`].
    pub fn new(pattern: &str, is_fixed: bool, ignores_case: bool) -> Result<Self, PatternError> {
        let count = pattern.chars().count();
        if count > MAX_PATTERN {
            return Err(PatternError::TooLong { count, limit: MAX_PATTERN });
        }
        let pattern = if is_fixed { regex::escape(pattern) } else { pattern.to_owned() };
        let mut builder = RegexBuilder::new(&pattern);
        builder.multi_line(true).crlf(true).case_insensitive(ignores_case).size_limit(MAX_COMPILED_BYTES);
        builder.build().map(Self).map_err(|e| match e {
            // The last line of the message says what is wrong; those above draw the place.
            regex::Error::Syntax(message) => {
                let last = message.lines().last().unwrap_or_default();
                PatternError::Syntax(last.trim_start_matches("error: ").to_owned())
            }
            regex::Error::CompiledTooBig(_) => PatternError::Syntax("it is too large when compiled".to_owned()),
            other => PatternError::Syntax(other.to_string()),
        })
    }

    /// The first lines of a text in which the pattern matches, with so many lines around each. It ends early when `goes_on` says so,
    /// which is asked before each line.
    pub fn find_lines(
        &self,
        text: &str,
        context: usize,
        limit: usize,
        mut goes_on: impl FnMut() -> bool,
    ) -> Vec<LineHit> {
        let (mut hits, mut from, mut counted, mut number) = (Vec::new(), 0, 0, 1);
        while hits.len() < limit && from <= text.len() && goes_on() {
            let Some(found) = self.0.find_at(text, from) else { break };
            let start = text[..found.start()].rfind('\n').map_or(0, |at| at + 1);
            let end = text[found.start()..].find('\n').map_or(text.len(), |at| found.start() + at);
            let line = text[start..end].trim_end_matches('\r');
            // What was found may reach into the next line. Then it counts only if the line alone has a match, too.
            if let Some(found) = self.0.find(line)
                && !(line.is_empty() && start == text.len())
            {
                number += text[counted..start].matches('\n').count();
                counted = start;
                hits.push(LineHit {
                    line: number,
                    column: line[..found.start()].chars().count() + 1,
                    text: cut(line),
                    before: list_before(text, start, context),
                    after: text[end..].lines().skip(1).take(context).map(cut).collect(),
                });
            }
            from = end + 1;
        }
        hits
    }
}

fn list_before(text: &str, start: usize, count: usize) -> Vec<String> {
    let mut lines: Vec<String> = text[..start].lines().rev().take(count).map(cut).collect();
    lines.reverse();
    lines
}

fn cut(line: &str) -> String {
    match line.char_indices().nth(MAX_LINE) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

/// Which paths are meant: `*` and `?` stand for signs of one name, and `**` for any folders.
#[derive(Clone, Debug)]
pub struct PathGlob(Regex);

impl PathGlob {
    /// Reads a glob such as `entities/*.md` or `**/plot-*`.
    ///
    /// # Errors
    /// [`PatternError`].
    pub fn new(glob: &str) -> Result<Self, PatternError> {
        let count = glob.chars().count();
        if count > MAX_GLOB {
            return Err(PatternError::TooLong { count, limit: MAX_GLOB });
        }
        let (mut pattern, mut rest) = ("^".to_owned(), glob);
        while let Some(sign) = rest.chars().next() {
            let (taken, meaning) = match sign {
                // `**/` also stands for no folder at all.
                '*' if rest.starts_with("**/") => (3, "(?:.*/)?".to_owned()),
                '*' if rest.starts_with("**") => (2, ".*".to_owned()),
                '*' => (1, "[^/]*".to_owned()),
                '?' => (1, "[^/]".to_owned()),
                other => (other.len_utf8(), regex::escape(&other.to_string())),
            };
            pattern.push_str(&meaning);
            rest = &rest[taken..];
        }
        let built = RegexBuilder::new(&(pattern + "$")).size_limit(MAX_COMPILED_BYTES).build();
        built.map(Self).map_err(|e| PatternError::Syntax(e.to_string()))
    }

    /// Whether the glob means a path.
    #[must_use]
    pub fn matches(&self, path: &str) -> bool {
        self.0.is_match(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(pattern: &str, text: &str) -> Vec<(usize, usize, String)> {
        let pattern = LinePattern::new(pattern, false, false).unwrap();
        pattern.find_lines(text, 0, 10, || true).into_iter().map(|hit| (hit.line, hit.column, hit.text)).collect()
    }

    fn hit(line: usize, column: usize, text: &str) -> (usize, usize, String) {
        (line, column, text.to_owned())
    }

    #[test]
    fn each_line_with_a_match_is_found_once() {
        let text = "the lease\nof plot 12\r\nends: lease, lease\n\nübel lease";
        assert_eq!(
            find("lease", text),
            [hit(1, 5, "the lease"), hit(3, 7, "ends: lease, lease"), hit(5, 6, "übel lease")]
        );
        assert_eq!(find("^of.*12$", text), [hit(2, 1, "of plot 12")]);
        assert_eq!(find("^$", text), [hit(4, 1, "")]);
        assert_eq!(find("x*", "a\nb\n"), [hit(1, 1, "a"), hit(2, 1, "b")], "an empty match is one of each line");
        assert_eq!(find("gone", text), []);
    }

    #[test]
    fn no_match_reaches_into_another_line() {
        assert_eq!(find(r"lease\s+of", "the lease\nof plot\nlease of it"), [hit(3, 1, "lease of it")]);
        assert_eq!(find(r"[^q]+t", "a\nplot"), [hit(2, 1, "plot")]);
        assert_eq!(find(r"(?s)a.b", "a\nb a\nb\na b"), [hit(4, 1, "a b")]);
    }

    #[test]
    fn lines_around_a_hit_are_shown_and_long_ones_cut() {
        let long = "y".repeat(500);
        let text = format!("one\ntwo\nthree\nfour\n{long}");
        let pattern = LinePattern::new("FOUR", true, true).unwrap();
        let hits = pattern.find_lines(&text, 2, 10, || true);
        assert_eq!((hits[0].before.as_slice(), hits[0].line), (["two".to_owned(), "three".to_owned()].as_slice(), 4));
        assert_eq!(hits[0].after, [format!("{}…", "y".repeat(MAX_LINE))]);
        assert_eq!(LinePattern::new("e", false, false).unwrap().find_lines(&text, 0, 1, || true).len(), 1, "a limit");
        assert_eq!(pattern.find_lines(&text, 0, 10, || false), [], "no time");
    }

    #[test]
    fn a_fixed_pattern_means_its_own_signs() {
        let pattern = LinePattern::new("a.b[", true, false).unwrap();
        assert_eq!(pattern.find_lines("axb[\na.b[", 0, 10, || true).len(), 1);
        let refused = |pattern: &str| LinePattern::new(pattern, false, false).unwrap_err().to_string();
        assert_eq!(refused("a("), "unclosed group");
        assert_eq!(refused("(((a{1000}){1000}){1000})"), "it is too large when compiled");
        assert_eq!(refused(&"a".repeat(1_001)), "it has 1001 characters, more than the 1000 that it may have");
    }

    #[test]
    fn a_glob_stays_in_its_folder_unless_it_says_otherwise() {
        for (glob, path, expected) in [
            ("entities/*", "entities/plot-12.md", true),
            ("entities/*", "entities/old/plot-12.md", false),
            ("entities/**", "entities/old/plot-12.md", true),
            ("**/*.md", "overview.md", true),
            ("**/*.md", "a/b/c.md", true),
            ("**", "sources/lease.txt", true),
            ("plot-?.md", "plot-1.md", true),
            ("plot-?.md", "plot-12.md", false),
            ("a+b.md", "a+b.md", true),
            ("a+b.md", "aab.md", false),
        ] {
            assert_eq!(PathGlob::new(glob).unwrap().matches(path), expected, "{glob} {path}");
        }
        assert!(PathGlob::new(&"*".repeat(201)).is_err());
    }
}
