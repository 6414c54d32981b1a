//! A measurement of the clerk that is under way: its cases, and the answers so far.
//!
//! It lies in a folder of its own, named after the clerk and the cases. So the same measurement goes on where it ended, whoever asks
//! for it again, and another clerk or another case is another one. The process that waits for it says so in a file; when nobody
//! waits any more, nobody pays for more answers.

use crate::files::durable;
use crate::files::root::{VaultRoot, make_real_folder, open_real_folder};
use crate::wiki::staged::read_bytes;
use cap_std::fs::{Dir, OpenOptions, OpenOptionsExt};
use chrono::{DateTime, TimeDelta, Utc};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{self, Write};
use steward_domain::action::plan::ContentHash;
use steward_domain::steward::eval::cases::EvalCase;
use steward_domain::steward::eval::report::CaseAnswer;

/// The folder of all measurements, in the folder of Steward's own files.
const FOLDER: &str = "clerk-evals";
const CASES: &str = "cases.json";
const CLERK: &str = "clerk.json";
const ANSWERS: &str = "answers.jsonl";
const WAITER: &str = "waiter.json";
/// The largest file of a measurement, in bytes: some ten thousand cases.
const MAX_BYTES: usize = 64 * 1024 * 1024;
/// How long somebody counts as waiting after they said so last. They say it every few seconds.
const PATIENCE: TimeDelta = TimeDelta::seconds(60);
/// How many digits of a hash name a measurement.
const ID_DIGITS: usize = 16;
/// Only the owner may read them.
const PRIVATE: u32 = 0o600;

/// A measurement in its folder.
#[derive(Debug)]
pub struct ClerkEval {
    id: String,
    dir: Dir,
}

impl ClerkEval {
    /// Begins a measurement of these cases by a clerk, or opens the one that was begun. `clerk` says which one it is.
    ///
    /// # Errors
    /// Its folder cannot be written.
    pub fn begin(root: &VaultRoot, clerk: &str, cases: &[EvalCase]) -> io::Result<Self> {
        let text = serde_json::to_vec(cases)?;
        let hash = ContentHash::hash_bytes(&serde_json::to_vec(&(clerk, ContentHash::hash_bytes(&text).as_str()))?);
        let id = hash.as_str()[..ID_DIGITS].to_owned();
        let dir = make_real_folder(&root.make_own_folder(Some(FOLDER))?, &id)?;
        durable::replace_private_file(&dir, CASES, &text)?;
        durable::replace_private_file(&dir, CLERK, &serde_json::to_vec(clerk)?)?;
        Ok(Self { id, dir })
    }

    /// Opens a measurement; `None` if there is none of this name.
    ///
    /// # Errors
    /// Its folder cannot be read.
    pub fn open(root: &VaultRoot, id: &str) -> io::Result<Option<Self>> {
        let is_id = id.len() == ID_DIGITS && id.bytes().all(|byte| byte.is_ascii_hexdigit());
        let Some(all) = root.find_own_folder(Some(FOLDER))?.filter(|_| is_id) else { return Ok(None) };
        Ok(open_real_folder(&all, id)?.map(|dir| Self { id: id.to_owned(), dir }))
    }

    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Whether it was begun for this clerk.
    #[must_use]
    pub fn is_of(&self, clerk: &str) -> bool {
        self.read_json::<String>(CLERK).ok().flatten().is_some_and(|known| known == clerk)
    }

    /// The cases, in their order.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn read_cases(&self) -> io::Result<Vec<EvalCase>> {
        Ok(self.read_json(CASES)?.unwrap_or_default())
    }

    /// The answers so far. A line that a power cut tore is left out, so that its case is asked again.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn read_answers(&self) -> io::Result<Vec<CaseAnswer>> {
        let bytes = read_bytes(&self.dir, ANSWERS, MAX_BYTES)?.unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        Ok(text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
    }

    /// Keeps an answer, and returns when it is durable.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn keep_answer(&self, answer: &CaseAnswer) -> io::Result<()> {
        let mut options = OpenOptions::new();
        options.append(true).create(true).mode(PRIVATE);
        let mut file = self.dir.open_with(ANSWERS, &options)?;
        // An empty line ends one that was torn.
        file.write_all(format!("\n{}\n", serde_json::to_string(answer)?).as_bytes())?;
        file.sync_all()
    }

    /// Forgets all answers.
    ///
    /// # Errors
    /// The file cannot be removed.
    pub fn forget_answers(&self) -> io::Result<()> {
        match durable::remove_file(&self.dir, ANSWERS) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
            _ => Ok(()),
        }
    }

    /// Says that somebody waits for it now.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn note_waiter(&self, now: DateTime<Utc>) -> io::Result<()> {
        self.write_json(WAITER, &now)
    }

    /// Says that nobody waits any more.
    pub fn end_wait(&self) {
        // If it stays, it is too old in a minute.
        let _ = durable::remove_file(&self.dir, WAITER);
    }

    /// Whether somebody waits for it.
    #[must_use]
    pub fn is_awaited(&self, now: DateTime<Utc>) -> bool {
        let noted: Option<DateTime<Utc>> = self.read_json(WAITER).ok().flatten();
        noted.is_some_and(|at| (now - at).abs() < PATIENCE)
    }

    fn read_json<T: DeserializeOwned>(&self, name: &str) -> io::Result<Option<T>> {
        let bytes = read_bytes(&self.dir, name, MAX_BYTES)?;
        bytes.map(|bytes| serde_json::from_slice(&bytes).map_err(io::Error::from)).transpose()
    }

    fn write_json(&self, name: &str, value: &impl Serialize) -> io::Result<()> {
        durable::replace_private_file(&self.dir, name, &serde_json::to_vec(value)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use steward_domain::steward::clerk::{Judgement, TokenUsage};
    use steward_domain::steward::eval::cases::read_shipped_cases;
    use steward_domain::steward::eval::report::CaseOutcome;

    fn answer(case: &str) -> CaseAnswer {
        let outcome = CaseOutcome::Decided { decision: Judgement::LikelyDone, confidence: 0.9 };
        CaseAnswer { case: case.to_owned(), outcome, tokens: TokenUsage::default(), seconds: 0.5, tries: 1 }
    }

    #[test]
    fn a_measurement_goes_on_where_it_ended_and_another_clerk_has_another_one() {
        let dir = tempfile::tempdir().unwrap();
        let root = VaultRoot::open(dir.path()).unwrap();
        let cases = read_shipped_cases().unwrap();
        let first = ClerkEval::begin(&root, "openai/m", &cases).unwrap();
        first.keep_answer(&answer("a")).unwrap();
        let path = dir.path().join(format!(".steward/{FOLDER}/{}/{ANSWERS}", first.id()));
        let torn = std::fs::read_to_string(&path).unwrap() + "{\"case\": \"torn";
        std::fs::write(&path, torn).unwrap();
        let again = ClerkEval::begin(&root, "openai/m", &cases).unwrap();
        again.keep_answer(&answer("b")).unwrap();
        assert_eq!((again.id(), again.read_cases().unwrap()), (first.id(), cases.clone()));
        assert_eq!(again.read_answers().unwrap(), [answer("a"), answer("b")]);
        let opened = ClerkEval::open(&root, first.id()).unwrap().unwrap();
        assert_eq!(opened.read_answers().unwrap().len(), 2);
        for other in [ClerkEval::begin(&root, "openai/n", &cases), ClerkEval::begin(&root, "openai/m", &cases[1..])] {
            let other = other.unwrap();
            assert_ne!(other.id(), first.id());
            assert_eq!(other.read_answers().unwrap(), []);
        }
        again.forget_answers().unwrap();
        again.forget_answers().unwrap();
        assert_eq!(again.read_answers().unwrap(), []);
        for id in ["..", "0123456789abcdef", "x", ""] {
            assert!(ClerkEval::open(&root, id).unwrap().is_none(), "{id}");
        }
    }

    #[test]
    fn somebody_waits_for_a_minute_after_they_said_so() {
        let dir = tempfile::tempdir().unwrap();
        let eval = ClerkEval::begin(&VaultRoot::open(dir.path()).unwrap(), "m", &[]).unwrap();
        let now = Utc::now();
        assert!(!eval.is_awaited(now));
        eval.note_waiter(now).unwrap();
        assert!(eval.is_awaited(now + TimeDelta::seconds(59)) && !eval.is_awaited(now + TimeDelta::seconds(60)));
        eval.end_wait();
        assert!(!eval.is_awaited(now));
    }
}
