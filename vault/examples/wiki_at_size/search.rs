//! Fills the index with the wiki and ranks pages for each query of a file.
//!
//! The index lies in a new folder, so nothing of an earlier run is in it.

use crate::WIKI;
use crate::usage::Stopwatch;
use serde_json::{Value, json};
use std::error::Error;
use std::path::Path;
use steward_domain::wiki::search::PageFilter;
use steward_vault::files::root::VaultRoot;
use steward_vault::index::Index;

/// `queries` is a JSON list; for each, `results` gets the slugs and scores of the ten best pages.
pub(crate) async fn measure_search(vault: &Path, queries: &Path, results: &Path) -> Result<Value, Box<dyn Error>> {
    let root = VaultRoot::open(vault)?;
    let queries: Vec<String> = serde_json::from_slice(&std::fs::read(queries)?)?;
    let state = tempfile::tempdir()?;
    let index = Index::open(state.path()).await?;
    let watch = Stopwatch::start();
    index.sync_wiki(&root, WIKI).await?;
    let (fill, fill_cpu) = (watch.wall_ms(), watch.cpu_ms());
    let watch = Stopwatch::start();
    index.sync_wiki(&root, WIKI).await?;
    let unchanged = watch.wall_ms();
    let (mut times, mut found) = (Vec::new(), Vec::new());
    for query in &queries {
        let watch = Stopwatch::start();
        let hits = index.wiki().search(WIKI, query, &PageFilter::default(), 10).await?.ok_or("no such wiki")?;
        times.push(watch.wall_ms());
        found.push(hits.into_iter().map(|hit| json!([hit.slug, hit.score])).collect::<Vec<_>>());
    }
    times.sort_by(f64::total_cmp);
    let p50 = times.get(times.len() / 2).copied().unwrap_or_default();
    std::fs::write(results, serde_json::to_vec(&found)?)?;
    Ok(json!({"fill_ms": fill, "fill_cpu_ms": fill_cpu, "unchanged_ms": unchanged, "search_p50_ms": p50}))
}
