//! Folders with pages, other files, links, pipes and bad names, and registries of sources.

use super::*;
use steward_domain::wiki::SOURCES_FILE;

const PAGE: &str = "---\nschema: knowledge.entry/v1\nslug: plot\nkind: entity\ntitle: Plot\nupdated_at: \"2026-11-22T09:15:04Z\"\n---\nA.\n";

fn wiki() -> (tempfile::TempDir, WikiFolder) {
    let dir = tempfile::tempdir().unwrap();
    for folder in ["entities", "sources", ".trash", "_drafts"] {
        std::fs::create_dir(dir.path().join(folder)).unwrap();
    }
    let folder = WikiFolder::open(dir.path()).unwrap();
    (dir, folder)
}

#[test]
fn pages_are_read_and_other_files_are_not() {
    let (dir, folder) = wiki();
    for file in ["entities/plot.md", ".trash/a.md", "_drafts/a.md", "sources/a.md"] {
        std::fs::write(dir.path().join(file), PAGE).unwrap();
    }
    std::fs::write(dir.path().join("notes.md"), "# Mine\n").unwrap();
    std::fs::write(dir.path().join("large.md"), "x".repeat(MAX_PAGE_BYTES + 1)).unwrap();
    std::fs::write(dir.path().join(INDEX_FILE), "# Index: W\n").unwrap();
    let read = folder.read();
    let files: Vec<&str> = read.pages.iter().map(|page| page.file.as_str()).collect();
    assert_eq!((files, read.files.contains("sources/a.md")), (vec!["entities/plot.md"], true));
    assert_eq!((read.index.as_deref(), read.log, read.findings), (Some("# Index: W\n"), None, Vec::new()));
}

#[test]
fn a_page_that_is_too_large_or_has_a_bad_name_is_named() {
    let (dir, folder) = wiki();
    std::fs::write(dir.path().join("entities/large.md"), format!("{PAGE}{}", "x".repeat(MAX_PAGE_BYTES))).unwrap();
    std::fs::write(dir.path().join("entities/--rf.md"), PAGE).unwrap();
    let mut found: Vec<String> = folder.read().findings.into_iter().map(|finding| finding.file).collect();
    found.sort();
    assert_eq!(found, ["entities/--rf.md", "entities/large.md"]);
}

#[test]
fn links_pipes_and_names_with_line_breaks_are_named_and_never_opened() {
    let (dir, folder) = wiki();
    std::os::unix::fs::symlink("/etc/hostname", dir.path().join("entities/link.md")).unwrap();
    std::os::unix::fs::symlink("/etc", dir.path().join("etc")).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, dir.path().join("entities/pipe.md"), rustix::fs::Mode::RUSR).unwrap();
    std::fs::write(dir.path().join("entities/a\nb.md"), PAGE).unwrap();
    let read = folder.read();
    let mut shown: Vec<String> = read.findings.iter().map(ToString::to_string).collect();
    shown.sort();
    assert_eq!((read.pages.len(), shown.len()), (0, 3), "{shown:#?}");
    assert!(shown.iter().all(|line| !line.contains('\n')), "{shown:#?}");
    assert!(shown[1].contains("a symbolic link") && shown[2].contains("not a regular file"), "{shown:#?}");
}

#[test]
fn sources_are_hashed_as_the_registry_names_them() {
    let (dir, folder) = wiki();
    let source = |id: &str, path: &str| {
        format!(
            "{{\"schema\":\"knowledge.source/v1\",\"id\":\"{id}\",\"path\":\"{path}\",\"title\":\"T\",\"captured_at\":\"2026-11-20T10:00:00Z\",\"content_hash\":\"sha256:00\"}}"
        )
    };
    std::fs::write(dir.path().join("sources/a.txt"), "abc").unwrap();
    let out = dir.path().join("secret");
    std::fs::write(&out, "secret").unwrap();
    let items = [source("aa", "sources/a.txt"), source("bb", "sources/b.txt"), source("cc", "sources/../secret")];
    std::fs::write(dir.path().join(SOURCES_FILE), format!("[{}]", items.join(","))).unwrap();
    let read = folder.read();
    let abc = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    assert_eq!(read.source_hashes["sources/a.txt"].as_deref(), Some(abc));
    assert_eq!(read.source_hashes["sources/b.txt"], None);
    assert!(!read.source_hashes.contains_key("sources/../secret"));
    assert_eq!((read.sources.len(), read.has_registry, read.findings.len()), (3, true, 1));
}

#[test]
fn sources_without_a_registry_describe_themselves() {
    let (dir, folder) = wiki();
    let text = "---\nschema: knowledge.source/v1\nid: call\npath: sources/call.md\ntitle: A call\ncaptured_at: \"2026-04-27T15:00:00Z\"\ncontent_hash: sha256:9f1b\n---\nWords.\n";
    std::fs::write(dir.path().join("sources/call.md"), text).unwrap();
    let read = folder.read();
    assert_eq!((read.sources.contains_key("call"), read.has_registry, read.findings), (true, false, Vec::new()));
}
