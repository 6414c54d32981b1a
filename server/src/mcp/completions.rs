//! Completes what a person types into an argument of a prompt or of an address: workspaces, documents, pages, headings and runs;
//! matters and actions.
//!
//! At most 100 values are answered: first those that begin with what was typed, then those that contain it. Only what the caller sees is offered. A
//! value that hides or turns text is left out, because it could not be shown as it is.

use super::caller::McpCaller;
use super::error::ToolError;
use super::headings::list_headings;
use super::outside::escape_outside;
use super::prompts::find_prompt;
use super::resources::{RESOURCE_TEMPLATES, find_listed_tool, list_workspaces};
use super::steward::{list_action_ids, list_matter_names};
use super::vault::McpVault;
use super::workspace::Workspace;
use crate::views::wiki::list_wiki_runs;
use rmcp::model::{CompleteRequestParams, CompletionInfo, ErrorData, Reference};
use steward_domain::wiki::MAX_PAGE_BYTES;

/// The longest value that is completed, in bytes, as that of a path.
const MAX_VALUE: usize = 512;
/// The newest runs among which is searched.
const MAX_RUNS: usize = 1_000;

/// What an argument holds.
enum CompletedKind {
    Workspace,
    /// Paths of documents, with what stands before them cut off.
    Document {
        prefix: &'static str,
    },
    /// Paths of pages, with what stands before them cut off.
    Page {
        prefix: &'static str,
    },
    Heading,
    Run,
    Matter,
    Action,
    /// Free words.
    Nothing,
}

/// Completes an argument.
///
/// # Errors
/// There is no such prompt or template.
pub(crate) fn complete_argument(
    vault: &McpVault,
    caller: &McpCaller,
    request: &CompleteRequestParams,
) -> Result<CompletionInfo, ErrorData> {
    let kind = find_kind(caller, request)?;
    let typed = request.argument.value.as_str();
    if typed.len() > MAX_VALUE {
        return Ok(CompletionInfo::default());
    }
    let given =
        |name: &str| request.context.as_ref().and_then(|context| context.get_argument(name)).map(String::as_str);
    let values = match kind {
        CompletedKind::Nothing => Vec::new(),
        CompletedKind::Matter => list_known("steward_matters", caller, || list_matter_names(vault, typed)),
        CompletedKind::Action => list_known("steward_actions", caller, || list_action_ids(vault)),
        CompletedKind::Workspace => list_workspaces(vault, caller).map_err(ToolError::into_protocol_error)?,
        _ if list_workspaces(vault, caller).map_err(ToolError::into_protocol_error)?.is_empty() => Vec::new(),
        // Without a known workspace there is nothing to offer.
        kind => match vault.open_workspace(caller, given("workspace")) {
            Ok(workspace) => list_values(&workspace, &kind, given("path")),
            Err(_) => Vec::new(),
        },
    };
    let (total, values) = choose_values(values, typed);
    let has_more = total > values.len();
    CompletionInfo::with_pagination(values, u32::try_from(total).ok(), has_more)
        .map_err(|e| ToolError::internal(e).into_protocol_error())
}

/// What the argument of a prompt or template holds.
fn find_kind(caller: &McpCaller, request: &CompleteRequestParams) -> Result<CompletedKind, ErrorData> {
    let (pages, documents) = match &request.r#ref {
        Reference::Resource(resource) => {
            let known = RESOURCE_TEMPLATES.iter().find(|it| it.template == resource.uri);
            let template = known.ok_or_else(|| ErrorData::invalid_params("there is no such template", None))?.template;
            match template.starts_with("raw://") {
                true => (None, Some("raw/")),
                false => (Some("wiki/"), None),
            }
        }
        Reference::Prompt(prompt) => {
            find_prompt(caller, &prompt.name)
                .ok_or_else(|| ErrorData::invalid_params("there is no such prompt", None))?;
            (Some(""), Some(""))
        }
        _ => return Err(ErrorData::invalid_params("there is no such reference", None)),
    };
    Ok(match request.argument.name.as_str() {
        "workspace" => CompletedKind::Workspace,
        "source" => CompletedKind::Document { prefix: documents.unwrap_or_default() },
        "page" => CompletedKind::Page { prefix: pages.unwrap_or_default() },
        "path" => match (pages, documents) {
            (None, Some(prefix)) => CompletedKind::Document { prefix },
            (pages, _) => CompletedKind::Page { prefix: pages.unwrap_or_default() },
        },
        "heading" => CompletedKind::Heading,
        "run" => CompletedKind::Run,
        "name" => CompletedKind::Matter,
        "id" => CompletedKind::Action,
        _ => CompletedKind::Nothing,
    })
}

/// All values, in their order. `path` is that of the page whose headings are meant.
fn list_values(workspace: &Workspace<'_>, kind: &CompletedKind, path: Option<&str>) -> Vec<String> {
    let list_paths = |folder: &str, prefix: &str| {
        let paths = workspace.list_files().into_iter().map(|file| file.path).filter(|path| path.starts_with(folder));
        paths.map(|path| path.strip_prefix(prefix).map(str::to_owned).unwrap_or(path)).collect()
    };
    match kind {
        CompletedKind::Document { prefix } => list_paths("raw/", prefix),
        CompletedKind::Page { prefix } => list_paths("wiki/", prefix),
        CompletedKind::Heading => path.map(|path| list_page_headings(workspace, path)).unwrap_or_default(),
        CompletedKind::Run => {
            let runs = list_wiki_runs(workspace.vault.root(), Some(&workspace.name), MAX_RUNS).unwrap_or_default();
            runs.iter().map(|run| run.short().to_owned()).collect()
        }
        CompletedKind::Workspace | CompletedKind::Matter | CompletedKind::Action | CompletedKind::Nothing => Vec::new(),
    }
}

/// What the stewards know, for a caller who sees the tool that shows it. Without an index that is nothing.
fn list_known(tool: &str, caller: &McpCaller, list: impl FnOnce() -> Result<Vec<String>, ToolError>) -> Vec<String> {
    let found = find_listed_tool(tool, caller).map(|_| list().unwrap_or_default());
    found.unwrap_or_default()
}

/// The headings of a page, by its path with or without `wiki/`.
fn list_page_headings(workspace: &Workspace<'_>, path: &str) -> Vec<String> {
    let file = workspace.find_file(path).or_else(|_| workspace.find_file(&format!("wiki/{path}")));
    let text = file.ok().and_then(|file| workspace.folder.read_text(&file, MAX_PAGE_BYTES).ok().flatten());
    list_headings(&text.unwrap_or_default()).into_iter().map(|heading| heading.name.to_owned()).collect()
}

/// How many values fit, and the first of them.
fn choose_values(values: Vec<String>, typed: &str) -> (usize, Vec<String>) {
    let typed = typed.to_lowercase();
    let shown = values.into_iter().filter(|value| escape_outside(value) == *value);
    let (mut begins, mut contains) = (Vec::new(), Vec::new());
    for value in shown {
        match value.to_lowercase().find(&typed) {
            Some(0) => begins.push(value),
            Some(_) => contains.push(value),
            None => {}
        }
    }
    begins.append(&mut contains);
    let total = begins.len();
    begins.truncate(CompletionInfo::MAX_VALUES);
    (total, begins)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::{Toolset, WikiRight};
    use crate::mcp::testing::TestVault;
    use rmcp::model::{ArgumentInfo, CompletionContext};

    fn request(uri: &str, argument: &str, typed: &str, given: &[(&str, &str)]) -> CompleteRequestParams {
        let context = given.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        CompleteRequestParams::new(Reference::for_resource(uri), ArgumentInfo::new(argument, typed))
            .with_context(CompletionContext::with_arguments(context))
    }

    #[test]
    fn values_begin_with_what_was_typed_or_contain_it() {
        let test = TestVault::new();
        test.write("acme/concepts/alarm.md", "# Alarm\n\n## Rules\n```\n# no heading\n```\n### Rule of law\n");
        test.write("acme/concepts/key\u{202e}.md", "hidden");
        test.write("acme/sources/a 1.pdf", "x");
        let caller = test.caller(None);
        let pages = "wiki://{workspace}/{+path}";
        let complete = |uri: &str, argument: &str, typed: &str, given: &[(&str, &str)]| {
            complete_argument(&test.vault, &caller, &request(uri, argument, typed, given)).unwrap().values
        };
        assert_eq!(complete(pages, "workspace", "", &[]), ["acme", "other"]);
        assert_eq!(complete(pages, "workspace", "E", &[]), ["acme", "other"]);
        assert_eq!(complete(pages, "workspace", "o", &[]), ["other"]);
        let acme = [("workspace", "acme")];
        assert_eq!(complete(pages, "path", "concepts/", &acme), ["concepts/a.md", "concepts/alarm.md"]);
        assert_eq!(complete(pages, "path", "ALARM", &acme), ["concepts/alarm.md"]);
        assert_eq!(complete("raw://{workspace}/{+path}", "path", "", &acme), ["a 1.pdf"]);
        assert!(complete(pages, "path", "", &[]).is_empty(), "no workspace is named");
        assert!(complete(pages, "path", "", &[("workspace", "nobody")]).is_empty());
        let page = [("workspace", "acme"), ("path", "concepts/alarm.md")];
        assert_eq!(complete(pages, "heading", "rule", &page), ["Rules", "Rule of law"]);
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let _guard = runtime.enter();
        for (uri, argument) in [("steward://matter/{+name}", "name"), ("steward://action/{id}", "id")] {
            assert!(complete(uri, argument, "", &[]).is_empty(), "there is no index");
        }
        assert!(complete(pages, "run", "", &acme).is_empty() && complete(pages, "unknown", "", &acme).is_empty());
    }

    #[test]
    fn there_are_at_most_a_hundred_and_nothing_of_another_wiki() {
        let test = TestVault::new();
        (0..150).for_each(|number| test.write(&format!("other/concepts/p{number}.md"), "x"));
        let pages = "wiki://{workspace}/{+path}";
        let ask = request(pages, "path", "p", &[("workspace", "other")]);
        let found = complete_argument(&test.vault, &test.caller(None), &ask).unwrap();
        assert_eq!((found.values.len(), found.total, found.has_more), (100, Some(151), Some(true)));
        assert!(complete_argument(&test.vault, &test.caller(Some("acme")), &ask).unwrap().values.is_empty());
        let steward = McpCaller::new("s".to_owned(), None, &[Toolset::Steward], WikiRight::Read, false);
        assert!(complete_argument(&test.vault, &steward, &ask).unwrap().values.is_empty());
        let unknown = request("file://{path}", "path", "", &[]);
        assert!(complete_argument(&test.vault, &test.caller(None), &unknown).is_err());
    }
}
