//! Demoted sources and classes, and numbers of people that calibration changed, as every interface shows them.
//!
//! The facts come from the index. What a demotion does to a plan is decided in `steward_domain::gates`, not here.

use super::VaultViews;
use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::Value;
use steward_domain::gates::mode::Mode;
use steward_domain::trust::mark::TrustSubject;
use steward_vault::index::{ChangedNumber, IndexError};

/// A source or a class that was undone too often.
#[derive(Clone, Debug, Serialize)]
pub struct Demotion {
    pub subject: TrustSubject,
    /// The name of the source in its newest record. Untrusted.
    pub name: Option<String>,
    /// The highest mode that is allowed.
    pub mode: Mode,
    pub since: DateTime<Utc>,
}

impl VaultViews {
    /// Lists all demotions in force.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn list_demotions(&self) -> Result<Vec<Demotion>, IndexError> {
        let mut demotions = Vec::new();
        for (subject, cap) in self.index.trust().read_mode_caps().await? {
            let Some(mode) = cap.mode else { continue };
            let name = self.index.trust().find_subject_name(&subject).await?;
            demotions.push(Demotion { subject, name, mode, since: cap.since });
        }
        Ok(demotions)
    }

    /// Lists the numbers in instincts that people wrote and calibration changed in the last 14 days.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn list_changed_numbers(&self, now: DateTime<Utc>) -> Result<Vec<ChangedNumber>, IndexError> {
        self.index.trust().list_changed_numbers(now).await
    }
}

/// Says what became of a number that a person wrote, and what is kept of it.
#[must_use]
pub fn describe_changed_number(number: &ChangedNumber) -> String {
    let ChangedNumber { path, field, given, value, .. } = number;
    let show = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let kept = match field.as_str() {
        "observations" => "yours are kept, and those that Steward counted are added",
        "confidence" => "it is computed from the records; `initial_confidence` says where it begins",
        _ => "it follows from the records",
    };
    format!("{path}: {field} {} became {}: {kept}", show(given), show(value))
}
