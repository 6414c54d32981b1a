//! Activities of calibration and of the reversibility drill.
//!
//! Both run in the process that holds the vault. Both are idempotent: a repeat after a crash continues where the first
//! run ended.

pub(crate) mod calibrate;
pub(crate) mod drill;
