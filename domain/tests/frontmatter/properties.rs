//! Over generated records and edits: only the named lines differ, both parsers
//! agree before and after, and edit plus undo gives the same bytes.

use proptest::prelude::*;
use serde_json::Value;
use steward_domain::record::frontmatter::{
    Document, FieldEdit, FrontmatterError, RecordFields, edit_fields, edit_fields_with_undo, read_document,
    read_document_fast, read_note, read_note_fast, read_own_fields, render_document, undo_fields,
};

use crate::generated::{Wish, any_value, record, wish};

fn with(fields: &RecordFields, field: &str, value: Option<&Value>) -> RecordFields {
    let mut fields = fields.clone();
    match value {
        Some(value) => drop(fields.insert(field.to_owned(), value.clone())),
        None => drop(fields.shift_remove(field)),
    }
    fields
}

/// Below a block text, a field cannot always go: blank lines or indented
/// comments behind it would become part of that text. Only then may an edit be
/// refused.
fn may_refuse(text: &str, change: &FieldEdit, error: &FrontmatterError) -> bool {
    matches!(error, FrontmatterError::Unverified { why, .. } if why.contains("another field"))
        && change.value.is_none()
        && text.contains(['|', '>'])
}

/// Equal fields in equal order.
fn same(doc: &Document, fields: &RecordFields) -> bool {
    doc.fields() == fields && doc.fields().keys().eq(fields.keys())
}

/// Whatever the bytes are: an edit that is made can be taken back exactly.
fn keeps(bytes: &[u8], wish: &Wish) -> Result<(), TestCaseError> {
    let Ok(doc) = read_document(bytes) else { return Ok(()) };
    let change = wish.edit(doc.fields());
    let Ok(edited) = edit_fields_with_undo(bytes, std::slice::from_ref(&change)) else { return Ok(()) };
    let after = read_document(&edited.bytes).unwrap();
    prop_assert!(same(&after, &with(doc.fields(), &change.field, change.value.as_ref())));
    let back = undo_fields(&edited.bytes, &edited.undo).unwrap();
    prop_assert_eq!(String::from_utf8(back).unwrap(), doc.as_str());
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn only_the_lines_of_the_named_field_differ(record in record(), wish in wish()) {
        let (text, ranges) = record.text();
        let doc = read_document(text.as_bytes()).unwrap();
        prop_assert!(doc.fields().keys().eq(record.chunks.iter().map(|chunk| &chunk.name)));
        let change = wish.edit(doc.fields());
        let after = match edit_fields(text.as_bytes(), std::slice::from_ref(&change)) {
            Ok(after) => after,
            Err(error) => {
                prop_assert!(may_refuse(&text, &change, &error), "{error}");
                return Ok(());
            }
        };
        let after = String::from_utf8(after).unwrap();
        let read_back = read_document(after.as_bytes()).unwrap();
        prop_assert!(same(&read_back, &with(doc.fields(), &change.field, change.value.as_ref())));
        prop_assert_eq!(read_back.body(), doc.body());
        let lines = match doc.fields().keys().position(|name| *name == change.field) {
            Some(n) => ranges[n].clone(),
            None => {
                let end = text.len() - doc.body().len();
                let fence = if text[..end].ends_with('\r') || text[..end].ends_with("\r\n") { 5 } else { 4 };
                end - fence..end - fence
            }
        };
        prop_assert!(after.starts_with(&text[..lines.start]), "above: {after:?}");
        prop_assert!(after.ends_with(&text[lines.end..]), "below: {after:?}");
        let new = &after[lines.start..after.len() - (text.len() - lines.end)];
        let crlf = text.contains("---\r\n");
        prop_assert!(!crlf || new.matches('\n').count() == new.matches("\r\n").count(), "{new:?}");
    }

    #[test]
    fn edits_and_their_undo_give_the_same_bytes(
        record in record(),
        wishes in proptest::collection::vec(wish(), 1..6),
    ) {
        let (text, _) = record.text();
        let mut bytes = text.clone().into_bytes();
        let mut all = Vec::new();
        for wish in wishes {
            let doc = read_document(&bytes).unwrap();
            let change = wish.edit(doc.fields());
            let edited = match edit_fields_with_undo(&bytes, std::slice::from_ref(&change)) {
                Ok(edited) => edited,
                Err(error) => {
                    prop_assert!(may_refuse(doc.as_str(), &change, &error), "{error}");
                    continue;
                }
            };
            let back = undo_fields(&edited.bytes, &edited.undo).unwrap();
            prop_assert_eq!(std::str::from_utf8(&back).unwrap(), doc.as_str());
            all.extend(edited.undo);
            bytes = edited.bytes;
        }
        let back = undo_fields(&bytes, &all).unwrap();
        prop_assert_eq!(String::from_utf8(back).unwrap(), text);
    }

    #[test]
    fn an_undo_leaves_a_later_edit_of_another_field_alone(
        record in record(),
        ours in wish(),
        value in any_value(),
        n in any::<usize>(),
    ) {
        let (text, _) = record.text();
        let doc = read_document(text.as_bytes()).unwrap();
        let ours = ours.edit(doc.fields());
        let human = Wish::Set(n, value).edit(doc.fields());
        let removable = ours.value.is_some() || !text.contains(['|', '>']);
        if ours.field == human.field || !doc.fields().contains_key(&human.field) || !removable {
            return Ok(());
        }
        let edited = edit_fields_with_undo(text.as_bytes(), &[ours]).unwrap();
        let both = edit_fields(&edited.bytes, std::slice::from_ref(&human)).unwrap();
        let back = undo_fields(&both, &edited.undo).unwrap();
        let alone = edit_fields(text.as_bytes(), &[human]).unwrap();
        let (back, alone) = (read_document(&back).unwrap(), read_document(&alone).unwrap());
        prop_assert!(same(&back, alone.fields()));
        // A comment that the other edit left between two fields may end up on
        // either side of the one that comes back; no line is lost or changed.
        let lines = |doc: &Document| {
            let mut lines: Vec<_> = doc.as_str().split('\n').map(str::to_owned).collect();
            lines.sort();
            lines
        };
        prop_assert_eq!(lines(&back), lines(&alone));
    }

    #[test]
    fn whatever_is_rendered_reads_back(
        pairs in proptest::collection::vec((any::<String>(), any_value()), 0..8),
        body in any::<String>(),
    ) {
        let fields: RecordFields = pairs.into_iter().collect();
        let body = body.replace('\0', "");
        let text = render_document(&fields, &body);
        let doc = read_document(text.as_bytes()).unwrap();
        let read = read_own_fields(doc.fields());
        prop_assert!(read == fields && read.keys().eq(fields.keys()));
        prop_assert_eq!(doc.body(), body);
        prop_assert_eq!(read_document_fast(text.as_bytes()).unwrap(), doc);
    }

    #[test]
    fn what_we_wrote_is_read_fast_only_where_both_parsers_read_the_same(
        pairs in proptest::collection::vec(("[a-z]{1,3}", any_value()), 1..5),
        slips in proptest::collection::vec((any::<usize>(), "[-:#|>'\"\\[{}\\],? \n0-9a.&*!]{0,2}", 0..3usize), 1..3),
    ) {
        let mut text = render_document(&pairs.into_iter().collect(), "");
        for (at, put, taken) in slips {
            let mut chars: Vec<char> = text.chars().collect();
            let at = at % chars.len();
            chars.splice(at..(at + taken).min(chars.len()), put.chars());
            text = chars.into_iter().collect();
        }
        prop_assert_eq!(read_document_fast(text.as_bytes()), read_document(text.as_bytes()));
        prop_assert_eq!(read_note_fast(text.as_bytes()), read_note(text.as_bytes()));
    }

    #[test]
    fn a_record_with_a_slip_of_the_hand_is_refused_or_kept(
        record in record(),
        slips in proptest::collection::vec((any::<usize>(), "[-:#|>'\"\\[{}\\],? \n\ta&*!]{0,2}", 0..3usize), 1..4),
        wish in wish(),
    ) {
        let (mut text, _) = record.text();
        for (at, put, taken) in slips {
            let mut chars: Vec<char> = text.chars().collect();
            let at = at % chars.len();
            chars.splice(at..(at + taken).min(chars.len()), put.chars());
            text = chars.into_iter().collect();
        }
        prop_assert_eq!(read_document_fast(text.as_bytes()), read_document(text.as_bytes()));
        keeps(text.as_bytes(), &wish)?;
    }

    #[test]
    fn no_bytes_at_all_make_it_panic(
        bytes in any::<Vec<u8>>(),
        yaml in "[-a-c:\\[\\]{}&*!|>'\"# ,?\n\t]{0,60}",
        wish in wish(),
    ) {
        keeps(&bytes, &wish)?;
        keeps(format!("---\n{yaml}\n---\n").as_bytes(), &wish)?;
    }
}
