//! `steward wiki why`: what stands behind a claim, a page, a tag or words.
//!
//! It works on any folder. The runs behind a claim are known for a wiki of the vault alone.

use super::{OpenedWiki, open_folder};
use crate::cli::output::{CommandExit, CommandOutput, escape_text};
use steward_vault::wiki::why::{ExplainedClaim, MatchType, WhyPages, WhyReport, explain};

pub(super) async fn run(wiki: &OpenedWiki, what: &str, out: CommandOutput) -> anyhow::Result<CommandExit> {
    let folder = open_folder(&wiki.folder)?;
    let indexed = match wiki.open_index().await {
        Some((vault, index)) => WhyPages::find(&index, &vault.root, &vault.name, &folder, what).await.ok().flatten(),
        None => None,
    };
    let pages = indexed.unwrap_or_else(|| WhyPages::read_all(&folder, what));
    // Only a wiki of the vault has records.
    let records = wiki.vault.as_ref().map(|vault| (&vault.root, vault.name.as_str()));
    let report = explain(&folder, &pages, records, what);
    out.print_value(&report, || describe(&report, what))?;
    let is_faulty = report.claims.iter().flat_map(|claim| &claim.anchors).any(|it| !it.verified_against_source);
    Ok(match report.match_type {
        MatchType::None => CommandExit::Incomplete,
        _ if is_faulty => CommandExit::Faults,
        MatchType::Claim | MatchType::Page | MatchType::Tag | MatchType::Source | MatchType::Words => CommandExit::Ok,
    })
}

fn describe(report: &WhyReport, what: &str) -> String {
    let how = match report.match_type {
        MatchType::None => {
            return format!("nothing in the wiki is called `{}`, and no page holds it", escape_text(what));
        }
        MatchType::Claim => "the claim",
        MatchType::Page => "the page",
        MatchType::Tag => "pages with the tag",
        MatchType::Source => "claims on the source",
        MatchType::Words => "claims with the words",
    };
    if report.claims.is_empty() {
        return format!("{how} {}: it quotes no source", escape_text(what));
    }
    let claims: Vec<String> = report.claims.iter().map(describe_claim).collect();
    format!("{how} {}\n\n{}", escape_text(what), claims.join("\n\n"))
}

fn describe_claim(claim: &ExplainedClaim) -> String {
    let disputed = if claim.is_disputed { "  (disputed)" } else { "" };
    let (name, place) = (escape_text(&claim.claim), escape_text(&claim.file));
    let mut lines =
        vec![format!("{}{disputed}", escape_text(&claim.statement)), format!("  {name}, {place}:{}", claim.line)];
    for checked in &claim.anchors {
        let (source, quote) = (escape_text(&checked.anchor.source), escape_text(&checked.anchor.quote));
        let state = match (&checked.offset, &checked.fault) {
            (Some(offset), None) => format!("stands there at byte {offset}"),
            (_, fault) => format!("NOT VERIFIED: {}", escape_text(fault.as_deref().unwrap_or_default())),
        };
        lines.push(format!("  {source}: \"{quote}\" ({state})"));
    }
    if claim.history.is_empty() {
        lines.push("  no run made it: a person wrote it, or its record is elsewhere".to_owned());
    }
    for event in &claim.history {
        let reverted =
            event.reverted_by.as_ref().map(|by| format!(", taken back by {}", by.short())).unwrap_or_default();
        let at = event.at.format("%Y-%m-%d %H:%M");
        let reworded = if event.is_reworded { ", and reworded by a person since" } else { "" };
        lines.push(format!("  {} {at} by the run {}{reworded}{reverted}", event.change, event.run.short()));
    }
    lines.join("\n")
}
