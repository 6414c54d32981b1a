//! Draws all messages of a month before it begins.
//!
//! Each message gets all its random values at once: whether it is right, how confident it is, and when and how the
//! principal reacts. So the steward's actions must not change later messages, and two modes can be compared on one
//! month. All values come from `fastrand`'s seeded generator; nothing else is random.

use super::SimulationOptions;
use super::household::{RELATED_BY, RELATED_IN_30_DAYS, SOURCES, SimulatedSource};
use chrono::{DateTime, TimeDelta, Utc};
use fastrand::Rng;
use std::collections::BTreeMap;
use steward_domain::action::mutation::MutationClass;

/// In the last three hours only those messages come that stay undecided.
const QUIET_AT_THE_END: TimeDelta = TimeDelta::hours(3);
/// Two hours before the end the principal begins to finish all remaining reactions.
const LAST_REACTIONS: TimeDelta = TimeDelta::hours(2);
/// The time for these reactions: 1 h.
const LAST_REACTIONS_SECONDS: u64 = 3_600;
/// The principal reacts after 2 hours to 2 days.
const REACTION_MINUTES: (u64, u64) = (120, 2_880);

/// One message with its random values.
#[derive(Clone, Debug)]
pub(super) struct SimulatedMessage {
    /// Counted from 1 in the order of time.
    pub(super) number: u32,
    pub(super) at: DateTime<Utc>,
    pub(super) source: &'static SimulatedSource,
    pub(super) class: MutationClass,
    /// Whether its proposal is right.
    pub(super) right: bool,
    /// 0 to 1.
    pub(super) target_confidence: f64,
    /// 0 to 1.
    pub(super) effect_confidence: f64,
    /// 0 to 1. Below the probability of an error, the principal mistakes right for wrong.
    pub(super) error_draw: f64,
    /// 0 to 1. Below the probability of a reaction, the principal reacts.
    pub(super) action_draw: f64,
    /// When the principal reacts.
    pub(super) reacts_at: DateTime<Utc>,
}

/// Draws every message of the simulated time, ordered by its moment; no two have the same moment.
pub(super) fn draw_messages(options: &SimulationOptions) -> Vec<SimulatedMessage> {
    let mut rng = Rng::with_seed(options.seed);
    let start = options.now - TimeDelta::days(i64::from(options.days));
    let last = (options.now - QUIET_AT_THE_END - start).num_milliseconds();
    let mut drawn: BTreeMap<DateTime<Utc>, SimulatedMessage> = BTreeMap::new();
    let mut add = |rng: &mut Rng, at: DateTime<Utc>, source: &'static SimulatedSource, class: Option<MutationClass>| {
        let mut at = at;
        // The moment names the record; the two records of one message lie 2 ms apart.
        while drawn.range(at - TimeDelta::milliseconds(9)..=at + TimeDelta::milliseconds(9)).next().is_some() {
            at += TimeDelta::milliseconds(10);
        }
        let message = draw_message(rng, source, class, at, options.now);
        drawn.insert(at, message);
    };
    for day in 0..options.days {
        for source in &SOURCES {
            let more = usize::from(rng.f64() < source.per_day.fract());
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "some messages a day")]
            let count = source.per_day as usize + more;
            for _ in 0..count {
                let within = i64::from(day) * 86_400_000 + rng.i64(0..86_400_000);
                add(&mut rng, start + TimeDelta::milliseconds(within.min(last)), source, None);
            }
        }
    }
    for _ in 0..(RELATED_IN_30_DAYS * options.days).div_ceil(30) {
        let at = start + TimeDelta::milliseconds(rng.i64(0..last));
        add(&mut rng, at, &SOURCES[RELATED_BY], Some(MutationClass::Related));
    }
    let mut messages: Vec<SimulatedMessage> = drawn.into_values().collect();
    (1..).zip(&mut messages).for_each(|(number, message)| message.number = number);
    messages
}

/// Draws one message; `class` replaces the drawn class if given, and `end` is the end of the simulated time.
fn draw_message(
    rng: &mut Rng,
    source: &'static SimulatedSource,
    class: Option<MutationClass>,
    at: DateTime<Utc>,
    end: DateTime<Utc>,
) -> SimulatedMessage {
    let draw = rng.f64();
    let (edits, moves) = source.other_class_shares;
    let drawn = match draw {
        draw if draw < edits => MutationClass::ContextEdit,
        draw if draw < edits + moves => MutationClass::ParentMatter,
        _ => MutationClass::StateChange,
    };
    let draw_confidence = |rng: &mut Rng| {
        let (low, high) = source.confidence_range;
        ((low + (high - low) * rng.f64()) * 100.0).round() / 100.0
    };
    let delay = TimeDelta::minutes(rng.u64(REACTION_MINUTES.0..REACTION_MINUTES.1).cast_signed());
    let latest = end - LAST_REACTIONS + TimeDelta::seconds(rng.u64(0..LAST_REACTIONS_SECONDS).cast_signed());
    SimulatedMessage {
        number: 0,
        at,
        source,
        class: class.unwrap_or(drawn),
        right: rng.f64() < source.reliability,
        target_confidence: draw_confidence(rng),
        effect_confidence: draw_confidence(rng),
        error_draw: rng.f64(),
        action_draw: rng.f64(),
        reacts_at: (at + delay).min(latest),
    }
}
