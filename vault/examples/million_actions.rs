//! Fills an index with a million made-up actions, and times the report, the backtest and every source's trust.
//!
//! `cargo run --release -p steward-vault --example million_actions -- <folder> [<actions>]`. Use an empty folder: its
//! `state.db` gets actions without files and is only for measurements. The peak memory is printed too.

use chrono::Utc;
use sqlx::{Connection, SqliteConnection};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;
use steward_domain::gates::mode::{Ceiling, DecisionPolicy, Mode};
use steward_domain::trust::backtest::BacktestPass;
use steward_domain::trust::case::ReplayRules;
use steward_domain::trust::report::TrustReportPass;
use steward_domain::trust::report::advice::EvidenceBar;
use steward_domain::trust::report::sender::SenderPass;
use steward_vault::files::root::VaultRoot;
use steward_vault::index::{FILE, Index};

/// Half of the actions are decided. Of these a third is undone, confirmed or dismissed, and the rest is live for long
/// enough. Two of five actions are proposed a second time.
const ACTIONS: &str = "
    WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
    INSERT INTO actions (path, id, kind, target, at, decision, confidence, disposition, mode, pending, class, judged,
        closed, proposal, seq)
    SELECT printf('event/steward-action-%013d-t.md', i), printf('%016x', (i * 2654435761) % 18446744073),
        'steward-action', printf('task/t%d.md', i % 5000), ?2 - (?1 - i) * 7000000, 'likely_done',
        0.5 + (i * 7919 % 500) / 1000.0,
        CASE i % 3 WHEN 0 THEN 'live' WHEN 1 THEN 'pending' ELSE 'shadow' END, 'live', i % 3 = 1,
        CASE i % 7 WHEN 0 THEN 'related' WHEN 1 THEN 'context_edit' ELSE 'state_change' END, 1,
        CASE i % 3 WHEN 0 THEN '' WHEN 1 THEN 'discretion' ELSE 'mode confidence' END,
        printf('%064x', CASE WHEN i % 5 < 2 THEN (i + 9) / 10 * 10 + i % 5 ELSE i END), i
    FROM n";
const ANSWERS: &str = "
    INSERT INTO actions (path, id, kind, target, at, decision, confidence, disposition, mode, pending, follows, resolves, judged, seq)
    SELECT replace(path, 'action-', 'action-answer-'), printf('a%015x', seq),
        CASE WHEN disposition = 'live' THEN 'steward-action-reversed'
            WHEN seq % 5 < 4 THEN 'steward-action-confirmed' ELSE 'steward-action-dismissed' END,
        target, at + 1000000, decision, confidence, 'live', 'live', 0, id, id, 1, ?1 + row_number() OVER (ORDER BY seq)
    FROM actions WHERE (disposition = 'live' AND seq % 60 = 0) OR (disposition = 'pending' AND seq % 2 = 0)";
const SOURCES: &str = "
    INSERT INTO action_sources (action, source, name, contribution, cited, supports, proposal, seq, at)
    SELECT path, printf('source-%d', seq * seq % ?1), printf('Source %d', seq * seq % ?1), 0.8, 1, 1, proposal, seq, at FROM actions
    WHERE kind = 'steward-action' UNION ALL
    SELECT path, 'also', 'Also', seq % 2 * 0.5, 1, seq % 2, proposal, seq, at FROM actions WHERE kind = 'steward-action' AND seq % 4 = 0";
/// Numbers are used in place of hashes.
const CHAIN: &str = "UPDATE actions SET prev = printf('%064x', seq - 1)";
const FILES: &str = "INSERT INTO files (path, kind, size, modified_ns, inode, hash)
    SELECT path, 'event', 1, 1, seq, printf('%064x', seq) FROM actions";
/// The number of sources that support a proposal: more than a report lists one by one.
const SPEAKERS: i64 = 20_000;

type Outcome = Result<(), Box<dyn std::error::Error>>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().ok_or("usage: million_actions <folder> [<actions>]")?;
    let count: i64 = arguments.next().map_or(Ok(1_000_000), |count| count.parse())?;
    let folder = Path::new(&folder);
    let index = Index::open(folder).await?;
    timed("filled", fill(&folder.join(FILE), count)).await?;
    timed("reported", report(&index)).await?;
    timed("judged", senders(&index)).await?;
    timed("replayed", replay(&index)).await?;
    timed("learned", learn(&index)).await?;
    timed("walked", walk(&index, &folder.join("vault"))).await
}

async fn timed(what: &str, work: impl Future<Output = Outcome>) -> Outcome {
    let begin = Instant::now();
    work.await?;
    let status = std::fs::read_to_string("/proc/self/status")?;
    let peak = status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or_default();
    eprintln!("{what} in {:.1?}; peak memory so far: {peak}", begin.elapsed());
    Ok(())
}

async fn fill(file: &Path, count: i64) -> Outcome {
    let mut db = SqliteConnection::connect(&format!("sqlite://{}", file.display())).await?;
    let there: i64 = sqlx::query_scalar("SELECT COUNT(*) FROM actions").fetch_one(&mut db).await?;
    if there == 0 {
        let now = Utc::now().timestamp_micros();
        sqlx::query(ACTIONS).bind(count).bind(now).execute(&mut db).await?;
        sqlx::query(ANSWERS).bind(count).execute(&mut db).await?;
        sqlx::query(SOURCES).bind(SPEAKERS).execute(&mut db).await?;
        sqlx::query(CHAIN).execute(&mut db).await?;
        sqlx::query(FILES).execute(&mut db).await?;
        let last: i64 = sqlx::query_scalar("SELECT MAX(seq) FROM actions").fetch_one(&mut db).await?;
        let own = file.with_file_name("vault").join(".steward");
        std::fs::create_dir_all(&own)?;
        std::fs::write(own.join("chain.json"), format!(r#"{{"seq":{last},"sha256":"{last:064x}"}}"#))?;
    }
    Ok(db.close().await?)
}

async fn report(index: &Index) -> Outcome {
    let mut reporting = TrustReportPass::new(&DecisionPolicy::default(), Utc::now());
    index.trust().for_each_case(Utc::now(), |case| reporting.add_case(case)).await?;
    let report = reporting.into_report(0.05);
    let (tally, sources) = (report.total.tally, report.sources.len());
    eprintln!("{} actions, {} decided, {sources} sources one by one", tally.total_count(), tally.decided_count());
    Ok(())
}

/// What the page "Trust" does when the index has changed.
async fn senders(index: &Index) -> Outcome {
    let mut pass = SenderPass::new(&DecisionPolicy::default(), Utc::now());
    index.trust().for_each_case(Utc::now(), |case| pass.add_case(case)).await?;
    let keys: Vec<String> = pass.list_senders().into_iter().map(str::to_owned).collect();
    let judged = keys.iter().map(|key| pass.judge_sender(key, None, &EvidenceBar::from_budget(0.05)));
    let ready = judged.filter(|sender| sender.shortfalls.is_empty()).count();
    eprintln!("{} senders, {ready} ready", keys.len());
    Ok(())
}

async fn replay(index: &Index) -> Outcome {
    let rules = |mode| ReplayRules {
        policy: DecisionPolicy { mode, ..DecisionPolicy::default() },
        default_ceiling: Ceiling::Act,
        sources: BTreeMap::new(),
    };
    let mut backtesting = BacktestPass::new(rules(Mode::Live), rules(Mode::LiveHighConfidenceOnly), Utc::now());
    index.trust().for_each_case(Utc::now(), |case| backtesting.add_case(case)).await?;
    let report = backtesting.into_report();
    eprintln!("{} live, {} of them newly", report.policy.live.total_count(), report.newly_live.all.total_count());
    Ok(())
}

/// Verifies the chain, as a report does.
async fn walk(index: &Index, vault: &Path) -> Outcome {
    let found = index.actions().verify_indexed_chain(&VaultRoot::open(vault)?).await?;
    eprintln!("{} records, {} faults", found.records, found.faults.len());
    Ok(())
}

/// Computes the trust of every source, as a calibration does.
async fn learn(index: &Index) -> Outcome {
    let trust = index.trust().compute_source_trust(Utc::now()).await?;
    let observations: u64 = trust.values().map(|source| u64::from(source.observations)).sum();
    eprintln!("{} sources, {observations} observations", trust.len());
    Ok(())
}
