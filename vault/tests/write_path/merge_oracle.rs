//! The merge of bodies beside that of git, on random texts.
//!
//! `MERGE_TRIPLES` sets their number.

use std::path::Path;
use std::process::Command;
use steward_domain::wiki::merge::merge_lines;

/// A generator of numbers that gives the same ones for the same seed.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }

    fn line(&mut self) -> String {
        let words = ["water", "lease", "plot", "council", "", "- a", "- b", "# Head", "x", "y"];
        let word = words[usize::try_from(self.below(10)).unwrap()];
        if self.below(3) == 0 { word.to_owned() } else { format!("{word} {}", self.below(20)) }
    }

    fn text(&mut self) -> Vec<String> {
        (0..self.below(14)).map(|_| self.line()).collect()
    }

    fn edit(&mut self, base: &[String]) -> Vec<String> {
        let mut lines = base.to_vec();
        for _ in 0..self.below(4) {
            let at = usize::try_from(self.below(lines.len() as u64 + 1)).unwrap();
            match self.below(4) {
                0 if at < lines.len() => drop(lines.remove(at)),
                1 if at < lines.len() => lines[at] = self.line(),
                2 if at < lines.len() => {
                    let line = lines.remove(at);
                    let to = usize::try_from(self.below(lines.len() as u64 + 1)).unwrap();
                    lines.insert(to, line);
                }
                _ => lines.insert(at, self.line()),
            }
        }
        lines
    }
}

fn join(lines: &[String], has_newline: bool) -> String {
    let text = lines.join("\n");
    if has_newline && !lines.is_empty() { text + "\n" } else { text }
}

/// The merge of git; `None` if there are conflicts.
fn merge_with_git(folder: &Path, base: &str, ours: &str, theirs: &str) -> Option<String> {
    for (name, text) in [("base", base), ("ours", ours), ("theirs", theirs)] {
        std::fs::write(folder.join(name), text).unwrap();
    }
    let out = Command::new("git")
        .current_dir(folder)
        .args(["merge-file", "-p", "-q", "ours", "base", "theirs"])
        .output()
        .unwrap();
    let code = out.status.code().unwrap();
    assert!((0..128).contains(&code), "{}", String::from_utf8_lossy(&out.stderr));
    (code == 0).then(|| String::from_utf8(out.stdout).unwrap())
}

#[test]
fn clean_merges_equal_those_of_git_and_its_conflicts_are_ours() {
    let triples: u64 = std::env::var("MERGE_TRIPLES").ok().and_then(|text| text.parse().ok()).unwrap_or(400);
    let dir = tempfile::tempdir().unwrap();
    let (mut random, mut clean, mut faults) = (Random(88_172_645_463_325_252), 0, Vec::new());
    for _ in 0..triples {
        let base = random.text();
        let (ours, theirs) = (random.edit(&base), random.edit(&base));
        let newline = random.below(10) > 0;
        let [base, ours, theirs] = [base, ours, theirs].map(|lines| join(&lines, newline));
        let expected = merge_with_git(dir.path(), &base, &ours, &theirs);
        let merged = merge_lines(&base, &ours, &theirs).ok();
        clean += u64::from(expected.is_some());
        if merged != expected {
            faults.push(format!("base {base:?}\nours {ours:?}\ntheirs {theirs:?}\ngit {expected:?}\nhere {merged:?}"));
        }
    }
    assert!(clean > triples / 4 && clean < triples, "{clean} of {triples} are clean");
    assert!(faults.is_empty(), "{} of {triples}, as in\n{}", faults.len(), faults[..faults.len().min(4)].join("\n\n"));
}
