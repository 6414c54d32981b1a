//! The forms of texts in the standard. The published schema has a regular expression for each.
//!
//! A final line break fits none of them. (Python's `$` would let it pass; the standard's own expressions are ECMAScript's.)

use chrono::NaiveDate;

/// How a text must be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextForm {
    Any,
    /// `^[a-z][a-z0-9-]*[a-z0-9]$`
    Slug,
    /// `^[a-z][a-z0-9-]*$`
    Word,
    /// `^[a-z0-9][a-z0-9-]*$`
    SourceId,
    /// `^sources/`
    SourcePath,
    /// `^(sha256|sha512|blake3):[A-Fa-f0-9]+$`
    Hash,
    /// `^[a-z]{2}(-[A-Z]{2})?$`
    Language,
    /// `^[0-9]+\.[0-9]+\.[0-9]+(-[A-Za-z0-9.-]+)?$`
    Version,
    /// `^(\.\./|\./)[^\s]+/KNOWLEDGE\.md$`
    ManifestPath,
    /// `^(ws://(operators|companies|skills)/[a-z][a-z0-9-]*|\.\./[^\s]+)$`
    Consumer,
    /// `^ws://operators/[a-z][a-z0-9-]*$`
    Operator,
    /// `^[A-Z][A-Za-z0-9]*$`
    TypeName,
    /// `^[a-z][A-Za-z0-9_]*$`
    FieldName,
    /// `^([A-Z][A-Za-z0-9]*|\*)$`
    LintTarget,
    /// `^(forever|days:[0-9]+)$`
    Retention,
    /// As `date-time` of RFC 3339, without a leap second.
    DateTime,
}

impl TextForm {
    pub(super) fn accepts(self, text: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Slug => is_word(text) && text.len() >= 2 && !text.ends_with('-'),
            Self::Word => is_word(text),
            Self::SourceId => text.starts_with(is_lower_or_digit) && text.chars().all(is_kebab),
            Self::SourcePath => text.starts_with("sources/"),
            Self::Hash => text.split_once(':').is_some_and(|(algorithm, hex)| {
                ["sha256", "sha512", "blake3"].contains(&algorithm)
                    && !hex.is_empty()
                    && hex.chars().all(|c| c.is_ascii_hexdigit())
            }),
            Self::Language => is_language(text),
            Self::Version => is_version(text),
            Self::ManifestPath => is_manifest_path(text),
            Self::Consumer => {
                let named = ["operators", "companies", "skills"];
                is_reference(text, &named) || text.strip_prefix("../").is_some_and(is_unspaced)
            }
            Self::Operator => is_reference(text, &["operators"]),
            Self::TypeName => is_type_name(text),
            Self::FieldName => {
                text.starts_with(|c: char| c.is_ascii_lowercase())
                    && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
            }
            Self::LintTarget => text == "*" || is_type_name(text),
            Self::Retention => text == "forever" || text.strip_prefix("days:").is_some_and(is_digits),
            Self::DateTime => is_date_time(text),
        }
    }

    /// The form in words, as the object of "write".
    pub(super) fn describe(self) -> &'static str {
        match self {
            Self::Any => "a text",
            Self::Slug => {
                "a slug such as `plot-12`: lower-case letters, digits and hyphens, from a letter to a letter or digit"
            }
            Self::Word => "a word such as `concept`: lower-case letters, digits and hyphens, from a letter on",
            Self::SourceId => {
                "a source's id such as `2026-11-20-letter`, not its path: lower-case letters, digits and hyphens"
            }
            Self::SourcePath => "a path that begins with `sources/`",
            Self::Hash => "a hash such as `sha256:55a2…`, with sha256, sha512 or blake3",
            Self::Language => "a language such as `en` or `en-GB`",
            Self::Version => "a version such as `1.0.0`",
            Self::ManifestPath => "a path that begins with `./` or `../` and ends with `/KNOWLEDGE.md`",
            Self::Consumer => {
                "`ws://operators/<name>`, `ws://companies/<name>`, `ws://skills/<name>` or a path from `../` on"
            }
            Self::Operator => "`ws://operators/<name>`",
            Self::TypeName => "a type's name such as `Concept`: letters and digits, from a capital on",
            Self::FieldName => {
                "a field's name such as `lead_partner`: letters, digits and `_`, from a lower-case letter on"
            }
            Self::LintTarget => "a type's name such as `Concept`, or \"*\" for all",
            Self::Retention => "`forever` or `days:<number>`",
            Self::DateTime => "a time such as \"2026-11-22T09:15:04Z\"",
        }
    }
}

fn is_lower_or_digit(c: char) -> bool {
    c.is_ascii_lowercase() || c.is_ascii_digit()
}

fn is_kebab(c: char) -> bool {
    is_lower_or_digit(c) || c == '-'
}

fn is_word(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_lowercase()) && text.chars().all(is_kebab)
}

fn is_type_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_uppercase()) && text.chars().all(|c| c.is_ascii_alphanumeric())
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

fn is_unspaced(text: &str) -> bool {
    !text.is_empty() && !text.contains(char::is_whitespace)
}

fn is_reference(text: &str, collections: &[&str]) -> bool {
    let Some((collection, name)) = text.strip_prefix("ws://").and_then(|rest| rest.split_once('/')) else {
        return false;
    };
    collections.contains(&collection) && is_word(name)
}

fn is_language(text: &str) -> bool {
    let bytes = text.as_bytes();
    let is_pair = |pair: &[u8], is_right: fn(&u8) -> bool| pair.len() == 2 && pair.iter().all(is_right);
    match bytes.len() {
        2 => is_pair(bytes, u8::is_ascii_lowercase),
        5 => {
            is_pair(&bytes[..2], u8::is_ascii_lowercase)
                && bytes[2] == b'-'
                && is_pair(&bytes[3..], u8::is_ascii_uppercase)
        }
        _ => false,
    }
}

fn is_version(text: &str) -> bool {
    let (numbers, label) = text.split_once('-').map_or((text, None), |(numbers, label)| (numbers, Some(label)));
    let is_label =
        |label: &str| !label.is_empty() && label.chars().all(|c| c.is_ascii_alphanumeric() || c == '.' || c == '-');
    numbers.split('.').count() == 3 && numbers.split('.').all(is_digits) && label.is_none_or(is_label)
}

/// At least one character stands between the first `./` or `../` and the last `/KNOWLEDGE.md`.
fn is_manifest_path(text: &str) -> bool {
    let rest = text.strip_prefix("../").or_else(|| text.strip_prefix("./"));
    rest.and_then(|rest| rest.strip_suffix("/KNOWLEDGE.md")).is_some_and(is_unspaced)
}

/// As the format `date-time` of JSON Schema: RFC 3339 with `T`, a zone, and no leap second.
fn is_date_time(text: &str) -> bool {
    let upper = text.to_ascii_uppercase();
    let Some((date, rest)) = upper.split_once('T') else { return false };
    let zone_at = rest.find(['Z', '+', '-']).unwrap_or(rest.len());
    let (clock, zone) = rest.split_at(zone_at);
    is_date(date) && is_clock(clock) && is_zone(zone)
}

/// Reads exactly `width` digits.
fn read_digits(text: &str, width: usize) -> Option<u32> {
    (text.len() == width && is_digits(text)).then(|| text.parse().ok())?
}

fn is_date(text: &str) -> bool {
    let mut parts = text.split('-');
    let (Some(year), Some(month), Some(day), None) = (parts.next(), parts.next(), parts.next(), parts.next()) else {
        return false;
    };
    let (year, month, day) = (read_digits(year, 4), read_digits(month, 2), read_digits(day, 2));
    let (Some(year), Some(month), Some(day)) = (year, month, day) else { return false };
    year > 0 && NaiveDate::from_ymd_opt(year.cast_signed(), month, day).is_some()
}

fn is_clock(text: &str) -> bool {
    let (whole, fraction) = text.split_once('.').map_or((text, None), |(whole, fraction)| (whole, Some(fraction)));
    let parts: Vec<&str> = whole.split(':').collect();
    let [hour, minute, second] = parts.as_slice() else { return false };
    let is_below = |part: &str, limit: u32| read_digits(part, 2).is_some_and(|value| value < limit);
    is_below(hour, 24) && is_below(minute, 60) && is_below(second, 60) && fraction.is_none_or(is_digits)
}

fn is_zone(text: &str) -> bool {
    let Some((hours, minutes)) = text.strip_prefix(['+', '-']).and_then(|rest| rest.split_once(':')) else {
        return text == "Z";
    };
    let is_below = |part: &str, limit: u32| read_digits(part, 2).is_some_and(|value| value < limit);
    is_below(hours, 24) && is_below(minutes, 60)
}
