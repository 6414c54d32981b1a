//! Fills an index with made-up matters, tasks, signals and actions, and times the queries of the dashboard's lists.
//!
//! `cargo run --release -p steward-vault --example large_lists -- <folder> [<actions>]`. Use an empty folder: its
//! `state.db` gets records without files and is only for measurements. Each list is queried nine times, and the median
//! is printed.

use chrono::{DateTime, TimeDelta, Utc};
use sqlx::{Connection, SqliteConnection};
use std::path::Path;
use std::time::Instant;
use steward_domain::action::plan::Disposition;
use steward_vault::index::{ActionFilter, ActionSubset, FILE, Index, MatterFilter, SearchFilter};

/// One matter for twenty actions, with five tasks each. One in fifty proposals is still pending, and one in fifty
/// thousand actions is only recorded. `loud` is a source of every action.
const FILL: [&str; 9] = [
    "WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < ?1 / 20)
    INSERT INTO matters (path, name, state, ceiling, hash) SELECT printf('matter/m%07d.md', i),
        'Repair of roof ' || i, CASE WHEN i % 50 = 0 THEN 'archived' ELSE 'open' END, 'act', '' FROM n WHERE ?2",
    "INSERT INTO files (path, kind, size, modified_ns, inode, hash) SELECT path, 'matter', 1, 1, 1, '' FROM matters
        WHERE ?1 AND ?2",
    "WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < ?1 / 4)
    INSERT INTO tasks (path, parent, parent_link, parent_key, name, state, surface_class, hash)
    SELECT printf('task/t%07d.md', i), printf('matter/m%07d.md', i / 5), printf('m%07d', i / 5), printf('m%07d', i / 5), 'Pay the roofer ' || i, CASE i % 3 WHEN 0 THEN 'done' ELSE 'open' END, 'normal',
        '' FROM n WHERE ?2",
    "WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
    INSERT INTO signals (path, target, created, source, instinct, note, effect, target_confidence, effect_confidence,
        status, applied) SELECT printf('signal/s%07d.md', i), printf('task/t%07d.md', i % (?1 / 4)),
        ?2 - (?1 - i) * 8000000, 'mail:' || (i % 300), 'mail-' || (i % 300), 'the invoice ' || i || ' is received and paid',
        'mutation', 0.9, 0.9, CASE i % 4 WHEN 0 THEN 'unrouted' ELSE 'applied' END, i % 4 > 0 FROM n",
    "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
    INSERT INTO actions (path, id, kind, target, at, decision, confidence, disposition, mode, pending, class, judged, closed,
        follows, resolves, proposal, seq)
    SELECT printf('event/steward-action-%07d.md', i), printf('%016x', i),
        CASE WHEN i % 3 = 2 AND i % 150 > 2 THEN 'steward-action-dismissed' ELSE 'steward-action' END,
        printf('task/t%07d.md', i % (?1 / 4)), ?2 - (?1 - i) * 8000000, 'likely_done', (i % 100) / 100.0,
        CASE WHEN i % 50000 = 30000 THEN 'recorded' WHEN i % 3 = 0 THEN 'live' WHEN i % 3 = 1 THEN 'pending' ELSE 'shadow' END,
        'live', i % 3 = 1, CASE WHEN i % 97 = 0 THEN 'related' ELSE 'state_change' END, 1, '',
        CASE WHEN i % 3 = 2 AND i % 150 > 2 THEN printf('%016x', i - 1) END,
        CASE WHEN i % 3 = 2 AND i % 150 > 2 THEN printf('%016x', i - 1) END, printf('%064x', i), i FROM n",
    "INSERT INTO action_sources (action, source, name, contribution, cited, supports, proposal, seq, at)
        SELECT path, 'mail-' || (seq % 300), 'mail:' || (seq % 300), 0.9, 1, 1, proposal, seq, at FROM actions WHERE ?1 AND ?2
        UNION ALL SELECT path, 'loud', 'Loud', 0.1, 1, 0, proposal, seq, at FROM actions",
    "INSERT INTO action_evidence (ref, action) SELECT printf('signal/s%07d.md', seq), path FROM actions WHERE ?1 AND ?2",
    "INSERT INTO documents (path, kind, at) SELECT path, 'matter', NULL FROM matters WHERE ?1 AND ?2 UNION ALL
        SELECT path, 'task', NULL FROM tasks UNION ALL SELECT path, 'event', at FROM actions
        UNION ALL SELECT path, 'signal', created FROM signals",
    // The row number must be computed as in `words.rs`, or the search finds nothing and prints 0 rows.
    "INSERT INTO words (rowid, text) SELECT (CASE d.kind WHEN 'matter' THEN 3 WHEN 'task' THEN 2 WHEN 'signal' THEN 1 ELSE 0
            END << 61) + (COALESCE(d.at, 0) / 1000000 << 29) + d.id, COALESCE(m.name, t.name, s.note || ' ' || s.source,
            'invoice ' || d.id || ' mail:sender-' || (d.id % 300) || ' Payment received in full')
        FROM documents d LEFT JOIN matters m ON m.path = d.path LEFT JOIN tasks t ON t.path = d.path
        LEFT JOIN signals s ON s.path = d.path WHERE ?1 AND ?2 ORDER BY 1",
];

type Outcome = Result<(), Box<dyn std::error::Error>>;

#[tokio::main]
async fn main() -> Outcome {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().ok_or("usage: large_lists <folder> [<actions>]")?;
    let count: i64 = arguments.next().map_or(Ok(100_000), |count| count.parse())?;
    let folder = Path::new(&folder);
    let index = Index::open(folder).await?;
    let begin = Instant::now();
    fill(&folder.join(FILE), count).await?;
    eprintln!("filled in {:.1?}", begin.elapsed());
    let rare = "invoice 77777";
    for words in ["r", "p", "payment received", rare] {
        let plain = SearchFilter::default();
        let ask = async || Ok(index.read().search(words, &plain, None, 30).await?.rows.len());
        median(&format!("search `{words}`"), ask).await?;
    }
    let none = ActionFilter::default();
    let since = Some(Utc::now() - TimeDelta::hours(24));
    let of = |disposition| ActionFilter { since, disposition: Some(disposition), ..ActionFilter::default() };
    let today: [(&str, ActionFilter); 3] = [
        ("Today: what waits", ActionFilter { only: ActionSubset::Waiting(Utc::now()), ..none.clone() }),
        ("Today: what changed", of(Disposition::Live)),
        ("Today: what would have", of(Disposition::Shadow)),
    ];
    let rare = ActionFilter { disposition: Some(Disposition::Recorded), source: Some("loud".into()), ..none };
    for (what, filter) in
        today.iter().map(|(what, filter)| (*what, filter)).chain([("a source and a rare disposition", &rare)])
    {
        median(what, async || Ok(index.actions().actions_page(filter, None, 30).await?.rows.len())).await?;
    }
    median("how many wait", async || Ok(usize::try_from(index.actions().count_pending_actions(Utc::now()).await?)?))
        .await?;
    median("clusters", async || Ok(index.actions().list_pending_clusters(3, Utc::now()).await?.len())).await?;
    median("matters", async || {
        Ok(index.read().matters_page(&MatterFilter::default(), None, 50, Utc::now()).await?.rows.len())
    })
    .await?;
    let called = MatterFilter { text: Some("r".into()), ..MatterFilter::default() };
    median("matters called `r`", async || {
        Ok(index.read().matters_page(&called, None, 50, Utc::now()).await?.rows.len())
    })
    .await?;
    median("the last day's actions", async || Ok(index.actions().list_actions(since, None, 101).await?.len())).await?;
    let ever = Some(DateTime::UNIX_EPOCH);
    median("all actions, the first 101", async || Ok(index.actions().list_actions(ever, None, 101).await?.len()))
        .await?;
    median("problems", async || Ok(index.read().list_first_problems(500).await?.rows.len())).await
}

async fn median(what: &str, ask: impl AsyncFn() -> Result<usize, Box<dyn std::error::Error>>) -> Outcome {
    let (mut times, mut rows) = (Vec::new(), 0);
    for _ in 0..9 {
        let begin = Instant::now();
        rows = ask().await?;
        times.push(begin.elapsed());
    }
    times.sort();
    eprintln!("{:10.2?}  {rows:6}  {what}", times[times.len() / 2]);
    Ok(())
}

async fn fill(file: &Path, count: i64) -> Outcome {
    let mut db = SqliteConnection::connect(&format!("sqlite://{}", file.display())).await?;
    let there: i64 = sqlx::query_scalar("SELECT COUNT(*) FROM actions").fetch_one(&mut db).await?;
    if there == 0 {
        let now = Utc::now().timestamp_micros();
        for sql in FILL {
            sqlx::query(sql).bind(count).bind(now).execute(&mut db).await?;
        }
    }
    Ok(db.close().await?)
}
