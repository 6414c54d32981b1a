//! `steward backtest`: recorded decisions under other settings, compared with the present ones.
//!
//! Reads the index alone and asks no clerk. With `--write` the settings go into `steward.toml` with what they rest on;
//! what the environment sets counts more than that file and is named, so that nobody believes a switch was turned that
//! was not.

use super::text::{hundred, interval, section, wrapped};
use crate::cli;
use crate::config::rules::{Wish, entries, mode, share, with_rules};
use crate::config::{self, Config};
use crate::out::{Exit, Out};
use anyhow::Context;
use chrono::{DateTime, Utc};
use serde::Serialize;
use std::path::PathBuf;
use steward_domain::time::seconds;
use steward_domain::trust::advice::percent;
use steward_domain::trust::backtest::{Backtest, Backtesting, Difference, Outcome};
use steward_domain::trust::case::Rules;
use steward_domain::trust::risk::Curve;
use steward_vault::chain::{self, Head};

/// The backtest, and what was done with it.
#[derive(Serialize)]
struct Told {
    told_at: DateTime<Utc>,
    #[serde(flatten)]
    backtest: Backtest,
    /// The file that has the settings now; `None` where none was asked for.
    written: Option<PathBuf>,
    /// What the environment sets otherwise than the file that was written.
    overruled: Vec<Overruled>,
}

/// A setting that the environment decides.
#[derive(Serialize)]
struct Overruled {
    name: String,
    /// What holds.
    environment: String,
    /// What was written.
    file: String,
}

pub(super) async fn run(config: &Config, ask: &cli::Backtest, out: Out) -> anyhow::Result<Exit> {
    let now = config.rules();
    let against = match &ask.against {
        Some(file) => Wish::read(file)?.over(&now),
        None => now.clone(),
    };
    let rules = wished(ask)?.iter().fold(now, |rules, wish| wish.over(&rules));
    let look = super::super::look(config).await?;
    let told_at = Utc::now();
    let mut backtesting = Backtesting::new(rules.clone(), against);
    look.index.cases(told_at, |case| backtesting.add(case)).await?;
    let mut told = Told { told_at, backtest: backtesting.backtest(), written: None, overruled: Vec::new() };
    if ask.write {
        let head = chain::head(&look.root)?;
        told.written = Some(write(config, &evidence(&told.backtest, &head, told_at), &rules)?);
        told.overruled = overruled(&rules);
    }
    out.value(&told, || describe(&told))?;
    Ok(Exit::Ok)
}

/// What is asked about: the file first, then the options over it.
fn wished(ask: &cli::Backtest) -> anyhow::Result<Vec<Wish>> {
    let mut wishes = Vec::new();
    if let Some(file) = &ask.policy {
        wishes.push(Wish::read(file)?);
    }
    let mut wish = Wish {
        mode: ask.mode.as_deref().map(mode).transpose()?,
        confidence: ask.confidence.map(|n| share("--confidence", n)).transpose()?,
        high_confidence: ask.high_confidence.map(|n| share("--high-confidence", n)).transpose()?,
        ..Wish::default()
    };
    for pair in &ask.ceilings {
        wish.hold(pair)?;
    }
    wishes.push(wish);
    Ok(wishes)
}

fn write(config: &Config, evidence: &[String], rules: &Rules) -> anyhow::Result<PathBuf> {
    let (path, _) = config::file_path();
    let text = super::super::streams::read(&path)?;
    let text = with_rules((&path, &text), rules, evidence, config.vault()?)
        .with_context(|| format!("failed to write into {}", path.display()))?;
    super::super::streams::write(&path, &text).with_context(|| format!("failed to write {}", path.display()))?;
    Ok(path)
}

/// What the settings rest on, for whoever reads the file later.
fn evidence(told: &Backtest, head: &Head, at: DateTime<Utc>) -> Vec<String> {
    let live = told.policy.live;
    let mut lines = vec![format!("chosen at {}", seconds(at))];
    if let Some(records) = told.records {
        lines.push(format!(
            "records {} to {} of the chain, {} to {}",
            records.first_seq,
            records.last_seq,
            seconds(records.from),
            seconds(records.to)
        ));
    }
    lines.push(format!("the chain's head was record {}, {}", head.seq, head.sha256.as_str()));
    lines.push(format!("would have made {} of {} proposals live", live.actions(), told.policy.coverage.of));
    lines.push(format!(
        "{} of {} decided ones agreed, precision {}; {} open",
        live.agreed,
        live.decided(),
        percent(live),
        live.open
    ));
    lines
}

fn overruled(rules: &Rules) -> Vec<Overruled> {
    let file = |value: &toml_edit::Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let differs = |(key, value): (&str, toml_edit::Value)| {
        let environment = config::set_outside(key)?;
        let file = file(&value);
        let name = format!("STEWARD_{}", key.to_ascii_uppercase());
        (environment.trim() != file.trim()).then_some(Overruled { name, environment, file })
    };
    entries(rules).into_iter().filter_map(differs).collect()
}

fn describe(told: &Told) -> String {
    let backtest = &told.backtest;
    let Some(records) = backtest.records else {
        return "no change has been proposed yet: there is nothing to replay".into();
    };
    let mut out = format!(
        "{} recorded proposals from {} to {} (records {} to {}),\nreplayed; no clerk was asked.\n",
        backtest.policy.coverage.of,
        seconds(records.from),
        seconds(records.to),
        records.first_seq,
        records.last_seq
    );
    section(&mut out, "The settings asked about", &outcome(&backtest.policy));
    if backtest.against.rules == backtest.policy.rules {
        section(
            &mut out,
            "Compared with",
            &["the same settings: say others with --mode, --ceiling or --policy".into()],
        );
    } else {
        section(&mut out, "Compared with", &outcome(&backtest.against));
        section(&mut out, "Newly live", &difference(&backtest.newly_live));
        section(&mut out, "No longer live", &difference(&backtest.no_longer_live));
    }
    section(&mut out, "Risk and coverage by least confidence", &curve(&backtest.risk_coverage));
    section(&mut out, "Written", &written(told));
    out.truncate(out.trim_end().len());
    out
}

fn outcome(outcome: &Outcome) -> Vec<String> {
    let rules = &outcome.rules;
    let set = entries(rules).into_iter().map(|(key, value)| format!("{key} = {value}")).collect::<Vec<_>>().join(", ");
    let live = outcome.live;
    vec![
        wrapped(&set),
        format!("live {}, pending {}, shadow {}", live.actions(), outcome.pending.actions(), outcome.shadow.actions()),
        format!(
            "of the live ones {} agreed, {} were wrong, {} open: precision {}",
            live.agreed,
            live.wrong,
            live.open,
            percent(live)
        ),
        format!("coverage {} %", interval(&outcome.coverage)),
    ]
}

fn difference(difference: &Difference) -> Vec<String> {
    let all = difference.all;
    let mut lines =
        vec![format!("{} in all: {} agreed, {} wrong, {} open", all.actions(), all.agreed, all.wrong, all.open)];
    lines.extend(difference.classes.iter().map(|of| {
        let (class, tally) = (of.class.word(), of.tally);
        format!("  {class}: {} agreed, {} wrong, {} open", tally.agreed, tally.wrong, tally.open)
    }));
    lines
}

fn curve(curve: &Curve) -> Vec<String> {
    let Some(area) = curve.area else {
        return vec!["nothing that is decided could be live".into()];
    };
    let mut lines = vec![format!("{:>10} {:>9} {:>11} {:>7}  risk %", "threshold", "decided", "coverage %", "wrong")];
    let mut last = None;
    for point in &curve.points {
        // Thresholds that let through no more than the one before say nothing new.
        if point.coverage.count == 0 || last == Some(point.coverage.count) {
            continue;
        }
        last = Some(point.coverage.count);
        lines.push(format!(
            "{:>10.2} {:>9} {:>11} {:>7}  {}",
            point.threshold,
            point.coverage.count,
            hundred(point.coverage.share),
            point.risk.count,
            interval(&point.risk)
        ));
    }
    lines.push(format!("area under the curve {area:.4} (0 is best), of {} decided cases", curve.decided));
    lines
}

fn written(told: &Told) -> Vec<String> {
    let Some(file) = &told.written else { return Vec::new() };
    let mut lines =
        vec![wrapped(&format!("{} has the settings; a worker takes them up when it starts", file.display()))];
    lines.extend(told.overruled.iter().map(|one| {
        wrapped(&format!(
            "{} is set to `{}` in the environment, which counts more than `{}` in the file: change it there",
            one.name, one.environment, one.file
        ))
    }));
    lines
}
