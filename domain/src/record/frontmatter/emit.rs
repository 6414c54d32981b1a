//! Formats values as YAML text: scalars, flow collections, block lines.
//!
//! The text must mean the same to YAML 1.2 and YAML 1.1 parsers. So a string that either would read as a
//! boolean, a number, a time or null is quoted. `splice` and `render_document` decide where the text goes.

use serde_json::{Map, Number, Value};

/// Spaces of one level.
pub(super) const STEP: usize = 2;

/// The preferred quotes of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum QuoteStyle {
    Plain,
    Single,
    Double,
}

/// The context of a scalar. Inside `[…]` and `{…}` more characters need quotes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ScalarPlace {
    Block,
    Flow,
}

/// A whole value on one line.
pub(super) fn format_inline(value: &Value, quotes: QuoteStyle, place: ScalarPlace) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => format_number(number),
        Value::String(text) => format_string(text, quotes, place),
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(|item| format_inline(item, quotes, ScalarPlace::Flow)).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(fields) => {
            let pairs: Vec<_> = fields.iter().map(|(k, v)| format_flow_pair(k, v, quotes)).collect();
            format!("{{{}}}", pairs.join(", "))
        }
    }
}

/// `key: value` inside a flow mapping.
pub(super) fn format_flow_pair(name: &str, value: &Value, quotes: QuoteStyle) -> String {
    format!("{}: {}", format_key(name), format_inline(value, quotes, ScalarPlace::Flow))
}

/// A field as block lines, with this indentation and line ending.
pub(super) fn format_field(name: &str, value: &Value, indent: usize, eol: &str) -> String {
    format!("{:indent$}{}:{}", "", format_key(name), format_after_colon(value, indent, eol))
}

/// The text after `key:`, to the end of the last line.
pub(super) fn format_after_colon(value: &Value, indent: usize, eol: &str) -> String {
    match format_block(value, indent + STEP, eol) {
        Some(lines) => format!("{eol}{lines}"),
        None => format!(" {}{eol}", format_inline(value, QuoteStyle::Plain, ScalarPlace::Block)),
    }
}

/// A collection as block lines, or `None` if the value is written on one line.
pub(super) fn format_block(value: &Value, indent: usize, eol: &str) -> Option<String> {
    match value {
        Value::Array(items) if !items.is_empty() => {
            Some(items.iter().map(|value| format_item(value, QuoteStyle::Plain, indent, eol)).collect())
        }
        Value::Object(fields) if !fields.is_empty() => Some(format_block_fields(fields, indent, eol)),
        Value::Array(_) | Value::Object(_) => None,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

/// The lines of a mapping.
pub(super) fn format_block_fields(fields: &Map<String, Value>, indent: usize, eol: &str) -> String {
    fields.iter().map(|(name, value)| format_field(name, value, indent, eol)).collect()
}

/// One `- …` entry of a list.
pub(super) fn format_item(value: &Value, quotes: QuoteStyle, indent: usize, eol: &str) -> String {
    match format_block(value, indent + STEP, eol) {
        // The first line of a nested collection follows the dash.
        Some(lines) => format!("{:indent$}- {}", "", &lines[indent + STEP..]),
        None => format!("{:indent$}- {}{eol}", "", format_inline(value, quotes, ScalarPlace::Block)),
    }
}

/// The header and the lines of a literal block (`|`), or `None` if the text needs quotes.
pub(super) fn format_literal(text: &str, indent: usize, eol: &str) -> Option<(&'static str, String)> {
    let content = text.strip_suffix('\n').unwrap_or(text);
    let starts_well = content.starts_with(|c: char| !c.is_whitespace());
    if !starts_well || content.ends_with('\n') || content.chars().any(|c| c != '\n' && needs_escape(c)) {
        return None;
    }
    let line = |line: &str| match line {
        "" => eol.to_owned(),
        line => format!("{:indent$}{line}{eol}", ""),
    };
    let header = if text.ends_with('\n') { "|" } else { "|-" };
    Some((header, content.split('\n').map(line).collect()))
}

/// A field's name, quoted if necessary.
pub(super) fn format_key(name: &str) -> String {
    let plain = is_plain(name, ScalarPlace::Flow) && !name.contains(['\'', '"', '?', ':', '#']);
    if plain { name.to_owned() } else { format_double_quoted(name) }
}

fn format_string(text: &str, quotes: QuoteStyle, place: ScalarPlace) -> String {
    match quotes {
        QuoteStyle::Plain if is_plain(text, place) => text.to_owned(),
        QuoteStyle::Single if !text.chars().any(needs_escape) => {
            format!("'{}'", text.replace('\'', "''"))
        }
        QuoteStyle::Plain | QuoteStyle::Single | QuoteStyle::Double => format_double_quoted(text),
    }
}

fn format_double_quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if needs_escape(c) => out.push_str(&format!("\\u{:04X}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Whether it is a line break of any YAML version, a character that is not printable, or the BOM.
fn needs_escape(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}')
}

/// Formats a number. Both YAML versions need a dot and a signed exponent to read a float.
fn format_number(number: &Number) -> String {
    let text = number.to_string();
    let Some((mantissa, exponent)) = text.split_once('e') else { return text };
    let dot = if mantissa.contains('.') { "" } else { ".0" };
    let sign = if exponent.starts_with(['-', '+']) { "" } else { "+" };
    format!("{mantissa}{dot}e{sign}{exponent}")
}

/// Whether every YAML parser reads the unquoted text as this text.
///
/// This is stricter than YAML. A text that begins with a digit, sign or dot could be read as a number,
/// date or time, so it is not plain.
fn is_plain(text: &str, place: ScalarPlace) -> bool {
    let is_foreign = |c: char| !c.is_ascii() && !c.is_whitespace() && !needs_escape(c);
    let first_ok = |c: char| c.is_ascii_alphabetic() || matches!(c, '_' | '/' | '(') || is_foreign(c);
    let inner_ok = |c: char| match c {
        ',' => place == ScalarPlace::Block,
        ' ' | '_' | '-' | '.' | '/' | '(' | ')' | '@' | '+' | '&' | ';' | '!' | '?' | '%' | '=' | '<' | '>' | '~'
        | '^' | '$' | '*' | '\'' | '"' | '#' => true,
        ':' => place == ScalarPlace::Block,
        c => c.is_ascii_alphanumeric() || is_foreign(c),
    };
    text.chars().next().is_some_and(first_ok)
        && text.chars().all(inner_ok)
        && !text.ends_with([' ', ':'])
        && !text.contains(": ")
        && !text.contains(" #")
        && !is_reserved(text)
}

/// Words that YAML 1.1 or 1.2 reads as a boolean or null.
fn is_reserved(text: &str) -> bool {
    const WORDS: [&str; 9] = ["y", "n", "yes", "no", "on", "off", "true", "false", "null"];
    WORDS.iter().any(|word| text.eq_ignore_ascii_case(word))
}
