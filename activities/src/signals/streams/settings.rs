//! The table `[streams.<name>]` of `steward.toml`: a kind, and the keys of that kind.
//!
//! Reading is strict: an unknown key is an error that names it, because a typo must not turn a setting off. Secrets
//! are in the environment, or in a file that only its owner may read. The keys only name the place, so that a
//! configuration can be shown. Each adapter reads its own keys from [`StreamKeys`].

use super::KINDS;
use super::MAX_MESSAGE_BYTES;
use super::StreamError;
use super::StreamKind;
use super::StreamOpener;
use super::StreamSource;
use crate::steward::clerks::remote::Secret;
use serde::de::DeserializeOwned;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};
use std::fmt;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use steward_domain::record::path::is_slug;
use steward_vault::files::root::VaultRoot;

/// The highest `max_message_bytes`: 32 MiB, which mail servers let through.
const MOST_MESSAGE_BYTES: u64 = 32 * 1024 * 1024;
/// The highest `since_days`: 30, as long as an ingested message is known.
const MOST_SINCE_DAYS: u64 = 30;
/// How much of a file is read as a secret, in bytes: 16 KiB.
const MAX_SECRET_BYTES: u64 = 16 * 1024;

/// A configured stream, with its keys checked.
#[derive(Clone)]
pub struct StreamConfig {
    pub name: String,
    pub kind: &'static str,
    /// The time from the end of one round to the next.
    pub interval: Duration,
    opener: Arc<StreamOpener>,
}

/// The keys of one stream, as its adapter reads them.
#[derive(Debug)]
pub struct StreamKeys {
    pub name: String,
    pub max_message_bytes: u64,
    rest: Map<String, Value>,
}

impl StreamConfig {
    /// Checks a stream's table. Opens nothing and reads no secret.
    ///
    /// # Errors
    /// [`StreamError::Setting`] that names the stream and the key.
    pub fn read(name: &str, mut table: Map<String, Value>) -> Result<Self, StreamError> {
        let setting_error = |message: String| StreamError::Setting { stream: name.escape_debug().to_string(), message };
        if !is_slug(name) {
            let message = "a stream's name becomes a folder: use 1 to 128 letters a-z, digits, `-`, `_` or `.`";
            return Err(setting_error(message.into()));
        }
        let kinds = || KINDS.iter().map(|k| k.name).collect::<Vec<_>>().join(", ");
        let kind = match table.remove("kind") {
            Some(Value::String(kind)) => kind,
            Some(_) | None => return Err(setting_error(format!("`kind` must be one of {}", kinds()))),
        };
        let known = KINDS.iter().find(|k| k.name == kind);
        let unknown = || format!("kind `{}` is unknown, expected one of {}", kind.escape_debug(), kinds());
        let StreamKind { name: kind, interval, read } = known.ok_or_else(|| setting_error(unknown()))?;
        let interval = take_number(&mut table, "interval_seconds", 1, 86_400)
            .map_err(setting_error)?
            .map(Duration::from_secs)
            .unwrap_or(*interval);
        let most = take_number(&mut table, "max_message_bytes", 1024, MOST_MESSAGE_BYTES).map_err(setting_error)?;
        let keys =
            StreamKeys { name: name.to_owned(), max_message_bytes: most.unwrap_or(MAX_MESSAGE_BYTES), rest: table };
        Ok(Self { name: name.to_owned(), kind, interval, opener: Arc::new(read(keys).map_err(setting_error)?) })
    }

    /// The drop folder, which exists without being configured.
    ///
    /// # Errors
    /// None in practice, because it has no keys.
    pub fn default_inbox() -> Result<Self, StreamError> {
        Self::read("inbox", Map::from_iter([("kind".to_owned(), Value::from("inbox"))]))
    }

    /// Reads the stream's secrets and prepares it. Sends nothing yet.
    ///
    /// # Errors
    /// [`StreamError`] that names what is missing, and the fix.
    pub fn open(&self, root: &VaultRoot) -> Result<StreamSource, StreamError> {
        (self.opener)(root)
    }
}

impl StreamKeys {
    /// Reads the adapter's own keys.
    pub(super) fn read<T: DeserializeOwned>(self) -> Result<T, String> {
        serde_json::from_value(Value::Object(self.rest)).map_err(|e| e.to_string())
    }
}

impl fmt::Debug for StreamConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamConfig").field("name", &self.name).field("kind", &self.kind).finish_non_exhaustive()
    }
}

impl Serialize for StreamConfig {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (&self.name, self.kind).serialize(serializer)
    }
}

/// Checks `since_days`: a mail that is met again must still be known, even if its event is long gone.
pub(super) fn check_since_days(days: u64) -> Result<(), String> {
    if days > MOST_SINCE_DAYS {
        return Err(format!("`since_days` may be at most {MOST_SINCE_DAYS}: older mails could be ingested twice"));
    }
    Ok(())
}

fn take_number(table: &mut Map<String, Value>, key: &str, least: u64, most: u64) -> Result<Option<u64>, String> {
    let Some(value) = table.remove(key) else { return Ok(None) };
    let number = value.as_u64().filter(|n| (least..=most).contains(n));
    number.map(Some).ok_or_else(|| format!("`{key}` is {value}, expected a number from {least} to {most}"))
}

/// Reads a secret from a variable or from a file.
///
/// # Errors
/// [`StreamError::Secret`] that names the key, the variable or file, and the fix, never the secret.
pub fn read_secret(key: &str, variable: Option<&str>, file: Option<&PathBuf>) -> Result<Secret, StreamError> {
    let text = match (variable, file) {
        (Some(name), None) => std::env::var(name).map_err(|_| {
            format!("{key}_env: the variable {name} is not set: set it for the process that runs Steward")
        }),
        (None, Some(path)) => read_private_file(path).map_err(|why| format!("{key}_file: {}: {why}", path.display())),
        (Some(_), Some(_)) | (None, None) => Err(format!("set either `{key}_env` or `{key}_file`")),
    };
    let secret = text.and_then(|text| Secret::new(&text).ok_or_else(|| format!("{key}: it is empty")));
    secret.map_err(StreamError::Secret)
}

fn read_private_file(path: &PathBuf) -> Result<String, String> {
    let mut options = std::fs::OpenOptions::new();
    let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let file = options.read(true).custom_flags(flags).open(path).map_err(|e| e.to_string())?;
    let meta = file.metadata().map_err(|e| e.to_string())?;
    if !meta.is_file() {
        return Err("not a regular file".into());
    }
    if meta.mode() & 0o077 != 0 {
        return Err("other users may read it: run `chmod 600` on it".into());
    }
    let mut text = String::new();
    file.take(MAX_SECRET_BYTES).read_to_string(&mut text).map_err(|e| e.to_string())?;
    Ok(text)
}
