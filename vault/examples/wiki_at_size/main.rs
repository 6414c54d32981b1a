//! Measures one operation on a large wiki, in a process of its own, and prints the figures as a JSON object.
//!
//! The first argument names the operation and the second the vault; the wiki is `wiki/bench`. `tests/wiki_bench/bench.py` makes the
//! pages, runs the operations, and compares what they found with other programs.
#![allow(clippy::print_stdout, reason = "a program that prints its figures")]

mod checks;
mod runs;
mod search;
mod usage;

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::Value;
use std::error::Error;
use std::path::Path;

/// The name of the wiki.
const WIKI: &str = "bench";

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let figures = match arguments.as_slice() {
        ["init", vault] => runs::create_new_wiki(Path::new(vault))?,
        ["search", vault, queries, results] => {
            search::measure_search(Path::new(vault), Path::new(queries), Path::new(results)).await?
        }
        ["ingest", vault, script] => runs::measure_ingest(Path::new(vault), Path::new(script))?,
        ["lint", vault, results] => checks::measure_lint(Path::new(vault), Path::new(results))?,
        ["validate", vault, results] => checks::measure_validate(Path::new(vault), Path::new(results))?,
        ["quotes", vault] => checks::measure_quotes(Path::new(vault))?,
        ["grep", vault, word] => checks::measure_grep(Path::new(vault), word)?,
        ["add-source", vault, file] => runs::measure_new_source(Path::new(vault), Path::new(file))?,
        _ => return Err("unknown operation, or not its arguments: see main.rs".into()),
    };
    println!("{}", add_peak(figures)?);
    Ok(())
}

/// Adds the most memory that this process held at any moment, in MiB.
fn add_peak(mut figures: Value) -> Result<Value, Box<dyn Error>> {
    figures["peak_mib"] = usage::read_peak()?.into();
    Ok(figures)
}

/// The time so many minutes after the wiki was made, on 2026-11-22.
fn compute_time(minutes: i64) -> DateTime<Utc> {
    DateTime::UNIX_EPOCH + TimeDelta::days(20_779) + TimeDelta::minutes(minutes)
}
