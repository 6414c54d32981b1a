//! `steward replay`: recorded histories against this build.
//!
//! It needs neither a server nor a vault and changes no history; each file's verdict comes from
//! [`crate::replay`], and one that no longer fits makes the exit code say so.

use crate::out::{Exit, Out, shown};
use crate::replay::replay;
use std::path::PathBuf;

pub(crate) async fn run(histories: &[PathBuf], out: Out) -> anyhow::Result<Exit> {
    let replayed = replay(histories).await;
    let faults = replayed.iter().any(|r| !r.is_ok());
    out.value(&replayed, || replayed.iter().map(|r| shown(&r.to_string())).collect::<Vec<_>>().join("\n"))?;
    Ok(if faults { Exit::Faults } else { Exit::Ok })
}
