//! Renders the newest entries of the log, one line each.
//!
//! Every entry keeps its line. If the lines are too long, the names of pages go, from the oldest line up.

use super::GuidePart;
use crate::mcp::outside::escape_outside;
use crate::mcp::tokens::count_tokens;
use crate::views::wiki::guide::LoggedWork;

/// The most tokens of the lines: from here on the names of pages go.
pub(super) const MAX_LOG_TOKENS: usize = 480;
/// How many pages a line names.
const NAMED_PAGES: usize = 2;
/// The most characters of the name of a page.
const MAX_NAME: usize = 20;

/// Renders entries, of which the newest comes first.
pub(super) fn render_log(entries: &[LoggedWork]) -> GuidePart {
    if entries.is_empty() {
        return GuidePart::new("log", "## Log\nNothing yet.".to_owned());
    }
    let named: Vec<String> = entries.iter().map(|entry| describe_work(entry, true)).collect();
    let bare: Vec<String> = entries.iter().map(|entry| describe_work(entry, false)).collect();
    let (mut kept, mut lines) = (entries.len(), named.join("\n"));
    while kept > 0 && count_tokens(&lines) > MAX_LOG_TOKENS {
        kept -= 1;
        lines = named[..kept].iter().chain(&bare[kept..]).map(String::as_str).collect::<Vec<_>>().join("\n");
    }
    let is_cut = kept < entries.len();
    let heading = if is_cut { "## Log (cut: page names of older entries)" } else { "## Log" };
    GuidePart { is_cut, ..GuidePart::new("log", format!("{heading}\n{lines}")) }
}

/// An entry on one line, as in `11-22 ingest 3f9a1c22: auth, sla +4`.
fn describe_work(entry: &LoggedWork, with_pages: bool) -> String {
    let op = entry.log_type.map_or_else(|| "other".to_owned(), |log_type| log_type.to_string());
    let run = entry.run.as_ref().map(|run| format!(" {run}")).unwrap_or_default();
    let line = format!("{} {op}{run}", entry.at.format("%m-%d"));
    if !with_pages || entry.touched.is_empty() {
        return line;
    }
    let names: Vec<String> = entry.touched.iter().take(NAMED_PAGES).map(|page| shorten_name(page)).collect();
    let more = match entry.touched.len().saturating_sub(NAMED_PAGES) {
        0 => String::new(),
        more => format!(" +{more}"),
    };
    format!("{line}: {}{more}", names.join(", "))
}

/// The name of a page on one line, cut.
fn shorten_name(page: &str) -> String {
    let short: String = page.chars().take(MAX_NAME).collect();
    escape_outside(&short).replace(['\n', '\t'], " ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use steward_domain::wiki::log::LogType;

    fn entry(day: u32, touched: &[&str]) -> LoggedWork {
        LoggedWork {
            at: format!("2026-11-{day:02}T09:15:04Z").parse().unwrap(),
            log_type: Some(LogType::Ingest),
            run: Some("3f9a1c22".to_owned()),
            touched: touched.iter().map(|page| (*page).to_owned()).collect(),
        }
    }

    #[test]
    fn an_entry_is_one_line_with_two_short_names() {
        let pages = ["auth", "service-level-agreements-of-the-council", "c", "d", "e", "f"];
        let part = render_log(&[entry(22, &pages), LoggedWork { run: None, log_type: None, ..entry(3, &[]) }]);
        assert_eq!(part.text, "## Log\n11-22 ingest 3f9a1c22: auth, service-level-agreem +4\n11-03 other");
        assert!(!part.is_cut);
    }

    #[test]
    fn names_go_from_the_oldest_line_up_and_every_line_stays() {
        let names = ["ꙮ".repeat(40), "\u{202e}".repeat(40)];
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let entries: Vec<LoggedWork> = (0..15).map(|at| entry(28 - at, &names)).collect();
        let part = render_log(&entries);
        let lines: Vec<&str> = part.text.lines().skip(1).collect();
        assert_eq!(lines.len(), 15);
        let named = lines.iter().take_while(|line| line.contains(": ")).count();
        assert!(named < 15 && part.is_cut && lines[named..].iter().all(|line| line.ends_with("3f9a1c22")), "{part:?}");
        let counted = count_tokens(&lines.join("\n"));
        assert!(counted <= MAX_LOG_TOKENS, "{counted}");
    }
}
