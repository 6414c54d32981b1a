//! The quotes that an action cites, as complete as they are known.
//!
//! An audit record keeps the first 50 characters of a quote; the signal's own record has up to 200. A human may have
//! edited that record since, so its quote is used only if it still begins with the kept part. All of it is untrusted
//! text.

use super::FactsError;
use super::action::Action;
use super::signal;
use steward_domain::record::path::RecordPath;
use steward_domain::signals::signal::MAX_NOTE_CHARS;
use steward_vault::files::root::VaultRoot;

/// Completes the quotes of actions. Reads one file for each quote that was cut.
///
/// # Errors
/// Only when the task fails. A signal that is gone or cannot be read is no error; its kept part stays.
pub(crate) async fn complete_quotes(root: &VaultRoot, mut actions: Vec<Action>) -> Result<Vec<Action>, FactsError> {
    let root = root.clone();
    let complete = move |signal: &str, quote: &str, words: &mut String| {
        let path = RecordPath::parse(signal).ok().filter(|_| is_cut_quote(quote));
        if let Some(file) = path.and_then(|path| signal::read_signal(&root, path).ok()) {
            *words = choose_quote(quote, file.signal.raw_quote);
        }
    };
    let read = move || {
        for action in &mut actions {
            for cited in &mut action.evidence {
                complete(&cited.signal, &cited.quote, &mut cited.words);
            }
            for about in &mut action.signals {
                complete(&about.signal, &about.quote, &mut about.words);
            }
        }
        actions
    };
    tokio::task::spawn_blocking(read)
        .await
        .map_err(|e| FactsError::Record { path: String::new(), reason: e.to_string() })
}

/// The kept part of a quote, with an ellipsis if it may have been cut.
#[must_use]
pub fn mark_cut_quote(note: &str) -> String {
    if is_cut_quote(note) { format!("{}…", note.trim_end()) } else { note.to_owned() }
}

fn is_cut_quote(note: &str) -> bool {
    note.chars().count() >= MAX_NOTE_CHARS
}

fn choose_quote(note: &str, complete: String) -> String {
    if complete.starts_with(note) { complete } else { mark_cut_quote(note) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_quote_is_marked_and_one_that_was_edited_since_is_not_used() {
        let note = "So sorry about the bank. Could you wait until the ";
        assert_eq!(note.chars().count(), MAX_NOTE_CHARS);
        assert_eq!(mark_cut_quote(note), "So sorry about the bank. Could you wait until the…");
        assert_eq!(mark_cut_quote("it is paid"), "it is paid");
        let whole = format!("{note}first, or shall I pay half now?");
        assert_eq!(choose_quote(note, whole.clone()), whole);
        assert_eq!(
            choose_quote(note, "The bank confirms that all is paid, at last, and says thanks".into()),
            mark_cut_quote(note)
        );
    }
}
