//! The command `steward fleet log`: what operators did.
//!
//! It only reads. The database writes the lines, each in the transaction of its change.

use super::connect_as_operator;
use crate::cli::output::{CommandExit, CommandOutput, escape_text};
use crate::cli::style::TextStyle;
use crate::cli::table::create_table;
use serde_json::Value;

pub(super) async fn run(limit: u32, out: CommandOutput) -> anyhow::Result<CommandExit> {
    let events = connect_as_operator().await?.list_operator_events(limit).await?;
    out.print_value(&events, || {
        let mut table = create_table(&["at", "who", "did", "to", "change", "reason"], &["who", "change", "reason"]);
        for event in &events {
            table.add_row([
                TextStyle::current().show_moment(event.at),
                format!("{} ({})", escape_text(&event.operator), escape_text(&event.role)),
                event.event.replace('_', " "),
                escape_text(&event.subject),
                describe_change(event.before.as_ref(), event.after.as_ref()),
                escape_text(&event.reason),
            ]);
        }
        table.to_string()
    })?;
    Ok(CommandExit::Ok)
}

fn describe_change(before: Option<&Value>, after: Option<&Value>) -> String {
    match (before, after) {
        (None, None) => String::new(),
        (Some(before), None) => escape_text(&before.to_string()),
        (None, Some(after)) => escape_text(&after.to_string()),
        (Some(before), Some(after)) => {
            format!("{} → {}", escape_text(&before.to_string()), escape_text(&after.to_string()))
        }
    }
}
