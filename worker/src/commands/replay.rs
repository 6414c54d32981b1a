//! `steward replay`: recorded histories against this build.

use crate::out::{Exit, Out, shown, table};
use crate::replay::{Outcome, replay};
use std::path::PathBuf;

pub(crate) async fn run(histories: &[PathBuf], out: Out) -> anyhow::Result<Exit> {
    let replayed = replay(histories).await;
    let faults = replayed.iter().any(|r| !matches!(r.outcome, Outcome::Ok));
    out.value(&replayed, || {
        let mut rows = table(&["history", "workflow", "events", "outcome"]);
        for r in &replayed {
            rows.add_row(vec![
                r.path.display().to_string(),
                r.workflow_type.clone().unwrap_or_default(),
                r.events.to_string(),
                shown(&r.outcome.to_string()),
            ]);
        }
        rows.to_string()
    })?;
    Ok(if faults { Exit::Faults } else { Exit::Ok })
}
