//! Reads frontmatter of our own making, fast.
//!
//! Most files of a grown vault are records that we wrote, and two YAML parsers are much work for each. This reader
//! knows the lines that `emit` writes and no others, and is not believed: what it found is written again, and counts
//! only if every byte comes out as it stood. What `emit` writes has one meaning to both parsers (the properties in
//! `tests/frontmatter` hold that), so no other fields can come of the text. For all else there is `parse`.

use super::{Fields, MAX_DEPTH, MAX_VALUES, emit};
use serde_json::{Map, Number, Value};
use std::str::Lines;

/// Longest key that is read here; the parsers refuse those of more than 1,024 characters.
const MAX_KEY_BYTES: usize = 200;

/// The fields, or `None` for what must be read by the parsers; `yaml` is what stands between the fences.
pub(super) fn fields(yaml: &str) -> Option<Fields> {
    let mut lines = yaml.lines();
    let line = lines.next().map(indented);
    let mut reader = Reader { lines, line, values: 0 };
    let fields = reader.mapping((0, 0))?;
    (reader.line.is_none() && emit::block_fields(&fields, 0, "\n") == yaml).then_some(fields)
}

struct Reader<'a> {
    lines: Lines<'a>,
    /// Spaces and what follows them; of an item's first line what follows the dash.
    line: Option<(usize, &'a str)>,
    values: usize,
}

impl<'a> Reader<'a> {
    fn next(&mut self) {
        self.line = self.lines.next().map(indented);
    }

    /// The line at hand if it is indented so.
    fn at(&self, indent: usize) -> Option<&'a str> {
        self.line.filter(|(spaces, _)| *spaces == indent).map(|(_, text)| text)
    }

    /// Counts values and levels, well below what the parsers take.
    fn count(&mut self, depth: usize) -> Option<()> {
        self.values += 2;
        (self.values < MAX_VALUES && depth < MAX_DEPTH / 2).then_some(())
    }

    fn mapping(&mut self, (indent, depth): (usize, usize)) -> Option<Fields> {
        let mut fields = Map::new();
        while let Some(text) = self.at(indent) {
            self.count(depth)?;
            let (name, after) = key(text)?;
            let value = match after.strip_prefix(' ') {
                Some(text) => self.scalar(text)?,
                None => {
                    self.next();
                    self.block((indent + emit::STEP, depth + 1))?
                }
            };
            fields.insert(name, value);
        }
        Some(fields)
    }

    fn block(&mut self, place: (usize, usize)) -> Option<Value> {
        if !self.at(place.0)?.starts_with("- ") {
            return self.mapping(place).map(Value::Object);
        }
        let ((indent, depth), mut items) = (place, Vec::new());
        while let Some(item) = self.at(indent).and_then(|text| text.strip_prefix("- ")) {
            self.count(depth)?;
            items.push(if item.starts_with("- ") || key(item).is_some() {
                self.line = Some((indent + emit::STEP, item));
                self.block((indent + emit::STEP, depth + 1))?
            } else {
                self.scalar(item)?
            });
        }
        Some(Value::Array(items))
    }

    /// A value that ends its line.
    fn scalar(&mut self, text: &str) -> Option<Value> {
        self.next();
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

fn indented(line: &str) -> (usize, &str) {
    let text = line.trim_start_matches(' ');
    (line.len() - text.len(), text)
}

/// A field's name, and what follows its colon.
fn key(text: &str) -> Option<(String, &str)> {
    let (name, after) = any_key(text)?;
    (name.len() <= MAX_KEY_BYTES).then_some((name, after))
}

fn any_key(text: &str) -> Option<(String, &str)> {
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
            let fields = Fields::from_iter([(name, json!(1))]);
            assert_eq!(super::fields(&emit::block_fields(&fields, 0, "\n")), None);
        }
    }

    #[test]
    fn what_we_write_is_read_without_the_parsers() {
        let nested = json!({"a b": [{"gate": "mode", "found": "0.94"}, [1, [2.5, -3]], "x"], "none": [], "empty": {}});
        let values = [json!(null), json!(true), json!(0.94), json!(7), json!("off"), json!("a: b\n\u{2028}"), nested];
        let names = ["type", "a b", "quoted: \"yes\"", "n", "7", "snake_case", "deep"];
        let fields: Fields = names.into_iter().map(str::to_owned).zip(values).collect();
        let text = emit::block_fields(&fields, 0, "\n");
        assert_eq!(super::fields(&text).as_ref(), Some(&fields), "{text}");
        assert_eq!(super::super::parse::fields(&text).as_ref(), Ok(&fields));
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
            assert_eq!(super::fields(text), None, "{text:?}");
        }
    }
}
