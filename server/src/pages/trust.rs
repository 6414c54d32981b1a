//! The page "Trust": which senders may act, what each lacks, and where every limit is set.
//!
//! Its form sets the ceiling of a sender in its instinct. The process that holds the vault judges the cases and writes;
//! a refusal says how many cases are missing. The mode stays the ceiling of everything, and no page raises it.

use super::PageError;
use super::PageFrame;
use super::card::{ActionCard, read_cards};
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
use chrono::{DateTime, TimeDelta, Utc};
use serde::Deserialize;
use steward_domain::action::audit::{ActionKind, UNDO_WINDOW_DAYS};
use steward_domain::action::mutation::MutationClass;
use steward_domain::gates::matter_policy::read;
use steward_domain::gates::mode::{Ceiling, ModeName};
use steward_domain::record::frontmatter;
use steward_domain::record::path::RecordPath;
use steward_domain::trust::report::advice::{EvidenceBar, format_grouped};
use steward_domain::trust::report::readiness::Readiness;
use steward_domain::trust::report::sender::SenderClassTrust;
use steward_vault::index::ActionFilter;
use steward_workflows::{SetCeilingInput, SetCeilingOutput};

/// Senders of a group that are shown at once; the others are folded.
const FIRST: usize = 10;
/// Most senders that are shown; those with the most cases.
const MOST: usize = 50;
/// Settings of senders that are listed; the newest.
const RECENT: u32 = 10;
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

impl SenderCard {
    fn may_act(&self) -> bool {
        self.ceiling == Some(Ceiling::Act)
    }
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
    /// The settings of the last days, which can be undone.
    recent: Vec<ActionCard>,
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
        recent: read_recent_settings(&app, now).await?,
        bar: describe_bar(&bar),
        groups: group_senders(&app, &found, page.mode_name),
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
        ModeName::Watch => "Steward changes nothing now. What you set here counts once you choose another mode.",
        ModeName::Suggest => "Steward asks before it changes a note, unless you let the sender act.",
        ModeName::ActWhenSure => "Steward changes notes when it is very sure, unless you limit the sender.",
        ModeName::Act => "Steward changes notes on its own, unless you limit the sender.",
    };
    format!(
        "Mode: {}. {effect} The mode is the limit of everything, and only STEWARD_LIVE_MODE changes it.",
        mode.as_str()
    )
}

fn describe_bar(bar: &EvidenceBar) -> String {
    let share = bar.precision_at_least * 100.0;
    match bar.cases_at_least {
        Some(cases) => format!(
            "A sender may act once it is nearly certain that at least {share:.0} % of its proposals are right. That takes \
             {} decided proposals if all were right, and more after each wrong one. Only proposals that nothing but this \
             setting holds back count.",
            format_grouped(cases)
        ),
        None => {
            format!("No number of proposals is enough for {share:.0} %: set STEWARD_REVERSAL_BUDGET higher than 0.")
        }
    }
}

fn group_senders(app: &SharedAppState, rows: &[&SenderRow], mode: ModeName) -> Vec<SenderGroup> {
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
        groups[at].senders.push(describe_sender(app, row, mode));
    }
    groups.into_iter().filter(|group| !group.senders.is_empty()).collect()
}

fn describe_sender(app: &SharedAppState, row: &SenderRow, mode: ModeName) -> SenderCard {
    let trust = &row.trust;
    // Only the senders that are shown have their files read.
    let set_in: Vec<String> = row.set_in.iter().map(|path| app.views.locate_key(path, &["ceiling"])).collect();
    let set_in = set_in.join(", ");
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
        status: describe_status(row.ceiling, mode),
        set_in,
        classes: trust.classes.iter().map(describe_class).collect(),
        verdict: describe_verdict(row, mode),
        demotion,
        is_ready: trust.shortfalls.is_empty(),
        ceiling: row.ceiling,
    }
}

/// How far a sender may go in this mode.
fn describe_status(ceiling: Option<Ceiling>, mode: ModeName) -> &'static str {
    match (ceiling, mode) {
        (Some(Ceiling::Act), ModeName::Watch) => "may act once Watch ends",
        (Some(Ceiling::Act), _) => "may act",
        (Some(Ceiling::Confirm), _) => "asks you first",
        (Some(Ceiling::Ask), _) => "only watched",
        (None, ModeName::Watch) => "watched, like every sender in Watch",
        (None, ModeName::Suggest) => "asks you first, like every sender in Suggest",
        (None, ModeName::ActWhenSure | ModeName::Act) => "acts, like every sender in this mode",
    }
}

fn describe_verdict(row: &SenderRow, mode: ModeName) -> String {
    match (row.ceiling, mode) {
        (Some(Ceiling::Act), _) => return "You let it act.".to_owned(),
        // What it lacks is counted from the cases that only its own permission would let through: here there are none.
        (None, ModeName::ActWhenSure | ModeName::Act) => return "The mode lets every sender act.".to_owned(),
        _ => {}
    }
    match row.trust.missing_cases {
        Some(0) if row.trust.shortfalls.is_empty() => "It has earned to act: you can let it.".to_owned(),
        Some(1) => "It needs 1 more right proposal before it may act.".to_owned(),
        Some(missing) if missing > 0 => {
            format!("It needs {} more right proposals before it may act.", format_grouped(missing))
        }
        Some(_) | None => format!("It may not act: {}.", row.trust.shortfalls.join("; ")),
    }
}

/// The changes of a class, as the page calls them.
fn spell_class(class: MutationClass) -> &'static str {
    match class {
        MutationClass::StateChange => "Changes of state",
        MutationClass::ContextEdit => "Edits of text",
        MutationClass::ParentMatter => "Moves of tasks",
        MutationClass::Related => "Related links",
    }
}

fn describe_class(row: &SenderClassTrust) -> String {
    let what = spell_class(row.class);
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
            from: from.unwrap_or_else(|| format!("default; set {variable} to change it")),
        }
    };
    let name = ModeName::from_settings(policy.mode, settings.default_ceiling);
    let mut rows = vec![
        row("Mode", "live_mode", format!("{} ({})", policy.mode.as_str(), name.as_str())),
        row("Senders without a setting", "default_ceiling", spell_limit(settings.default_ceiling)),
        row(
            "Confidence to change a note",
            "confidence_threshold",
            format!("at least {}", format_share(policy.confidence_threshold)),
        ),
        row(
            "The same in Act when sure",
            "high_confidence_threshold",
            format!("at least {}", format_share(policy.high_confidence_threshold)),
        ),
    ];
    for class in MutationClass::ALL {
        let key = format!("{}_ceiling", class.as_str());
        rows.push(row(spell_class(class), &key, spell_limit(policy.class_ceiling(class))));
    }
    rows.push(row("Share of changes that may be wrong", "reversal_budget", format_share(settings.reversal_budget)));
    let budget = format!("fewer than {} in 24 h", settings.live_per_source_day);
    rows.push(row("Changes by one sender", "live_per_source_day", budget));
    rows
}

/// A share as in `5 %` and `57.5 %`.
fn format_share(share: f64) -> String {
    format!("{} %", (share * 1_000.0).round() / 10.0)
}

/// A ceiling as a limit of changes.
fn spell_limit(ceiling: Ceiling) -> String {
    let words = match ceiling {
        Ceiling::Act => "may be made",
        Ceiling::Confirm => "wait for you",
        Ceiling::Ask => "are left to you",
    };
    format!("{words} ({})", ceiling.as_str())
}

/// The newest settings of senders that can still be undone.
async fn read_recent_settings(app: &SharedAppState, now: DateTime<Utc>) -> Result<Vec<ActionCard>, PageError> {
    let since = Some(now - TimeDelta::days(UNDO_WINDOW_DAYS));
    let filter = ActionFilter { since, kinds: vec![ActionKind::CeilingSet], ..ActionFilter::default() };
    let page = app.views.actions().actions_page(&filter, None, RECENT).await?;
    Ok(read_cards(&app.views, page.rows).await?)
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
