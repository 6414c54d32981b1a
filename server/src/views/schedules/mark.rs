//! The mark that each Steward schedule carries: a digest of what was written, and the vault that it belongs to.
//!
//! The mark is the comment of an excluded calendar without ranges, which matches nothing. This place was chosen because
//! a listing shows it and it can be changed. A matter's schedule names its vault. A schedule of the whole vault also
//! says where the vault is, so that moving a vault changes a few schedules and not thousands.

use serde::Serialize;
use steward_domain::record::path::RecordPath;
use steward_vault::files::identity::{VaultId, VaultPlace};
use temporalio_common::protos::temporal::api::schedule::v1::{ScheduleSpec, StructuredCalendarSpec};

/// The beginning of the comment.
const BEGINNING: &str = "matches nothing; what Steward wrote: ";
const VAULT: &str = " for vault ";
const PLACE: &str = " at ";
const MATTER: &str = " of ";

/// The content of a mark.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ScheduleMark {
    /// A digest of what the schedule should contain.
    pub digest: String,
    /// The vault of the schedule; `None` if the mark names none.
    pub vault: Option<VaultId>,
    /// Where that vault was when the mark was written.
    pub place: Option<VaultPlace>,
    /// The matter of the schedule, as in its argument, which a listing does not show.
    pub matter: Option<RecordPath>,
}

impl ScheduleMark {
    /// Finds the mark in a specification; `None` when there is none or more than one.
    #[must_use]
    pub fn find_in_spec(spec: Option<&ScheduleSpec>) -> Option<Self> {
        let excluded = &spec?.exclude_structured_calendar;
        let mut marks = excluded.iter().filter_map(|calendar| Self::parse(&calendar.comment));
        let mark = marks.next()?;
        marks.next().is_none().then_some(mark)
    }

    /// Writes the mark into a specification and removes any older one.
    pub fn write_into_spec(&self, spec: &mut ScheduleSpec) {
        let excluded = &mut spec.exclude_structured_calendar;
        excluded.retain(|calendar| !calendar.comment.starts_with(BEGINNING));
        excluded.push(StructuredCalendarSpec { comment: self.to_comment(), ..Default::default() });
    }

    fn to_comment(&self) -> String {
        let mut comment = format!("{BEGINNING}{}", self.digest);
        if let Some(vault) = self.vault {
            comment.push_str(&format!("{VAULT}{vault}"));
        }
        if let Some(matter) = self.matter.as_ref().and_then(|matter| serde_json::to_string(matter).ok()) {
            comment.push_str(&format!("{MATTER}{matter}"));
        }
        if let Some(place) = self.place.as_ref().and_then(|place| serde_json::to_string(place).ok()) {
            comment.push_str(&format!("{PLACE}{place}"));
        }
        comment
    }

    /// Parses a comment. An unreadable part of a mark counts as missing.
    fn parse(comment: &str) -> Option<Self> {
        let text = comment.strip_prefix(BEGINNING)?;
        let (mut head, mut place, mut matter) = (text, None, None);
        // A mark names a place or a matter, never both. The first one begins what is left.
        match (text.find(PLACE), text.find(MATTER)) {
            (Some(at), of) if of.is_none_or(|of| at < of) => {
                (head, place) = (&text[..at], serde_json::from_str(&text[at + PLACE.len()..]).ok());
            }
            (_, Some(of)) => (head, matter) = (&text[..of], serde_json::from_str(&text[of + MATTER.len()..]).ok()),
            (_, None) => {}
        }
        let (digest, vault) =
            head.split_once(VAULT).map_or((head, None), |(digest, vault)| (digest, vault.parse().ok()));
        Some(Self { digest: digest.to_owned(), vault, place, matter })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vault() -> VaultId {
        "6f2c1a2e-8d3b-4c5f-9a7e-0123456789ab".parse().unwrap()
    }

    #[test]
    fn a_mark_is_read_as_it_was_written() {
        let place =
            VaultPlace { folder: "/a at b for vault \"c\"\u{202e}\n".into(), host: "h".into(), file: "1-2.3".into() };
        for place in [None, Some(place)] {
            for vault in [None, Some(vault())].into_iter().filter(|vault| vault.is_some() || place.is_none()) {
                let mark = ScheduleMark { digest: "00ff".into(), vault, place: place.clone(), matter: None };
                let mut spec = ScheduleSpec::default();
                mark.write_into_spec(&mut spec);
                mark.write_into_spec(&mut spec);
                assert_eq!(spec.exclude_structured_calendar.len(), 1);
                assert_eq!(ScheduleMark::find_in_spec(Some(&spec)), Some(mark));
            }
        }
        for (matter, vault) in [("matter/a.md", None), ("a of \"b\" at c for vault d.md", Some(vault()))] {
            let matter = Some(RecordPath::parse(matter).unwrap());
            let mark = ScheduleMark { digest: "00ff".into(), vault, place: None, matter };
            let mut spec = ScheduleSpec::default();
            mark.write_into_spec(&mut spec);
            assert_eq!(ScheduleMark::find_in_spec(Some(&spec)), Some(mark));
        }
        assert_eq!(ScheduleMark::find_in_spec(Some(&ScheduleSpec::default())), None);
    }

    #[test]
    fn a_damaged_mark_names_no_vault() {
        let marked = |rest: &str| ScheduleMark::parse(&format!("{BEGINNING}00ff{rest}")).unwrap();
        for rest in [" for vault x", " for vault ", " for vault x at {}"] {
            assert_eq!(marked(rest), ScheduleMark { digest: "00ff".into(), vault: None, place: None, matter: None });
        }
        let complete = format!(" for vault {} at nowhere", vault());
        assert_eq!(
            marked(&complete),
            ScheduleMark { digest: "00ff".into(), vault: Some(vault()), place: None, matter: None }
        );
        assert_eq!(ScheduleMark::parse("no Sundays"), None);
    }
}
