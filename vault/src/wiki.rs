//! Wikis on disk: their folder, and the chain of manifests above a view.
//!
//! Any folder can be read, in a vault or not. [`create`] writes the files of a new wiki, [`accept`] puts its manifest in force,
//! and [`sources`] adds a source. A run is staged outside of the wiki ([`staged`]), by fixed rules ([`ingest`]) by a model ([`write`]) or by an assistant ([`guardian`]) that another one checks ([`check`]), and then committed ([`commit`]); [`revert`]
//! takes it back, and [`rejected`] ends one that commits nothing. [`runs`] lists what was done, [`verdicts`] keeps what was judged, [`pending`] lists sources that wait, [`health`] checks a wiki, [`lint_log`] notes that and [`fix`] corrects pages, [`settle`] carries out what a person decides, [`search`] finds pages and [`grep`] lines, [`answers`] keeps what was asked, [`gold`] which of it was good, [`evals`] and [`metrics`] keep what is measured, [`cost`] says what pages took, and [`why`] says what stands behind a claim.

pub mod accept;
pub mod answers;
pub mod chain;
pub mod check;
pub mod commit;
pub mod cost;
pub mod create;
pub mod evals;
pub mod fix;
pub mod folder;
pub mod gold;
pub mod grep;
pub mod guardian;
pub mod health;
pub mod ingest;
pub(crate) mod kept;
pub mod lint_log;
pub mod metrics;
pub mod pending;
pub mod quotes;
pub mod raw_search;
pub mod rejected;
pub mod request;
pub mod revert;
pub mod reviews;
pub mod run_facts;
pub mod runs;
pub mod search;
pub mod settle;
pub mod sources;
pub mod staged;
pub mod state;
pub(crate) mod threads;
pub mod verdicts;
pub mod why;
pub mod write;
