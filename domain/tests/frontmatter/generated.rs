//! Records as people write them, generated: every style of value, comments and
//! blank lines between, LF or CRLF, with and without BOM.

use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};
use steward_domain::record::frontmatter::FieldEdit;

/// One field: its name and its own lines (LF), and what stands above them.
#[derive(Debug, Clone)]
pub(crate) struct Chunk {
    pub(crate) name: String,
    pub(crate) above: String,
    pub(crate) lines: String,
}

#[derive(Debug, Clone)]
pub(crate) struct Record {
    pub(crate) chunks: Vec<Chunk>,
    below: String,
    body: String,
    bom: bool,
    crlf: bool,
}

impl Record {
    /// The file, and where the lines of each field stand in it.
    pub(crate) fn text(&self) -> (String, Vec<std::ops::Range<usize>>) {
        let ending = |text: &str| if self.crlf { text.replace('\n', "\r\n") } else { text.to_owned() };
        let mut text = if self.bom { "\u{feff}".to_owned() } else { String::new() };
        text += &ending("---\n");
        let mut ranges = Vec::new();
        for chunk in &self.chunks {
            text += &ending(&chunk.above);
            let start = text.len();
            text += &ending(&chunk.lines);
            ranges.push(start..text.len());
        }
        text += &ending(&self.below);
        text += &ending("---\n");
        text += &ending(&self.body);
        (text, ranges)
    }
}

/// A word without any meaning to YAML.
fn word() -> BoxedStrategy<String> {
    prop_oneof![
        "[a-z]{1,7}x",
        "[A-Z][a-z]{2,5}",
        select(vec!["größe", "日本", "наука", "🏡 home"]).prop_map(str::to_owned)
    ]
    .boxed()
}

/// A value on one line, as source text.
fn inline() -> BoxedStrategy<String> {
    prop_oneof![
        4 => word(),
        2 => word().prop_map(|w| format!("'{w}''s # no comment'")),
        2 => word().prop_map(|w| format!("\"{w}: \\\"\\u00e9\\n\\t\"")),
        1 => (word(), word()).prop_map(|(a, b)| format!("{a} {b}#1, it's: {a}").replace(": ", ":")),
        2 => any::<i32>().prop_map(|n| n.to_string()),
        1 => any::<f32>().prop_filter("finite", |f| f.is_finite()).prop_map(|f| format!("{f:?}")),
        2 => select(vec![
            "true", "False", "null", "~", "yes", "on", "2026-11-21", "2026-11-21T10:00:00+01:00",
            "12:30:45", "007", "0x1F", "1e3", "1_000", "https://example.org/a?b=c#d", "\"\"", "''",
            "[]", "{}", "[[Eagle Farm]]", "\"[[Eagle Farm]]\"",
        ]).prop_map(str::to_owned),
        1 => proptest::collection::vec(word(), 0..4).prop_map(|items| format!("[{}]", items.join(", "))),
        1 => (word(), word()).prop_map(|(a, b)| format!("[ '{a}',{b} , \"{a}\" ]")),
        1 => (word(), any::<u8>()).prop_map(|(a, n)| format!("{{k: {a}, 'n': {n}, l: [x, {{y: z}}]}}")),
    ]
    .boxed()
}

fn comment() -> BoxedStrategy<String> {
    prop_oneof![
        3 => Just(String::new()),
        1 => word().prop_map(|w| format!("  # {w}: [by hand")),
        1 => word().prop_map(|w| format!(" \t# '{w}")),
    ]
    .boxed()
}

/// Lines of a block list or mapping; each with a chance of a comment above.
fn block_lines(indent: usize) -> BoxedStrategy<String> {
    let pad = " ".repeat(indent);
    let entry = (inline(), comment(), prop_oneof![4 => Just(""), 1 => Just("# between\n"), 1 => Just("\n")]);
    let entries = proptest::collection::vec(entry, 1..5);
    (entries, 0..3u8)
        .prop_map(move |(entries, kind)| {
            let mut out = String::new();
            for (n, (value, comment, above)) in entries.into_iter().enumerate() {
                if n > 0 || above != "\n" {
                    out += &if above.starts_with('#') { format!("{pad}{above}") } else { above.to_owned() };
                }
                out += &match kind {
                    0 => format!("{pad}- {value}{comment}\n"),
                    1 if indent > 0 => format!("{pad}k{n}: {value}{comment}\n"),
                    _ => format!("{pad}- a: {value}{comment}\n{pad}  b{n}:\n{pad}  - deep\n"),
                };
            }
            out
        })
        .boxed()
}

/// Text lines of a literal, folded or quoted scalar.
fn text_lines() -> BoxedStrategy<String> {
    let line = prop_oneof![4 => word(), 1 => Just("# no comment".to_owned()), 1 => Just(String::new()), 1 => Just("  deeper".to_owned())];
    (word(), proptest::collection::vec(line, 0..4), word())
        .prop_map(|(first, lines, last)| {
            let all = std::iter::once(first).chain(lines).chain(std::iter::once(last));
            all.map(|line| if line.is_empty() { "\n".to_owned() } else { format!("  {line}\n") }).collect()
        })
        .boxed()
}

/// What follows the colon, up to the end of the field's lines.
fn value_lines() -> BoxedStrategy<String> {
    prop_oneof![
        8 => (inline(), comment()).prop_map(|(value, comment)| format!(" {value}{comment}\n")),
        1 => comment().prop_map(|comment| format!("{comment}\n")),
        1 => (word(), comment()).prop_map(|(value, comment)| format!("\n    {value}{comment}\n")),
        2 => (comment(), block_lines(2)).prop_map(|(comment, lines)| format!("{comment}\n{lines}")),
        1 => (comment(), block_lines(4)).prop_map(|(comment, lines)| format!("{comment}\n{lines}")),
        1 => block_lines(0).prop_map(|lines| format!("\n{lines}")),
        2 => (select(vec!["|", "|-", ">", ">-", "|2", ">+", "|+"]), comment(), text_lines())
            .prop_map(|(header, comment, lines)| format!(" {header}{comment}\n{lines}")),
        1 => (word(), word(), comment()).prop_map(|(a, b, comment)| format!(" {a}\n  {b}\n\n  {a}{comment}\n")),
        1 => (word(), word(), comment()).prop_map(|(a, b, comment)| format!(" \"{a}\\\n  {b}\n\n  {a}\"{comment}\n")),
        1 => (word(), word()).prop_map(|(a, b)| format!(" '{a}\n  {b}'\n")),
        1 => (word(), word()).prop_map(|(a, b)| format!(" [\n  {a}, # note\n\n  '{b}',\n  ]\n")),
        1 => (word(), word()).prop_map(|(a, b)| format!(" {{{a}: 1,\n  {b}-2: 2}} # end\n")),
        1 => (word(), word()).prop_map(|(a, b)| format!(" [\n  {a}, # note\n\n  '{b}' # last\n] # end\n")),
        1 => (word(), word()).prop_map(|(a, b)| format!(" {{\n  {a}: 1,\n  {b}-2: [\n    {a}\n]\n}}\n")),
    ]
    .boxed()
}

fn above() -> BoxedStrategy<String> {
    prop_oneof![
        4 => Just(String::new()),
        1 => word().prop_map(|w| format!("# {w}: x\n")),
        1 => Just("\n".to_owned()),
        1 => Just("  # deep\n\n# flat\n".to_owned()),
    ]
    .boxed()
}

fn chunk() -> BoxedStrategy<Chunk> {
    let written = select(vec!["", "", "", "'", "\""]);
    (word(), written, above(), value_lines())
        .prop_map(|(word, quote, above, value)| {
            let lines = format!("{quote}{word}{quote}:{value}");
            Chunk { name: word, above, lines }
        })
        .boxed()
}

pub(crate) fn record() -> BoxedStrategy<Record> {
    let parts = (
        proptest::collection::vec(chunk(), 0..7),
        above(),
        select(vec!["", "\n# Title\n\nText: [x\n---\nmore", "no newline", "a\r\nb\rc\n\t"]),
        any::<bool>(),
        any::<bool>(),
    );
    parts
        .prop_map(|(mut chunks, below, body, bom, crlf)| {
            for n in (1..chunks.len()).rev() {
                if chunks[..n].iter().any(|seen| seen.name == chunks[n].name) {
                    chunks.remove(n);
                }
            }
            let mut record = Record { chunks, below, body: body.to_owned(), bom, crlf };
            // Deep comments below a block text, and blank lines below a keep-all
            // one, would be part of it.
            let (mut block, mut kept) = (false, false);
            let mut mend = |above: &mut String, lines: &str| {
                if block {
                    *above = above.replace("  # deep", "# deep");
                }
                if kept {
                    above.clear();
                }
                block = lines.contains('|') || lines.contains('>');
                kept = lines.contains("|+") || lines.contains(">+");
            };
            for chunk in &mut record.chunks {
                mend(&mut chunk.above, &chunk.lines);
            }
            mend(&mut record.below, "");
            record
        })
        .boxed()
}

/// A text: words, things that look like something else, and anything at all.
fn any_text() -> BoxedStrategy<String> {
    prop_oneof![
        3 => word(),
        1 => (word(), word()).prop_map(|(a, b)| format!("{a}\n{b}\n")),
        1 => select(vec![
            "yes", "On", "null", "~", "", " ", "12:30:45", "2026-11-21", "1e3", "007", "- a", "a: b",
            "a #b", "#", "[[x]]", "*x", "&x", "!x", "%", "@", "'", "\"", "\\", "---", "...", "a\n---\nb",
            "\n", "a\n\n", "\r\n", "\t", "\u{feff}", "\u{85}", "\u{2028}", "\u{0}", "{", "]", ", ", "?",
        ]).prop_map(str::to_owned),
        1 => any::<String>(),
    ]
    .boxed()
}

pub(crate) fn any_value() -> BoxedStrategy<Value> {
    let texts = proptest::collection::vec(any_text(), 0..4);
    prop_oneof![
        4 => any_text().prop_map(Value::from),
        1 => any::<i64>().prop_map(Value::from),
        1 => any::<f64>().prop_filter("finite", |f| f.is_finite()).prop_map(Value::from),
        1 => any::<bool>().prop_map(Value::from),
        1 => Just(Value::Null),
        3 => texts.prop_map(Value::from),
        1 => (any_text(), any_text()).prop_map(|(a, b)| json!({"k0": a, "k": [b, {"l": []}], "n": {}})),
        1 => (word(), any_text()).prop_map(|(a, b)| json!([[a, [b]], {"x": {"y": b}}, null])),
    ]
    .boxed()
}

/// What to do to a record, independent of what is in it.
#[derive(Debug, Clone)]
pub(crate) enum Wish {
    Set(usize, Value),
    Remove(usize),
    Add(String, Value),
    /// Give a list one more item, or take one away.
    Member(usize, usize, Option<String>),
}

pub(crate) fn wish() -> BoxedStrategy<Wish> {
    prop_oneof![
        5 => (any::<usize>(), any_value()).prop_map(|(n, value)| Wish::Set(n, value)),
        2 => any::<usize>().prop_map(Wish::Remove),
        1 => ("[a-z]{1,4}_new", any_value()).prop_map(|(name, value)| Wish::Add(name, value)),
        1 => (any_text(), any_value()).prop_map(|(name, value)| Wish::Add(name, value)),
        3 => (any::<usize>(), any::<usize>(), proptest::option::of(any_text()))
            .prop_map(|(n, at, text)| Wish::Member(n, at, text)),
    ]
    .boxed()
}

impl Wish {
    /// The edit that this wish is in a record with these fields.
    pub(crate) fn edit(&self, fields: &steward_domain::record::frontmatter::RecordFields) -> FieldEdit {
        let name = |n: &usize| {
            let names: Vec<_> = fields.keys().collect();
            names.get(n % names.len().max(1)).map_or("lonely".to_owned(), |name| (*name).clone())
        };
        match self {
            Wish::Set(n, value) => FieldEdit { field: name(n), value: Some(value.clone()) },
            Wish::Remove(n) => FieldEdit { field: name(n), value: None },
            Wish::Add(name, value) => FieldEdit { field: name.clone(), value: Some(value.clone()) },
            Wish::Member(n, at, text) => {
                let field = name(n);
                let mut items = fields.get(&field).and_then(Value::as_array).cloned().unwrap_or_default();
                let at = at % (items.len() + 1);
                match text {
                    Some(text) => items.insert(at, Value::from(text.clone())),
                    None if at < items.len() => drop(items.remove(at)),
                    None => {}
                }
                FieldEdit { field, value: Some(Value::Array(items)) }
            }
        }
    }
}
