//! The rate guard in `steward status`: how full its windows are, and what would refuse a call now.
//!
//! The ledger is only read. In a fleet the bucket of the provider's account is asked too.

use crate::cli::output::{escape_text, format_causes};
use crate::config::StewardConfig;
use crate::runtime::engine;
use chrono::{DateTime, Utc};
use steward_domain::steward::guard::{CallCaps, GuardCap, GuardRefusal, GuardStatus};
use steward_vault::files::root::{OWN_FOLDER, VaultRoot};

/// Reads the status of the rate guard. If the ledger cannot be opened, the status says so.
pub(super) async fn read_guard_status(
    config: &StewardConfig,
    caps: CallCaps,
    root: &VaultRoot,
    now: DateTime<Utc>,
) -> GuardStatus {
    let unknown = |reason| {
        let refusal = GuardRefusal { cap: GuardCap::LedgerUnreadable, clears_at: None, reason };
        GuardStatus { refusal: Some(refusal), ledger: None }
    };
    if !root.path().join(OWN_FOLDER).exists() {
        return unknown(format!(
            "the vault has no {OWN_FOLDER}/ folder yet, so the number of calls is unknown: `steward up` creates it"
        ));
    }
    let opened = config.state_dir().and_then(|state| engine::open_ledger(caps, root, &state));
    let mut status = match opened {
        Ok(ledger) => ledger.status(now).await,
        Err(e) => unknown(format_causes(&e)),
    };
    if status.refusal.is_none() {
        status.refusal = crate::fleet::find_fleet_refusal(config).await;
    }
    status
}

pub(super) fn describe_guard(guard: &GuardStatus) -> String {
    let fill = guard.ledger.as_ref().map(|l| {
        format!(
            "{}/{} calls per minute, {}/{} per hour, {}/{} per day",
            l.minute.used, l.minute.cap, l.hour.used, l.hour.cap, l.day.used, l.day.cap
        )
    });
    match (&guard.refusal, fill) {
        (Some(refusal), Some(fill)) => format!("{fill}; refuses calls now: {}", escape_text(&refusal.reason)),
        (Some(refusal), None) => format!("refuses calls: {}", escape_text(&refusal.reason)),
        (None, Some(fill)) => fill,
        (None, None) => "unknown".into(),
    }
}
