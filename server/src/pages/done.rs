//! The message after a form was sent: what was done, and the button that takes it back.
//!
//! The script of the page removes the button after 30 s; on the record it stays. Without script it stays until the next
//! page.

use super::PageError;
use super::card::{ActionCard, read_cards, spell_ceiling};
use super::moment::Moment;
use crate::http::app::SharedAppState;
use chrono::{DateTime, Utc};
use steward_domain::action::audit::ActionKind;
use steward_domain::gates::mode::Ceiling;
use steward_vault::index::ActionRow;

/// What the last form did.
pub(crate) struct DoneNotice {
    pub(crate) text: String,
    /// Until when a card is put off.
    pub(crate) until: Option<Moment>,
    pub(crate) way_back: Option<WayBack>,
}

/// The form that takes the last one back.
pub(crate) struct WayBack {
    pub(crate) path: String,
    /// The `kind` that it sends.
    pub(crate) kind: &'static str,
    pub(crate) label: &'static str,
    /// The note that it is about, for a snooze.
    pub(crate) note: String,
}

impl DoneNotice {
    /// Reads the outcome of the form that was sent last. `id` is the record that it wrote, or the action that it put off;
    /// `None` if there is none.
    pub(crate) async fn read(app: &SharedAppState, id: &str, now: DateTime<Utc>) -> Result<Option<Self>, PageError> {
        if id.is_empty() {
            return Ok(None);
        }
        let Ok(record) = app.views.find_record_path(id).await else { return Ok(None) };
        let Some(row) = app.views.actions().action_by_path(&record).await? else { return Ok(None) };
        let snoozed = app.views.list_snoozes(now).await?;
        let snooze = snoozed.into_iter().find(|snoozed| row.kind == ActionKind::Action && snoozed.note == row.target);
        let Some(card) = read_cards(&app.views, vec![row.clone()]).await?.pop() else { return Ok(None) };
        if let Some(snooze) = snooze {
            let way_back =
                WayBack { path: "/snooze".into(), kind: "end", label: "Show it now", note: snooze.note.to_string() };
            let text = format!("Put off: {}, until", card.title);
            return Ok(Some(Self { text, until: Some(Moment(snooze.until)), way_back: Some(way_back) }));
        }
        let change = card.action.change.as_ref().filter(|_| row.kind == ActionKind::Confirmed);
        let change = change.map(|change| {
            let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "not set".into());
            format!(" ({}: {} → {})", change.field, value(&change.before), value(&change.after))
        });
        let mut status =
            if row.kind == ActionKind::Reopened { "back in your list".into() } else { card.status.clone() };
        if let Some(first) = status.get_mut(..1) {
            first.make_ascii_uppercase();
        }
        let text = match &card.action.sender {
            Some(sender) => describe_setting(app, &sender.key, &card).await?,
            None => format!("{status}: {}{}{}", card.title, change.unwrap_or_default(), describe_effect(&row)),
        };
        let kind = if card.action.undo_until.is_some() { Some(("undo", "Undo")) } else { reopening_of(&row) };
        let way_back = kind.map(|(kind, label)| WayBack {
            path: format!("/actions/{}/resolve", row.id),
            kind,
            label,
            note: String::new(),
        });
        Ok(Some(Self { text, until: None, way_back }))
    }
}

/// How far a sender may go since the last form. Of several instincts the lowest ceiling counts.
async fn describe_setting(app: &SharedAppState, source: &str, card: &ActionCard) -> Result<String, PageError> {
    let now = app.views.find_ceiling(source).await?;
    let effect = match now {
        Some(Ceiling::Act) => "may act from its next message on. What waits already still waits for you",
        Some(Ceiling::Confirm) => "asks you first from now on",
        Some(Ceiling::Ask) => "is only watched from now on",
        None => "has no setting of its own any more",
    };
    let written = card.action.change.as_ref().and_then(|change| change.after.as_deref());
    let other = if written == Some(spell_ceiling(now)) { "" } else { ". Another instinct of it says so" };
    Ok(format!("{} {effect}{other}.", card.title))
}

/// What an undo teaches.
fn describe_effect(row: &ActionRow) -> &'static str {
    if row.kind == ActionKind::Reversed && row.class.is_some() { ". It counts as a wrong change" } else { "" }
}

fn reopening_of(row: &ActionRow) -> Option<(&'static str, &'static str)> {
    (row.kind.can_be_taken_back() && row.resolution.is_none()).then_some(("reopen", "Take it back"))
}
