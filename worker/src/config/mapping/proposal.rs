//! `[map]` in the vault's `steward.toml`: its faults, and how it differs from the mapping in force.
//!
//! It only proposes a mapping. It must not change what is in force.

use anyhow::{Context, bail};
use serde::Deserialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use steward_domain::record::mapping::{MappingFault, NoteMapping, VaultMapping};
use toml::de::{DeTable, DeValue};
use toml_edit::InlineTable;

/// The file in the vault that proposes a mapping.
pub(super) const PROPOSAL_FILE: &str = "steward.toml";
/// How a difference ends that nobody can accept.
const STAYS: &str = "stays in force";

/// Reads `[map]` from the vault's `steward.toml`; `None` if the file or the table is missing.
///
/// # Errors
/// It cannot be read, or it has faults. Each fault names the file, the line and the fix.
pub(crate) fn read_proposal(vault: &Path) -> anyhow::Result<Option<VaultMapping>> {
    let file = vault.join(PROPOSAL_FILE);
    let text = match std::fs::read_to_string(&file) {
        Ok(text) => text,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(e).with_context(|| format!("failed to read {}", file.display())),
    };
    parse_proposal(&text, &file)
}

fn parse_proposal(text: &str, file: &Path) -> anyhow::Result<Option<VaultMapping>> {
    #[derive(Deserialize)]
    struct VaultFile {
        map: Option<VaultMapping>,
    }
    let read: VaultFile = toml::from_str(text).map_err(|e| {
        let before = e.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        anyhow::anyhow!("{}:{line}: {}", file.display(), e.message().replace('\n', "; "))
    })?;
    let Some(mapping) = read.map else { return Ok(None) };
    let mut faults = mapping.find_faults();
    faults.extend(find_linked_folders(file.parent().unwrap_or(file), &mapping));
    if faults.is_empty() {
        return Ok(Some(mapping));
    }
    let describe = |fault: &MappingFault| {
        let line = find_line(text, &fault.keys).map_or_else(String::new, |line| format!(":{line}"));
        format!("{}{line}: `{}`: {}", file.display(), fault.keys.join("."), fault.message)
    };
    bail!("the mapping cannot be accepted: {}", faults.iter().map(describe).collect::<Vec<_>>().join("; "))
}

/// The folders of a mapping that are links. Steward follows none, because a link could lead out of the vault.
fn find_linked_folders(vault: &Path, mapping: &VaultMapping) -> Vec<MappingFault> {
    let mut faults = Vec::new();
    for (kind, notes) in [("matter", &mapping.matter), ("task", &mapping.task)] {
        let Some(folder) = notes.selector.folder() else { continue };
        let parts: Vec<&Path> = Path::new(folder).ancestors().filter(|part| !part.as_os_str().is_empty()).collect();
        if let Some(link) = parts.into_iter().rev().find(|part| vault.join(part).is_symlink()) {
            let target = std::fs::read_link(vault.join(link)).unwrap_or_default();
            let keys = ["map", kind, "where"].map(str::to_owned).to_vec();
            let message = format!(
                "`{}` is a link to {}, and Steward follows no links: name a folder of the vault itself",
                link.display(),
                target.display()
            );
            faults.push(MappingFault { keys, message });
        }
    }
    faults
}

/// The line of a key, from 1, or of the nearest table above it.
pub(crate) fn find_line(text: &str, keys: &[String]) -> Option<usize> {
    let root = DeTable::parse(text).ok()?;
    let mut table = root.get_ref();
    let mut at = None;
    for key in keys {
        let Some((found, value)) = table.iter().find(|(name, _)| name.get_ref().as_ref() == key) else { break };
        at = Some(found.span().start);
        match value.get_ref() {
            DeValue::Table(inner) => table = inner,
            _ => break,
        }
    }
    at.map(|offset| text[..offset].matches('\n').count() + 1)
}

/// The lines in which a proposal differs from the accepted mapping, each for one key.
pub(crate) fn describe_differences(
    accepted: &VaultMapping,
    proposal: anyhow::Result<Option<VaultMapping>>,
) -> Vec<String> {
    let proposal = match proposal {
        Ok(Some(proposal)) => proposal,
        Ok(None) => return vec![format!("`[map]` is gone from {PROPOSAL_FILE}; the accepted mapping {STAYS}")],
        Err(e) => return vec![format!("{e:#}; the accepted mapping {STAYS}")],
    };
    let (old, new) = (flatten(accepted), flatten(&proposal));
    let keys: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let show = |value: Option<&Value>| value.map_or_else(|| "nothing".to_owned(), |value| to_toml(value).to_string());
    let differs = |key: &&String| old.get(*key) != new.get(*key);
    keys.into_iter()
        .filter(differs)
        .map(|key| format!("map.{key}: accepted {}, proposed {}", show(old.get(key)), show(new.get(key))))
        .collect()
}

/// Which notes a mapping reads, in one line.
pub(crate) fn describe_mapping(mapping: &VaultMapping) -> String {
    let find = |kind: &str, notes: &NoteMapping| {
        let selector = serde_json::to_value(&notes.selector).unwrap_or_default();
        let state = notes.state.as_ref().map(|state| format!(" with their state in `{}`", state.property));
        format!("{kind} are {}{}", to_toml(&selector), state.unwrap_or_default())
    };
    format!("{}, {}", find("matters", &mapping.matter), find("tasks", &mapping.task))
}

/// How a person makes the differences count. Nothing accepts what is gone or cannot be read.
pub(crate) fn describe_acceptance(differences: &[String]) -> &'static str {
    if differences.iter().any(|line| line.ends_with(STAYS)) {
        "correct the file"
    } else {
        "to accept it, end `steward up`, run `steward init --accept`, and start it again"
    }
}

/// The values of a mapping by their keys, such as `task.state.open`.
fn flatten(mapping: &VaultMapping) -> BTreeMap<String, Value> {
    let mut values = BTreeMap::new();
    let mapping = serde_json::to_value(mapping).unwrap_or_default();
    for (kind, roles) in mapping.as_object().into_iter().flatten() {
        for (role, value) in roles.as_object().into_iter().flatten() {
            match value {
                Value::Object(inner) if role != "where" => {
                    values.extend(inner.iter().map(|(key, value)| (format!("{kind}.{role}.{key}"), value.clone())));
                }
                other => drop(values.insert(format!("{kind}.{role}"), other.clone())),
            }
        }
    }
    values
}

/// A value as `steward.toml` holds it.
pub(crate) fn to_toml(value: &Value) -> toml_edit::Value {
    match value {
        Value::String(text) => text.as_str().into(),
        Value::Bool(flag) => (*flag).into(),
        Value::Number(number) => number.as_i64().map_or_else(|| number.as_f64().unwrap_or_default().into(), Into::into),
        Value::Array(items) => toml_edit::Value::Array(items.iter().map(to_toml).collect()),
        Value::Object(fields) => {
            let table: InlineTable = fields.iter().map(|(key, value)| (key.as_str(), to_toml(value))).collect();
            toml_edit::Value::InlineTable(table)
        }
        Value::Null => "".into(),
    }
}

/// The faults of a mapping, for messages of other modules.
#[cfg(test)]
fn fault_lines(text: &str) -> Vec<String> {
    let message = parse_proposal(text, Path::new("steward.toml")).unwrap_err().to_string();
    message.strip_prefix("the mapping cannot be accepted: ").unwrap().split("; ").map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPPING: &str = r#"
[map.matter]
where = { folder = "Projects" }
state = { property = "status", open = ["active"], done = ["done"] }
[map.task]
where = { tag = "task" }
state = { property = "status", open = ["todo"], done = ["done"] }
parent = { property = "project" }
due = { property = "due" }
"#;

    #[test]
    fn a_fault_names_file_line_and_fix() {
        assert!(parse_proposal(MAPPING, Path::new("steward.toml")).unwrap().is_some());
        assert!(parse_proposal("task_queue = \"q\"\n", Path::new("steward.toml")).unwrap().is_none());
        let faulty = MAPPING.replace("due = { property = \"due\" }", "due = { property = \"Tags\" }");
        let [fault] = fault_lines(&faulty).try_into().unwrap();
        assert_eq!(
            fault.trim(),
            "steward.toml:9: `map.task.due`: `Tags` cannot be mapped, because Steward, Obsidian or a plugin gives a \
             meaning to it: use another property"
        );
        let unknown = parse_proposal(&format!("{MAPPING}deu = 1\n"), Path::new("steward.toml")).unwrap_err();
        assert!(format!("{unknown:#}").contains("unknown field `deu`"), "{unknown:#}");
    }

    #[test]
    fn a_mapped_folder_that_is_a_link_is_refused_by_name() {
        let dir = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/tmp", dir.path().join("Projects")).unwrap();
        let file = dir.path().join("steward.toml");
        let inner = MAPPING.replace("\"Projects\"", "\"Projects/Home\"");
        let message = parse_proposal(&inner, &file).unwrap_err().to_string();
        assert!(message.contains("steward.toml:3: `map.matter.where`: `Projects` is a link to /tmp"), "{message}");
        std::fs::remove_file(dir.path().join("Projects")).unwrap();
        assert!(parse_proposal(&inner, &file).unwrap().is_some(), "a folder that is not there yet is no fault");
    }

    #[test]
    fn a_changed_proposal_is_shown_line_by_line() {
        let accepted = parse_proposal(MAPPING, Path::new("x")).unwrap().unwrap();
        assert!(describe_differences(&accepted, Ok(Some(accepted.clone()))).is_empty());
        let changed = MAPPING.replace("todo", "open").replace("due = ", "snooze = ");
        let changed = parse_proposal(&changed, Path::new("x")).unwrap();
        let lines = describe_differences(&accepted, Ok(changed));
        assert_eq!(
            lines,
            [
                "map.task.due.property: accepted \"due\", proposed nothing",
                "map.task.snooze.property: accepted nothing, proposed \"due\"",
                "map.task.state.open: accepted [\"todo\"], proposed [\"open\"]",
            ]
        );
        assert!(describe_acceptance(&lines).contains("steward init --accept"));
        let gone = describe_differences(&accepted, Ok(None));
        assert!(gone[0].contains("is gone") && describe_acceptance(&gone) == "correct the file");
    }
}
