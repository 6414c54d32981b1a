//! Signals about a task that has no steward, because its matter is missing or cannot be read.
//!
//! It reads the files of the task and its matter and changes nothing. The texts are part of a signal's explanation.

use steward_domain::record::frontmatter;
use steward_domain::record::path::{RecordKind, RecordPath};
use steward_domain::record::schema::NoteSchema;
use steward_vault::files::root::VaultRoot;

/// Explains that the link of a task names no matter, or several. `fault` says which.
pub(super) fn explain_faulty_link(schema: &NoteSchema, target: &RecordPath, fault: &str) -> String {
    format!(
        "{fault}: no steward checks {target}, and only a human can change it; name one matter in `{}`",
        schema.spell_property(RecordKind::Task, "parent_matter")
    )
}

/// Explains why the task of a signal has no steward, with the fix; `None` if it has one, or if the task itself cannot
/// be read.
pub(super) fn explain_missing_steward(
    root: &VaultRoot,
    schema: &NoteSchema,
    target: &RecordPath,
    matter: &RecordPath,
) -> Option<String> {
    if target == matter {
        return None;
    }
    let problem = describe_unreadable_matter(root, schema, matter)?;
    Some(format!(
        "{matter}, the matter of {target}, {problem}: no steward checks the task, and only a human can change it; \
         restore the matter, or name another one in `{}`",
        schema.spell_property(RecordKind::Task, "parent_matter")
    ))
}

fn describe_unreadable_matter(root: &VaultRoot, schema: &NoteSchema, matter: &RecordPath) -> Option<String> {
    if !root.exists(matter) {
        return Some("is missing".to_owned());
    }
    let fault = |e: String| Some(format!("cannot be read ({e})"));
    let file = match root.read_file(matter) {
        Ok(file) => file,
        Err(e) => return fault(e.to_string()),
    };
    match frontmatter::read_note(&file.bytes).map(|document| schema.read_matter(matter, document.fields())) {
        Ok(Ok(_)) => None,
        Ok(Err(e)) => fault(e.to_string()),
        Err(e) => fault(e.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_whose_matter_is_missing_or_unreadable_has_no_steward_and_both_are_named() {
        let dir = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let file = dir.path().join(path);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        };
        put("task/rent.md", "---\ntype: task\nname: R\nstate: open\nparent_matter: house\n---\n");
        let root = VaultRoot::open(dir.path()).unwrap();
        let path = |text| RecordPath::parse(text).unwrap();
        let explain =
            || explain_missing_steward(&root, &NoteSchema::Folders, &path("task/rent.md"), &path("matter/house.md"));
        let missing = explain().unwrap();
        assert!(missing.starts_with("matter/house.md, the matter of task/rent.md, is missing: "), "{missing}");
        put("matter/house.md", "---\ntype: matter\nname: H\nstate: [\n---\n");
        assert!(explain().unwrap().contains("cannot be read ("));
        put("matter/house.md", "---\ntype: matter\nname: H\nstate: sold\n---\n");
        let unknown = explain().unwrap();
        assert!(unknown.contains("cannot be read (") && unknown.contains("state"), "{unknown}");
        put("matter/house.md", "---\ntype: matter\nname: H\n---\n");
        assert_eq!(explain(), None);
        assert_eq!(
            explain_missing_steward(&root, &NoteSchema::Folders, &path("matter/gone.md"), &path("matter/gone.md")),
            None
        );
    }
}
