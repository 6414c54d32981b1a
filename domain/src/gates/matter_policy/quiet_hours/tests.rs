use super::*;
use crate::time;
use chrono::{Offset, TimeZone, Timelike};
use chrono_tz::{TZ_VARIANTS, Tz};
use proptest::prelude::*;
use proptest::sample::select;

fn at(text: &str) -> DateTime<Utc> {
    time::parse(text).unwrap()
}

fn hours(text: &str) -> QuietHours {
    QuietHours::parse(text).unwrap()
}

#[test]
fn quiet_hours_follow_the_clock_of_their_zone_through_summer_and_winter() {
    let berlin = hours("22:00-07:00 Europe/Berlin");
    for (now, until) in [
        ("2026-01-15T20:59:59Z", None),
        ("2026-01-15T21:00:00Z", Some("2026-01-16T06:00:00Z")),
        ("2026-07-15T19:59:59Z", None),
        ("2026-07-15T20:00:00Z", Some("2026-07-16T05:00:00Z")),
        ("2026-07-16T05:00:00Z", None),
        // The night of 29 March has eight hours, and that of 25 October ten.
        ("2026-03-28T21:00:00Z", Some("2026-03-29T05:00:00Z")),
        ("2026-03-29T04:59:59.9Z", Some("2026-03-29T05:00:00Z")),
        ("2026-03-29T05:00:00Z", None),
        ("2026-10-24T20:00:00Z", Some("2026-10-25T06:00:00Z")),
        ("2026-10-25T05:30:00Z", Some("2026-10-25T06:00:00Z")),
        ("2026-10-25T06:00:00Z", None),
    ] {
        assert_eq!(berlin.end_if_active(at(now)), until.map(at), "{now}");
    }
}

#[test]
fn a_time_that_the_clock_skips_or_shows_twice_is_never_less_quiet() {
    for (text, now, until) in [
        // 02:00 is followed by 03:00 at 01:00 UTC, so 02:30 is never shown.
        ("22:00-02:30", "2026-03-29T00:59:59Z", Some("2026-03-29T01:00:00Z")),
        ("22:00-02:30", "2026-03-29T01:00:00Z", None),
        ("02:30-05:00", "2026-03-29T00:59:59Z", None),
        ("02:30-05:00", "2026-03-29T01:00:00Z", Some("2026-03-29T03:00:00Z")),
        ("02:10-02:40", "2026-03-29T01:00:00Z", None),
        // 03:00 is followed by 02:00 at 01:00 UTC, so 02:30 is shown at 00:30 and at 01:30 UTC.
        ("22:00-02:30", "2026-10-25T00:45:00Z", Some("2026-10-25T01:30:00Z")),
        ("22:00-02:30", "2026-10-25T01:30:00Z", None),
        ("02:30-05:00", "2026-10-25T00:29:59Z", None),
        ("02:30-05:00", "2026-10-25T00:30:00Z", Some("2026-10-25T04:00:00Z")),
        ("02:30-05:00", "2026-10-25T01:10:00Z", Some("2026-10-25T04:00:00Z")),
        ("02:10-02:40", "2026-10-25T00:10:00Z", Some("2026-10-25T01:40:00Z")),
        // The pause lies within the hour that is shown twice, so the two stretches join.
        ("02:50-02:20", "2026-10-24T12:00:00Z", Some("2026-10-26T01:20:00Z")),
        ("02:50-02:20", "2026-10-24T00:30:00Z", None),
        // It lies within the hour that is skipped.
        ("02:50-02:20", "2026-03-28T12:00:00Z", Some("2026-03-30T00:20:00Z")),
    ] {
        let until = until.map(at);
        assert_eq!(hours(&format!("{text} Europe/Berlin")).end_if_active(at(now)), until, "{text} at {now}");
    }
    // A minute after midnight the clock was set back into the day before, when midnight had been shown already.
    let night = hours("00:00-01:00 America/St_Johns");
    assert_eq!(night.end_if_active(at("2010-11-07T02:29:59Z")), None);
    for now in ["2010-11-07T02:30:00Z", "2010-11-07T03:01:00Z", "2010-11-07T04:29:59Z"] {
        assert_eq!(night.end_if_active(at(now)), Some(at("2010-11-07T04:30:00Z")), "{now}");
    }
    // Clocks in Samoa skipped the whole of 30 December 2011.
    let apia = hours("22:00-07:00 Pacific/Apia");
    assert_eq!(apia.end_if_active(at("2011-12-30T09:00:00Z")), Some(at("2011-12-30T17:00:00Z")));
}

#[test]
fn zones_are_read_in_any_case_kept_and_shown_by_their_names() {
    for (text, shown) in [
        ("22:00-07:00 europe/berlin", "22:00-07:00 Europe/Berlin"),
        ("22:00-07:00  America/Argentina/Buenos_Aires ", "22:00-07:00 America/Argentina/Buenos_Aires"),
        ("22:00-07:00 +01:00", "22:00-07:00 +01:00"),
        ("22:00-07:00", "22:00-07:00 UTC"),
    ] {
        let read = hours(text);
        assert_eq!(read.to_string(), shown);
        let kept = serde_json::to_string(&read).unwrap();
        assert_eq!(serde_json::from_str::<QuietHours>(&kept).unwrap(), read, "{kept}");
    }
    let earlier = r#"{"from":1320,"to":420,"offset":60}"#;
    assert_eq!(serde_json::from_str::<QuietHours>(earlier).unwrap(), hours("22:00-07:00 +01:00"));
    assert_eq!(hours("22:00-07:00 Europe/Berlin").format_local_time(at("2026-07-01T12:05:00Z")), "14:05 Europe/Berlin");
    for zone in ["Europe/Berlim", "CET", "EST", "Berlin", "Europe/", "Mars/Phobos", "Europe/Berlin Z"] {
        let expected = QuietHoursError::UnknownZone { zone: zone.to_owned() };
        assert_eq!(QuietHours::parse(&format!("22:00-07:00 {zone}")), Err(expected));
    }
}

#[test]
fn an_instant_that_no_calendar_reaches_is_not_quiet_and_no_failure() {
    for now in [DateTime::<Utc>::MIN_UTC, DateTime::<Utc>::MAX_UTC] {
        for zone in ["UTC", "+14:00", "-14:00", "Asia/Tokyo", "America/Adak"] {
            let _ = hours(&format!("22:00-07:00 {zone}")).end_if_active(now);
        }
    }
}

/// Whether the clock shows a time from `from` to `to`, and whether it shows that time twice.
fn read_wall_clock(zone: Tz, from: u16, to: u16, now: DateTime<Utc>) -> (bool, bool) {
    let local = now.with_timezone(&zone).naive_local();
    let minute = u16::try_from(local.hour() * 60 + local.minute()).unwrap();
    let is_quiet = if from < to { (from..to).contains(&minute) } else { minute >= from || minute < to };
    (is_quiet, matches!(zone.from_local_datetime(&local), chrono::MappedLocalTime::Ambiguous(..)))
}

/// The next change of the clock after an instant, within 400 days.
fn find_next_change(zone: Tz, after: DateTime<Utc>) -> Option<DateTime<Utc>> {
    let offset = |at: DateTime<Utc>| zone.offset_from_utc_datetime(&at.naive_utc()).fix();
    let mut day = after;
    while offset(day) == offset(day + TimeDelta::days(1)) {
        day += TimeDelta::days(1);
        if day - after > TimeDelta::days(400) {
            return None;
        }
    }
    let (mut before, mut changed) = (day, day + TimeDelta::days(1));
    while changed - before > TimeDelta::seconds(1) {
        let middle = before + (changed - before) / 2;
        if offset(middle) == offset(day) { before = middle } else { changed = middle }
    }
    Some(changed)
}

prop_compose! {
    /// A zone, and an instant from 1900 to 2099: half of them near a change of the clock there.
    fn zoned_instant()(
        zone in select(TZ_VARIANTS.iter().copied().filter(|zone| zone.name().contains('/')).collect::<Vec<_>>()),
        second in -2_208_988_800_i64..4_102_444_800,
        near in prop::option::of(-10_800_i64..10_800),
    ) -> (Tz, DateTime<Utc>) {
        let now = DateTime::from_timestamp(second, 0).unwrap();
        let change = near.and_then(|near| Some(find_next_change(zone, now)? + TimeDelta::seconds(near)));
        (zone, change.unwrap_or(now))
    }
}

/// A moment at which a clock is set back.
#[derive(Clone, Copy, Debug)]
struct SetBack {
    zone: Tz,
    change: DateTime<Utc>,
    /// How much of the day is shown twice: up to 4 h.
    repeated: TimeDelta,
}

fn set_back() -> impl Strategy<Value = SetBack> {
    zoned_instant().prop_filter_map("the clock is not set back there", |(zone, after)| {
        let change = find_next_change(zone, after)?;
        let clock = |at: DateTime<Utc>| at.with_timezone(&zone).naive_local();
        let second = TimeDelta::seconds(1);
        let repeated = clock(change - second) + second - clock(change);
        let is_short = repeated >= TimeDelta::minutes(1) && repeated <= TimeDelta::hours(4);
        is_short.then_some(SetBack { zone, change, repeated })
    })
}

proptest! {
    #[test]
    fn hours_are_quiet_whenever_the_clock_shows_them_and_end_at_the_first_instant_that_is_not(
        (zone, now) in zoned_instant(), from in 0..DAY, length in 1..DAY, step in 1..3_600_i64,
    ) {
        let to = (from + length) % DAY;
        let written = format!("{}-{} {}", format_clock(from), format_clock(to), zone.name());
        let quiet = hours(&written);
        let is_quiet = |at| quiet.end_if_active(at).is_some();
        let (shown, is_repeated) = read_wall_clock(zone, from, to, now);
        prop_assert!(is_quiet(now) || !shown, "{written} at {now}: less quiet than written");
        prop_assert!(is_repeated || is_quiet(now) == shown, "{written} at {now}");
        if let Some(end) = quiet.end_if_active(now) {
            prop_assert!(end > now && !is_quiet(end), "{written} at {now} ends at {end}");
            prop_assert_eq!(quiet.end_if_active(end - TimeDelta::nanoseconds(1)), Some(end));
            let mut between = now;
            while between < end {
                prop_assert_eq!(quiet.end_if_active(between), Some(end), "{} at {}", written, between);
                between += TimeDelta::seconds(600 + step);
            }
        }
    }

    #[test]
    fn hours_begin_at_the_first_and_end_at_the_last_of_a_time_that_is_shown_twice(
        SetBack { zone, change, repeated } in set_back(), share in 0.0..1.0_f64, length in 1..600_u16,
    ) {
        let later = TimeDelta::minutes((repeated.num_minutes() as f64 * share) as i64);
        let (first, last) = (change + later - repeated, change + later);
        let shown = first.with_timezone(&zone);
        prop_assert_eq!(shown.naive_local(), last.with_timezone(&zone).naive_local());
        prop_assume!(shown.second() == 0);
        let minute = u16::try_from(shown.hour() * 60 + shown.minute()).unwrap();
        let is_quiet = |from: u16, to: u16, at: DateTime<Utc>| {
            let written = format!("{}-{} {}", format_clock(from), format_clock(to), zone.name());
            hours(&written).end_if_active(at).is_some()
        };
        let second = TimeDelta::seconds(1);
        let before = (minute + DAY - length) % DAY;
        prop_assert!(is_quiet(before, minute, first) && is_quiet(before, minute, last - second), "{zone} to {shown}");
        prop_assert!(!is_quiet(before, minute, last), "{zone} to {shown}");
        let after = (minute + length) % DAY;
        prop_assert!(is_quiet(minute, after, first) && is_quiet(minute, after, last - second), "{zone} from {shown}");
        prop_assert!(!is_quiet(minute, after, first - second), "{zone} from {shown}");
    }
}
