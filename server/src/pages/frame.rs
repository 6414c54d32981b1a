//! The header and footer of every page: who looks at it, the mode, a stop, and how much waits.
//!
//! It is loaded before the content of a page, so that records that arrive meanwhile are announced as new.

use super::PageError;
use super::assets::{self, AssetUrls};
use super::card::ActionCard;
use super::live;
use super::moment::WrittenMoment;
use crate::access::{AccessScope, AuthenticatedCaller, CallerProof};
use crate::http::app::SharedAppState;
use axum::http::Uri;
use chrono::Utc;
use steward_domain::gates::mode::ModeName;
use steward_vault::gates::stop;
use steward_vault::index::ActionFilter;
use steward_vault::wiki::create::list_wikis;

/// The header and footer of every page.
pub(crate) struct PageFrame {
    pub(super) assets: &'static AssetUrls,
    /// The navigation entry to highlight; empty for a page that is not in the navigation.
    pub(super) tab: &'static str,
    /// Path and query of this page, so that a form can return to it.
    pub(super) path: String,
    pub(super) caller: String,
    pub(super) form_key: String,
    pub(super) may_act: bool,
    pub(super) may_operate: bool,
    /// Whether the caller is a person in a session of their own, and no program with a token.
    pub(super) is_person: bool,
    pub(super) stop: Option<StopNotice>,
    pub(super) mode_name: ModeName,
    /// The values of the variables behind the mode's name.
    pub(super) mode_values: String,
    pub(super) waiting: u64,
    /// Whether the vault has a wiki. Without one the navigation does not name them.
    pub(super) has_wikis: bool,
    pub(super) vault: String,
    /// The Temporal UI at this namespace's schedules.
    pub(super) temporal: Option<String>,
    /// The sequence number of the newest record that this page can show.
    pub(super) seen: u64,
}

impl PageFrame {
    pub(super) async fn load(
        app: &SharedAppState,
        caller: &AuthenticatedCaller,
        tab: &'static str,
        uri: &Uri,
    ) -> Result<Self, PageError> {
        let form_key = match &caller.proof {
            CallerProof::Session { form_key } => form_key.clone(),
            CallerProof::Token => String::new(),
        };
        // The change notifier may be half a second late. Records that this page shows must not be announced as new.
        let newest = app.views.actions().actions_page(&ActionFilter::default(), None, 1).await?;
        let newest = newest.rows.first().map_or(0, |row| row.seq);
        let settings = app.read_settings();
        Ok(Self {
            assets: assets::asset_urls(),
            tab,
            path: uri.path_and_query().map_or("/", |path| path.as_str()).to_owned(),
            caller: caller.name.clone(),
            form_key,
            may_act: caller.scope >= AccessScope::Act,
            may_operate: caller.scope >= AccessScope::Operate,
            stop: stop::read_stop(app.views.root()).map(StopNotice::from_stop),
            is_person: matches!(caller.proof, CallerProof::Session { .. }),
            mode_name: ModeName::from_settings(settings.policy.mode, settings.default_ceiling),
            mode_values: format!(
                "STEWARD_LIVE_MODE is {}, STEWARD_DEFAULT_CEILING is {}",
                settings.policy.mode.as_str(),
                settings.default_ceiling.as_str()
            ),
            waiting: app.views.actions().count_pending_actions(Utc::now()).await?,
            has_wikis: list_wikis(app.views.root()).is_ok_and(|wikis| !wikis.is_empty()),
            vault: app.views.root().path().display().to_string(),
            temporal: settings.temporal_ui.map(|ui| format!("{ui}/schedules")),
            seen: newest.max(app.revision.borrow().seq),
        })
    }
}

/// Who stopped the vault, when and why.
pub(super) struct StopNotice {
    pub(super) by: String,
    pub(super) at: WrittenMoment,
    pub(super) reason: Option<String>,
}

impl StopNotice {
    fn from_stop(stop: stop::VaultStop) -> Self {
        Self { by: stop.by, at: WrittenMoment::read(&stop.at), reason: stop.reason }
    }
}

impl PageFrame {
    /// Whether the caller may answer this card. How far a sender may go is set by whoever may operate.
    pub(super) fn may_answer(&self, card: &ActionCard) -> bool {
        if card.action.sender.is_some() { self.may_operate } else { self.may_act }
    }

    /// Whether a person's answer may change a note now.
    pub(super) fn may_change(&self) -> bool {
        self.stop.is_none() && self.mode_name != ModeName::Watch
    }

    pub(super) fn live_url(&self) -> String {
        live::build_live_url(self)
    }

    /// The same frame, but its forms return to `path`.
    pub(super) fn with_path(self, path: &str) -> Self {
        Self { path: path.to_owned(), ..self }
    }
}
