//! What a month brings, drawn before it begins.
//!
//! Each message gets all its lots at once: whether it is right, how sure it sounds, and how the principal will come to
//! it. So nothing that the steward does changes what comes later, and two modes could be compared on one month. The
//! lots come from `fastrand`'s generator, seeded; nothing else is random.

use super::SimulationOptions;
use super::household::{RELATED_BY, RELATED_IN_30_DAYS, SOURCES, SimulatedSource};
use chrono::{DateTime, TimeDelta, Utc};
use fastrand::Rng;
use std::collections::BTreeMap;
use steward_domain::action::mutation::MutationClass;

/// No message comes in the last three hours but those that stay undecided.
const QUIET_AT_THE_END: TimeDelta = TimeDelta::hours(3);
/// Whatever the principal comes to at all is done two hours before the end; this begins the hour in which the rest
/// of it is done.
const TIDIED_UP: TimeDelta = TimeDelta::hours(2);
const TIDYING_SECONDS: u64 = 3_600;
/// The principal comes to a thing after 2 hours to 2 days.
const COMES_TO_IT_MINUTES: (u64, u64) = (120, 2_880);

/// One message, and what is drawn for it.
#[derive(Clone, Debug)]
pub(super) struct SimulatedMessage {
    /// Counted from 1 in the order of time.
    pub(super) number: u32,
    pub(super) at: DateTime<Utc>,
    pub(super) source: &'static SimulatedSource,
    pub(super) class: MutationClass,
    /// What it proposes is so.
    pub(super) right: bool,
    /// 0 to 1.
    pub(super) target_confidence: f64,
    /// 0 to 1.
    pub(super) effect_confidence: f64,
    /// 0 to 1: below the probability of an error the principal takes right for wrong.
    pub(super) errs: f64,
    /// 0 to 1: below the probability of doing something about it the principal does.
    pub(super) acts: f64,
    /// When the principal comes to it.
    pub(super) reacts_at: DateTime<Utc>,
}

/// Every message of the simulated time, by the moment at which it comes; no two come at one.
pub(super) fn draw_messages(ask: &SimulationOptions) -> Vec<SimulatedMessage> {
    let mut rng = Rng::with_seed(ask.seed);
    let start = ask.now - TimeDelta::days(i64::from(ask.days));
    let last = (ask.now - QUIET_AT_THE_END - start).num_milliseconds();
    let mut drawn: BTreeMap<DateTime<Utc>, SimulatedMessage> = BTreeMap::new();
    let mut add =
        |rng: &mut Rng, at: DateTime<Utc>, (source, class): (&'static SimulatedSource, Option<MutationClass>)| {
            let mut at = at;
            // The moment names the record; the two records of one message lie 2 ms apart.
            while drawn.range(at - TimeDelta::milliseconds(9)..=at + TimeDelta::milliseconds(9)).next().is_some() {
                at += TimeDelta::milliseconds(10);
            }
            let case = draw_message(rng, (source, class), (at, ask.now));
            drawn.insert(at, case);
        };
    for day in 0..ask.days {
        for source in &SOURCES {
            let more = usize::from(rng.f64() < source.per_day.fract());
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "some messages a day")]
            let count = source.per_day as usize + more;
            for _ in 0..count {
                let within = i64::from(day) * 86_400_000 + rng.i64(0..86_400_000);
                add(&mut rng, start + TimeDelta::milliseconds(within.min(last)), (source, None));
            }
        }
    }
    for _ in 0..(RELATED_IN_30_DAYS * ask.days).div_ceil(30) {
        let at = start + TimeDelta::milliseconds(rng.i64(0..last));
        add(&mut rng, at, (&SOURCES[RELATED_BY], Some(MutationClass::Related)));
    }
    let mut cases: Vec<SimulatedMessage> = drawn.into_values().collect();
    (1..).zip(&mut cases).for_each(|(number, case)| case.number = number);
    cases
}

fn draw_message(
    rng: &mut Rng,
    (source, class): (&'static SimulatedSource, Option<MutationClass>),
    (at, end): (DateTime<Utc>, DateTime<Utc>),
) -> SimulatedMessage {
    let lot = rng.f64();
    let (edits, moves) = source.also;
    let drawn = match lot {
        lot if lot < edits => MutationClass::ContextEdit,
        lot if lot < edits + moves => MutationClass::ParentMatter,
        _ => MutationClass::StateChange,
    };
    let sure = |rng: &mut Rng| {
        let (low, high) = source.sure;
        ((low + (high - low) * rng.f64()) * 100.0).round() / 100.0
    };
    let comes = TimeDelta::minutes(rng.u64(COMES_TO_IT_MINUTES.0..COMES_TO_IT_MINUTES.1).cast_signed());
    let tidied = end - TIDIED_UP + TimeDelta::seconds(rng.u64(0..TIDYING_SECONDS).cast_signed());
    SimulatedMessage {
        number: 0,
        at,
        source,
        class: class.unwrap_or(drawn),
        right: rng.f64() < source.reliability,
        target_confidence: sure(rng),
        effect_confidence: sure(rng),
        errs: rng.f64(),
        acts: rng.f64(),
        reacts_at: (at + comes).min(tidied),
    }
}
