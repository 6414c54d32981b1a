//! Parses the lines between the fences with two independent YAML parsers. Both must read the same values.
//!
//! The format is the YAML 1.2 core schema: `yes`, `on`, `12:30:45` and timestamps are text, `0777` is the number
//! 777. Anchors, aliases and tags are refused. With them a line could not be edited by itself, because its meaning
//! is written elsewhere, and only with them can a small text expand to a huge one. The editor uses the spans of
//! the first parser (`parse_tree`). The second parser only has to agree.

use oneyaml::{Limits, NodeKind, NodeRef, Settings, code};
use serde_json::{Map, Number, Value};
use std::collections::BTreeMap;

use super::FrontmatterError;
use super::MAX_DEPTH;
use super::MAX_VALUES;
use super::RecordFields;
use super::closer;
use super::fence::line_at_offset;

/// The opening fence is line 1 of the file, so the first YAML line is line 2.
const LINES_BEFORE: usize = 1;
const SHOWN_CHARS: usize = 40;

/// Parses the fields. `yaml` is the text between the fences.
pub(super) fn parse_fields(yaml: &str) -> Result<RecordFields, FrontmatterError> {
    let tree = parse_tree(yaml)?;
    let Some(root) = root_node(&tree) else { return Ok(RecordFields::new()) };
    let mut reader = YamlNodeReader { yaml, values: 0 };
    let Value::Object(fields) = reader.read_value(root)? else {
        return Err(FrontmatterError::NotAMapping { line: line_in_file(yaml, root.span().start) });
    };
    compare_with_second_parser(yaml, &tree, &fields)?;
    Ok(fields)
}

/// Parses into a tree with source spans.
pub(super) fn parse_tree(yaml: &str) -> Result<oneyaml::Document, FrontmatterError> {
    if let Some(line) = find_end_marker(yaml) {
        return Err(FrontmatterError::Syntax {
            line,
            problem: "`...` ends the frontmatter early".to_owned(),
            fix: "remove it and close the frontmatter with `---`".to_owned(),
        });
    }
    let limits = Limits::untrusted().max_depth(MAX_DEPTH).max_diagnostics(16);
    let settings = Settings::new().limits(limits);
    oneyaml::Document::parse_with(yaml, &settings).or_else(|error| {
        let joined = closer::join_closing_brackets(yaml)
            .and_then(|joined| oneyaml::Document::parse_with(&joined, &settings).ok());
        joined.ok_or_else(|| convert_error(yaml, &error))
    })
}

/// The top-level node, or `None` for a frontmatter without any field.
pub(super) fn root_node(tree: &oneyaml::Document) -> Option<NodeRef<'_>> {
    tree.root().filter(|root| !root.span().is_empty())
}

/// The line of the file for an offset of the YAML text.
pub(super) fn line_in_file(yaml: &str, offset: usize) -> usize {
    LINES_BEFORE + line_at_offset(yaml.as_bytes(), offset)
}

/// The value of a node in a tree that [`parse_fields`] accepted.
pub(super) fn value_of_node(yaml: &str, node: NodeRef<'_>) -> Result<Value, FrontmatterError> {
    YamlNodeReader { yaml, values: 0 }.read_value(node)
}

/// The text of a key node in an accepted tree.
pub(super) fn key_of_node(yaml: &str, node: NodeRef<'_>) -> Result<String, FrontmatterError> {
    YamlNodeReader { yaml, values: 0 }.read_key(node)
}

struct YamlNodeReader<'a> {
    yaml: &'a str,
    values: usize,
}

impl YamlNodeReader<'_> {
    fn read_value(&mut self, node: NodeRef<'_>) -> Result<Value, FrontmatterError> {
        self.check_node(node)?;
        if let Some(mapping) = node.as_mapping() {
            let mut fields = Map::new();
            for (key_node, value) in mapping.iter() {
                let key = self.read_key(key_node)?;
                if fields.contains_key(&key) {
                    return Err(FrontmatterError::DuplicateKey { line: self.line_of_node(key_node), key });
                }
                let value = self.read_value(value)?;
                fields.insert(key, value);
            }
            return Ok(Value::Object(fields));
        }
        if let Some(list) = node.as_sequence() {
            return list.iter().map(|item| self.read_value(item)).collect::<Result<_, _>>();
        }
        self.read_scalar(node)
    }

    /// Reads a key. A number or a boolean as a key is read as its text.
    fn read_key(&mut self, node: NodeRef<'_>) -> Result<String, FrontmatterError> {
        self.check_node(node)?;
        match node.as_scalar() {
            Some(scalar) if !node.is_null() => Ok(scalar.value().into_owned()),
            Some(_) | None => Err(FrontmatterError::BadKey { line: self.line_of_node(node) }),
        }
    }

    fn read_scalar(&self, node: NodeRef<'_>) -> Result<Value, FrontmatterError> {
        let bad_number =
            || FrontmatterError::BadNumber { line: self.line_of_node(node), text: shorten_text(&node.text()) };
        let scalar = node.as_scalar().ok_or_else(|| self.unreadable_error(node))?;
        match scalar.resolved().map_err(|error| convert_error(self.yaml, &error))? {
            oneyaml::Value::Null => Ok(Value::Null),
            oneyaml::Value::Bool(flag) => Ok(Value::Bool(flag)),
            oneyaml::Value::String(text) => Ok(Value::String(text)),
            oneyaml::Value::Number(number) => {
                let number = if number.is_float() {
                    number.as_f64().and_then(Number::from_f64)
                } else {
                    number.as_i64().map(Number::from).or_else(|| number.as_u64().map(Number::from))
                };
                number.map(Value::Number).ok_or_else(bad_number)
            }
            // Collections and tagged values cannot come out of an untagged scalar.
            _ => Err(self.unreadable_error(node)),
        }
    }

    fn check_node(&mut self, node: NodeRef<'_>) -> Result<(), FrontmatterError> {
        self.values += 1;
        if self.values > MAX_VALUES {
            return Err(FrontmatterError::TooManyValues { line: self.line_of_node(node) });
        }
        let tagged = !matches!(node.tag(), Ok(None));
        if tagged || node.anchor().is_some() || node.kind() == NodeKind::Alias {
            return Err(indirection_error(self.yaml, node.span().start));
        }
        Ok(())
    }

    fn unreadable_error(&self, node: NodeRef<'_>) -> FrontmatterError {
        FrontmatterError::Syntax {
            line: self.line_of_node(node),
            problem: "this is not a plain value".to_owned(),
            fix: "put it in quotes".to_owned(),
        }
    }

    fn line_of_node(&self, node: NodeRef<'_>) -> usize {
        line_in_file(self.yaml, node.span().start)
    }
}

/// Parses the same text with the second parser and compares field by field.
fn compare_with_second_parser(
    yaml: &str,
    tree: &oneyaml::Document,
    fields: &RecordFields,
) -> Result<(), FrontmatterError> {
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: MAX_DEPTH + 1,
            max_nodes: 2 * MAX_VALUES,
            max_aliases: 0,
            max_anchors: 0,
            max_buffered_comment_events: usize::MAX,
        },
        duplicate_keys: serde_saphyr::DuplicateKeyPolicy::Error,
        merge_keys: serde_saphyr::MergeKeyPolicy::AsOrdinary,
        strict_booleans: true,
        underscored_numbers_as_strings: true,
        emit_comments: false,
        with_snippet: false,
    };
    let other = match serde_saphyr::from_str_with_options::<Value>(yaml, options) {
        Ok(other) => other,
        Err(error) => {
            let yaml_line = error.location().map_or(1, |at| at.line() as usize).max(1);
            let line = LINES_BEFORE + yaml_line;
            let field = field_at_line(yaml, tree, line);
            let detail = first_line(&error.to_string());
            return Err(FrontmatterError::Disagreement { line, field, detail });
        }
    };
    let empty = RecordFields::new();
    let other = other.as_object().unwrap_or(&empty);
    let differing = fields
        .iter()
        .find(|(key, value)| !other.get(*key).is_some_and(|seen| is_same_value(value, seen)))
        .map(|(key, _)| key)
        .or_else(|| other.keys().find(|key| !fields.contains_key(*key)));
    match differing {
        None => Ok(()),
        Some(field) => Err(FrontmatterError::Disagreement {
            line: line_of_field(yaml, tree, field),
            field: field.clone(),
            detail: "they read different values".to_owned(),
        }),
    }
}

/// Whether two values are equal. A number with leading zeros may be an integer to one parser and a float to the other.
fn is_same_value(ours: &Value, theirs: &Value) -> bool {
    match (ours, theirs) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same_value(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(k, v)| b.get(k).is_some_and(|w| is_same_value(v, w)))
        }
        (ours, theirs) => ours == theirs,
    }
}

/// Converts a parser's error.
fn convert_error(yaml: &str, error: &oneyaml::Error) -> FrontmatterError {
    let start = error.span().map_or(0, |span| span.start);
    // If something is missing at the very end, the message names the last line with text.
    let start = start.min(yaml.trim_end().len());
    let line = line_in_file(yaml, start);
    let diagnostic = error.diagnostic();
    let span = diagnostic.primary.span;
    let shown = shorten_text(yaml.get(span.start..span.end).unwrap_or_default());
    match error.code() {
        code::DUPLICATE_KEY => FrontmatterError::DuplicateKey { line, key: shown },
        code::DEPTH_LIMIT_EXCEEDED => FrontmatterError::TooDeep { line },
        code::TAB_INDENTATION => FrontmatterError::Tab { line },
        code::UNDEFINED_ALIAS
        | code::INVALID_ANCHOR
        | code::INVALID_TAG
        | code::UNDECLARED_TAG_HANDLE
        | code::ALIAS_WITH_PROPERTIES
        | code::ALIAS_BUDGET_EXCEEDED
        | code::ALIAS_BYTE_BUDGET_EXCEEDED => indirection_error(yaml, start),
        _ => FrontmatterError::Syntax {
            line,
            problem: first_line(&diagnostic.message),
            fix: diagnostic.suggestions.first().map_or_else(
                || "correct that line or put its value in quotes".to_owned(),
                |suggestion| suggestion.message.clone(),
            ),
        },
    }
}

fn indirection_error(yaml: &str, start: usize) -> FrontmatterError {
    let text = yaml.get(start..).and_then(|rest| rest.lines().next()).unwrap_or_default();
    FrontmatterError::Indirection { line: line_in_file(yaml, start), text: shorten_text(text) }
}

/// The line of the file with a `...` marker, if there is one.
fn find_end_marker(yaml: &str) -> Option<usize> {
    let marker =
        |line: &str| line.strip_prefix("...").is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t']));
    yaml.lines().position(marker).map(|index| LINES_BEFORE + index + 1)
}

/// The line of the file of every key and list item, by its path. A position in a list counts from 0, as a text.
pub(super) fn list_key_lines(yaml: &str) -> BTreeMap<Vec<String>, usize> {
    let mut lines = BTreeMap::new();
    let Ok(tree) = parse_tree(yaml) else { return lines };
    // Where each line of the file begins, so that an offset costs a search and not a count.
    let starts: Vec<usize> = std::iter::once(0).chain(yaml.match_indices('\n').map(|(at, _)| at + 1)).collect();
    let find_line = |offset: usize| LINES_BEFORE + starts.partition_point(|start| *start <= offset);
    let mut waiting: Vec<(Vec<String>, NodeRef<'_>)> =
        root_node(&tree).map(|root| (Vec::new(), root)).into_iter().collect();
    while let Some((path, node)) = waiting.pop() {
        let mapping = node.as_mapping().into_iter().flat_map(|mapping| mapping.iter());
        let keys = mapping.filter_map(|(key, value)| Some((key_of_node(yaml, key).ok()?, key.span().start, value)));
        let list = node.as_sequence().into_iter().flat_map(|list| list.iter());
        let items = list.enumerate().map(|(at, item)| (at.to_string(), item.span().start, item));
        for (name, offset, value) in keys.chain(items) {
            let path: Vec<String> = path.iter().cloned().chain([name]).collect();
            lines.insert(path.clone(), find_line(offset));
            waiting.push((path, value));
        }
    }
    lines
}

fn line_of_field(yaml: &str, tree: &oneyaml::Document, field: &str) -> usize {
    top_level_fields(tree)
        .find(|(key_node, _)| key_of_node(yaml, *key_node).is_ok_and(|key| key == field))
        .map_or(LINES_BEFORE + 1, |(key_node, _)| line_in_file(yaml, key_node.span().start))
}

/// The last top-level field that begins in or above a line of the file.
fn field_at_line(yaml: &str, tree: &oneyaml::Document, line: usize) -> String {
    top_level_fields(tree)
        .filter(|(key_node, _)| line_in_file(yaml, key_node.span().start) <= line)
        .last()
        .and_then(|(key_node, _)| key_of_node(yaml, key_node).ok())
        .unwrap_or_default()
}

fn top_level_fields(tree: &oneyaml::Document) -> impl Iterator<Item = (NodeRef<'_>, NodeRef<'_>)> {
    root_node(tree).and_then(NodeRef::as_mapping).into_iter().flat_map(|mapping| mapping.iter())
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

fn shorten_text(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    match line.char_indices().nth(SHOWN_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}
