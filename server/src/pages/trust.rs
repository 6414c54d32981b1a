//! The page "Trust": which senders may act, what each lacks, and where every limit is set.
//!
//! Its form sets the ceiling of a sender in its instinct. The process that holds the vault judges the cases and writes;
//! a refusal says how many cases are missing. The mode stays the ceiling of everything, and no page raises it.

use super::PageError;
use super::PageFrame;
use super::done::DoneNotice;
use super::form::DashboardForm;
use super::moment::{FactValue, Moment};
use super::render_page;
use super::render_refusal;
use crate::access::AuthenticatedCaller;
use crate::api::problem::ProblemDetails;
use crate::http::app::SharedAppState;
use crate::http::settings::DashboardSettings;
use crate::views::senders::{IndexState, SenderRow};
use crate::views::trust::describe_changed_number;
use askama::Template;
use axum::Extension;
use axum::extract::rejection::FormRejection;
use axum::extract::{Form, Query, State};
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Redirect, Response};
use chrono::Utc;
use serde::Deserialize;
use steward_domain::action::mutation::MutationClass;
use steward_domain::gates::matter_policy::read;
use steward_domain::gates::mode::{Ceiling, ModeName};
use steward_domain::record::frontmatter;
use steward_domain::record::path::RecordPath;
use steward_domain::trust::report::advice::{EvidenceBar, format_grouped};
use steward_domain::trust::report::readiness::Readiness;
use steward_domain::trust::report::sender::SenderClassTrust;
use steward_workflows::{SetCeilingInput, SetCeilingOutput};

/// Senders of a group that are shown at once; the others are folded.
const FIRST: usize = 10;
/// Most senders that are shown; those with the most cases.
const MOST: usize = 50;
/// Most matters whose quiet hours are shown.
const MOST_MATTERS: usize = 50;

#[derive(Deserialize)]
pub(crate) struct TrustQuery {
    /// The id of the record that the last form wrote; empty if none was sent.
    #[serde(default)]
    done: String,
    /// Part of a sender's name.
    #[serde(default)]
    q: String,
}

/// One sender, in the words of the page.
struct SenderCard {
    source: String,
    name: String,
    /// How far it may go, and where that is set.
    status: &'static str,
    set_in: String,
    classes: Vec<String>,
    verdict: String,
    demotion: Option<String>,
    is_ready: bool,
    ceiling: Option<Ceiling>,
}

/// Senders that are equally far.
struct SenderGroup {
    id: &'static str,
    title: &'static str,
    senders: Vec<SenderCard>,
}

impl SenderGroup {
    fn first_senders(&self) -> &[SenderCard] {
        &self.senders[..self.senders.len().min(FIRST)]
    }

    fn other_senders(&self) -> &[SenderCard] {
        &self.senders[self.senders.len().min(FIRST)..]
    }
}

/// A setting, its value, and where it is set.
struct SettingRow {
    what: String,
    value: FactValue,
    from: String,
}

#[derive(Template)]
#[template(path = "trust.html")]
struct TrustPage {
    page: PageFrame,
    done: Option<DoneNotice>,
    lead: String,
    q: String,
    bar: String,
    groups: Vec<SenderGroup>,
    more: usize,
    changed_numbers: Vec<String>,
    settings: Vec<SettingRow>,
    quiet: Vec<SettingRow>,
    streams: Vec<SettingRow>,
}

pub(crate) async fn show_trust(
    State(app): State<SharedAppState>,
    Extension(caller): Extension<AuthenticatedCaller>,
    uri: Uri,
    Query(query): Query<TrustQuery>,
) -> Result<Response, PageError> {
    let page = PageFrame::load(&app, &caller, "trust", &uri).await?;
    let now = Utc::now();
    let settings = app.read_settings();
    let state = IndexState { revision: app.revision.borrow().revision, seq: page.seen };
    let rows = app.senders.list_senders(&app.views, &settings.policy, settings.reversal_budget, state).await?;
    let wanted = query.q.trim().to_lowercase();
    let is_wanted = |row: &&SenderRow| {
        row.trust.name.to_lowercase().contains(&wanted) || row.trust.source.to_lowercase().contains(&wanted)
    };
    let found: Vec<&SenderRow> = rows.iter().filter(is_wanted).collect();
    let bar = EvidenceBar::from_budget(settings.reversal_budget);
    Ok(render_page(&TrustPage {
        done: DoneNotice::read(&app, &query.done, now).await?,
        lead: describe_mode(page.mode_name),
        bar: describe_bar(&bar),
        groups: group_senders(&found, settings.default_ceiling),
        more: found.len().saturating_sub(MOST),
        q: query.q,
        changed_numbers: app.views.list_changed_numbers(now).await?.iter().map(describe_changed_number).collect(),
        quiet: list_quiet_hours(&app).await?,
        streams: settings.streams.iter().map(describe_stream).collect(),
        settings: describe_settings(&settings),
        page,
    }))
}

pub(crate) async fn set_ceiling(
    State(app): State<SharedAppState>,
    Extension(caller): Extension<AuthenticatedCaller>,
    form: Result<Form<DashboardForm>, FormRejection>,
) -> Result<Response, PageError> {
    let form = DashboardForm::verify_form(form, &caller)?;
    let ceiling = match form.kind.as_str() {
        "act" => Ceiling::Act,
        "confirm" => Ceiling::Confirm,
        "ask" => Ceiling::Ask,
        _ => {
            let detail = "`kind` must be act, confirm or ask";
            return Err(ProblemDetails::new(StatusCode::BAD_REQUEST, detail).into());
        }
    };
    let input = SetCeilingInput { source: form.value.clone(), ceiling, by: caller.name, at: Utc::now() };
    let back = Some("/trust".to_owned());
    Ok(match app.resolution_client().request_ceiling(input).await {
        Ok(SetCeilingOutput::Set { actions }) => {
            let done = actions.first().map(ToString::to_string).unwrap_or_default();
            Redirect::to(&form.return_url_with_result(&done)).into_response()
        }
        Ok(SetCeilingOutput::Refused { status, message, .. }) => {
            let status = StatusCode::from_u16(status).unwrap_or(StatusCode::CONFLICT);
            render_refusal(&ProblemDetails::new(status, message), back)
        }
        Err(e) => render_refusal(&ProblemDetails::from(e), back),
    })
}

/// What the mode means for the settings of this page.
fn describe_mode(mode: ModeName) -> String {
    let effect = match mode {
        ModeName::Watch => "In Watch nothing is changed, whatever is set here. It holds once the mode opens.",
        ModeName::Suggest => "In Suggest only the senders that you let act change notes on their own.",
        ModeName::ActWhenSure => "In Act when sure a sender without a setting of its own may act too.",
        ModeName::Act => "In Act a sender without a setting of its own may act too.",
    };
    format!("{effect} No page raises the mode: STEWARD_LIVE_MODE is the limit of everything.")
}

fn describe_bar(bar: &EvidenceBar) -> String {
    let share = bar.precision_at_least * 100.0;
    match bar.cases_at_least {
        Some(cases) => format!(
            "A sender may act once at least {} of its proposals were decided, and surely {share:.0} % of them were right. \
             Only proposals count that nothing but its setting holds back.",
            format_grouped(cases)
        ),
        None => format!("No number of cases is enough for {share:.0} %: set STEWARD_REVERSAL_BUDGET higher than 0."),
    }
}

fn group_senders(rows: &[&SenderRow], default_ceiling: Ceiling) -> Vec<SenderGroup> {
    let mut groups = [
        SenderGroup { id: "acting", title: "May act", senders: Vec::new() },
        SenderGroup { id: "ready", title: "Ready", senders: Vec::new() },
        SenderGroup { id: "nearly", title: "Nearly", senders: Vec::new() },
        SenderGroup { id: "early", title: "Too early", senders: Vec::new() },
    ];
    for row in rows.iter().take(MOST) {
        let at = match (row.ceiling, row.trust.readiness) {
            (Some(Ceiling::Act), _) => 0,
            (_, Readiness::Ready) => 1,
            (_, Readiness::Nearly) => 2,
            (_, Readiness::TooEarly) => 3,
        };
        groups[at].senders.push(describe_sender(row, default_ceiling));
    }
    groups.into_iter().filter(|group| !group.senders.is_empty()).collect()
}

fn describe_sender(row: &SenderRow, default_ceiling: Ceiling) -> SenderCard {
    let trust = &row.trust;
    let set_in = if row.set_in.is_empty() { "no setting of its own".to_owned() } else { row.set_in.join(", ") };
    let demotion = row.demoted_to.map(|mode| {
        format!(
            "Held at {} after too many undos, whatever is set here. `steward trust raise {}` ends that.",
            mode.as_str(),
            trust.source
        )
    });
    SenderCard {
        source: trust.source.clone(),
        name: if trust.name.is_empty() { trust.source.clone() } else { trust.name.clone() },
        status: match row.ceiling.unwrap_or(default_ceiling) {
            Ceiling::Act => "may act",
            Ceiling::Confirm => "asks you first",
            Ceiling::Ask => "only watched",
        },
        set_in,
        classes: trust.classes.iter().map(describe_class).collect(),
        verdict: describe_verdict(row),
        demotion,
        is_ready: trust.shortfalls.is_empty(),
        ceiling: row.ceiling,
    }
}

fn describe_verdict(row: &SenderRow) -> String {
    if row.ceiling == Some(Ceiling::Act) {
        return "You let it act.".to_owned();
    }
    match row.trust.missing_cases {
        Some(0) if row.trust.shortfalls.is_empty() => "Its cases support that it acts.".to_owned(),
        Some(1) => "1 more right case is missing before it may act.".to_owned(),
        Some(missing) if missing > 0 => {
            format!("{} more right cases are missing before it may act.", format_grouped(missing))
        }
        Some(_) | None => format!("It may not act: {}.", row.trust.shortfalls.join("; ")),
    }
}

fn describe_class(row: &SenderClassTrust) -> String {
    let what = match row.class {
        MutationClass::StateChange => "Changes of state",
        MutationClass::ContextEdit => "Edits of text",
        MutationClass::ParentMatter => "Moves of tasks",
        MutationClass::Related => "Related links",
    };
    let (right, decided) = (format_grouped(row.tally.agreed), format_grouped(row.tally.decided_count()));
    let open = match row.tally.open {
        0 => String::new(),
        open => format!(", {} not decided", format_grouped(open)),
    };
    let missing = match row.missing_cases {
        Some(0) | None => String::new(),
        Some(missing) => format!("; {} more needed", format_grouped(missing)),
    };
    format!("{what}: {right} of {decided} right{open}{missing}")
}

fn describe_settings(settings: &DashboardSettings) -> Vec<SettingRow> {
    let policy = &settings.policy;
    let row = |what: &str, key: &str, value: String| {
        let variable = format!("STEWARD_{}", key.to_ascii_uppercase());
        let from = settings.origins.get(key).cloned();
        SettingRow {
            what: what.to_owned(),
            value: value.into(),
            from: from.unwrap_or_else(|| format!("default; {variable} sets it")),
        }
    };
    let name = ModeName::from_settings(policy.mode, settings.default_ceiling);
    let mut rows = vec![
        row("Mode", "live_mode", format!("{} ({})", policy.mode.as_str(), name.as_str())),
        row("Senders without a setting", "default_ceiling", settings.default_ceiling.as_str().to_owned()),
        row("Confidence to act", "confidence_threshold", format!("at least {}", policy.confidence_threshold)),
        row(
            "Confidence in Act when sure",
            "high_confidence_threshold",
            format!("at least {}", policy.high_confidence_threshold),
        ),
    ];
    for (class, what) in [
        (MutationClass::StateChange, "Changes of state"),
        (MutationClass::ContextEdit, "Edits of text"),
        (MutationClass::ParentMatter, "Moves of tasks"),
        (MutationClass::Related, "Related links"),
    ] {
        let key = format!("{}_ceiling", class.as_str());
        rows.push(row(what, &key, policy.class_ceiling(class).as_str().to_owned()));
    }
    rows.push(row(
        "Wrong changes that are accepted",
        "reversal_budget",
        format!("{} %", settings.reversal_budget * 100.0),
    ));
    let budget = format!("fewer than {} live changes in 24 h", settings.live_per_source_day);
    rows.push(row("Each sender", "live_per_source_day", budget));
    rows
}

fn describe_stream(stream: &crate::views::streams::ConfiguredStream) -> SettingRow {
    SettingRow { what: stream.name.clone(), value: stream.kind.into(), from: stream.origin.clone() }
}

/// The quiet hours of matters, with the line of the note that sets them.
async fn list_quiet_hours(app: &SharedAppState) -> Result<Vec<SettingRow>, PageError> {
    let (now, mut rows) = (Utc::now(), Vec::new());
    for matter in app.views.list_matters_with_policy().await? {
        let Ok(file) = app.views.root().read_file(&matter) else { continue };
        let Ok(document) = frontmatter::read_document(&file.bytes) else { continue };
        let Some(policy) = read::read_matter_policy(&document).0 else { continue };
        let Some(hours) = policy.quiet_hours else { continue };
        let until = policy.quiet_until(now);
        let value = if until.is_some() { format!("{hours}, now, until") } else { hours.to_string() };
        rows.push(SettingRow {
            what: matter_name(app, &matter).await?,
            value: FactValue { text: value, at: until.map(Moment) },
            from: app.views.locate_key(&matter, &[read::BLOCK, "quiet_hours"]),
        });
        if rows.len() == MOST_MATTERS {
            break;
        }
    }
    Ok(rows)
}

async fn matter_name(app: &SharedAppState, matter: &RecordPath) -> Result<String, PageError> {
    let labels = app.views.read().list_record_labels(std::slice::from_ref(matter)).await?;
    Ok(labels.get(matter).map_or_else(|| matter.to_string(), |label| label.name.clone()))
}
