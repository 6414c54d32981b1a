//! Demoted sources and classes, as every interface shows them.
//!
//! The facts come from the index. What a demotion does to a plan is decided in `steward_domain::gates`, not here.

use super::VaultViews;
use chrono::{DateTime, Utc};
use serde::Serialize;
use steward_domain::gates::mode::Mode;
use steward_domain::trust::mark::TrustSubject;
use steward_vault::index::IndexError;

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
}
