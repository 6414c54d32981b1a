//! Reads frontmatter that Steward wrote itself, fast.
//!
//! Most files of a large vault are such records, and two YAML parsers take long for each. This reader knows only
//! the lines that `emit` writes. It is not trusted: its result counts only if `emit` writes exactly the same bytes
//! again. Both parsers read such text alike (the property tests in `tests/frontmatter` ensure that), so the fields
//! cannot differ. `parse` reads everything else.

use super::MAX_DEPTH;
use super::MAX_VALUES;
use super::RecordFields;
use super::emit;
use serde_json::{Map, Number, Value};
use std::str::Lines;

/// The longest key that is read here, in bytes. The parsers refuse keys of more than 1,024 characters.
const MAX_KEY_BYTES: usize = 200;

/// The fields, or `None` if the parsers must read the text. `yaml` is the text between the fences.
pub(super) fn read_emitted_fields(yaml: &str) -> Option<RecordFields> {
    let mut lines = yaml.lines();
    let line = lines.next().map(split_indent);
    let mut reader = EmittedYamlReader { lines, line, values: 0 };
    let fields = reader.read_mapping(0, 0)?;
    (reader.line.is_none() && emit::format_block_fields(&fields, 0, "\n") == yaml).then_some(fields)
}

struct EmittedYamlReader<'a> {
    lines: Lines<'a>,
    /// The indentation and the rest of the line. For the first line of an item, it is the text after the dash.
    line: Option<(usize, &'a str)>,
    values: usize,
}

impl<'a> EmittedYamlReader<'a> {
    fn advance_line(&mut self) {
        self.line = self.lines.next().map(split_indent);
    }

    /// The current line, if it has this indentation.
    fn line_at_indent(&self, indent: usize) -> Option<&'a str> {
        self.line.filter(|(spaces, _)| *spaces == indent).map(|(_, text)| text)
    }

    /// Counts values and levels. The limits are well below those of the parsers.
    fn count_value(&mut self, depth: usize) -> Option<()> {
        self.values += 2;
        (self.values < MAX_VALUES && depth < MAX_DEPTH / 2).then_some(())
    }

    fn read_mapping(&mut self, indent: usize, depth: usize) -> Option<RecordFields> {
        let mut fields = Map::new();
        while let Some(text) = self.line_at_indent(indent) {
            self.count_value(depth)?;
            let (name, after) = read_key(text)?;
            let value = match after.strip_prefix(' ') {
                Some(text) => self.read_scalar(text)?,
                None => {
                    self.advance_line();
                    self.read_block(indent + emit::STEP, depth + 1)?
                }
            };
            fields.insert(name, value);
        }
        Some(fields)
    }

    fn read_block(&mut self, indent: usize, depth: usize) -> Option<Value> {
        if !self.line_at_indent(indent)?.starts_with("- ") {
            return self.read_mapping(indent, depth).map(Value::Object);
        }
        let mut items = Vec::new();
        while let Some(item) = self.line_at_indent(indent).and_then(|text| text.strip_prefix("- ")) {
            self.count_value(depth)?;
            items.push(if item.starts_with("- ") || read_key(item).is_some() {
                self.line = Some((indent + emit::STEP, item));
                self.read_block(indent + emit::STEP, depth + 1)?
            } else {
                self.read_scalar(item)?
            });
        }
        Some(Value::Array(items))
    }

    /// Reads a value that ends its line.
    fn read_scalar(&mut self, text: &str) -> Option<Value> {
        self.advance_line();
        Some(match text {
            "null" => Value::Null,
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            "[]" => Value::Array(Vec::new()),
            "{}" => Value::Object(Map::new()),
            _ if text.starts_with('"') => Value::String(serde_json::from_str(text).ok()?),
            _ if text.starts_with(|c: char| c == '-' || c.is_ascii_digit()) => {
                Value::Number(text.parse::<Number>().ok()?)
            }
            _ => Value::String(text.to_owned()),
        })
    }
}

fn split_indent(line: &str) -> (usize, &str) {
    let text = line.trim_start_matches(' ');
    (line.len() - text.len(), text)
}

/// A field's name and the text after its colon.
fn read_key(text: &str) -> Option<(String, &str)> {
    let (name, after) = read_any_key(text)?;
    (name.len() <= MAX_KEY_BYTES).then_some((name, after))
}

fn read_any_key(text: &str) -> Option<(String, &str)> {
    if text.starts_with('"') {
        let mut quoted = serde_json::Deserializer::from_str(text).into_iter::<String>();
        let name = quoted.next()?.ok()?;
        let after = text.get(quoted.byte_offset()..)?.strip_prefix(':')?;
        return (after.is_empty() || after.starts_with(' ')).then_some((name, after));
    }
    let (name, after) = match text.split_once(": ") {
        Some((name, _)) => (name, text.get(name.len() + 1..)?),
        None => (text.strip_suffix(':')?, ""),
    };
    Some((name.to_owned(), after))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_key_that_the_parsers_would_refuse_is_left_to_them() {
        for name in ["k".repeat(1_100), format!("{}: x", "k".repeat(1_100))] {
            let fields = RecordFields::from_iter([(name, json!(1))]);
            assert_eq!(super::read_emitted_fields(&emit::format_block_fields(&fields, 0, "\n")), None);
        }
    }

    #[test]
    fn what_we_write_is_read_without_the_parsers() {
        let nested = json!({"a b": [{"gate": "mode", "found": "0.94"}, [1, [2.5, -3]], "x"], "none": [], "empty": {}});
        let values = [json!(null), json!(true), json!(0.94), json!(7), json!("off"), json!("a: b\n\u{2028}"), nested];
        let names = ["type", "a b", "quoted: \"yes\"", "n", "7", "snake_case", "deep"];
        let fields: RecordFields = names.into_iter().map(str::to_owned).zip(values).collect();
        let text = emit::format_block_fields(&fields, 0, "\n");
        assert_eq!(super::read_emitted_fields(&text).as_ref(), Some(&fields), "{text}");
        assert_eq!(super::super::parse::parse_fields(&text).as_ref(), Ok(&fields));
    }

    #[test]
    fn what_people_write_is_left_to_the_parsers() {
        for text in [
            "a: 'x'\n",
            "a: [1]\n",
            "a: 1 # one\n",
            "a: x\r\n",
            "a: 007\n",
            "a: 1\na: 2\n",
            "a:\n- x\n",
            "a: yes\n",
            "a: &b c\n",
            "a: |\n  x\n",
            "\n",
            "a:\n",
            "a: 2026-11-22\n",
            "- a\n",
            "a: x",
            "a: x\n  y: z\n",
            "a: - b\n",
        ] {
            assert_eq!(super::read_emitted_fields(text), None, "{text:?}");
        }
    }
}
