//! Watches whether the vault's schedules are at the Temporal server.
//!
//! It makes one listing three times a minute, which costs one call per thousand schedules. A listing may be a few
//! moments old, and a matter may be new. So a schedule counts as missing only if two listings in a row lack it, and a
//! failure counts only if two listings in a row failed.

use crate::temporal::client::TemporalQueryClient;
use crate::views::VaultViews;
use crate::views::schedules::registered::{ScheduleComparison, compare_schedules};
use std::time::Duration;
use steward_vault::files::identity::VaultIdentity;
use tokio::sync::watch;
use tokio::time::MissedTickBehavior;

/// How often the schedules are listed: 20 s.
const EVERY: Duration = Duration::from_secs(20);

/// The vault whose schedules are expected, and the server to ask.
pub(crate) struct ExpectedSchedules {
    temporal: TemporalQueryClient,
    views: VaultViews,
}

/// The result of the last two listings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RegistrationStatus {
    pub(crate) registered: ScheduleComparison,
    /// Why the schedules cannot be listed.
    pub(crate) error: Option<String>,
}

/// Starts the watcher; it runs until `stop` becomes `true`. The receiver always has the newest result.
pub(crate) fn spawn_registration_watcher(
    expected: ExpectedSchedules,
    mut stop: watch::Receiver<bool>,
) -> watch::Receiver<RegistrationStatus> {
    let (sender, receiver) = watch::channel(RegistrationStatus::default());
    tokio::spawn(async move {
        let mut clock = tokio::time::interval(EVERY);
        clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut before = Ok(ScheduleComparison::default());
        loop {
            tokio::select! {
                _ = stop.wait_for(|stop| *stop) => return,
                _ = clock.tick() => {}
            }
            let now = tokio::select! {
                _ = stop.wait_for(|stop| *stop) => return,
                now = expected.check_registration() => now,
            };
            sender.send_replace(combine_listings(&before, &now));
            before = now;
        }
    });
    receiver
}

impl ExpectedSchedules {
    pub(crate) fn new(temporal: TemporalQueryClient, views: VaultViews) -> Self {
        Self { temporal, views }
    }

    async fn check_registration(&self) -> Result<ScheduleComparison, String> {
        let ours = VaultIdentity::read(self.views.root()).map_err(|e| e.to_string())?.map(|identity| identity.id);
        let expected = self.views.list_expected_schedules().await.map_err(|e| e.to_string())?;
        compare_schedules(self.temporal.client(), self.temporal.names(), &expected, ours)
            .await
            .map_err(|e| e.to_string())
    }
}

/// Combines two listings in a row.
fn combine_listings(
    before: &Result<ScheduleComparison, String>,
    now: &Result<ScheduleComparison, String>,
) -> RegistrationStatus {
    match (before, now) {
        (Err(_), Err(error)) => RegistrationStatus { error: Some(error.clone()), ..RegistrationStatus::default() },
        (Ok(before), Ok(now)) => {
            let missing = now.missing.intersection(&before.missing).cloned().collect();
            RegistrationStatus { registered: ScheduleComparison { missing, ..now.clone() }, error: None }
        }
        (Ok(_), Err(_)) | (Err(_), Ok(_)) => RegistrationStatus::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn missing(ids: &[&str]) -> Result<ScheduleComparison, String> {
        let missing = ids.iter().map(|&id| id.to_owned()).collect();
        Ok(ScheduleComparison { expected: 3, missing, of_another_vault: 0 })
    }

    #[test]
    fn only_what_two_listings_lack_is_missing() {
        let found = |before, now| combine_listings(&before, &now).registered.missing.into_iter().collect::<Vec<_>>();
        assert_eq!(found(missing(&["a", "b"]), missing(&["b", "c"])), ["b"]);
        assert!(found(missing(&[]), missing(&["a"])).is_empty());
        assert!(found(Err("away".into()), missing(&["a"])).is_empty());
    }

    #[test]
    fn one_listing_that_fails_is_no_error_and_two_are() {
        let away = || Err("away".to_owned());
        assert_eq!(combine_listings(&missing(&[]), &away()).error, None);
        assert_eq!(combine_listings(&away(), &away()).error, Some("away".into()));
        assert_eq!(combine_listings(&away(), &missing(&[])).error, None);
    }
}
