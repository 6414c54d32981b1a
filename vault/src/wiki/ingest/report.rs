//! Says in words what a run did: for its audit record, for the log of the wiki, and for people.
//!
//! What a page or a person says is escaped here. Nothing is read or written but what the run holds.

use crate::wiki::metrics::measure_coverage;
use crate::wiki::request::WikiRunError;
use crate::wiki::staged::{RunMeta, StagedPlan, StagedRun};
use crate::wiki::state::ReadWiki;
use std::collections::BTreeSet;
use steward_domain::record::plain_text::{count_noun, escape_one_line};
use steward_domain::wiki::assemble::{ProvenanceChange, RunReport, link_pages};
use steward_domain::wiki::details::ClaimChange;
use steward_domain::wiki::graph::choose_new_relations;
use steward_domain::wiki::log::LogType;
use steward_domain::wiki::metrics::RunCoverage;
use steward_domain::wiki::page::{WikiPage, read_page};
use steward_domain::wiki::plan::RunFile;
use steward_domain::wiki::run::WikiRunType;
use steward_domain::wiki::verifier::find_verifier_model;
use steward_domain::wiki::verify::RulesVerdict;

/// The subject of a review in the log.
const HEALTH_CHECK: &str = "health check";

/// What a run did with the pages that its writer was offered.
pub(super) fn find_coverage(plan: &StagedPlan, files: &[RunFile]) -> Option<RunCoverage> {
    let slug = |file: &RunFile| Some(read_page(file.path.file(), file.after.as_ref()?).page?.slug.clone());
    measure_coverage(plan, &files.iter().filter_map(slug).collect())
}

pub(super) fn describe_verdict(meta: &RunMeta, verdict: &RulesVerdict) -> String {
    format!("run: {}, writer: {}, verdict: {}", meta.run, escape_one_line(&meta.writer), verdict.verdict)
}

/// Who refused a run, and how many of its claims.
pub(super) fn find_refusal(run: &StagedRun) -> Result<Option<String>, WikiRunError> {
    let count = run.read_verdict()?.map_or(0, |verdict| verdict.findings.len());
    let clerk = find_verifier_model(&run.read_verifier()?);
    Ok(clerk.map(|clerk| format!("{clerk}, which refused {}", count_noun(count as u64, "claim"))))
}

pub(super) fn describe_work(
    meta: &RunMeta,
    files: &[RunFile],
    verifier: Option<&str>,
    refused: Option<&str>,
) -> String {
    let made = files.iter().filter(|file| file.before.is_none()).count();
    let work = match (&meta.source, &meta.answer, &meta.review) {
        (Some(source), ..) => format!("ingested the source {}", source.id),
        (None, Some(answer), _) => format!("kept the answer {answer}"),
        (None, None, Some(review)) => format!("kept the review {} by {}", review.id, review.model),
        (None, None, None) if meta.is_by_assistant() => "had an assistant change pages".to_owned(),
        (None, None, None) => "changed pages".to_owned(),
    };
    let writer = match &meta.review {
        Some(_) => "code, with the words of the model",
        None if meta.is_by_rules() => "fixed rules",
        None if meta.is_by_assistant() => "an assistant",
        None => &meta.writer,
    };
    let checked = match verifier {
        Some(model) if model == meta.writer => format!("and the same model checked every claim ({model})"),
        Some(model) => format!("and {model} checked every claim"),
        None => {
            refused.map_or_else(|| "and no clerk checked it".to_owned(), |it| format!("and it was checked by {it}"))
        }
    };
    let removed = files.iter().filter(|file| file.after.is_none()).count();
    let removals = if removed == 0 { String::new() } else { format!(", {removed} removed") };
    format!(
        "{work}: {} made, {} extended{removals}. Written by {writer}; the rules found no fault, {checked}.",
        count_noun(made as u64, "page"),
        files.len() - made - removed
    )
}

/// The findings of a verdict as one line, without any words of a page.
#[must_use]
pub fn describe_findings(verdict: &RulesVerdict) -> String {
    let lines: BTreeSet<String> = verdict
        .findings
        .iter()
        .map(|finding| match finding.file.as_str() {
            "" => format!("{}: {}", finding.fault, finding.fault.explain()),
            file => format!("{file}: {}: {}", finding.fault, finding.fault.explain()),
        })
        .collect();
    lines.into_iter().collect::<Vec<_>>().join("; ")
}

pub(super) fn describe_report(
    meta: &RunMeta,
    plan: &StagedPlan,
    files: &[RunFile],
    verdict: &RulesVerdict,
    wiki: &ReadWiki,
) -> RunReport {
    let source = meta.source.as_ref();
    let known = source.and_then(|source| wiki.contents.sources.get(&source.id));
    let pages: Vec<WikiPage> =
        files.iter().filter_map(|file| read_page(file.path.file(), file.after.as_ref()?).page).collect();
    let title = known.map(|known| &known.title).or_else(|| pages.first().map(|page| &page.title));
    let subject = match &meta.review {
        Some(_) => HEALTH_CHECK.to_owned(),
        None => match &plan.subject {
            Some(subject) => escape_one_line(subject),
            None => title.map_or_else(|| meta.run.to_string(), Clone::clone),
        },
    };
    let slugs: Vec<String> = pages.iter().map(|page| page.slug.clone()).collect();
    let known: BTreeSet<&str> =
        wiki.state.pages.iter().map(|page| &page.slug).chain(&slugs).map(String::as_str).collect();
    let graph = wiki.state.texts.graph.as_deref();
    let relations = choose_new_relations(&plan.relations, graph, |slug| known.contains(slug));
    let extracted = match relations.len() {
        0 => String::new(),
        count => format!("; graph: extracted {count} new triples"),
    };
    let asserted = verdict.claims.iter().filter(|claim| claim.change == ClaimChange::Asserted).count();
    let log_type = match meta.run_type {
        WikiRunType::Ingest => LogType::Ingest,
        WikiRunType::Archive => LogType::Query,
        WikiRunType::Lint => LogType::Lint,
        WikiRunType::Manual | WikiRunType::Rollback => LogType::Manual,
    };
    let origin = match (source, &meta.answer, &meta.review) {
        (Some(source), ..) => format!("source: {}; ", source.id),
        (None, Some(answer), _) => format!("answer: {answer}; "),
        (None, None, Some(review)) => format!("review: {} by {}; ", review.id, escape_one_line(&review.model)),
        (None, None, None) => String::new(),
    };
    let removed: Vec<String> =
        files.iter().filter(|file| file.after.is_none()).map(|file| escape_one_line(file.path.file())).collect();
    let removals = (!removed.is_empty()).then(|| format!("removed: {}", removed.join(", ")));
    RunReport {
        run: meta.run.clone(),
        at: meta.began,
        log_type,
        subject,
        bullets: vec![
            format!("{origin}touched: {}", link_pages(&slugs)),
            format!(
                "{} written; claims: {asserted} new, {} superseded; ideas: {}{extracted}",
                count_noun(files.len() as u64, "page"),
                verdict.claims.len() - asserted,
                plan.ideas.len()
            ),
        ]
        .into_iter()
        .chain(removals)
        .collect(),
        provenance: source.cloned().map_or(ProvenanceChange::Nothing, ProvenanceChange::Add),
        added_sources: 0,
        ideas: plan.ideas.clone(),
        dropped_ideas: Vec::new(),
        relations,
        dropped_relations: Vec::new(),
    }
}
