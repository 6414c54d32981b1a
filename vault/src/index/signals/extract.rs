//! The records that a raw event may be about, for the extraction.
//!
//! These are open tasks and matters only, as their files say. Nothing is chosen here:
//! [`steward_domain::signals::extract::candidates`] does that.

use crate::index::IndexError;
use crate::index::SignalsView;
use steward_domain::signals::extract::candidates::OpenRecord;

impl SignalsView<'_> {
    /// Lists every open task and matter with its name, in the order of paths.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn list_open_records(self) -> Result<Vec<OpenRecord>, IndexError> {
        let rows: Vec<(String, String, String, Option<String>)> = sqlx::query_as(
            "SELECT path, 'matter', name, NULL FROM matters WHERE state = 'open' UNION ALL
             SELECT t.path, 'task', t.name, m.name FROM tasks t LEFT JOIN matters m ON m.path = t.parent
             WHERE t.state = 'open' ORDER BY 1",
        )
        .fetch_all(&self.index.store.reader)
        .await
        .map_err(|e| self.index.sql_error(e))?;
        let decode = |(path, kind, name, matter_name): (String, String, String, Option<String>)| {
            let (path, kind) = (self.index.parse_path(&path)?, self.index.parse_enum(&kind)?);
            Ok(OpenRecord { path, kind, name, matter_name })
        };
        rows.into_iter().map(decode).collect()
    }
}
