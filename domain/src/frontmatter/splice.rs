//! Works out which bytes to replace so that one field gets a new value.
//!
//! Everything here is a proposal in terms of byte ranges of the YAML text,
//! taken from the parser's spans. It is free to be clever about comments,
//! quotes and styles, because `edit` reads the outcome back and refuses it if
//! anything but the field changed.

use std::ops::Range;

use oneyaml::{NodeRef, ScalarStyle};
use serde_json::{Map, Value};

use super::emit::{self, Place, Quotes, STEP};
use super::{FrontmatterError, flow, parse};

/// One replacement in the YAML text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Splice {
    pub(super) range: Range<usize>,
    pub(super) text: String,
}

/// A field of a block mapping and the lines it stands on.
pub(super) struct Entry<'t> {
    pub(super) name: String,
    /// Spaces before the key.
    pub(super) indent: usize,
    /// From the key's line to the value's last line, with its ending.
    pub(super) lines: Range<usize>,
    /// Just behind the colon.
    after_colon: usize,
    value: NodeRef<'t>,
    key_start: usize,
}

/// The planner for one YAML text.
pub(super) struct Planner<'y> {
    pub(super) yaml: &'y str,
    /// Line ending for new lines.
    pub(super) eol: &'y str,
    /// Items of a block list in the lines in which they once stood.
    pub(super) words: &'y [(Value, String)],
}

impl<'y> Planner<'y> {
    /// The entry of a field in a block mapping; `None` when it has none.
    pub(super) fn entry<'t>(&self, mapping: NodeRef<'t>, name: &str) -> Result<Option<Entry<'t>>, FrontmatterError> {
        let found = mapping.as_mapping().into_iter().flat_map(|mapping| mapping.iter());
        for (key, value) in found {
            if parse::key(self.yaml, key)? == name {
                return self.locate(name, key, value).map(Some);
            }
        }
        Ok(None)
    }

    /// The lines of every field of a block mapping, in order.
    pub(super) fn lines(&self, mapping: NodeRef<'_>) -> Result<Vec<(String, Range<usize>)>, FrontmatterError> {
        let pairs = mapping.as_mapping().into_iter().flat_map(|mapping| mapping.iter());
        pairs
            .map(|(key, value)| {
                let start = self.line_start(key.span().start);
                let end = self.lines_end(value).max(self.line_end(key.span().end));
                parse::key(self.yaml, key).map(|name| (name, start..end))
            })
            .collect()
    }

    fn locate<'t>(&self, name: &str, key: NodeRef<'t>, value: NodeRef<'t>) -> Result<Entry<'t>, FrontmatterError> {
        let span = key.span();
        let refuse = |why| FrontmatterError::NotEditable {
            field: name.to_owned(),
            line: parse::line_of(self.yaml, span.start),
            why,
        };
        let start = self.line_start(span.start);
        let before = &self.yaml[start..span.start];
        let behind = self.yaml[span.end..].trim_start_matches([' ', '\t']);
        let alone = before.chars().all(|c| c == ' ');
        if !alone || !behind.starts_with(':') || self.yaml[span.start..span.end].contains('\n') {
            return Err(refuse("it does not begin a line as `name:`; write it that way"));
        }
        Ok(Entry {
            name: name.to_owned(),
            indent: before.len(),
            lines: start..self.lines_end(value).max(self.line_end(span.end)),
            after_colon: self.yaml.len() - behind.len() + 1,
            value,
            key_start: span.start,
        })
    }

    /// Gives an entry a new value.
    pub(super) fn set(&self, entry: &Entry<'_>, new: &Value) -> Result<Vec<Splice>, FrontmatterError> {
        let node = entry.value;
        let is_flow = node.text().starts_with(['[', '{']);
        if &parse::value(self.yaml, node)? == new {
            return Ok(Vec::new());
        }
        match new {
            Value::Array(items) if is_flow && node.as_sequence().is_some() => {
                flow::list(self.yaml, node, items).map(|splice| vec![splice])
            }
            Value::Object(fields) if is_flow && node.as_mapping().is_some() => {
                flow::mapping(self.yaml, node, fields).map(|splice| vec![splice])
            }
            // Oddly laid out inside: its lines cannot be kept, so all are written anew.
            Value::Array(items) if !items.is_empty() && node.as_sequence().is_some() => {
                self.list(entry, items).or_else(|_| Ok(self.replace(entry, new, is_flow)))
            }
            Value::Object(fields) if !fields.is_empty() && node.as_mapping().is_some() => {
                self.mapping(entry, fields).or_else(|_| Ok(self.replace(entry, new, is_flow)))
            }
            new => Ok(self.replace(entry, new, is_flow)),
        }
    }

    /// Changes only the entries of a block mapping that differ.
    fn mapping(&self, entry: &Entry<'_>, new: &Map<String, Value>) -> Result<Vec<Splice>, FrontmatterError> {
        let mut splices = Vec::new();
        let mut present = Vec::new();
        let mut indent = entry.indent + STEP;
        let pairs = entry.value.as_mapping().into_iter().flat_map(|mapping| mapping.iter());
        for (key, value) in pairs {
            let name = parse::key(self.yaml, key)?;
            let inner = self.locate(&name, key, value)?;
            indent = inner.indent;
            match new.get(&name) {
                Some(value) => splices.extend(self.set(&inner, value)?),
                None => splices.push(Splice { range: inner.lines, text: String::new() }),
            }
            present.push(name);
        }
        let added = new.iter().filter(|(name, _)| !present.contains(name));
        let text: String = added.map(|(k, v)| emit::field(k, v, indent, self.eol)).collect();
        splices.push(Splice { range: entry.lines.end..entry.lines.end, text });
        Ok(splices)
    }

    /// Keeps the lines of the items that stay, and the comments between them.
    fn list(&self, entry: &Entry<'_>, new: &[Value]) -> Result<Vec<Splice>, FrontmatterError> {
        let nodes: Vec<_> = entry.value.as_sequence().into_iter().flat_map(|list| list.iter()).collect();
        let lines = self.item_lines(entry, &nodes)?;
        let old: Vec<_> = nodes.iter().map(|node| parse::value(self.yaml, *node)).collect::<Result<_, _>>()?;
        let first = entry.value.span().start;
        let indent = first - self.line_start(first);
        let quotes = nodes.first().map_or(Quotes::Plain, |node| quotes_of(*node));
        let remove = |range: &Range<usize>| Splice { range: range.clone(), text: String::new() };
        let mut splices = Vec::new();
        let (mut next, mut at) = (0, self.line_start(first));
        for value in new {
            if let Some(kept) = old[next..].iter().position(|seen| seen == value) {
                splices.extend(lines[next..next + kept].iter().map(remove));
                next += kept + 1;
                at = lines[next - 1].end;
            } else {
                let text = self.own_words(value, indent);
                let text = text.unwrap_or_else(|| emit::item(value, quotes, indent, self.eol));
                splices.push(Splice { range: at..at, text });
            }
        }
        splices.extend(lines[next..].iter().map(remove));
        Ok(splices)
    }

    /// The lines in which an item once stood, if they are indented like the list is now.
    fn own_words(&self, value: &Value, indent: usize) -> Option<String> {
        let fits = |text: &str| text.len() - text.trim_start_matches(' ').len() == indent;
        self.words.iter().find(|(item, text)| item == value && fits(text)).map(|(_, text)| text.clone())
    }

    /// The items of a block list, each with its own lines.
    pub(super) fn items(&self, entry: &Entry<'_>) -> Result<Vec<(Value, String)>, FrontmatterError> {
        let nodes: Vec<_> = entry.value.as_sequence().into_iter().flat_map(|list| list.iter()).collect();
        let lines = self.item_lines(entry, &nodes)?;
        let item = |(node, lines): (&NodeRef<'_>, Range<usize>)| {
            parse::value(self.yaml, *node).map(|value| (value, self.yaml[lines].to_owned()))
        };
        nodes.iter().zip(lines).map(item).collect()
    }

    /// The lines of every item of a block list, from its dash to its end.
    fn item_lines(&self, entry: &Entry<'_>, nodes: &[NodeRef<'_>]) -> Result<Vec<Range<usize>>, FrontmatterError> {
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
                    line: parse::line_of(self.yaml, start),
                    why: "its list is laid out oddly; write one `- item` a line",
                });
            }
            from = self.lines_end(*node).max(self.line_end(start));
            lines.push(start..from);
        }
        Ok(lines)
    }

    /// Replaces a whole value by another one, and keeps the comment behind it.
    fn replace(&self, entry: &Entry<'_>, new: &Value, is_flow: bool) -> Vec<Splice> {
        let node = entry.value;
        let old_block = !is_flow && node.as_scalar().is_none();
        let lines = if is_flow { None } else { emit::block(new, entry.indent + STEP, self.eol) };
        let below = self.line_start(node.span().start) > entry.key_start;
        let node_lines = self.line_start(node.span().start)..self.lines_end(node);
        match lines {
            Some(text) if below => vec![Splice { range: node_lines, text }],
            Some(text) => {
                let head = Splice { range: entry.after_colon..self.head_end(node), text: String::new() };
                vec![head, self.below_head(node, text)]
            }
            None if old_block => {
                let text = format!(" {}", emit::inline(new, Quotes::Plain, Place::Block));
                let at = entry.after_colon;
                vec![Splice { range: at..at, text }, Splice { range: node_lines, text: String::new() }]
            }
            None => self.scalar(entry, new),
        }
    }

    /// Writes a one-line value, or literal lines, where a scalar or flow value stood.
    fn scalar(&self, entry: &Entry<'_>, new: &Value) -> Vec<Splice> {
        let node = entry.value;
        let span = node.span();
        if is_block_scalar(node)
            && let Value::String(text) = new
            && text.contains('\n')
            && let Some((header, lines)) = emit::literal(text, entry.indent + STEP, self.eol)
        {
            let head = Splice { range: span.start..self.head_end(node), text: header.to_owned() };
            return vec![head, self.below_head(node, lines)];
        }
        let text = emit::inline(new, quotes_of(node), Place::Block);
        if is_block_scalar(node) {
            let head = Splice { range: span.start..self.head_end(node), text };
            return vec![head, self.below_head(node, String::new())];
        }
        let (start, end) = (span.start, span.end);
        let space = if start == entry.after_colon { " " } else { "" };
        vec![Splice { range: start..end, text: format!("{space}{text}") }]
    }

    /// End of what is replaced on a value's first line: the `|-` of a block
    /// scalar (a comment may follow), else the whole value.
    fn head_end(&self, node: NodeRef<'_>) -> usize {
        let span = node.span();
        if !is_block_scalar(node) {
            return span.end;
        }
        let text = &self.yaml[span.start..span.end];
        let header = text.find(|c: char| !matches!(c, '|' | '>' | '+' | '-' | '0'..='9'));
        span.start + header.unwrap_or(text.len())
    }

    /// The lines below a value's first line, replaced.
    fn below_head(&self, node: NodeRef<'_>, text: String) -> Splice {
        let end = self.lines_end(node);
        let start = if is_block_scalar(node) { self.line_end(node.span().start) } else { end };
        Splice { range: start..end, text }
    }

    /// End of the last line that a node stands on.
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

/// Carries the replacements out; `None` if they overlap or cut a character.
pub(super) fn carry_out(yaml: &str, mut splices: Vec<Splice>) -> Option<String> {
    // Stable: insertions at one place stay in the order they were planned.
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

/// How a scalar is quoted today; what replaces it is quoted alike.
pub(super) fn quotes_of(node: NodeRef<'_>) -> Quotes {
    match node.as_scalar().map(|scalar| scalar.style()) {
        Some(ScalarStyle::SingleQuoted) => Quotes::Single,
        Some(ScalarStyle::DoubleQuoted) => Quotes::Double,
        _ => Quotes::Plain,
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
