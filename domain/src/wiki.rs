//! The wiki: pages that state what sources say, in a folder that follows the published standard AIP-10.
//!
//! [`standard`] says which frontmatter is valid, and [`manifest`] what a wiki's `KNOWLEDGE.md` and the views of it amount
//! to. [`page`] reads a page, wider than the standard; [`index_page`], [`log`], [`graph`] and [`registry`] are the files that code
//! writes. [`compile`] and [`writer`] make pages of a source, and [`verify`] judges them. [`effects`] says what a run does to pages. [`verifier`] asks a model about them, [`planted`] measures it, and [`gates`] decides what happens
//! to a run. [`query`] answers questions, [`review`] has a model read pages for what is wrong, [`pairs`] compares claims, [`gold`] compares answers with earlier ones, [`cost`] says what pages took, [`settle`] ends disputes, [`grep`] finds lines, [`lint`] finds what is wrong with a wiki without a model, and [`fix`] corrects some of it. Nothing here opens a file.

pub mod assemble;
mod body;
pub mod claims;
pub mod compile;
pub mod cost;
pub mod details;
pub mod effects;
pub mod fidelity;
pub mod finding;
pub mod fix;
pub mod gates;
pub mod gold;
pub mod graph;
pub mod grep;
pub mod index_page;
pub mod lint;
pub mod log;
pub mod manifest;
pub mod merge;
pub mod metrics;
pub mod names;
pub mod overview;
pub mod page;
pub mod page_keys;
pub mod page_text;
pub mod pairs;
pub mod path;
pub mod plan;
pub mod planted;
pub mod query;
pub mod quote;
pub mod registry;
pub mod review;
pub mod rollback;
pub mod run;
pub mod search;
pub mod settle;
pub mod source_text;
pub mod standard;
pub mod template;
pub mod verifier;
pub mod verify;
pub mod writer;

/// The manifest of a wiki or of a view.
pub const MANIFEST_FILE: &str = "KNOWLEDGE.md";
/// The same in prose, for people.
pub const GUIDE_FILE: &str = "AGENTS.md";
/// The catalogue of all pages, which code writes.
pub const INDEX_FILE: &str = "_index.md";
/// The first page of a wiki. Code renders parts of it.
pub const OVERVIEW_FILE: &str = "overview.md";
/// Questions of sources.
pub const IDEAS_FILE: &str = "_ideas.md";
/// How pages relate to each other.
pub const GRAPH_FILE: &str = "_graph.md";
/// What happened, newest last.
pub const LOG_FILE: &str = "_log.md";
/// Which source became which pages.
pub const PROVENANCE_FILE: &str = "_manifest.json";
/// The registry of sources.
pub const SOURCES_FILE: &str = "_sources.json";
/// The folder of the sources, which no run changes.
pub const SOURCES_FOLDER: &str = "sources";
/// The files that a person accepts before they are in force.
pub const ACCEPTED_FILES: [&str; 4] = [MANIFEST_FILE, GUIDE_FILE, "SKILL.md", "identity.md"];
/// The most pages of a wiki.
pub const MAX_PAGES: usize = 10_000;
/// The largest page, in bytes.
pub const MAX_PAGE_BYTES: usize = 256 * 1024;
/// The largest file that code writes, in bytes.
pub const MAX_GENERATED_BYTES: usize = 16 * 1024 * 1024;
/// The largest source, in bytes.
pub const MAX_SOURCE_BYTES: usize = 32 * 1024 * 1024;
