//! `steward example`: writes the example vault.
//!
//! The clock is read here, once; [`crate::example`] derives every date in the vault from it and refuses
//! a folder that holds something.

use crate::example;
use crate::out::{Exit, Out};
use chrono::Utc;
use std::path::Path;

pub(crate) fn run(folder: &Path, out: Out) -> anyhow::Result<Exit> {
    let written = example::write(folder, Utc::now())?;
    out.value(&written, || {
        format!(
            "{} matters, {} tasks, {} signals in {}",
            written.matters,
            written.tasks,
            written.signals,
            folder.display()
        )
    })?;
    Ok(Exit::Ok)
}
