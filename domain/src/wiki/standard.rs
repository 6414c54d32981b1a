//! AIP-10, the published standard of a wiki on disk: which frontmatter is valid.
//!
//! There are three doctypes: the page (`knowledge.entry/v1`), the source (`knowledge.source/v1`) and the manifest of a wiki
//! or of a view (`knowledge.workspace/v1`). [`find_faults`] must refuse exactly what the published JSON Schema
//! (agentproto/agentproto, `specs/resources/aip-10/draft/KNOWLEDGE.schema.json`) refuses, and says what to do about it.

mod forms;
mod rules;

use crate::record::frontmatter::RecordFields;
use crate::record::plain_text::to_one_line;
use forms::TextForm;
pub(super) use rules::CONFLICT_RESOLUTIONS;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt;

/// The most faults of one file. More would not be read.
const MAX_FAULTS: usize = 50;
/// The longest value that a fault repeats, in characters.
const MAX_SHOWN: usize = 60;

/// What a file of a wiki is, by the field `schema` of its frontmatter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, strum::Display, strum::EnumString, strum::EnumIter)]
pub enum Doctype {
    #[strum(serialize = "knowledge.entry/v1")]
    Page,
    #[strum(serialize = "knowledge.source/v1")]
    Source,
    #[strum(serialize = "knowledge.workspace/v1")]
    Manifest,
}

impl Doctype {
    /// The doctype that a frontmatter names; `None` if it names none of this standard.
    #[must_use]
    pub fn read(fields: &RecordFields) -> Option<Self> {
        fields.get("schema")?.as_str()?.parse().ok()
    }
}

/// Where in a frontmatter a value stands: keys, and positions in lists from 0.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(into = "String")]
pub struct FieldPath(Vec<FieldStep>);

/// One step of a [`FieldPath`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FieldStep {
    Key(String),
    Item(usize),
}

impl FieldPath {
    /// The path of a field of the frontmatter itself.
    #[must_use]
    pub fn from_key(name: &str) -> Self {
        Self::default().join_key(name)
    }

    #[must_use]
    pub fn join_key(&self, name: &str) -> Self {
        self.join(FieldStep::Key(name.to_owned()))
    }

    #[must_use]
    pub fn join_item(&self, position: usize) -> Self {
        self.join(FieldStep::Item(position))
    }

    fn join(&self, step: FieldStep) -> Self {
        Self(self.0.iter().cloned().chain([step]).collect())
    }

    #[must_use]
    pub fn steps(&self) -> &[FieldStep] {
        &self.0
    }

    /// The value at this path.
    #[must_use]
    pub fn find_in<'f>(&self, fields: &'f RecordFields) -> Option<&'f Value> {
        let (first, rest) = self.0.split_first()?;
        rest.iter().try_fold(fields.get(&first.to_string())?, |value, step| step.find_in(value))
    }

    /// Whether this is that path or one below it.
    #[must_use]
    pub fn starts_with(&self, path: &Self) -> bool {
        self.0.starts_with(&path.0)
    }
}

impl FieldStep {
    /// The value that this step leads to.
    #[must_use]
    pub fn find_in<'v>(&self, value: &'v Value) -> Option<&'v Value> {
        match self {
            Self::Key(name) => value.get(name),
            Self::Item(position) => value.get(position),
        }
    }

    /// The place that this step leads to, made if it is missing. What is in its way is replaced.
    pub(super) fn make_in<'v>(&self, value: &'v mut Value) -> &'v mut Value {
        match self {
            Self::Key(name) => {
                if !value.is_object() {
                    *value = Value::Object(RecordFields::new());
                }
                &mut value[name.as_str()]
            }
            Self::Item(position) => {
                if !value.is_array() {
                    *value = Value::Array(Vec::new());
                }
                if let Value::Array(items) = value {
                    items.resize_with(items.len().max(position + 1), || Value::Null);
                }
                &mut value[*position]
            }
        }
    }
}

impl fmt::Display for FieldStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key(name) => write!(f, "{name}"),
            Self::Item(position) => write!(f, "{position}"),
        }
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, step) in self.0.iter().enumerate() {
            match step {
                // A key is outside text, and must not begin another line.
                FieldStep::Key(name) if position == 0 => write!(f, "{}", to_one_line(name))?,
                FieldStep::Key(name) => write!(f, ".{}", to_one_line(name))?,
                FieldStep::Item(item) => write!(f, "[{item}]")?,
            }
        }
        Ok(())
    }
}

impl From<FieldPath> for String {
    fn from(path: FieldPath) -> Self {
        path.to_string()
    }
}

/// Why a frontmatter is invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaFault {
    pub kind: FaultKind,
    pub path: FieldPath,
    pub problem: String,
    pub fix: String,
}

/// What kind of fault it is. A reader that is wider than the standard may pass over some of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// The field `schema` names no doctype.
    NoDoctype,
    Missing,
    /// A key that the standard does not know: perhaps a newer one does.
    UnknownKey,
    /// Not one of the values that the standard lists: perhaps a newer one does.
    UnknownValue,
    Invalid,
}

/// What a value must be.
#[derive(Clone, Copy, Debug)]
enum Shape {
    /// A text of `min` to `max` characters (Unicode scalar values).
    Text {
        min: usize,
        max: usize,
        form: TextForm,
    },
    OneOf(&'static [&'static str]),
    /// A number from 0 to 1.
    Share,
    Flag,
    List {
        items: &'static Shape,
        is_unique: bool,
    },
    Fields(&'static [FieldRule]),
    AnyFields,
}

/// A field of a mapping.
#[derive(Clone, Copy, Debug)]
struct FieldRule {
    name: &'static str,
    is_required: bool,
    shape: Shape,
}

/// Whether a text is a slug: `^[a-z][a-z0-9-]*[a-z0-9]$`, of 2 to 96 characters.
#[must_use]
pub fn is_slug(text: &str) -> bool {
    (2..=96).contains(&text.len()) && TextForm::Slug.accepts(text)
}

/// Finds what the published schema would refuse. No fault means that the frontmatter is valid.
#[must_use]
pub fn find_faults(fields: &RecordFields) -> Vec<SchemaFault> {
    let Some(doctype) = Doctype::read(fields) else {
        return vec![find_doctype_fault(fields)];
    };
    let mut found = FaultList::default();
    found.check_fields(&FieldPath::default(), fields, rules::list_rules(doctype));
    let binds = fields.get("appliesTo").and_then(Value::as_array).is_some_and(|refs| !refs.is_empty());
    if doctype == Doctype::Manifest && binds && !fields.contains_key("extends") {
        let problem = "a manifest with `appliesTo` is a view, and a view extends another manifest";
        let fix = "add `extends` with the path of the wiki's KNOWLEDGE.md, or remove `appliesTo`";
        found.add(FaultKind::Missing, FieldPath::from_key("extends"), problem.to_owned(), fix.to_owned());
    }
    found.faults
}

fn find_doctype_fault(fields: &RecordFields) -> SchemaFault {
    let problem = match fields.get("schema") {
        None => "there is no `schema`".to_owned(),
        Some(value) => format!("{} is not a doctype of AIP-10", show_value(value)),
    };
    let fix = "write `schema: knowledge.entry/v1` for a page, `knowledge.workspace/v1` for a manifest".to_owned();
    SchemaFault { kind: FaultKind::NoDoctype, path: FieldPath::from_key("schema"), problem, fix }
}

#[derive(Default)]
struct FaultList {
    faults: Vec<SchemaFault>,
}

impl FaultList {
    fn add(&mut self, kind: FaultKind, path: FieldPath, problem: String, fix: String) {
        if self.faults.len() < MAX_FAULTS {
            self.faults.push(SchemaFault { kind, path, problem, fix });
        }
    }

    fn check_fields(&mut self, at: &FieldPath, fields: &RecordFields, rules: &[FieldRule]) {
        for rule in rules.iter().filter(|rule| rule.is_required && !fields.contains_key(rule.name)) {
            let fix = format!("add `{}: …`, {}", rule.name, rule.shape.describe());
            self.add(FaultKind::Missing, at.join_key(rule.name), format!("`{}` is missing", rule.name), fix);
        }
        for (name, value) in fields {
            let path = at.join_key(name);
            match rules.iter().find(|rule| rule.name == name) {
                Some(rule) => self.check_value(&path, value, &rule.shape),
                None => {
                    let fix = "remove it, or put what is your own below `metadata`".to_owned();
                    self.add(FaultKind::UnknownKey, path, format!("the standard has no field `{name}` here"), fix);
                }
            }
        }
    }

    fn check_value(&mut self, path: &FieldPath, value: &Value, shape: &Shape) {
        let kind = match (shape, value) {
            (Shape::List { items, is_unique }, Value::Array(list)) => {
                for (position, item) in list.iter().enumerate() {
                    self.check_value(&path.join_item(position), item, items);
                }
                if let Some((position, item)) = find_repeated(list).filter(|_| *is_unique) {
                    let problem = format!("{} stands in the list twice", show_value(item));
                    self.add(FaultKind::Invalid, path.join_item(position), problem, "remove one of the two".to_owned());
                }
                return;
            }
            (Shape::Fields(rules), Value::Object(fields)) => return self.check_fields(path, fields, rules),
            (Shape::OneOf(known), Value::String(text)) if !known.contains(&text.as_str()) => FaultKind::UnknownValue,
            (shape, value) if shape.accepts(value) => return,
            _ => FaultKind::Invalid,
        };
        let fix = format!("write {}", shape.describe());
        self.add(kind, path.clone(), format!("{} is not allowed here", show_value(value)), fix);
    }
}

impl Shape {
    /// Whether a value is accepted that is neither a list nor a mapping of known fields.
    fn accepts(&self, value: &Value) -> bool {
        match (self, value) {
            (Self::Text { min, max, form }, Value::String(text)) => {
                (*min..=*max).contains(&text.chars().count()) && form.accepts(text)
            }
            (Self::OneOf(known), Value::String(text)) => known.contains(&text.as_str()),
            (Self::Share, Value::Number(number)) => number.as_f64().is_some_and(|n| (0.0..=1.0).contains(&n)),
            (Self::Flag, Value::Bool(_)) | (Self::AnyFields, Value::Object(_)) => true,
            _ => false,
        }
    }

    fn describe(&self) -> String {
        match self {
            Self::Text { min, max, form } => {
                let length = match (min, max) {
                    (0, &usize::MAX) => String::new(),
                    (min, max) => format!(" of {min} to {max} characters"),
                };
                format!("{}{length}", form.describe())
            }
            Self::OneOf(known) => format!("one of {}", known.join(", ")),
            Self::Share => "a number from 0 to 1".to_owned(),
            Self::Flag => "true or false".to_owned(),
            Self::List { items, is_unique: false } => format!("a list; each item is {}", items.describe()),
            Self::List { items, is_unique: true } => {
                format!("a list without repetition; each item is {}", items.describe())
            }
            Self::Fields(rules) => {
                let names: Vec<&str> = rules.iter().map(|rule| rule.name).collect();
                format!("a mapping with the fields {}", names.join(", "))
            }
            Self::AnyFields => "a mapping".to_owned(),
        }
    }
}

/// The first item that stands in a list before.
fn find_repeated(list: &[Value]) -> Option<(usize, &Value)> {
    let mut seen = BTreeSet::new();
    list.iter().enumerate().find(|(_, item)| !seen.insert(item.to_string()))
}

/// The value as JSON, shortened.
fn show_value(value: &Value) -> String {
    let shown = value.to_string();
    match shown.char_indices().nth(MAX_SHOWN) {
        Some((end, _)) => format!("`{}…`", &shown[..end]),
        None => format!("`{shown}`"),
    }
}

#[cfg(test)]
mod tests;
