//! The fields of each doctype, with the limits of the published schema.
//!
//! Lengths count characters, as in JSON Schema. A pattern that bounds the length itself needs no limit here.

use super::forms::TextForm;
use super::{Doctype, FieldRule, Shape};

/// How a wiki may resolve contradictions.
pub(in crate::wiki) const CONFLICT_RESOLUTIONS: [&str; 5] =
    ["defer", "recency", "authority", "observation-count", "keep-both"];
/// No limit.
const ANY: usize = usize::MAX;

const fn text(min: usize, max: usize, form: TextForm) -> Shape {
    Shape::Text { min, max, form }
}

const fn required(name: &'static str, shape: Shape) -> FieldRule {
    FieldRule { name, is_required: true, shape }
}

const fn optional(name: &'static str, shape: Shape) -> FieldRule {
    FieldRule { name, is_required: false, shape }
}

const fn list(items: &'static Shape) -> Shape {
    Shape::List { items, is_unique: false }
}

const SCHEMA: FieldRule = required("schema", text(0, ANY, TextForm::Any));
const TITLE: FieldRule = required("title", text(1, 200, TextForm::Any));
const METADATA: FieldRule = optional("metadata", Shape::AnyFields);
const SLUG: Shape = text(0, ANY, TextForm::Slug);
const TAG: Shape = text(0, ANY, TextForm::Word);
const SOURCE_ID: Shape = text(2, 96, TextForm::SourceId);
const AUTHORITIES: Shape = Shape::OneOf(&["primary", "secondary", "rumour"]);
const TYPE_NAME: Shape = text(0, ANY, TextForm::TypeName);

const PAGE: &[FieldRule] = &[
    SCHEMA,
    required("slug", text(2, 96, TextForm::Slug)),
    required("kind", text(2, 32, TextForm::Word)),
    TITLE,
    optional("sources", list(&SOURCE_ID)),
    optional("confidence", Shape::Share),
    required("updated_at", text(0, ANY, TextForm::DateTime)),
    optional("supersedes", list(&SLUG)),
    optional("contradicts", list(&SLUG)),
    optional("links", list(&SLUG)),
    optional("tags", list(&TAG)),
    METADATA,
];

const SOURCE: &[FieldRule] = &[
    SCHEMA,
    required("id", SOURCE_ID),
    required("path", text(0, ANY, TextForm::SourcePath)),
    TITLE,
    required("captured_at", text(0, ANY, TextForm::DateTime)),
    optional("captured_by", text(0, 200, TextForm::Any)),
    required("content_hash", text(0, ANY, TextForm::Hash)),
    optional("authority", AUTHORITIES),
    optional("language", text(0, ANY, TextForm::Language)),
    optional("superseded_by", text(0, ANY, TextForm::SourceId)),
    optional("tags", list(&TAG)),
    METADATA,
];

const ENTITY_TYPE: Shape = Shape::Fields(&[
    required("name", TYPE_NAME),
    optional("fields", list(&text(0, ANY, TextForm::FieldName))),
    optional("icon", text(0, 8, TextForm::Any)),
    optional("description", text(0, 1_000, TextForm::Any)),
    optional("parent", TYPE_NAME),
]);

const LINT: Shape = Shape::Fields(&[
    required("id", text(0, ANY, TextForm::Word)),
    required("kind", Shape::OneOf(&["require-source", "max-age", "min-confidence", "broken-ref", "orphan", "custom"])),
    required("appliesTo", text(0, ANY, TextForm::LintTarget)),
    required("severity", Shape::OneOf(&["error", "warn", "info"])),
    optional("params", Shape::AnyFields),
]);

const SOURCE_POLICY: Shape = Shape::Fields(&[
    optional("retention", text(0, ANY, TextForm::Retention)),
    optional("signing", Shape::OneOf(&["required", "optional", "none"])),
    optional("hashAlgo", Shape::OneOf(&["sha256", "sha512", "blake3"])),
    optional("authorityDefault", AUTHORITIES),
]);

const CURATION: Shape = Shape::Fields(&[
    optional("tone", text(0, 200, TextForm::Any)),
    optional("depth", Shape::OneOf(&["shallow", "medium", "deep"])),
    optional("autoLink", Shape::OneOf(&["byName", "manual", "off"])),
    optional("conflictResolution", Shape::OneOf(&["defer", "recency", "authority", "observation-count", "keep-both"])),
    optional("newEntryThreshold", text(0, 1_000, TextForm::Any)),
]);

const QUERY_HINTS: Shape = Shape::Fields(&[
    optional("preferRecent", Shape::Flag),
    optional("preferAuthoritative", Shape::Flag),
    optional("scopeTo", Shape::List { items: &TYPE_NAME, is_unique: true }),
]);

const DISPLAY: Shape =
    Shape::Fields(&[optional("homePage", SLUG), optional("defaultGrouping", Shape::OneOf(&["kind", "tag", "source"]))]);

const MANIFEST: &[FieldRule] = &[
    SCHEMA,
    required("name", text(2, 96, TextForm::Slug)),
    TITLE,
    required("description", text(1, 2_000, TextForm::Any)),
    required("version", text(0, ANY, TextForm::Version)),
    optional("extends", text(1, 512, TextForm::ManifestPath)),
    optional("appliesTo", Shape::List { items: &text(0, ANY, TextForm::Consumer), is_unique: true }),
    optional("curator", text(0, ANY, TextForm::Operator)),
    optional("governance", text(1, 512, TextForm::Any)),
    optional("entityTypes", list(&ENTITY_TYPE)),
    optional("lints", list(&LINT)),
    optional("sources", SOURCE_POLICY),
    optional("curation", CURATION),
    optional("queryHints", QUERY_HINTS),
    optional("display", DISPLAY),
    METADATA,
];

pub(super) fn list_rules(doctype: Doctype) -> &'static [FieldRule] {
    match doctype {
        Doctype::Page => PAGE,
        Doctype::Source => SOURCE,
        Doctype::Manifest => MANIFEST,
    }
}
