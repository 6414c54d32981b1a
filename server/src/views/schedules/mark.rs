//! The mark that each schedule of ours carries: a digest of what was written, and whose schedule it is.
//!
//! It is the comment of an excluded calendar that has no ranges and so matches nothing, because a listing shows it and it
//! can be changed. A schedule of a matter names its vault; a schedule of the vault as a whole says where that vault lies
//! too, so that a vault that moves changes a handful of schedules and not thousands.

use serde::Serialize;
use steward_vault::files::identity::{VaultId, VaultPlace};
use temporalio_common::protos::temporal::api::schedule::v1::{ScheduleSpec, StructuredCalendarSpec};

/// How the comment begins.
const BEGINNING: &str = "matches nothing; what Steward wrote: ";
const VAULT: &str = " for vault ";
const PLACE: &str = " at ";

/// What a mark says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ScheduleMark {
    /// A digest of what the schedule should hold.
    pub digest: String,
    /// The vault whose schedule it is; `None` in a mark that names none.
    pub vault: Option<VaultId>,
    /// Where that vault was.
    pub place: Option<VaultPlace>,
}

impl ScheduleMark {
    /// The mark that a specification carries; `None` when there is none, or more than one.
    #[must_use]
    pub fn find_in_spec(spec: Option<&ScheduleSpec>) -> Option<Self> {
        let excluded = &spec?.exclude_structured_calendar;
        let mut marks = excluded.iter().filter_map(|calendar| Self::parse(&calendar.comment));
        let mark = marks.next()?;
        marks.next().is_none().then_some(mark)
    }

    /// Puts the mark into a specification, in place of any older one.
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
        if let Some(place) = self.place.as_ref().and_then(|place| serde_json::to_string(place).ok()) {
            comment.push_str(&format!("{PLACE}{place}"));
        }
        comment
    }

    /// What cannot be read of a mark is as good as missing.
    fn parse(comment: &str) -> Option<Self> {
        let text = comment.strip_prefix(BEGINNING)?;
        let Some((digest, owner)) = text.split_once(VAULT) else {
            return Some(Self { digest: text.to_owned(), vault: None, place: None });
        };
        let (vault, place) = match owner.split_once(PLACE) {
            Some((vault, place)) => (vault, serde_json::from_str(place).ok()),
            None => (owner, None),
        };
        Some(Self { digest: digest.to_owned(), vault: vault.parse().ok(), place })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vault() -> VaultId {
        "6f2c1a2e-8d3b-4c5f-9a7e-0123456789ab".parse().unwrap()
    }

    #[test]
    fn a_mark_says_again_what_was_put_into_it() {
        let place =
            VaultPlace { folder: "/a at b for vault \"c\"\u{202e}\n".into(), host: "h".into(), file: "1-2.3".into() };
        for place in [None, Some(place)] {
            for vault in [None, Some(vault())].into_iter().filter(|vault| vault.is_some() || place.is_none()) {
                let mark = ScheduleMark { digest: "00ff".into(), vault, place: place.clone() };
                let mut spec = ScheduleSpec::default();
                mark.write_into_spec(&mut spec);
                mark.write_into_spec(&mut spec);
                assert_eq!(spec.exclude_structured_calendar.len(), 1);
                assert_eq!(ScheduleMark::find_in_spec(Some(&spec)), Some(mark));
            }
        }
        assert_eq!(ScheduleMark::find_in_spec(Some(&ScheduleSpec::default())), None);
    }

    #[test]
    fn a_mark_that_somebody_damaged_names_no_vault() {
        let marked = |rest: &str| ScheduleMark::parse(&format!("{BEGINNING}00ff{rest}")).unwrap();
        for rest in [" for vault x", " for vault ", " for vault x at {}"] {
            assert_eq!(marked(rest), ScheduleMark { digest: "00ff".into(), vault: None, place: None });
        }
        let whole = format!(" for vault {} at nowhere", vault());
        assert_eq!(marked(&whole), ScheduleMark { digest: "00ff".into(), vault: Some(vault()), place: None });
        assert_eq!(ScheduleMark::parse("no Sundays"), None);
    }
}
