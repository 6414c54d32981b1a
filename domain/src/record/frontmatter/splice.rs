//! Plans which bytes to replace, so that one field gets a new value.
//!
//! The result is a proposal: byte ranges of the YAML text, taken from the parser's spans. It tries to keep comments,
//! quotes and styles. It must not apply anything: `edit` reads the outcome back and refuses it if anything but the
//! field changed.

use std::ops::Range;

use oneyaml::{NodeRef, ScalarStyle};
use serde_json::{Map, Value};

use super::FrontmatterError;
use super::emit::{self, QuoteStyle, STEP, ScalarPlace};
use super::flow;
use super::parse;

/// One replacement in the YAML text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TextSplice {
    pub(super) range: Range<usize>,
    pub(super) text: String,
}

/// A field of a block mapping and its lines.
pub(super) struct FieldEntry<'t> {
    pub(super) name: String,
    /// The number of spaces before the key.
    pub(super) indent: usize,
    /// From the key's line to the value's last line, with its ending.
    pub(super) lines: Range<usize>,
    /// The offset just after the colon.
    after_colon: usize,
    value: NodeRef<'t>,
    key_start: usize,
}

/// The planner for one YAML text.
pub(super) struct SplicePlanner<'y> {
    pub(super) yaml: &'y str,
    /// The line ending for new lines.
    pub(super) eol: &'y str,
    /// Former items of a block list, with their lines.
    pub(super) recorded_items: &'y [(Value, String)],
}

impl<'y> SplicePlanner<'y> {
    /// The entry of a field in a block mapping, if there is one.
    pub(super) fn find_entry<'t>(
        &self,
        mapping: NodeRef<'t>,
        name: &str,
    ) -> Result<Option<FieldEntry<'t>>, FrontmatterError> {
        let found = mapping.as_mapping().into_iter().flat_map(|mapping| mapping.iter());
        for (key, value) in found {
            if parse::key_of_node(self.yaml, key)? == name {
                return self.locate_entry(name, key, value).map(Some);
            }
        }
        Ok(None)
    }

    /// The lines of every field of a block mapping, in order.
    pub(super) fn mapping_lines(&self, mapping: NodeRef<'_>) -> Result<Vec<(String, Range<usize>)>, FrontmatterError> {
        let pairs = mapping.as_mapping().into_iter().flat_map(|mapping| mapping.iter());
        pairs
            .map(|(key, value)| {
                let start = self.line_start(key.span().start);
                let end = self.lines_end(value).max(self.line_end(key.span().end));
                parse::key_of_node(self.yaml, key).map(|name| (name, start..end))
            })
            .collect()
    }

    fn locate_entry<'t>(
        &self,
        name: &str,
        key: NodeRef<'t>,
        value: NodeRef<'t>,
    ) -> Result<FieldEntry<'t>, FrontmatterError> {
        let span = key.span();
        let refuse = |why| FrontmatterError::NotEditable {
            field: name.to_owned(),
            line: parse::line_in_file(self.yaml, span.start),
            why,
        };
        let start = self.line_start(span.start);
        let before = &self.yaml[start..span.start];
        let behind = self.yaml[span.end..].trim_start_matches([' ', '\t']);
        let alone = before.chars().all(|c| c == ' ');
        if !alone || !behind.starts_with(':') || self.yaml[span.start..span.end].contains('\n') {
            return Err(refuse("it does not begin a line as `name:`; write it that way"));
        }
        Ok(FieldEntry {
            name: name.to_owned(),
            indent: before.len(),
            lines: start..self.lines_end(value).max(self.line_end(span.end)),
            after_colon: self.yaml.len() - behind.len() + 1,
            value,
            key_start: span.start,
        })
    }

    /// Gives an entry a new value.
    pub(super) fn set_value(&self, entry: &FieldEntry<'_>, new: &Value) -> Result<Vec<TextSplice>, FrontmatterError> {
        let node = entry.value;
        let is_flow = node.text().starts_with(['[', '{']);
        if &parse::value_of_node(self.yaml, node)? == new {
            return Ok(Vec::new());
        }
        match new {
            Value::Array(items) if is_flow && node.as_sequence().is_some() => {
                flow::splice_list(self.yaml, node, items).map(|splice| vec![splice])
            }
            Value::Object(fields) if is_flow && node.as_mapping().is_some() => {
                flow::splice_mapping(self.yaml, node, fields).map(|splice| vec![splice])
            }
            // If the inner layout is unusual, its lines cannot be kept, so all are written again.
            Value::Array(items) if !items.is_empty() && node.as_sequence().is_some() => {
                self.edit_list(entry, items).or_else(|_| Ok(self.replace_value(entry, new, is_flow)))
            }
            Value::Object(fields) if !fields.is_empty() && node.as_mapping().is_some() => {
                self.edit_mapping(entry, fields).or_else(|_| Ok(self.replace_value(entry, new, is_flow)))
            }
            new => Ok(self.replace_value(entry, new, is_flow)),
        }
    }

    /// Changes only the entries of a block mapping that differ.
    fn edit_mapping(
        &self,
        entry: &FieldEntry<'_>,
        new: &Map<String, Value>,
    ) -> Result<Vec<TextSplice>, FrontmatterError> {
        let mut splices = Vec::new();
        let mut present = Vec::new();
        let mut indent = entry.indent + STEP;
        let pairs = entry.value.as_mapping().into_iter().flat_map(|mapping| mapping.iter());
        for (key, value) in pairs {
            let name = parse::key_of_node(self.yaml, key)?;
            let inner = self.locate_entry(&name, key, value)?;
            indent = inner.indent;
            match new.get(&name) {
                Some(value) => splices.extend(self.set_value(&inner, value)?),
                None => splices.push(TextSplice { range: inner.lines, text: String::new() }),
            }
            present.push(name);
        }
        let added = new.iter().filter(|(name, _)| !present.contains(name));
        let text: String = added.map(|(k, v)| emit::format_field(k, v, indent, self.eol)).collect();
        splices.push(TextSplice { range: entry.lines.end..entry.lines.end, text });
        Ok(splices)
    }

    /// Keeps the lines of the items that stay, and the comments between them.
    fn edit_list(&self, entry: &FieldEntry<'_>, new: &[Value]) -> Result<Vec<TextSplice>, FrontmatterError> {
        let nodes: Vec<_> = entry.value.as_sequence().into_iter().flat_map(|list| list.iter()).collect();
        let lines = self.item_lines(entry, &nodes)?;
        let old: Vec<_> = nodes.iter().map(|node| parse::value_of_node(self.yaml, *node)).collect::<Result<_, _>>()?;
        let first = entry.value.span().start;
        let indent = first - self.line_start(first);
        let quotes = nodes.first().map_or(QuoteStyle::Plain, |node| quote_style(*node));
        let remove = |range: &Range<usize>| TextSplice { range: range.clone(), text: String::new() };
        let mut splices = Vec::new();
        let (mut next, mut at) = (0, self.line_start(first));
        for value in new {
            if let Some(kept) = old[next..].iter().position(|seen| seen == value) {
                splices.extend(lines[next..next + kept].iter().map(remove));
                next += kept + 1;
                at = lines[next - 1].end;
            } else {
                let text = self.recorded_lines(value, indent);
                let text = text.unwrap_or_else(|| emit::format_item(value, quotes, indent, self.eol));
                splices.push(TextSplice { range: at..at, text });
            }
        }
        splices.extend(lines[next..].iter().map(remove));
        Ok(splices)
    }

    /// The recorded lines of an item, if their indentation is that of the list.
    fn recorded_lines(&self, value: &Value, indent: usize) -> Option<String> {
        let fits = |text: &str| text.len() - text.trim_start_matches(' ').len() == indent;
        self.recorded_items.iter().find(|(item, text)| item == value && fits(text)).map(|(_, text)| text.clone())
    }

    /// The items of a block list, each with its own lines.
    pub(super) fn read_items(&self, entry: &FieldEntry<'_>) -> Result<Vec<(Value, String)>, FrontmatterError> {
        let nodes: Vec<_> = entry.value.as_sequence().into_iter().flat_map(|list| list.iter()).collect();
        let lines = self.item_lines(entry, &nodes)?;
        let item = |(node, lines): (&NodeRef<'_>, Range<usize>)| {
            parse::value_of_node(self.yaml, *node).map(|value| (value, self.yaml[lines].to_owned()))
        };
        nodes.iter().zip(lines).map(item).collect()
    }

    /// The lines of every item of a block list, from its dash to its end.
    fn item_lines(&self, entry: &FieldEntry<'_>, nodes: &[NodeRef<'_>]) -> Result<Vec<Range<usize>>, FrontmatterError> {
        let first = entry.value.span().start;
        let mut from = self.line_start(first);
        let column = first - from;
        let mut lines = Vec::with_capacity(nodes.len());
        for node in nodes {
            let mut start = from;
            while is_blank_or_comment(&self.yaml[start..self.line_end(start)]) {
                start = self.line_end(start);
            }
            let line = &self.yaml[start..self.line_end(start)];
            if line.len() - line.trim_start_matches(' ').len() != column || !line[column..].starts_with('-') {
                return Err(FrontmatterError::NotEditable {
                    field: entry.name.clone(),
                    line: parse::line_in_file(self.yaml, start),
                    why: "its list has an unusual layout; write one `- item` per line",
                });
            }
            from = self.lines_end(*node).max(self.line_end(start));
            lines.push(start..from);
        }
        Ok(lines)
    }

    /// Replaces a whole value and keeps the comment after it.
    fn replace_value(&self, entry: &FieldEntry<'_>, new: &Value, is_flow: bool) -> Vec<TextSplice> {
        let node = entry.value;
        let old_block = !is_flow && node.as_scalar().is_none();
        let lines = if is_flow { None } else { emit::format_block(new, entry.indent + STEP, self.eol) };
        let below = self.line_start(node.span().start) > entry.key_start;
        let node_lines = self.line_start(node.span().start)..self.lines_end(node);
        match lines {
            Some(text) if below => vec![TextSplice { range: node_lines, text }],
            Some(text) => {
                let head = TextSplice { range: entry.after_colon..self.head_end(node), text: String::new() };
                vec![head, self.replace_below_head(node, text)]
            }
            None if old_block => {
                let text = format!(" {}", emit::format_inline(new, QuoteStyle::Plain, ScalarPlace::Block));
                let at = entry.after_colon;
                vec![TextSplice { range: at..at, text }, TextSplice { range: node_lines, text: String::new() }]
            }
            None => self.replace_scalar(entry, new),
        }
    }

    /// Replaces a scalar or flow value by a one-line value or by literal lines.
    fn replace_scalar(&self, entry: &FieldEntry<'_>, new: &Value) -> Vec<TextSplice> {
        let node = entry.value;
        let span = node.span();
        if is_block_scalar(node)
            && let Value::String(text) = new
            && text.contains('\n')
            && let Some((header, lines)) = emit::format_literal(text, entry.indent + STEP, self.eol)
        {
            let head = TextSplice { range: span.start..self.head_end(node), text: header.to_owned() };
            return vec![head, self.replace_below_head(node, lines)];
        }
        let text = emit::format_inline(new, quote_style(node), ScalarPlace::Block);
        if is_block_scalar(node) {
            let head = TextSplice { range: span.start..self.head_end(node), text };
            return vec![head, self.replace_below_head(node, String::new())];
        }
        let (start, end) = (span.start, span.end);
        let space = if start == entry.after_colon { " " } else { "" };
        vec![TextSplice { range: start..end, text: format!("{space}{text}") }]
    }

    /// The end of the replaced part of a value's first line.
    ///
    /// For a block scalar that is the end of its `|-`, because a comment may follow. Otherwise it is the value's end.
    fn head_end(&self, node: NodeRef<'_>) -> usize {
        let span = node.span();
        if !is_block_scalar(node) {
            return span.end;
        }
        let text = &self.yaml[span.start..span.end];
        let header = text.find(|c: char| !matches!(c, '|' | '>' | '+' | '-' | '0'..='9'));
        span.start + header.unwrap_or(text.len())
    }

    /// Replaces the lines below a value's first line.
    fn replace_below_head(&self, node: NodeRef<'_>, text: String) -> TextSplice {
        let end = self.lines_end(node);
        let start = if is_block_scalar(node) { self.line_end(node.span().start) } else { end };
        TextSplice { range: start..end, text }
    }

    /// The end of the last line of a node.
    fn lines_end(&self, node: NodeRef<'_>) -> usize {
        let span = node.span();
        let ends_with_line = !span.is_empty() && self.yaml[..span.end].ends_with('\n');
        if ends_with_line { span.end } else { self.line_end(span.end) }
    }

    fn line_start(&self, at: usize) -> usize {
        self.yaml[..at].rfind('\n').map_or(0, |found| found + 1)
    }

    fn line_end(&self, at: usize) -> usize {
        self.yaml[at..].find('\n').map_or(self.yaml.len(), |found| at + found + 1)
    }
}

/// Applies the replacements. Returns `None` if they overlap or cut a character.
pub(super) fn apply_splices(yaml: &str, mut splices: Vec<TextSplice>) -> Option<String> {
    // The sort is stable, so insertions at one offset keep their planned order.
    splices.sort_by_key(|splice| (splice.range.start, splice.range.end));
    let mut out = String::with_capacity(yaml.len());
    let mut at = 0;
    for splice in splices {
        out.push_str(yaml.get(at..splice.range.start)?);
        out.push_str(&splice.text);
        at = splice.range.end;
    }
    out.push_str(yaml.get(at..)?);
    Some(out)
}

/// The quotes of a scalar. Its replacement gets the same.
pub(super) fn quote_style(node: NodeRef<'_>) -> QuoteStyle {
    match node.as_scalar().map(|scalar| scalar.style()) {
        Some(ScalarStyle::SingleQuoted) => QuoteStyle::Single,
        Some(ScalarStyle::DoubleQuoted) => QuoteStyle::Double,
        _ => QuoteStyle::Plain,
    }
}

fn is_block_scalar(node: NodeRef<'_>) -> bool {
    let style = node.as_scalar().map(|scalar| scalar.style());
    matches!(style, Some(ScalarStyle::Literal | ScalarStyle::Folded))
}

fn is_blank_or_comment(line: &str) -> bool {
    let text = line.trim();
    !line.is_empty() && (text.is_empty() || text.starts_with('#'))
}
