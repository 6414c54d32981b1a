//! Measures a verifier: faults are planted into copies of claims, and the verifier must find them.
//!
//! Each kind of fault changes the words of a statement by a fixed rule, or gives it another claim's quotes. The copies are mixed
//! with claims as they stand, so that a verifier which refuses everything is found out, too. Nothing of a wiki is changed. That a
//! claim which stands is supported is an assumption: a person who looks at the false alarms may find that the verifier is right.

use super::verifier::{ClaimCheck, ClaimVerdict, Support};
use crate::action::plan::ContentHash;
use crate::steward::clerk::TokenUsage;
use crate::trust::wilson::RateEstimate;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use strum::IntoEnumIterator;

/// The fewest and the most claims of a measurement. Each gets at most [`FAULTS_PER_CLAIM`] copies.
pub const MIN_CLAIMS: usize = 2;
pub const MAX_CLAIMS: usize = 200;
/// The copies of one claim.
const FAULTS_PER_CLAIM: usize = 3;

/// What is wrong with a copy.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    strum::Display,
    strum::EnumString,
    strum::EnumIter,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum PlantedFault {
    /// Another number.
    SwappedNumber,
    /// Another month.
    ChangedDate,
    /// A "not" more or less.
    Negation,
    /// The quotes of another claim.
    WrongSource,
    /// It holds in every case.
    WidenedClaim,
    /// Without its "may", "about" or "at most".
    DroppedHedge,
    /// Two names have changed places.
    SwappedNames,
    /// With a command that no source has.
    InventedCommand,
    /// With a reason that no source has.
    InventedCause,
    /// Somebody is said to have said it.
    InventedSpeaker,
    /// "Before" for "after", "more" for "less".
    ReversedOrder,
    /// Another unit or currency.
    OtherUnit,
}

/// A claim that the verifier is asked about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlantedCase {
    pub check: ClaimCheck,
    /// `None` for a claim as it stands.
    pub fault: Option<PlantedFault>,
}

/// How a verifier did, for one kind of fault.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FaultScore {
    pub fault: PlantedFault,
    pub planted: u64,
    pub found: u64,
}

/// What a measurement came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlantedReport {
    /// 8 hex digits.
    pub id: String,
    /// The name of the wiki.
    pub wiki: String,
    pub at: DateTime<Utc>,
    /// The person's name, as they gave it.
    pub by: String,
    /// The verifier, as in `openai/gpt-4.1`.
    pub model: String,
    /// In the order of the kinds; those that no claim allowed are left out.
    pub faults: Vec<FaultScore>,
    /// Claims as they stand, and how many of them the verifier refused.
    pub clean: u64,
    pub refused: u64,
    pub tokens: TokenUsage,
}

impl PlantedReport {
    /// The share of the planted faults that were found, of all kinds together.
    #[must_use]
    pub fn recall(&self) -> RateEstimate {
        let sum = |count: fn(&FaultScore) -> u64| self.faults.iter().map(count).sum();
        RateEstimate::new(sum(|score| score.found), sum(|score| score.planted))
    }

    /// The share of the claims as they stand that were refused.
    #[must_use]
    pub fn false_alarms(&self) -> RateEstimate {
        RateEstimate::new(self.refused, self.clean)
    }
}

/// The cases of a measurement: claims as they stand and copies with faults, mixed. The same claims and seed give the same cases.
/// At most so many claims are taken.
#[must_use]
pub fn plant_faults(checks: &[ClaimCheck], claims: usize, seed: &str) -> Vec<PlantedCase> {
    let order = |text: &str| ContentHash::hash_bytes(format!("{seed}\0{text}").as_bytes());
    let mut chosen: Vec<&ClaimCheck> = checks.iter().filter(|check| !check.context.is_empty()).collect();
    chosen.sort_by_cached_key(|check| order(&check.id));
    chosen.truncate(claims);
    let kinds: Vec<PlantedFault> = PlantedFault::iter().collect();
    let mut cases: Vec<PlantedCase> = Vec::new();
    for (at, check) in chosen.iter().enumerate() {
        cases.push(PlantedCase { check: (*check).clone(), fault: None });
        // Each claim begins with another kind, so that all kinds get about as many cases.
        let turned = kinds.iter().cycle().skip(at * FAULTS_PER_CLAIM).take(kinds.len());
        let planted = turned.filter_map(|fault| {
            let check = plant(check, &chosen, *fault)?;
            Some(PlantedCase { check, fault: Some(*fault) })
        });
        cases.extend(planted.take(FAULTS_PER_CLAIM));
    }
    cases.sort_by_cached_key(|case| order(&format!("{}\0{:?}", case.check.id, case.fault)));
    for (at, case) in cases.iter_mut().enumerate() {
        // The name of a claim would give its copies away.
        case.check.id = format!("claim-{}", at + 1);
    }
    cases
}

/// Counts what the verifier found.
#[must_use]
pub fn score_cases(cases: &[PlantedCase], verdicts: &[ClaimVerdict]) -> (Vec<FaultScore>, u64, u64) {
    let by_check: BTreeMap<&str, Support> =
        verdicts.iter().map(|verdict| (verdict.check_sha256.as_str(), verdict.support)).collect();
    let (mut scores, mut clean, mut refused): (BTreeMap<PlantedFault, FaultScore>, u64, u64) = Default::default();
    for case in cases {
        let Some(support) = by_check.get(case.check.hash().as_str()) else { continue };
        let is_refused = u64::from(*support != Support::Supports);
        match case.fault {
            None => (clean, refused) = (clean + 1, refused + is_refused),
            Some(fault) => {
                let score = scores.entry(fault).or_insert(FaultScore { fault, planted: 0, found: 0 });
                score.planted += 1;
                score.found += is_refused;
            }
        }
    }
    (scores.into_values().collect(), clean, refused)
}

/// A copy of a claim with a fault; `None` if its words do not allow this kind.
fn plant(check: &ClaimCheck, all: &[&ClaimCheck], fault: PlantedFault) -> Option<ClaimCheck> {
    let text = check.statement.as_str();
    let statement = match fault {
        PlantedFault::WrongSource => {
            let other = all.iter().find(|other| other.quotes != check.quotes && other.statement != check.statement)?;
            return Some(ClaimCheck { quotes: other.quotes.clone(), context: other.context.clone(), ..check.clone() });
        }
        PlantedFault::SwappedNumber => swap_number(text)?,
        PlantedFault::ChangedDate => replace_first(text, &MONTHS)?,
        PlantedFault::Negation => negate(text)?,
        PlantedFault::WidenedClaim => append(text, ", in every case and without exception")?,
        PlantedFault::DroppedHedge => replace_first(text, &HEDGES)?,
        PlantedFault::SwappedNames => swap_names(text)?,
        PlantedFault::InventedCommand => format!("{} Run `reset --force` before that.", text.trim_end()),
        PlantedFault::InventedCause => append(text, ", because the rules were changed last year")?,
        PlantedFault::InventedSpeaker => format!("According to the mayor: {text}"),
        PlantedFault::ReversedOrder => replace_first(text, &ORDERS)?,
        PlantedFault::OtherUnit => replace_first(text, &UNITS)?,
    };
    Some(ClaimCheck { statement, ..check.clone() })
}

const MONTHS: [(&str, &str); 12] = [
    ("January", "June"),
    ("February", "September"),
    ("March", "November"),
    ("April", "December"),
    ("May", "October"),
    ("June", "January"),
    ("July", "February"),
    ("August", "April"),
    ("September", "March"),
    ("October", "July"),
    ("November", "May"),
    ("December", "August"),
];
const HEDGES: [(&str, &str); 9] = [
    ("may", "will"),
    ("might", "will"),
    ("about", "exactly"),
    ("probably", "certainly"),
    ("usually", "always"),
    ("often", "always"),
    ("some", "all"),
    ("at most", "exactly"),
    ("at least", "exactly"),
];
const ORDERS: [(&str, &str); 10] = [
    ("before", "after"),
    ("after", "before"),
    ("more", "less"),
    ("less", "more"),
    ("first", "last"),
    ("last", "first"),
    ("rises", "falls"),
    ("begins", "ends"),
    ("ends", "begins"),
    ("extends", "shortens"),
];
const UNITS: [(&str, &str); 12] = [
    ("pounds", "euros"),
    ("dollars", "pounds"),
    ("euros", "dollars"),
    ("metres", "feet"),
    ("kilometres", "miles"),
    ("hours", "days"),
    ("days", "weeks"),
    ("weeks", "months"),
    ("months", "years"),
    ("year", "month"),
    ("years", "months"),
    ("percent", "per mille"),
];

/// The text with the first of these words, as a word of its own, in the place of another.
fn replace_first(text: &str, pairs: &[(&str, &str)]) -> Option<String> {
    let is_edge = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric());
    pairs.iter().find_map(|(from, to)| {
        let at = text
            .match_indices(from)
            .map(|(at, _)| at)
            .find(|at| is_edge(text[..*at].chars().next_back()) && is_edge(text[at + from.len()..].chars().next()))?;
        Some(format!("{}{to}{}", &text[..at], &text[at + from.len()..]))
    })
}

/// The text with more words before its last full stop.
fn append(text: &str, words: &str) -> Option<String> {
    let whole = text.trim_end();
    let stem = whole.trim_end_matches('.');
    stem.ends_with(char::is_alphanumeric).then(|| format!("{stem}{words}."))
}

fn swap_number(text: &str) -> Option<String> {
    let begin = text.find(|c: char| c.is_ascii_digit())?;
    let length = text[begin..].find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len() - begin);
    let number: u64 = text[begin..begin + length].parse().ok()?;
    Some(format!("{}{}{}", &text[..begin], number.saturating_mul(2).saturating_add(3), &text[begin + length..]))
}

fn negate(text: &str) -> Option<String> {
    if let Some((before, after)) = text.split_once(" not ") {
        return Some(format!("{before} {after}"));
    }
    const VERBS: [(&str, &str); 9] = [
        ("is", "is not"),
        ("are", "are not"),
        ("was", "was not"),
        ("were", "were not"),
        ("can", "cannot"),
        ("may", "may not"),
        ("must", "must not"),
        ("will", "will not"),
        ("has", "has not"),
    ];
    replace_first(text, &VERBS)
}

/// The text with its first two different names of two letters or more, which do not begin it, in each other's place.
fn swap_names(text: &str) -> Option<String> {
    let words: Vec<&str> = text.split(' ').collect();
    let is_name = |word: &&str| {
        word.chars().count() > 1 && word.chars().all(char::is_alphabetic) && word.starts_with(char::is_uppercase)
    };
    let mut names = words.iter().enumerate().skip(1).filter(|(_, word)| is_name(word));
    let (first, one) = names.next()?;
    let (second, other) = names.find(|(_, other)| other != &one)?;
    let mut swapped = words.clone();
    swapped[first] = other;
    swapped[second] = one;
    Some(swapped.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(id: &str, statement: &str, quote: &str) -> ClaimCheck {
        ClaimCheck {
            id: id.into(),
            page: "Plot 12".into(),
            heading: String::new(),
            statement: statement.into(),
            quotes: vec![quote.into()],
            context: vec![quote.into()],
            file: "entities/plot-12.md".into(),
            statement_sha256: String::new(),
        }
    }

    #[test]
    fn each_kind_changes_what_it_says_and_nothing_else() {
        use PlantedFault::*;
        let text = "The lease of Nora and Idris may end before 31 March 2027 and is 64 pounds.";
        let (one, other) = (check("a", text, "one quote"), check("b", "Other.", "another quote"));
        let all = [&one, &other];
        for (fault, expected) in [
            (SwappedNumber, "The lease of Nora and Idris may end before 65 March 2027 and is 64 pounds."),
            (ChangedDate, "The lease of Nora and Idris may end before 31 November 2027 and is 64 pounds."),
            (Negation, "The lease of Nora and Idris may end before 31 March 2027 and is not 64 pounds."),
            (WrongSource, text),
            (
                WidenedClaim,
                "The lease of Nora and Idris may end before 31 March 2027 and is 64 pounds, in every case and without exception.",
            ),
            (DroppedHedge, "The lease of Nora and Idris will end before 31 March 2027 and is 64 pounds."),
            (SwappedNames, "The lease of Idris and Nora may end before 31 March 2027 and is 64 pounds."),
            (ReversedOrder, "The lease of Nora and Idris may end after 31 March 2027 and is 64 pounds."),
            (OtherUnit, "The lease of Nora and Idris may end before 31 March 2027 and is 64 euros."),
        ] {
            let planted = plant(&one, &all, fault).unwrap();
            assert_eq!(planted.statement, expected, "{fault}");
            assert_eq!(planted.quotes == one.quotes, fault != WrongSource);
        }
        for fault in PlantedFault::iter() {
            assert_ne!(plant(&one, &all, fault), Some(one.clone()), "{fault}");
        }
        let short = check("c", "It mays.", "q");
        for fault in [SwappedNumber, ChangedDate, Negation, DroppedHedge, SwappedNames, ReversedOrder, OtherUnit] {
            assert_eq!(plant(&short, &[&short], fault), None, "{fault}");
        }
    }

    #[test]
    fn claims_and_their_copies_are_mixed_the_same_way_each_time_and_counted() {
        let checks: Vec<ClaimCheck> = (0..30)
            .map(|n| check(&format!("p#{n}"), &format!("Plot {n} is 64 metres long."), &format!("quote {n}")))
            .collect();
        let cases = plant_faults(&checks, 10, "seed");
        assert_eq!(cases, plant_faults(&checks, 10, "seed"));
        assert_ne!(cases, plant_faults(&checks, 10, "other"));
        let clean = cases.iter().filter(|case| case.fault.is_none()).count();
        assert_eq!((clean, cases.len()), (10, 40));
        assert!(cases.iter().all(|case| case.check.id.starts_with("claim-")));
        // A verifier that refuses whatever has a number other than the one that stands.
        let verdict = |case: &PlantedCase| ClaimVerdict {
            claim: case.check.id.clone(),
            statement_sha256: String::new(),
            check_sha256: case.check.hash(),
            support: if case.fault == Some(PlantedFault::SwappedNumber) {
                Support::DoesNotSupport
            } else {
                Support::Supports
            },
            reason: String::new(),
        };
        let verdicts: Vec<ClaimVerdict> = cases.iter().map(verdict).collect();
        let (scores, clean, refused) = score_cases(&cases, &verdicts);
        assert_eq!((clean, refused), (10, 0));
        assert!(
            scores
                .iter()
                .all(|score| score.found == if score.fault == PlantedFault::SwappedNumber { score.planted } else { 0 })
        );
        assert_eq!(scores.iter().map(|score| score.planted).sum::<u64>(), 30);
        assert_eq!(score_cases(&cases, &[]), (vec![], 0, 0), "what was not answered does not count");
    }
}
