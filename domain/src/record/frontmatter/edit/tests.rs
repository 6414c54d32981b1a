//! The verification catches edits that do something else than they claim.

use serde_json::{Value, json};

use super::FieldEditClaim;
use super::TextSplice;
use super::verify_edit;
use crate::record::frontmatter::{Document, FrontmatterError, read_document};

const RECORD: &str = "---\na: 1\nstate: open\nz: [1, 2]\n---\nbody\n";
/// The line of `state` in the YAML text.
const LINE: std::ops::Range<usize> = 5..17;

fn attempt(claimed: std::ops::Range<usize>, splices: Vec<TextSplice>) -> Result<Document, String> {
    let doc = read_document(RECORD.as_bytes()).unwrap();
    let value = json!("done");
    let claim = FieldEditClaim { field: "state", value: Some(&value), range: claimed, splices };
    verify_edit(&doc, claim).map_err(|error| match error {
        FrontmatterError::Unverified { field, why } if field == "state" => why,
        other => panic!("{other}"),
    })
}

fn splice(range: std::ops::Range<usize>, text: &str) -> TextSplice {
    TextSplice { range, text: text.to_owned() }
}

#[test]
fn a_right_edit_passes() {
    let doc = attempt(LINE, vec![splice(12..16, "done")]).unwrap();
    assert_eq!(doc.as_str(), RECORD.replace("open", "done"));
}

#[test]
fn a_range_beyond_the_field_is_caught() {
    for range in [0..16, 4..16, 12..18, 12..21, 3..4] {
        let why = attempt(LINE, vec![splice(range, "done")]).unwrap_err();
        assert!(why.contains("beyond the lines of the field"), "{why}");
    }
}

#[test]
fn a_wrong_range_within_the_field_is_caught() {
    for range in [11..16, 12..15, 13..16, 12..17, 5..16, 10..16, 12..12] {
        assert!(attempt(LINE, vec![splice(range.clone(), "done")]).is_err(), "{range:?}");
    }
}

#[test]
fn a_text_that_reaches_into_other_fields_is_caught() {
    for text in ["done\nz: 3", "done\na: 2", "done\nnew: 1", "done\n---\nx: 1", "done #", "\"done", "done\n  "] {
        let outcome = attempt(LINE, vec![splice(12..16, text)]);
        let harmless = text == "done #" || text == "done\n  ";
        assert_eq!(outcome.is_ok(), harmless, "{text:?}");
    }
}

#[test]
fn a_claim_on_the_lines_of_others_is_caught() {
    for text in ["a: 2\nstate: done\n", "state: done\na: 1\n", "state: done\n"] {
        let why = attempt(0..17, vec![splice(0..17, text)]).unwrap_err();
        assert!(why.contains("lines of other fields would change"), "{why}");
    }
}

#[test]
fn a_change_of_a_comment_outside_the_field_is_caught() {
    let doc = read_document(b"---\nstate: open\n# mine\n---\n").unwrap();
    let value = json!("done");
    let splices = vec![splice(0..19, "state: done\n")];
    let claim = FieldEditClaim { field: "state", value: Some(&value), range: 0..12, splices };
    assert!(verify_edit(&doc, claim).is_err());
}

#[test]
fn overlapping_replacements_are_caught() {
    let why = attempt(LINE, vec![splice(12..16, "done"), splice(14..16, "x")]).unwrap_err();
    assert!(why.contains("contradicts itself"), "{why}");
}

#[test]
fn a_value_that_reads_back_otherwise_is_caught() {
    for text in ["Done", "'done '", "1", "null", "[done]"] {
        let why = attempt(LINE, vec![splice(12..16, text)]).unwrap_err();
        assert!(why.contains("not read back as the wanted value"), "{text}: {why}");
    }
    let doc = read_document(RECORD.as_bytes()).unwrap();
    let claim = FieldEditClaim { field: "state", value: None::<&Value>, range: LINE, splices: Vec::new() };
    assert!(verify_edit(&doc, claim).is_err(), "a removal that removed nothing");
}
