//! Finds the manifests above a view: `extends` names the next one, up to the wiki's own.
//!
//! A chain that is broken, too long, or leads out of the root is a warning, and the view's own manifest then holds alone. A
//! view that is bound to a consumer that does not exist is refused: nobody could use it.

use crate::wiki::folder::{ReadFault, read_bounded};
use std::path::{Path, PathBuf};
use steward_domain::record::frontmatter::{self, Document, MAX_RECORD_BYTES};
use steward_domain::wiki::finding::{FindingCode, Severity, WikiFinding, judge_fault};
use steward_domain::wiki::manifest::{MAX_ANCESTORS, ManifestLayer};
use steward_domain::wiki::standard::{Doctype, FieldPath, SchemaFault, find_faults};

/// The manifests of a chain, the wiki's own one first and the view last.
#[derive(Debug)]
pub struct ManifestChain {
    pub layers: Vec<ManifestLayer>,
    /// Why manifests above were left out.
    pub findings: Vec<WikiFinding>,
}

/// Why a manifest cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    #[error("{}: {source}", .file.display())]
    Unreadable { file: PathBuf, source: ReadFault },
    #[error("{}: {source}", .file.display())]
    Invalid { file: PathBuf, source: frontmatter::FrontmatterError },
    #[error("{} lies outside of {}", .file.display(), .root.display())]
    Outside { file: PathBuf, root: PathBuf },
}

/// Reads a manifest.
///
/// # Errors
/// [`ManifestError`] if there is none, or it is no text with a frontmatter that can be read.
pub fn read_manifest(file: &Path) -> Result<Document, ManifestError> {
    let unreadable = |source| ManifestError::Unreadable { file: file.to_owned(), source };
    let bytes = read_bounded(file, MAX_RECORD_BYTES).map_err(unreadable)?;
    frontmatter::read_document(&bytes).map_err(|source| ManifestError::Invalid { file: file.to_owned(), source })
}

/// Resolves the chain of a manifest. No ancestor may lie outside of `root`; without one every readable file counts.
///
/// # Errors
/// [`ManifestError`] for the manifest itself. A fault of an ancestor is a finding.
pub fn resolve_chain(file: &Path, root: Option<&Path>) -> Result<ManifestChain, ManifestError> {
    let unreadable = |source: ReadFault| ManifestError::Unreadable { file: file.to_owned(), source };
    // A link would move what `extends` is relative to.
    if file.symlink_metadata().map_err(|e| unreadable(e.into()))?.is_symlink() {
        return Err(unreadable(ReadFault::Link));
    }
    let file = file.canonicalize().map_err(|e| unreadable(e.into()))?;
    if let Some(root) = root.filter(|root| !file.starts_with(root)) {
        return Err(ManifestError::Outside { file, root: root.to_owned() });
    }
    let own = ManifestLayer { document: read_manifest(&file)?, file: file.display().to_string() };
    let mut walk = ChainWalk { root, visited: vec![file], layers: vec![own] };
    loop {
        match walk.step() {
            Ok(true) => {}
            Ok(false) => {
                walk.layers.reverse();
                return Ok(ManifestChain { layers: walk.layers, findings: Vec::new() });
            }
            Err(finding) => {
                walk.layers.truncate(1);
                return Ok(ManifestChain { layers: walk.layers, findings: vec![*finding] });
            }
        }
    }
}

struct ChainWalk<'r> {
    root: Option<&'r Path>,
    /// Resolved paths, the view first.
    visited: Vec<PathBuf>,
    /// The view first.
    layers: Vec<ManifestLayer>,
}

impl ChainWalk<'_> {
    /// Adds the parent of the last manifest. Returns whether there was one.
    fn step(&mut self) -> Result<bool, Box<WikiFinding>> {
        let (Some(layer), Some(file)) = (self.layers.last(), self.visited.last()) else { return Ok(false) };
        let Some(extends) = layer.document.fields().get("extends").and_then(|value| value.as_str()) else {
            return Ok(false);
        };
        let report = |code, problem: &str, fix: &str| {
            let finding = WikiFinding::new(code, Severity::Warn, &layer.file, problem, fix);
            Box::new(finding.with_field(&layer.document, &FieldPath::from_key("extends")))
        };
        let missing = |problem: &str| {
            let fix = "correct the path; until then the manifest holds alone";
            report(FindingCode::KnowledgeExtendsMissing, problem, fix)
        };
        let folder = file.parent().unwrap_or(Path::new("/"));
        let Ok(parent) = folder.join(extends).canonicalize() else {
            return Err(missing(&format!("there is no {extends}")));
        };
        if self.root.is_some_and(|root| !parent.starts_with(root)) {
            return Err(missing(&format!("{extends} lies outside of the vault")));
        }
        if self.visited.contains(&parent) {
            let problem = format!("{extends} leads back to a manifest of the same chain");
            return Err(report(FindingCode::KnowledgeExtendsCycle, &problem, "break the circle"));
        }
        if self.visited.len() > MAX_ANCESTORS {
            let problem = format!("more than {MAX_ANCESTORS} manifests stand above the view");
            return Err(report(FindingCode::KnowledgeExtendsDepthExceeded, &problem, "merge some of them"));
        }
        let document = match read_manifest(&parent) {
            Ok(document) if Doctype::read(document.fields()) == Some(Doctype::Manifest) => document,
            Ok(_) => return Err(missing(&format!("{extends} is not a manifest"))),
            Err(e) => return Err(missing(&format!("{extends} cannot be read: {e}"))),
        };
        self.layers.push(ManifestLayer { file: parent.display().to_string(), document });
        self.visited.push(parent);
        Ok(true)
    }
}

/// Checks a manifest against the standard.
#[must_use]
pub fn check_standard(file: &str, document: &Document) -> Vec<WikiFinding> {
    let code = FindingCode::KnowledgeWorkspaceInvalid;
    if Doctype::read(document.fields()) != Some(Doctype::Manifest) {
        let (problem, fix) = ("it is not a manifest", "write `schema: knowledge.workspace/v1`");
        let finding = WikiFinding::new(code, Severity::Error, file, problem, fix);
        return vec![finding.with_field(document, &FieldPath::from_key("schema"))];
    }
    let faults = find_faults(document.fields());
    let report = |fault: &SchemaFault| {
        let (code, severity) = judge_fault(fault.kind, code);
        WikiFinding::new(code, severity, file, &fault.problem, &fault.fix).with_field(document, &fault.path)
    };
    faults.iter().map(report).collect()
}

/// Checks a manifest against the standard, and whether those whom it applies to exist.
#[must_use]
pub fn check_manifest(file: &str, document: &Document, place: &ManifestPlace<'_>) -> Vec<WikiFinding> {
    let mut found = check_standard(file, document);
    let consumers = document.fields().get("appliesTo").and_then(|value| value.as_array());
    for (at, consumer) in consumers.into_iter().flatten().enumerate() {
        let Some(consumer) = consumer.as_str() else { continue };
        if !place.has_consumer(consumer) {
            let problem = format!("there is no folder for {consumer}");
            let code = FindingCode::KnowledgeAppliestoUnresolvable;
            let fix = "create the folder, or bind the view to one that exists";
            let finding = WikiFinding::new(code, Severity::Error, file, &problem, fix);
            found.push(finding.with_field(document, &FieldPath::from_key("appliesTo").join_item(at)));
        }
    }
    found
}

/// Where a manifest lies, for what it names by path.
#[derive(Clone, Copy, Debug)]
pub struct ManifestPlace<'p> {
    /// Its folder, resolved.
    pub folder: &'p Path,
    /// The vault. Without one the folders above are searched.
    pub root: Option<&'p Path>,
}

impl ManifestPlace<'_> {
    /// Whether a consumer such as `ws://operators/analyst` or `../team` has a folder.
    fn has_consumer(&self, consumer: &str) -> bool {
        let is_inside = |path: &Path| {
            path.canonicalize().is_ok_and(|path| path.is_dir() && self.root.is_none_or(|root| path.starts_with(root)))
        };
        match consumer.strip_prefix("ws://") {
            Some(name) => match self.root {
                Some(root) => is_inside(&root.join(name)),
                None => self.folder.ancestors().any(|above| is_inside(&above.join(name))),
            },
            None => is_inside(&self.folder.join(consumer)),
        }
    }
}

/// The folder that bounds the paths of a manifest: the nearest one above it that is a vault. `None` if there is none.
#[must_use]
pub fn find_vault_around(path: &Path) -> Option<PathBuf> {
    let path = path.canonicalize().ok()?;
    let is_vault = |folder: &Path| folder.join(crate::files::root::OWN_FOLDER).is_dir();
    path.ancestors().find(|folder| is_vault(folder)).map(Path::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(path: &Path, extends: Option<&str>) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let extends = extends.map(|extends| format!("extends: {extends}\n")).unwrap_or_default();
        let text = format!(
            "---\nschema: knowledge.workspace/v1\nname: wiki\ntitle: W\ndescription: d\nversion: 1.0.0\n{extends}---\n"
        );
        std::fs::write(path, text).unwrap();
    }

    /// Writes a chain of so many manifests and resolves that of the last one.
    fn resolve(count: usize) -> ManifestChain {
        let folder = tempfile::tempdir().unwrap();
        for n in 0..count {
            let above = (n > 0).then(|| format!("../m{}/KNOWLEDGE.md", n - 1));
            write(&folder.path().join(format!("m{n}/KNOWLEDGE.md")), above.as_deref());
        }
        resolve_chain(&folder.path().join(format!("m{}/KNOWLEDGE.md", count - 1)), None).unwrap()
    }

    #[test]
    fn eight_ancestors_are_read_and_a_ninth_is_refused() {
        let chain = resolve(9);
        assert_eq!((chain.layers.len(), chain.findings), (9, Vec::new()));
        assert!(chain.layers[0].file.ends_with("m0/KNOWLEDGE.md") && chain.layers[8].file.ends_with("m8/KNOWLEDGE.md"));
        let chain = resolve(10);
        assert_eq!(chain.layers.len(), 1);
        assert!(chain.layers[0].file.ends_with("m9/KNOWLEDGE.md"));
        assert_eq!(chain.findings[0].code, FindingCode::KnowledgeExtendsDepthExceeded);
    }

    #[test]
    fn a_circle_a_gap_and_a_way_out_leave_the_manifest_alone() {
        let folder = tempfile::tempdir().unwrap();
        let (wiki, other) =
            (folder.path().join("vault/wiki/KNOWLEDGE.md"), folder.path().join("vault/other/KNOWLEDGE.md"));
        write(&wiki, Some("../other/KNOWLEDGE.md"));
        write(&other, Some("../wiki/KNOWLEDGE.md"));
        let find = |root: Option<&Path>| {
            let chain = resolve_chain(&wiki, root).unwrap();
            let codes: Vec<FindingCode> = chain.findings.iter().map(|finding| finding.code).collect();
            (chain.layers.len(), codes, chain.findings.first().and_then(|finding| finding.line))
        };
        assert_eq!(find(None), (1, vec![FindingCode::KnowledgeExtendsCycle], Some(7)));
        std::fs::remove_file(&other).unwrap();
        assert_eq!(find(None), (1, vec![FindingCode::KnowledgeExtendsMissing], Some(7)));
        std::fs::write(&other, "no manifest").unwrap();
        assert_eq!(find(None), (1, vec![FindingCode::KnowledgeExtendsMissing], Some(7)));
        // A link leads out of the vault.
        let outside = folder.path().join("outside/KNOWLEDGE.md");
        write(&outside, None);
        std::fs::remove_file(&other).unwrap();
        std::os::unix::fs::symlink(&outside, &other).unwrap();
        assert_eq!(find(None), (2, Vec::new(), None));
        let vault = folder.path().join("vault").canonicalize().unwrap();
        assert_eq!(find(Some(&vault)), (1, vec![FindingCode::KnowledgeExtendsMissing], Some(7)));
    }

    #[test]
    fn a_link_and_another_doctype_in_the_place_of_a_manifest_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (real, link) = (folder.path().join("a/KNOWLEDGE.md"), folder.path().join("KNOWLEDGE.md"));
        write(&real, None);
        std::os::unix::fs::symlink(&real, &link).unwrap();
        assert!(matches!(resolve_chain(&link, None), Err(ManifestError::Unreadable { source: ReadFault::Link, .. })));
        let other = folder.path().join("b");
        std::fs::create_dir(&other).unwrap();
        assert!(matches!(resolve_chain(&real, Some(&other)), Err(ManifestError::Outside { .. })));
        let page = "---\nschema: knowledge.entry/v1\nslug: ab\nkind: entity\ntitle: T\nupdated_at: \"2026-11-22T09:15:04Z\"\n---\n";
        std::fs::write(&real, page).unwrap();
        let found = check_standard("KNOWLEDGE.md", &read_manifest(&real).unwrap());
        assert_eq!(found[0].code, FindingCode::KnowledgeWorkspaceInvalid);
    }

    #[test]
    fn a_view_for_nobody_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("operators/analyst/KNOWLEDGE.md");
        write(
            &file,
            Some(
                "../../wiki/KNOWLEDGE.md\nappliesTo: [ws://operators/analyst, ws://skills/gone, ../analyst, ../nobody]",
            ),
        );
        let folder = file.parent().unwrap().canonicalize().unwrap();
        let document = read_manifest(&file).unwrap();
        let check = |root: Option<&Path>| -> Vec<String> {
            let found = check_manifest("KNOWLEDGE.md", &document, &ManifestPlace { folder: &folder, root });
            found.into_iter().map(|finding| finding.field.unwrap().to_string()).collect()
        };
        assert_eq!(check(None), ["appliesTo[1]", "appliesTo[3]"]);
        let vault = folder.parent().unwrap().parent().unwrap();
        assert_eq!(check(Some(vault)), ["appliesTo[1]", "appliesTo[3]"]);
        assert_eq!(check(Some(&folder)), ["appliesTo[0]", "appliesTo[1]", "appliesTo[3]"]);
    }
}
