//! `steward wiki ingest --dry-run`: what making pages of documents would take, before anything is sent or written.
//!
//! A document from elsewhere is read where it lies. The limits are those that hold for a run; the estimate is what the same
//! model took for each character so far.

use super::ingest::{IngestOptions, IngestTarget};
use super::open_folder;
use crate::cli::output::{CommandExit, CommandOutput, escape_text};
use crate::config::StewardConfig;
use crate::runtime::clerks::{create_wiki_clerk, create_wiki_verifier};
use serde::Serialize;
use std::path::Path;
use steward_activities::wiki::reader::DocumentReader;
use steward_domain::record::plain_text::count_noun;
use steward_domain::wiki::MAX_SOURCE_BYTES;
use steward_domain::wiki::source_text::{SourceFormat, SourceText, check_text, decode_text, find_format};
use steward_domain::wiki::verifier::count_calls;
use steward_domain::wiki::writer::budget::{MeasuredUsage, RunBudget, RunLimits};
use steward_domain::wiki::writer::windows::cut_windows;
use steward_vault::files::root::VaultRoot;
use steward_vault::wiki::folder::read_bounded;
use steward_vault::wiki::quotes::read_text;
use steward_vault::wiki::staged::StagedRuns;

/// What one document would take.
#[derive(Debug, Serialize)]
struct DocumentPreview {
    document: String,
    characters: usize,
    /// How many parts a model receives one after the other.
    parts: usize,
    /// Why no page can be made of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    limits: Option<PreviewUsage>,
    #[serde(skip_serializing_if = "Option::is_none")]
    verifier_calls: Option<u64>,
    /// By earlier runs of the same model.
    #[serde(skip_serializing_if = "Option::is_none")]
    expected: Option<PreviewUsage>,
}

/// Calls, tokens, and what they cost by the configured prices.
#[derive(Debug, Serialize)]
struct PreviewUsage {
    calls: u64,
    input_tokens: u64,
    output_tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<f64>,
}

/// Who would write, and what is known about it.
struct PreviewSession<'a> {
    config: &'a StewardConfig,
    wiki: &'a Path,
    /// `None` for fixed rules.
    model: Option<String>,
    has_verifier: bool,
    measured: MeasuredUsage,
    limits: RunLimits,
}

pub(super) async fn run(
    config: &StewardConfig,
    root: &VaultRoot,
    wiki: &Path,
    targets: &[IngestTarget],
    options: &IngestOptions,
    out: CommandOutput,
) -> anyhow::Result<CommandExit> {
    let model = create_wiki_clerk(config)?.describe_model();
    let session = PreviewSession {
        config,
        wiki,
        has_verifier: !options.unverified && create_wiki_verifier(config)?.describe_model().is_some(),
        measured: match &model {
            Some(model) => StagedRuns::new(root).measure_usage(model)?,
            None => MeasuredUsage::default(),
        },
        model,
        limits: options.limits,
    };
    let mut previews = Vec::new();
    for target in targets {
        previews.push(session.preview(target).await);
    }
    out.print_value(&previews, || previews.iter().map(|one| session.describe(one)).collect::<Vec<_>>().join("\n"))?;
    let is_refused = previews.iter().any(|preview| preview.refused.is_some());
    Ok(if is_refused { CommandExit::Refused } else { CommandExit::Ok })
}

impl PreviewSession<'_> {
    async fn preview(&self, target: &IngestTarget) -> DocumentPreview {
        let document = target.to_string();
        let text = match self.read(target).await {
            Ok(text) => text,
            Err(reason) => {
                let (refused, limits, expected) = (Some(reason), None, None);
                return DocumentPreview {
                    document,
                    characters: 0,
                    parts: 0,
                    refused,
                    limits,
                    verifier_calls: None,
                    expected,
                };
            }
        };
        let (characters, parts) = (text.as_str().chars().count(), cut_windows(text.as_str(), text.is_markdown).len());
        let is_by_model = self.model.is_some();
        let budget = RunBudget::new(parts, &self.limits);
        let limits = PreviewUsage {
            calls: budget.calls,
            input_tokens: budget.input_tokens,
            output_tokens: budget.output_tokens,
            cost: self.price(budget.input_tokens, budget.output_tokens),
        };
        let expected = self.measured.estimate(characters).map(|usage| PreviewUsage {
            calls: usage.calls,
            input_tokens: usage.tokens.prompt_tokens,
            output_tokens: usage.tokens.completion_tokens,
            cost: self.price(usage.tokens.prompt_tokens, usage.tokens.completion_tokens),
        });
        DocumentPreview {
            document,
            characters,
            parts,
            refused: self.limits.check_parts(parts).err().filter(|_| is_by_model),
            limits: is_by_model.then_some(limits),
            verifier_calls: (is_by_model && self.has_verifier).then(|| count_calls(parts, &self.limits)),
            expected: expected.filter(|_| is_by_model),
        }
    }

    /// The text of a document, or why it has none.
    async fn read(&self, target: &IngestTarget) -> Result<SourceText, String> {
        match target {
            IngestTarget::Known(source) => {
                let folder = open_folder(self.wiki).map_err(|e| e.to_string())?;
                let sources = folder.read_some(&[]).sources;
                let known = sources.get(&source.id).ok_or("source_missing: it is not registered")?;
                read_text(&folder, known).map_err(|fault| format!("{}: {}", fault.code, fault.problem))
            }
            IngestTarget::Unregistered(path) => read_document(&self.wiki.join(path)).await,
            IngestTarget::New(file) => read_document(file).await,
        }
    }

    fn price(&self, input: u64, output: u64) -> Option<f64> {
        let (of_input, of_output) = self.config.wiki_prices?;
        Some((input as f64 * of_input + output as f64 * of_output) / 1e6)
    }

    fn describe(&self, preview: &DocumentPreview) -> String {
        let DocumentPreview { document, characters, parts, refused, limits, verifier_calls, expected } = preview;
        let name = escape_text(document);
        if let Some(reason) = refused {
            return format!("{name}: refused: {}", escape_text(reason));
        }
        let head = format!("{name}: {characters} characters, {}", count_noun(*parts as u64, "part"));
        let (Some(model), Some(limits)) = (&self.model, limits) else {
            return format!("{head}; fixed rules make its pages, which costs nothing");
        };
        let mut lines = vec![head, format!("  at most {} by {}", describe_usage(limits), escape_text(model))];
        lines
            .extend(verifier_calls.map(|calls| format!("  and at most {} of the verifier", count_noun(calls, "call"))));
        lines.push(match expected {
            Some(expected) => format!(
                "  expected: {}, by {} of this model",
                describe_usage(expected),
                count_noun(self.measured.runs, "earlier run")
            ),
            None => "  what is to be expected is not known: this model has made no run here yet".to_owned(),
        });
        lines.join("\n")
    }
}

fn describe_usage(usage: &PreviewUsage) -> String {
    let cost = usage.cost.map(|cost| format!(", which cost {cost:.2}")).unwrap_or_default();
    format!(
        "{}, {} tokens in and {} out{cost}",
        count_noun(usage.calls, "call"),
        usage.input_tokens,
        usage.output_tokens
    )
}

/// Reads the text of a file that is no source yet.
async fn read_document(file: &Path) -> Result<SourceText, String> {
    let name = file.file_name().and_then(|name| name.to_str()).ok_or("its name is not UTF-8: rename it")?;
    let bytes = read_bounded(file, MAX_SOURCE_BYTES).map_err(|e| e.to_string())?;
    let format = find_format(name);
    let decoded = match format.filter(|format| format.needs_reader()) {
        Some(format) => Some(DocumentReader::default().read(format, bytes.clone()).await?),
        None => decode_text(name, &bytes).map_err(|e| e.to_string())?,
    };
    let text = decoded.map_or_else(|| String::from_utf8_lossy(&bytes).into_owned(), |decoded| decoded.text);
    check_text(&text).map_err(|e| e.to_string())?;
    let is_markdown = matches!(format, Some(SourceFormat::Markdown | SourceFormat::Html));
    Ok(SourceText::from_text(&text, is_markdown))
}
