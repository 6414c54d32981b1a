//! Brings the forms of earlier drafts in a frontmatter into the written shape: the schema, `type`, and paths of sources.
//!
//! No value is invented: a source is named by the id that the registry has for its path.

use crate::record::frontmatter::{self, Document, FieldEdit};
use crate::wiki::lint::modernize_path;
use crate::wiki::page::{LEGACY_SCHEMA, is_source_path};
use crate::wiki::registry::WikiSource;
use crate::wiki::standard::Doctype;
use serde_json::Value;
use std::collections::BTreeMap;

/// What changes in the frontmatter of a page of an earlier draft.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct FormEdits {
    pub(super) edits: Vec<FieldEdit>,
    /// `type` becomes `kind`.
    pub(super) renames_type: bool,
}

impl FormEdits {
    pub(super) fn is_empty(&self) -> bool {
        self.edits.is_empty() && !self.renames_type
    }

    /// The names of the fields as they are written.
    pub(super) fn list_fields(&self) -> Vec<String> {
        let edited = self.edits.iter().map(|edit| edit.field.clone());
        edited.chain(self.renames_type.then(|| "kind".to_owned())).collect()
    }
}

/// Finds what is not in the written shape. `sources` is the registry.
pub(super) fn find_form_edits(document: &Document, sources: &BTreeMap<String, WikiSource>) -> FormEdits {
    let fields = document.fields();
    let mut edits = Vec::new();
    if fields.get("schema").and_then(Value::as_str) == Some(LEGACY_SCHEMA) {
        let written = Value::from(Doctype::Page.to_string());
        edits.push(FieldEdit { field: "schema".to_owned(), value: Some(written) });
    }
    if let Some(Value::Array(items)) = fields.get("sources") {
        let named = name_sources(items, sources);
        if named != *items {
            edits.push(FieldEdit { field: "sources".to_owned(), value: Some(Value::Array(named)) });
        }
    }
    FormEdits { edits, renames_type: fields.contains_key("type") && !fields.contains_key("kind") }
}

/// The list with ids in the place of paths. An id that stands there already is not repeated.
fn name_sources(items: &[Value], sources: &BTreeMap<String, WikiSource>) -> Vec<Value> {
    let mut named: Vec<Value> = Vec::new();
    for item in items {
        let path = item.as_str().filter(|text| is_source_path(text));
        match path.and_then(|path| find_source(path, sources)) {
            Some(id) if items.iter().chain(&named).any(|known| known.as_str() == Some(&id)) => {}
            Some(id) => named.push(id.into()),
            None => named.push(item.clone()),
        }
    }
    named
}

fn find_source(path: &str, sources: &BTreeMap<String, WikiSource>) -> Option<String> {
    let path = modernize_path(path);
    sources.values().find(|source| source.path == path).map(|source| source.id.clone())
}

/// The page with `kind` in the place of `type`. The line keeps its other bytes, if the field begins it.
///
/// # Errors
/// The frontmatter cannot be edited.
pub(super) fn rename_type(text: &str) -> Result<String, frontmatter::FrontmatterError> {
    let document = frontmatter::read_document(text.as_bytes())?;
    let Some(kind) = document.fields().get("type").cloned() else { return Ok(text.to_owned()) };
    let in_place = document.line_of_key(&["type"]).and_then(|line| {
        let begin: usize = text.split_inclusive('\n').take(line - 1).map(str::len).sum();
        let rest = text.get(begin..)?.strip_prefix("type:")?;
        let renamed = format!("{}kind:{rest}", &text[..begin]);
        let read = frontmatter::read_document(renamed.as_bytes()).ok()?;
        let is_same = read.fields().get("kind") == Some(&kind) && read.fields().len() == document.fields().len();
        (is_same && !read.fields().contains_key("type")).then_some(renamed)
    });
    if let Some(renamed) = in_place {
        return Ok(renamed);
    }
    let edits = [
        FieldEdit { field: "type".to_owned(), value: None },
        FieldEdit { field: "kind".to_owned(), value: Some(kind) },
    ];
    let edited = frontmatter::edit_fields(text.as_bytes(), &edits)?;
    Ok(frontmatter::read_document(&edited)?.as_str().to_owned())
}
