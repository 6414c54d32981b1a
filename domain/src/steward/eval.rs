//! Labelled cases that show how well a clerk judges, and what a run of them came to.
//!
//! A case is a question with the answer that a careful person gives. [`cases`] reads them, [`records`] makes some of
//! answered proposals, and [`report`] counts the answers of a clerk. Nothing here asks a clerk, and no figure opens a gate.

pub mod cases;
pub mod records;
pub mod report;
