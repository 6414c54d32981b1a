//! The form that puts a proposal or a question off for a while, and the one that ends that.
//!
//! A snooze hides what waits about a note. It writes no file and teaches nothing. A new signal about the
//! note ends it.

use super::PageError;
use super::form::DashboardForm;
use crate::access::AuthenticatedCaller;
use crate::api::problem::ProblemDetails;
use crate::http::app::SharedAppState;
use crate::temporal::resolve::extract_hex_digits;
use axum::Extension;
use axum::extract::rejection::FormRejection;
use axum::extract::{Form, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use chrono::{DateTime, Local, NaiveTime, TimeDelta, TimeZone, Utc};
use steward_domain::record::path::RecordPath;

/// The hour of a day at which a snooze until tomorrow ends, on the clock of the vault's machine.
const MORNING: u32 = 6;

pub(crate) async fn snooze_note(
    State(app): State<SharedAppState>,
    Extension(caller): Extension<AuthenticatedCaller>,
    form: Result<Form<DashboardForm>, FormRejection>,
) -> Result<Response, PageError> {
    let form = DashboardForm::verify_form(form, &caller)?;
    let invalid = |detail: &str| PageError::from(ProblemDetails::new(StatusCode::BAD_REQUEST, detail));
    let note = RecordPath::parse(&form.note).map_err(|_| invalid("the form names no note: reload the page"))?;
    if app.views.read().find_note_kind(&note).await?.is_none() {
        return Err(ProblemDetails::new(StatusCode::NOT_FOUND, "there is no such note").into());
    }
    if form.kind == "end" {
        app.end_snooze(&note).await?;
        return Ok(Redirect::to(form.return_url()).into_response());
    }
    let now = Utc::now();
    let Some(until) = choose_end(&form.kind, now, &Local) else {
        return Err(invalid("`kind` must be hour, tomorrow, week or end"));
    };
    app.snooze_note(&note, until, now).await?;
    // The value is the action whose card was put off. The page names it in its message.
    Ok(Redirect::to(&form.return_url_with_result(&extract_hex_digits(&form.value))).into_response())
}

/// The end of a snooze that begins now; `None` for an unknown choice.
fn choose_end(choice: &str, now: DateTime<Utc>, zone: &impl TimeZone) -> Option<DateTime<Utc>> {
    match choice {
        "hour" => Some(now + TimeDelta::hours(1)),
        "tomorrow" => {
            let tomorrow = now.with_timezone(zone).date_naive().succ_opt()?;
            let morning = tomorrow.and_time(NaiveTime::from_hms_opt(MORNING, 0, 0)?);
            // A morning that a change of the clocks leaves out begins an hour later.
            let end = zone.from_local_datetime(&morning).earliest();
            Some(end.map_or(now + TimeDelta::days(1), |end| end.to_utc()))
        }
        "week" => Some(now + TimeDelta::days(7)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::FixedOffset;
    use steward_domain::time;

    #[test]
    fn a_snooze_ends_in_an_hour_tomorrow_morning_or_in_a_week() {
        let now = time::parse("2026-11-21T22:30:00Z").unwrap();
        let end = |choice: &str, hours: i32| {
            let end = choose_end(choice, now, &FixedOffset::east_opt(hours * 3_600).unwrap());
            end.map(time::format_seconds)
        };
        assert_eq!(end("hour", 0).unwrap(), "2026-11-21T23:30:00Z");
        assert_eq!(end("tomorrow", 0).unwrap(), "2026-11-22T06:00:00Z");
        assert_eq!(end("tomorrow", 2).unwrap(), "2026-11-23T04:00:00Z", "there it is the 22nd already");
        assert_eq!(end("week", 0).unwrap(), "2026-11-28T22:30:00Z");
        assert_eq!(end("year", 0), None);
    }
}
