//! Fills the index with one wiki of a vault and times it; then ranks pages for each query of a file.
//!
//! Arguments: the vault, the wiki, a JSON list of queries, and the file for the results. `tests/wiki_bench.py` makes the wiki and the
//! queries, and compares what is found with another program.
#![allow(clippy::print_stdout, reason = "a program that prints its figures")]

use serde_json::json;
use std::error::Error;
use std::path::Path;
use std::time::Instant;
use steward_domain::wiki::search::PageFilter;
use steward_vault::files::root::VaultRoot;
use steward_vault::index::Index;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [vault, wiki, queries, results] = arguments.as_slice() else {
        return Err("vault, wiki, queries, results".into());
    };
    let root = VaultRoot::open(Path::new(vault))?;
    let queries: Vec<String> = serde_json::from_slice(&std::fs::read(queries)?)?;
    let state = tempfile::tempdir()?;
    let index = Index::open(state.path()).await?;
    let begin = Instant::now();
    index.sync_wiki(&root, wiki).await?;
    let fill = begin.elapsed();
    let begin = Instant::now();
    index.sync_wiki(&root, wiki).await?;
    let unchanged = begin.elapsed();
    let (mut times, mut found) = (Vec::new(), Vec::new());
    for query in &queries {
        let begin = Instant::now();
        let hits = index.wiki().search(wiki, query, &PageFilter::default(), 10).await?.ok_or("no such wiki")?;
        times.push(begin.elapsed());
        found.push(hits.into_iter().map(|hit| json!([hit.slug, hit.score])).collect::<Vec<_>>());
    }
    times.sort();
    let p50 = times.get(times.len() / 2).copied().unwrap_or_default();
    let milliseconds = |time: std::time::Duration| time.as_secs_f64() * 1_000.0;
    println!(
        "{}",
        json!({"fill_ms": milliseconds(fill), "unchanged_ms": milliseconds(unchanged), "search_p50_ms": milliseconds(p50)})
    );
    std::fs::write(results, serde_json::to_vec(&found)?)?;
    Ok(())
}
