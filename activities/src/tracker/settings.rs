//! The table `[tracker]` of `steward.toml`: the tracker's address, and the place of its API key.
//!
//! Reading is strict, as for streams: an unknown key is an error that names it. The API key itself must not be in the
//! configuration. It is in a variable, or in a file that only its owner may read, and is read when the tracker is
//! opened.

use crate::signals::streams::read_secret;
use crate::steward::clerks::remote::Secret;
use reqwest::Url;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::path::PathBuf;
use steward_domain::record::path::is_slug;
use steward_domain::tracker::TrackerId;

/// The address of Plane's own service.
const PLANE_CLOUD: &str = "https://api.plane.so";
/// The variable of the API key by default.
const KEY_VARIABLE: &str = "STEWARD_TRACKER_API_KEY";

/// A configured tracker, with its keys checked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TrackerConfig {
    pub kind: &'static str,
    /// The address without `/api/v1`.
    pub base_url: String,
    pub workspace: String,
    /// The project of tasks without a `plane_project_id`.
    pub project: Option<TrackerId>,
    key_env: Option<String>,
    key_file: Option<PathBuf>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawTrackerConfig {
    kind: Option<String>,
    base_url: Option<String>,
    workspace: Option<String>,
    project: Option<String>,
    key_env: Option<String>,
    key_file: Option<PathBuf>,
}

impl TrackerConfig {
    /// Checks the table. Opens nothing and reads no secret.
    ///
    /// # Errors
    /// A message that names the key and what is expected.
    pub fn read(table: Map<String, Value>) -> Result<Self, String> {
        let raw: RawTrackerConfig =
            serde_json::from_value(Value::Object(table)).map_err(|e| format!("tracker: {e}"))?;
        match raw.kind.as_deref() {
            Some("plane") => {}
            Some(other) => return Err(format!("tracker.kind is `{}`, expected plane", other.escape_debug())),
            None => return Err("tracker.kind is not set, expected plane (STEWARD_TRACKER_KIND)".into()),
        }
        let base_url = raw.base_url.unwrap_or_else(|| PLANE_CLOUD.into());
        parse_base_url(&base_url)?;
        let workspace = raw.workspace.ok_or(
            "tracker.workspace is not set (STEWARD_TRACKER_WORKSPACE): it is the first part of the path in the browser",
        )?;
        if !is_slug(&workspace) {
            let shown = workspace.escape_debug();
            return Err(format!("tracker.workspace is `{shown}`, expected letters, digits, `-`, `_` or `.`"));
        }
        let project = raw.project.map(|text| TrackerId::parse(&text)).transpose();
        let project = project.map_err(|e| format!("tracker.project is {e}"))?;
        if raw.key_env.is_some() && raw.key_file.is_some() {
            return Err("set tracker.key_env or tracker.key_file, not both".into());
        }
        Ok(Self { kind: "plane", base_url, workspace, project, key_env: raw.key_env, key_file: raw.key_file })
    }

    /// Reads the API key.
    ///
    /// # Errors
    /// A message that names the variable or file and the fix, never the key.
    pub(super) fn read_key(&self) -> Result<Secret, String> {
        let variable = self.key_env.as_deref().or(self.key_file.is_none().then_some(KEY_VARIABLE));
        read_secret("key", variable, self.key_file.as_ref()).map_err(|e| format!("tracker.{e}"))
    }

    /// The address at which the tracker's API begins.
    pub(super) fn endpoint_url(&self) -> Result<Url, String> {
        parse_base_url(&self.base_url)
    }
}

fn parse_base_url(base_url: &str) -> Result<Url, String> {
    let message =
        "tracker.base_url must look like `https://plane.example.org`, without user, password, `?`, `#` or `/api/v1`";
    let url = Url::parse(base_url.trim()).map_err(|_| message)?;
    let plain = url.username().is_empty() && url.password().is_none();
    let bare = url.query().is_none() && url.fragment().is_none() && !url.path().contains("/api/v");
    if matches!(url.scheme(), "http" | "https") && plain && bare { Ok(url) } else { Err(message.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(table: Value) -> Result<TrackerConfig, String> {
        TrackerConfig::read(table.as_object().unwrap().clone())
    }

    #[test]
    fn a_tracker_needs_a_kind_and_a_workspace_and_the_rest_has_defaults() {
        let config = read(json!({"kind": "plane", "workspace": "acme"})).unwrap();
        assert_eq!((config.base_url.as_str(), config.project), (PLANE_CLOUD, None));
        let upper = json!({"kind": "plane", "workspace": "a", "project": "1B4E28BA-2FA1-41D2-883F-0016D3CCA427"});
        assert_eq!(read(upper).unwrap().project.unwrap().as_str(), "1b4e28ba-2fa1-41d2-883f-0016d3cca427");
    }

    #[test]
    fn what_cannot_be_used_is_named() {
        for (table, named) in [
            (json!({"workspace": "a"}), "tracker.kind"),
            (json!({"kind": "jira", "workspace": "a"}), "tracker.kind"),
            (json!({"kind": "plane"}), "STEWARD_TRACKER_WORKSPACE"),
            (json!({"kind": "plane", "workspace": "../x"}), "tracker.workspace"),
            (json!({"kind": "plane", "workspace": "a/b"}), "tracker.workspace"),
            (json!({"kind": "plane", "workspace": "a", "project": "ROOF"}), "tracker.project"),
            (json!({"kind": "plane", "workspace": "a", "key": "secret"}), "unknown field `key`"),
            (json!({"kind": "plane", "workspace": "a", "key_env": "A", "key_file": "b"}), "not both"),
            (json!({"kind": "plane", "workspace": "a", "base_url": "file:///etc"}), "tracker.base_url"),
            (json!({"kind": "plane", "workspace": "a", "base_url": "https://u:p@h"}), "tracker.base_url"),
            (json!({"kind": "plane", "workspace": "a", "base_url": "https://h/api/v1"}), "tracker.base_url"),
        ] {
            let message = read(table.clone()).unwrap_err();
            assert!(message.contains(named), "{table}: {message}");
        }
    }

    #[test]
    fn a_key_that_is_missing_or_readable_by_others_is_refused_with_the_fix() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("key");
        std::fs::write(&file, "plane_api_1\n").unwrap();
        let with = |more: Value| {
            let mut table = json!({"kind": "plane", "workspace": "a"});
            table.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            read(table).unwrap().read_key()
        };
        let open = with(json!({"key_file": file})).unwrap_err();
        assert!(open.contains("chmod 600") && !open.contains("plane_api"), "{open}");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(&file, mode).unwrap();
        assert_eq!(with(json!({"key_file": file})).unwrap().expose(), "plane_api_1");
        let unset = with(json!({"key_env": "STEWARD_TEST_NO_SUCH_VARIABLE"})).unwrap_err();
        assert!(unset.contains("STEWARD_TEST_NO_SUCH_VARIABLE is not set"), "{unset}");
    }
}
