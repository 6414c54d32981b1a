//! Hands the Temporal protocol's descriptors to `src/preflight/history.rs`, which reads histories with them.
#![allow(clippy::print_stdout, reason = "cargo listens on standard output")]

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let descriptors = std::env::var("DEP_TEMPORALIO_PROTOS_DESCRIPTOR_PATH")?;
    println!("cargo:rustc-env=TEMPORAL_DESCRIPTORS={descriptors}");
    println!("cargo:rerun-if-changed={descriptors}");
    Ok(())
}
