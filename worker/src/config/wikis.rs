//! The table `[wiki.<name>]`: what may happen there that nobody asked for, and which streams and clones belong to the wiki.
//!
//! No file of the vault can set it. Names and paths are checked here; whether a clone is there is found out when it is read.

use anyhow::bail;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::PathBuf;
use steward_activities::signals::streams::StreamConfig;
use steward_domain::record::path::is_slug;
use steward_domain::wiki::gates::{AutoIngest, WikiSettings};
use steward_domain::wiki::standard;
use steward_server::mcp::attachments::{AttachedStream, AttachmentsByWiki, WikiAttachments};

/// One table.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct WikiTable {
    auto_ingest: AutoIngest,
    lint_fix: bool,
    streams: Vec<AttachedStream>,
    clones: BTreeMap<CloneName, ClonePath>,
}

/// The name of a wiki: that of its folder.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct WikiName(String);

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
struct CloneName(String);

#[derive(Debug, Deserialize)]
#[serde(try_from = "PathBuf")]
struct ClonePath(PathBuf);

impl TryFrom<String> for WikiName {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        match standard::is_slug(&name) {
            true => Ok(Self(name)),
            false => Err(format!("`{}` is no name of a wiki: use a-z, digits and hyphens", name.escape_debug())),
        }
    }
}

impl TryFrom<String> for CloneName {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        match is_slug(&name) {
            true => Ok(Self(name)),
            false => Err(format!("`{}` is no name of a clone: use letters, digits and hyphens", name.escape_debug())),
        }
    }
}

impl TryFrom<PathBuf> for ClonePath {
    type Error = String;

    fn try_from(path: PathBuf) -> Result<Self, String> {
        match path.is_absolute() {
            true => Ok(Self(path)),
            false => Err(format!("the clone `{}` needs an absolute path", path.display())),
        }
    }
}

/// The settings of each wiki.
pub(super) type WikiSettingsByName = BTreeMap<String, WikiSettings>;

/// Divides the tables by whom they concern.
///
/// # Errors
/// A stream of a wiki is not configured, or is read in another way.
pub(super) fn read_wikis(
    tables: BTreeMap<WikiName, WikiTable>,
    streams: &[StreamConfig],
) -> anyhow::Result<(WikiSettingsByName, AttachmentsByWiki)> {
    let (mut settings, mut attachments) = (BTreeMap::new(), BTreeMap::new());
    for (WikiName(wiki), table) in tables {
        let WikiTable { auto_ingest, lint_fix, streams: attached, clones } = table;
        for stream in &attached {
            if !streams.iter().any(|known| known.name == stream.name && known.kind == stream.kind) {
                let known: Vec<String> = streams.iter().map(|known| format!("{}:{}", known.kind, known.name)).collect();
                bail!("wiki.{wiki}.streams: `{stream}` is not configured: use one of {}", known.join(", "));
            }
        }
        let clones = clones.into_iter().map(|(name, path)| (name.0, path.0)).collect();
        settings.insert(wiki.clone(), WikiSettings { auto_ingest, lint_fix });
        attachments.insert(wiki, WikiAttachments { streams: attached, clones });
    }
    Ok((settings, AttachmentsByWiki(attachments)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::StewardConfig;
    use crate::config::faults::check_settings;
    use crate::config::sources::ConfigFile;
    use std::path::Path;

    const STREAM: &str = "[streams.work]\nkind = \"maildir\"\npath = \"/m\"\n";

    fn load(text: &str) -> anyhow::Result<StewardConfig> {
        let table = text.parse()?;
        check_settings(Path::new("steward.toml"), text, &table)?;
        StewardConfig::from_parts(&ConfigFile::new("steward.toml".into(), table, false), Vec::new())
    }

    #[test]
    fn streams_and_clones_belong_to_the_wiki_that_names_them() {
        let text = format!(
            "{STREAM}[wiki.acme]\nlint_fix = true\nstreams = [\"maildir:work\"]\n[wiki.acme.clones]\ninfra = \"/srv/infra\"\n[wiki.home]\n"
        );
        let config = load(&text).unwrap();
        assert!(config.wikis["acme"].lint_fix && !config.wikis["home"].lint_fix);
        let AttachmentsByWiki(wikis) = config.attachments;
        assert_eq!(wikis["acme"].streams[0].to_string(), "maildir:work");
        assert_eq!(wikis["acme"].clones["infra"], Path::new("/srv/infra"));
        assert_eq!(wikis["home"], WikiAttachments::default());
        assert_eq!(load("").unwrap().attachments, AttachmentsByWiki::default());
    }

    #[test]
    fn what_is_wrong_is_named_with_file_and_fix() {
        for (text, parts) in [
            ("[wiki.acme]\nstreams = [\"work\"]\n", ["steward.toml:1", "such as `imap:work`"]),
            ("[wiki.Acme]\n", ["steward.toml:1", "a-z, digits and hyphens"]),
            ("[wiki.acme.clones]\ninfra = \"infra\"\n", ["steward.toml:1", "absolute path"]),
            ("[wiki.acme.clones]\n\"a b\" = \"/x\"\n", ["steward.toml:1", "no name of a clone"]),
            ("[wiki.acme]\nstream = []\n", ["steward.toml:1", "stream"]),
            ("[wiki.acme]\nstreams = [\"imap:work\"]\n", ["wiki.acme.streams: `imap:work`", "inbox:inbox"]),
            (
                &format!("{STREAM}[wiki.acme]\nstreams = [\"imap:work\"]\n"),
                ["`imap:work` is not configured", "maildir:work"],
            ),
        ] {
            let message = format!("{:#}", load(text).unwrap_err());
            assert!(parts.iter().all(|part| message.contains(part)), "{text}: {message}");
        }
    }

    #[test]
    fn no_file_in_the_vault_can_set_them() {
        let vault = tempfile::tempdir().unwrap();
        let text = "[wiki.acme]\nstreams = [\"inbox:inbox\"]\n";
        let path = vault.path().join("steward.toml");
        std::fs::write(&path, text).unwrap();
        let file = ConfigFile::new(path, text.parse().unwrap(), true);
        let message = file.refuse_vault_overrides(vault.path()).unwrap_err().to_string();
        assert!(message.contains("`wiki`") && message.contains("lies in the vault"), "{message}");
    }
}
