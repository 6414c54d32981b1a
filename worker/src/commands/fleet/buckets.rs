//! The command `steward fleet bucket`: the rate limits of providers' accounts.
//!
//! It needs the fleet's database alone, as an operator's role. What a limit means is decided in
//! `steward_domain::fleet::provider_gate`.

use super::{connect_as_operator, explain_silence};
use crate::cli::fleet::{BucketCommand, BucketSetArgs};
use crate::cli::output::{CommandExit, CommandOutput};
use crate::cli::table::create_table;
use anyhow::bail;
use chrono::Utc;
use serde_json::json;
use steward_domain::fleet::provider_gate::merge_limits;
use steward_domain::time::format_seconds;
use steward_fleet::buckets::{BucketChange, BucketStatus, WindowStatus};
use steward_fleet::{FleetStore, Operator};

pub(super) async fn run(
    command: BucketCommand,
    operator: &Operator,
    out: CommandOutput,
) -> anyhow::Result<CommandExit> {
    let store = connect_as_operator().await?;
    match command {
        BucketCommand::Set(set) => set_bucket(&store, &set, operator, out).await,
        BucketCommand::List => {
            print_buckets(&store.list_buckets().await?, out)?;
            Ok(CommandExit::Ok)
        }
        BucketCommand::AcceptLoss { bucket } => {
            let done = store.accept_bucket_loss(&bucket, operator).await.map_err(explain_silence)?;
            let (changed, unchanged) =
                ("its loss is accepted; calls are admitted again", "nothing to accept: it has lost no calls");
            report_change(&bucket, done, changed, unchanged, out)
        }
        BucketCommand::Lift { bucket } => {
            let done = store.lift_bucket_back_off(&bucket, operator).await.map_err(explain_silence)?;
            report_change(
                &bucket,
                done,
                "the wait is over; one call tests the provider. The vault that got the 429 also waits by itself: there, `steward doctor \\
             --lift-back-off`",
                "no wait is in force",
                out,
            )
        }
    }
}

async fn set_bucket(
    store: &FleetStore,
    set: &BucketSetArgs,
    operator: &Operator,
    out: CommandOutput,
) -> anyhow::Result<CommandExit> {
    let windows = merge_limits(&set.calls, &set.tokens)?;
    if windows.is_empty() {
        bail!("give the limits of the provider's account, such as --calls 500/min --tokens 200000/min");
    }
    store.set_bucket(&set.bucket, &windows, operator).await.map_err(explain_silence)?;
    let buckets = store.list_buckets().await?;
    let set: Vec<BucketStatus> = buckets.into_iter().filter(|bucket| bucket.name == set.bucket).collect();
    print_buckets(&set, out)?;
    Ok(CommandExit::Ok)
}

fn report_change(
    bucket: &str,
    change: BucketChange,
    changed: &str,
    unchanged: &str,
    out: CommandOutput,
) -> anyhow::Result<CommandExit> {
    let text = match change {
        BucketChange::Changed => changed,
        BucketChange::Unchanged => unchanged,
        BucketChange::Missing => {
            bail!("there is no bucket `{}`: see `steward fleet bucket list`", bucket.escape_debug())
        }
    };
    out.print_value(&json!({"bucket": bucket, "changed": change == BucketChange::Changed}), || {
        format!("{bucket}: {text}")
    })?;
    Ok(CommandExit::Ok)
}

/// Fails if the bucket does not exist, with the way to create it.
pub(super) async fn ensure_exists(store: &FleetStore, bucket: &str) -> anyhow::Result<()> {
    if store.has_bucket(bucket).await? {
        return Ok(());
    }
    let name = bucket.escape_debug();
    bail!("there is no bucket `{name}`: create it with `steward fleet bucket set {name} --calls 500/min`")
}

fn print_buckets(buckets: &[BucketStatus], out: CommandOutput) -> anyhow::Result<()> {
    out.print_value(&buckets, || {
        if buckets.is_empty() {
            return "no bucket yet: `steward fleet bucket set <name> --calls 500/min`".to_owned();
        }
        let mut table = create_table(&["bucket", "calls", "tokens", "tenants", "state"], &["calls", "tokens", "state"]);
        for bucket in buckets {
            let list = |describe: fn(&WindowStatus) -> Option<String>| -> String {
                bucket.windows.iter().filter_map(describe).collect::<Vec<_>>().join(", ")
            };
            table.add_row([
                bucket.name.clone(),
                list(|w| Some(format!("{} of {} {}", w.used_calls, w.window.calls?, w.window))),
                list(|w| Some(format!("{} of {} {}", w.used_tokens, w.window.tokens?, w.window))),
                bucket.tenants.len().to_string(),
                describe_state(bucket),
            ]);
        }
        table.to_string()
    })
}

fn describe_state(bucket: &BucketStatus) -> String {
    if let (Some(at), Some(why)) = (bucket.lost_at, bucket.lost_why) {
        return format!(
            "closed since {}: {}; `steward fleet bucket accept-loss {}`",
            format_seconds(at),
            why.describe(),
            bucket.name
        );
    }
    if let Some(since) = bucket.doubted_since {
        return format!("closed since {}: the database's clock is behind its newest call", format_seconds(since));
    }
    match (&bucket.back_off, &bucket.probe) {
        (Some(back_off), _) if back_off.until > Utc::now() => {
            format!("the provider asked to wait until {}", format_seconds(back_off.until))
        }
        (Some(_), Some(_)) => "one call is testing the provider".to_owned(),
        (Some(_), None) => "the next call tests the provider".to_owned(),
        (None, _) => "ready".to_owned(),
    }
}
