//! Who did what lately to the house itself: turns of the brake and acts, told as one.
//!
//! Read from the two logs beside the audit chain. Names and reasons are words of others, and only text.

use steward_vault::files::operator_log::{self, OperatorEventKind};
use steward_vault::files::root::VaultRoot;
use steward_vault::gates::stop;

/// One line of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OperatorEventRow {
    /// RFC 3339, UTC; of a brake that was set by hand whatever stands there.
    pub(crate) at: String,
    pub(crate) by: String,
    pub(crate) did: &'static str,
    /// What it was done to, or why.
    pub(crate) on: String,
    /// The address from which it was asked, where that is known.
    pub(crate) from: String,
}

/// The newest, the last one first.
pub(crate) fn read_newest_events(root: &VaultRoot, most: usize) -> Vec<OperatorEventRow> {
    let turns = stop::list_stop_events(root, most).into_iter().map(|turn| OperatorEventRow {
        at: turn.stop.at,
        by: turn.stop.by,
        did: if turn.stopped { "stopped the fleet" } else { "let the fleet run again" },
        on: turn.stop.reason.unwrap_or_default(),
        from: String::new(),
    });
    let acts = operator_log::list_events(root, most).into_iter().map(|act| OperatorEventRow {
        at: act.at,
        by: act.by,
        did: describe_event(act.act),
        on: act.on,
        from: act.from.map(|from| from.to_string()).unwrap_or_default(),
    });
    let mut all: Vec<OperatorEventRow> = turns.chain(acts).collect();
    // One form of moments in both, so that their text sorts as they do; those of one log stay in their order.
    all.sort_by(|a, b| b.at.cmp(&a.at));
    all.truncate(most);
    all
}

fn describe_event(deed: OperatorEventKind) -> &'static str {
    match deed {
        OperatorEventKind::StreamPaused => "paused a stream",
        OperatorEventKind::StreamResumed => "resumed a stream",
        OperatorEventKind::TokenMade => "made a token",
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
    use steward_vault::gates::stop::FleetStop;

    #[test]
    fn turns_of_the_brake_and_acts_are_told_in_the_order_they_happened() {
        let dir = tempfile::tempdir().unwrap();
        let root = VaultRoot::open(dir.path()).unwrap();
        let at = |n: u32| format!("2026-11-23T10:00:0{n}.000Z");
        let act = |n, act| OperatorEvent { at: at(n), by: "ann".into(), act, on: "x".into(), from: None };
        operator_log::append_event(&root, &act(1, OperatorEventKind::Login)).unwrap();
        stop::stop_fleet(&root, &FleetStop { at: at(2), by: "bob".into(), reason: Some("odd".into()) }).unwrap();
        operator_log::append_event(&root, &act(3, OperatorEventKind::TokenMade)).unwrap();
        let told: Vec<_> = read_newest_events(&root, 9).into_iter().map(|row| (row.by, row.did, row.on)).collect();
        let row = |by: &str, did, on: &str| (by.to_owned(), did, on.to_owned());
        let expected =
            [row("ann", "made a token", "x"), row("bob", "stopped the fleet", "odd"), row("ann", "logged in", "x")];
        assert_eq!(told, expected);
        assert_eq!(read_newest_events(&root, 2).len(), 2);
    }
}
