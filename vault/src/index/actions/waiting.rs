//! Which proposals wait for a person, as conditions of SQL.
//!
//! An answer ends a proposal and the equal ones before it. A proposal is shown until it expires, unless a person has put
//! its note off. Expired and put-off proposals can still be answered: these conditions are for lists and counts alone.

use crate::index::store::codec::to_micros;
use chrono::{DateTime, TimeDelta, Utc};
use steward_domain::trust::by_hand::ANSWER_WINDOW;

/// The target of the action `a` now has the proposed state or matter, whoever set it, so nothing is left to resolve.
/// The index does not have the other fields.
macro_rules! is_settled {
    () => {
        "EXISTS (SELECT 1 FROM tasks t WHERE t.path = a.target AND t.state = a.proposed_state UNION ALL
            SELECT 1 FROM matters m WHERE m.path = a.target AND m.state = a.proposed_state UNION ALL
            SELECT 1 FROM tasks t WHERE t.path = a.target AND t.parent = a.moves_to)"
    };
}
/// The action `a` can be answered by a person. Of equal proposals this is the newest one.
macro_rules! is_waiting {
    () => {
        concat!(
            "a.waits = 1 AND NOT ",
            $crate::index::actions::waiting::is_settled!(),
            " AND NOT EXISTS (SELECT 1 FROM actions e INDEXED BY actions_by_proposal
                WHERE e.proposal = a.proposal AND e.seq > a.seq AND e.waits = 1)"
        )
    };
}
pub(crate) use {is_settled, is_waiting};

/// How long a proposal is shown to a person: 14 days. As long is it compared with what is done by hand.
pub const PROPOSAL_LIFETIME: TimeDelta = ANSWER_WINDOW;

/// The record `target` (an SQL expression) is put off at this moment. A signal that is first seen later ends that.
pub(crate) fn is_snoozed(target: &str, now: DateTime<Utc>) -> String {
    let now = to_micros(now);
    format!(
        "EXISTS (SELECT 1 FROM snoozes z WHERE z.target = {target} AND z.until > {now} AND NOT EXISTS (
            SELECT 1 FROM signals n CROSS JOIN first_seen f ON f.signal = n.path
            WHERE n.target = z.target AND f.at > z.at))"
    )
}

/// The action `a` waits for a person at this moment, and is shown.
pub(crate) fn is_shown(now: DateTime<Utc>) -> String {
    let oldest = to_micros(now - PROPOSAL_LIFETIME);
    format!("{} AND a.at > {oldest} AND NOT {}", is_waiting!(), is_snoozed("a.target", now))
}

pub(crate) fn count_waiting_sql(now: DateTime<Utc>) -> String {
    format!("SELECT COUNT(*) FROM actions a INDEXED BY actions_that_wait WHERE {}", is_shown(now))
}
