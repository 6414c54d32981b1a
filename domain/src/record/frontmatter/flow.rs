//! Plans edits of flow collections, `[…]` and `{…}`.
//!
//! Only the items between the first and the last difference are rewritten. The text of all other items is reused.
//! This module returns a splice and must not apply it. `edit` applies it and verifies the whole text.

use std::ops::Range;

use oneyaml::NodeRef;
use serde_json::{Map, Value};

use super::FrontmatterError;
use super::emit::{self, QuoteStyle, ScalarPlace};
use super::parse;
use super::splice::{TextSplice, quote_style};

/// An item of a flow collection: its parsed value and its position.
struct FlowItem<T> {
    value: T,
    span: Range<usize>,
}

/// The splice that makes a flow list hold `new`.
pub(super) fn splice_list(yaml: &str, node: NodeRef<'_>, new: &[Value]) -> Result<TextSplice, FrontmatterError> {
    let nodes: Vec<_> = node.as_sequence().into_iter().flat_map(|list| list.iter()).collect();
    let quotes = nodes.first().map_or(QuoteStyle::Plain, |node| quote_style(*node));
    let mut old = Vec::with_capacity(nodes.len());
    for item in nodes {
        let span = item.span().start..item.span().end;
        old.push(FlowItem { value: parse::value_of_node(yaml, item)?, span });
    }
    let write = |value: &Value| emit::format_inline(value, quotes, ScalarPlace::Flow);
    Ok(FlowCollection { yaml, node, brackets: "[]", old: &old }.splice_items(new, write))
}

/// The splice that makes a flow mapping hold `new`. Keys keep their order.
pub(super) fn splice_mapping(
    yaml: &str,
    node: NodeRef<'_>,
    new: &Map<String, Value>,
) -> Result<TextSplice, FrontmatterError> {
    let mut old = Vec::new();
    let mut quotes = QuoteStyle::Plain;
    for (key, value) in node.as_mapping().into_iter().flat_map(|mapping| mapping.iter()) {
        let span = key.span().start..value.span().end.max(key.span().end);
        let pair = (parse::key_of_node(yaml, key)?, parse::value_of_node(yaml, value)?);
        if old.is_empty() {
            quotes = quote_style(value);
        }
        old.push(FlowItem { value: pair, span });
    }
    let old_names: Vec<_> = old.iter().map(|item| &item.value.0).collect();
    let kept = old_names.iter().filter_map(|name| new.get_key_value(*name));
    let added = new.iter().filter(|(name, _)| !old_names.contains(name));
    let wanted: Vec<_> = kept.chain(added).map(|(k, v)| (k.clone(), v.clone())).collect();
    let write = |pair: &(String, Value)| emit::format_flow_pair(&pair.0, &pair.1, quotes);
    Ok(FlowCollection { yaml, node, brackets: "{}", old: &old }.splice_items(&wanted, write))
}

struct FlowCollection<'a, T> {
    yaml: &'a str,
    node: NodeRef<'a>,
    brackets: &'a str,
    old: &'a [FlowItem<T>],
}

impl<T: PartialEq> FlowCollection<'_, T> {
    fn splice_items(&self, new: &[T], write: impl Fn(&T) -> String) -> TextSplice {
        let old = self.old;
        let write = |wanted: &T| match old.iter().find(|item| &item.value == wanted) {
            Some(item) if !self.yaml[item.span.clone()].contains('\n') => self.yaml[item.span.clone()].to_owned(),
            Some(_) | None => write(wanted),
        };
        if old.is_empty() || new.is_empty() {
            let (open, close) = self.brackets.split_at(1);
            let items: Vec<_> = new.iter().map(write).collect();
            let span = self.node.span();
            let text = format!("{open}{}{close}", items.join(", "));
            return TextSplice { range: span.start..span.end, text };
        }
        let head = old.iter().zip(new).take_while(|(a, b)| &a.value == *b).count();
        let tails = old[head..].iter().rev().zip(new[head..].iter().rev());
        let tail = tails.take_while(|(a, b)| &a.value == *b).count();
        let removed = &old[head..old.len() - tail];
        let items: Vec<_> = new[head..new.len() - tail].iter().map(write).collect();
        let text = items.join(", ");
        match (removed.first(), removed.last()) {
            (Some(first), Some(last)) if !items.is_empty() => {
                TextSplice { range: first.span.start..last.span.end, text }
            }
            (Some(_), Some(last)) if head > 0 => TextSplice { range: old[head - 1].span.end..last.span.end, text },
            (Some(first), _) => TextSplice { range: first.span.start..old[old.len() - tail].span.start, text },
            (None, _) if head > 0 => {
                let at = old[head - 1].span.end;
                TextSplice { range: at..at, text: format!(", {text}") }
            }
            (None, _) => {
                let at = old[0].span.start;
                TextSplice { range: at..at, text: format!("{text}, ") }
            }
        }
    }
}
