//! The newest operator events: stops and resumes, logins, tokens, and paused streams, in one list.
//!
//! They are read from two logs beside the audit chain. Names and reasons are untrusted text.

use steward_vault::files::operator_log::{self, OperatorEventKind};
use steward_vault::files::root::VaultRoot;
use steward_vault::gates::stop;

/// One operator event as it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OperatorEventRow {
    /// RFC 3339, UTC. For a stop file that a person wrote, it is that person's text.
    pub(crate) at: String,
    pub(crate) by: String,
    pub(crate) label: &'static str,
    /// The target of the event, or the reason of a stop.
    pub(crate) detail: String,
    /// The address of the caller, if it is known.
    pub(crate) from: String,
}

/// Reads the newest events of both logs, the newest first.
pub(crate) fn read_newest_events(root: &VaultRoot, most: usize) -> Vec<OperatorEventRow> {
    let stops = stop::list_stop_events(root, most).into_iter().map(|event| OperatorEventRow {
        at: event.stop.at,
        by: event.stop.by,
        label: if event.stopped { "stopped the vault" } else { "resumed the vault" },
        detail: event.stop.reason.unwrap_or_default(),
        from: String::new(),
    });
    let others = operator_log::list_events(root, most).into_iter().map(|event| OperatorEventRow {
        at: event.at,
        by: event.by,
        label: describe_event(event.act),
        detail: event.on,
        from: event.from.map(|from| from.to_string()).unwrap_or_default(),
    });
    let mut all: Vec<OperatorEventRow> = stops.chain(others).collect();
    // Both logs write moments in one form, so the texts sort by time. The sort is stable, so each log keeps its order.
    all.sort_by(|a, b| b.at.cmp(&a.at));
    all.truncate(most);
    all
}

fn describe_event(kind: OperatorEventKind) -> &'static str {
    match kind {
        OperatorEventKind::StreamPaused => "paused a stream",
        OperatorEventKind::StreamResumed => "resumed a stream",
        OperatorEventKind::TokenMade => "created a token",
        OperatorEventKind::TokenRevoked => "revoked a token",
        OperatorEventKind::Login => "logged in",
        OperatorEventKind::Logout => "logged out",
        OperatorEventKind::BackOffLifted => "lifted a back-off",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use steward_vault::files::operator_log::OperatorEvent;
    use steward_vault::gates::stop::VaultStop;

    #[test]
    fn stops_and_other_events_are_listed_in_the_order_they_happened() {
        let dir = tempfile::tempdir().unwrap();
        let root = VaultRoot::open(dir.path()).unwrap();
        let at = |n: u32| format!("2026-11-23T10:00:0{n}.000Z");
        let event = |n, act| OperatorEvent { at: at(n), by: "ann".into(), act, on: "x".into(), from: None };
        operator_log::append_event(&root, &event(1, OperatorEventKind::Login)).unwrap();
        stop::stop_vault(&root, &VaultStop { at: at(2), by: "bob".into(), reason: Some("odd".into()) }).unwrap();
        operator_log::append_event(&root, &event(3, OperatorEventKind::TokenMade)).unwrap();
        let listed: Vec<_> =
            read_newest_events(&root, 9).into_iter().map(|row| (row.by, row.label, row.detail)).collect();
        let row = |by: &str, label, detail: &str| (by.to_owned(), label, detail.to_owned());
        let expected =
            [row("ann", "created a token", "x"), row("bob", "stopped the vault", "odd"), row("ann", "logged in", "x")];
        assert_eq!(listed, expected);
        assert_eq!(read_newest_events(&root, 2).len(), 2);
    }
}
