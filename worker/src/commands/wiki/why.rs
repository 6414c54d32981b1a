//! `steward wiki why`: what stands behind a claim, a page, a tag or words.
//!
//! It works on any folder. The runs behind a claim are known for a wiki of the vault alone.

use super::{OpenedWiki, open_folder};
use crate::cli::output::{CommandError, CommandExit, CommandOutput, escape_text};
use anyhow::bail;
use chrono::{DateTime, Utc};
use steward_vault::wiki::folder::WikiFolder;
use steward_vault::wiki::why::{ExplainedClaim, MatchType, WhyPages, WhyQuestion, WhyReport, explain_question};

/// The time that a question is about.
#[derive(Clone, Copy, Debug)]
pub(super) struct WhyPeriod {
    pub(super) since: Option<DateTime<Utc>>,
    pub(super) until: Option<DateTime<Utc>>,
}

pub(super) async fn run(
    wiki: &OpenedWiki,
    what: &str,
    period: WhyPeriod,
    out: CommandOutput,
) -> anyhow::Result<CommandExit> {
    let folder = open_folder(&wiki.folder)?;
    let WhyPeriod { since, until } = period;
    if wiki.vault.is_none() && (since.is_some() || until.is_some()) {
        bail!(CommandError::Usage("--since and --until need a wiki of the vault, whose runs are on record".to_owned()));
    }
    // The index knows the pages as they are now.
    let indexed = if until.is_some() { None } else { find_indexed(wiki, &folder, what).await };
    // Only a wiki of the vault has records.
    let records = wiki.vault.as_ref().map(|vault| (&vault.root, vault.name.as_str()));
    let question = WhyQuestion { what, since, until, include_history: false };
    let report = explain_question(&folder, indexed, records, &question)?;
    out.print_value(&report, || describe(&report, what, since))?;
    let is_faulty = report.claims.iter().flat_map(|claim| &claim.anchors).any(|it| !it.verified_against_source);
    Ok(match report.match_type {
        MatchType::None => CommandExit::Incomplete,
        _ if is_faulty => CommandExit::Faults,
        MatchType::Claim | MatchType::Page | MatchType::Tag | MatchType::Source | MatchType::Words => CommandExit::Ok,
    })
}

/// The pages as the index finds them; `None` without it.
async fn find_indexed(wiki: &OpenedWiki, folder: &WikiFolder, what: &str) -> Option<WhyPages> {
    let (vault, index) = wiki.open_index().await?;
    WhyPages::find(&index, &vault.root, &vault.name, folder, what).await.ok().flatten()
}

fn describe(report: &WhyReport, what: &str, since: Option<DateTime<Utc>>) -> String {
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
    if let Some(since) = since.filter(|_| report.claims.is_empty()) {
        return format!(
            "{how} {}: no run made a claim of it since {}",
            escape_text(what),
            since.format("%Y-%m-%d %H:%M")
        );
    }
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
            (Some(offset), None) => match &checked.superseded_by {
                Some(by) => format!("stands there at byte {offset}; replaced by {}", escape_text(by)),
                None => format!("stands there at byte {offset}"),
            },
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
        let reworded = if event.is_reworded { ", and reworded since, or a link in it was corrected" } else { "" };
        lines.push(format!("  {} {at} by the run {}{reworded}{reverted}", event.change, event.run.short()));
    }
    lines.join("\n")
}
