use super::*;
use crate::wiki::folder::WikiFolder;
use cap_std::ambient_authority;
use cap_std::fs::Dir;
use steward_domain::wiki::page::read_page;

const PAGE: &str = "entities/plot-12.md";
const SOURCE: &str = "sources/lease.md";

fn render_page(title: &str) -> String {
    format!(
        "---\nschema: knowledge.entry/v1\nslug: plot-12\nkind: entity\ntitle: {title}\nupdated_at: \"2026-11-22T09:15:04Z\"\n---\nThe lease ends.\n"
    )
}

/// A folder with a page, and what a cache holds of it: another title than that in the file.
fn prepare() -> (tempfile::TempDir, ReadCache) {
    let dir = tempfile::tempdir().unwrap();
    for folder in ["entities", "sources"] {
        std::fs::create_dir(dir.path().join(folder)).unwrap();
    }
    std::fs::write(dir.path().join(PAGE), render_page("In the file")).unwrap();
    std::fs::write(dir.path().join(SOURCE), "The lease ends.\n").unwrap();
    let hash = "0".repeat(64);
    let registry = format!(
        r#"[{{"schema":"knowledge.source/v1","id":"lease","title":"Lease","path":"{SOURCE}","captured_at":"2026-11-22T09:15:04Z","content_hash":"sha256:{hash}"}}]"#
    );
    std::fs::write(dir.path().join("_sources.json"), registry).unwrap();
    let opened = Dir::open_ambient_dir(dir.path(), ambient_authority()).unwrap();
    let stamp = |file: &str| FileStamp::new(&opened.symlink_metadata(file).unwrap());
    let mut kept = KeptWiki::default();
    let content = read_page(PAGE, render_page("In the cache").as_bytes());
    kept.pages.insert(PAGE.to_owned(), KeptFile { stamp: stamp(PAGE), content });
    kept.hashes.insert(SOURCE.to_owned(), KeptFile { stamp: stamp(SOURCE), content: format!("sha256:{hash}") });
    let cache = ReadCache::default();
    cache.keep(&dir.path().canonicalize().unwrap(), kept);
    (dir, cache)
}

fn read_titles(dir: &Path, cache: &ReadCache) -> Vec<String> {
    let contents = WikiFolder::open(dir).unwrap().read_changed(cache);
    contents.pages.iter().map(|page| page.title.clone()).collect()
}

#[test]
fn a_page_is_read_again_only_when_its_file_changed() {
    let (dir, cache) = prepare();
    assert_eq!(read_titles(dir.path(), &cache), ["In the cache"]);
    let (dir, cache) = prepare();
    // The same size, and the time of the last change set back: the file system still says that it changed.
    let meta = std::fs::metadata(dir.path().join(PAGE)).unwrap();
    std::fs::write(dir.path().join(PAGE), render_page("On the disk")).unwrap();
    let file = std::fs::File::options().write(true).open(dir.path().join(PAGE)).unwrap();
    file.set_modified(meta.modified().unwrap()).unwrap();
    drop(file);
    assert_eq!(meta.len(), std::fs::metadata(dir.path().join(PAGE)).unwrap().len());
    assert_eq!(read_titles(dir.path(), &cache), ["On the disk"]);
    std::fs::remove_file(dir.path().join(PAGE)).unwrap();
    assert_eq!(read_titles(dir.path(), &cache), [""; 0]);
}

#[test]
fn a_source_is_hashed_again_only_when_its_file_changed() {
    let (dir, cache) = prepare();
    let read = || WikiFolder::open(dir.path()).unwrap().read_changed(&cache).source_hashes[SOURCE].clone().unwrap();
    assert_eq!(read(), format!("sha256:{}", "0".repeat(64)));
    std::fs::write(dir.path().join(SOURCE), "The lease is over.\n").unwrap();
    assert!(!read().contains("0000"), "{}", read());
}

#[test]
fn what_changed_a_moment_ago_is_not_kept() {
    let (dir, _) = prepare();
    let cache = ReadCache::default();
    assert_eq!(read_titles(dir.path(), &cache), ["In the file"]);
    let kept = cache.find(&dir.path().canonicalize().unwrap());
    assert_eq!((kept.pages.len(), kept.hashes.len()), (0, 0));
    let mut kept = KeptWiki::default();
    let old = FileStamp { size: 1, inode: 1, modified_ns: 1, changed_ns: 1 };
    let page = read_page(PAGE, render_page("Old").as_bytes());
    kept.add_page(PAGE, old, &page);
    kept.add_page("other.md", FileStamp { changed_ns: i128::MAX / 2, ..old }, &page);
    assert_eq!(kept.find_page(PAGE, old), Some(page));
    assert_eq!(kept.pages.len(), 1);
}

#[test]
fn the_text_that_is_kept_is_bounded() {
    let old = FileStamp { size: 1, inode: 1, modified_ns: 1, changed_ns: 1 };
    let text = render_page("Large") + &"x ".repeat(100_000);
    let page = read_page(PAGE, text.as_bytes());
    let fill = || {
        let mut kept = KeptWiki::default();
        (0..400).for_each(|number| kept.add_page(&format!("p-{number}.md"), old, &page));
        kept
    };
    assert_eq!(fill().pages.len(), MAX_KEPT_BYTES / text.len());
    let cache = ReadCache::default();
    cache.keep(Path::new("/one"), fill());
    cache.keep(Path::new("/two"), fill());
    assert_eq!((cache.find(Path::new("/one")).bytes, cache.find(Path::new("/two")).pages.is_empty()), (0, false));
}
