//! Requests about a wiki on a full disk, and on a folder of pages that cannot be written or lies on another file system.
//!
//! A child of this test has a small file system of its own in the place of `/dev/shm`, where the vaults of these tests are. A
//! request that fails names the file and the fix, and leaves the wiki as it was, to the byte. With space, or with the folder as
//! it was, the same request goes through.

use crate::desk::{Desk, names, settle};
use crate::disk::{fill, play_test};
use crate::ingest::FOLDER;
use crate::wiki_kills::{FLOWS, Seen, act, find_ends, prepare, see};
use std::path::Path;
use std::process::Command;

const SCENE: &str = "STEWARD_TEST_WIKI_DISK";
/// More than a wiki needs, and small enough to be filled at once.
const SIZE: &str = "size=2m";
const PAGE: usize = 4_096;

#[test]
fn a_child_plays_a_scene_of_a_wiki() {
    match std::env::var(SCENE).as_deref() {
        Ok("full") => FLOWS.into_iter().for_each(fill_step_by_step),
        Ok("read-only") => FLOWS.into_iter().for_each(lock_folder),
        Ok(other) => panic!("no scene {other}"),
        Err(_) => {}
    }
}

/// Plays a scene on a file system of its own, if this system allows it.
fn play(scene: &str) {
    if !Path::new("/dev/shm").is_dir() {
        println!("there is no /dev/shm: {scene} is not played");
        return;
    }
    let mount = format!("mount -t tmpfs -o {SIZE} tmpfs /dev/shm || exit 77");
    play_test("wiki_disk::a_child_plays_a_scene_of_a_wiki", &[(SCENE, scene.as_ref())], &mount);
}

#[test]
fn a_full_disk_leaves_a_wiki_as_it_was_and_names_the_fix() {
    play("full");
}

#[test]
fn a_folder_of_pages_that_cannot_be_written_leaves_the_rest_as_it_was_and_is_named() {
    play("read-only");
}

/// Checks a request that failed: it names a file and a fix, and nothing is half done.
fn failed_cleanly(desk: &Desk, before: &Seen, message: &str, what: &str) {
    let has_fix =
        ["free some space", "make the vault writable", "one file system"].iter().any(|fix| message.contains(fix));
    assert!(has_fix && message.contains('/'), "{what}: no file or no fix: {message}");
    assert_eq!(&see(desk), before, "{what}: half done: {message}");
    for folder in [".steward", ".steward/journal", ".steward/staged"] {
        let left = names(&desk.file(folder));
        assert!(!left.iter().any(|name| name.ends_with(".tmp")), "{what}: {folder}: {left:?}");
    }
}

/// Leaves more and more space, page by page, until the request goes through.
fn fill_step_by_step(flow: &str) {
    let ([before, after], mut failures) = (find_ends(flow), 0);
    let desk = prepare(flow);
    let writer = desk.writer();
    let ballast = desk.state().join("ballast");
    for free in 0.. {
        fill(&ballast);
        let size = usize::try_from(std::fs::metadata(&ballast).unwrap().len()).unwrap();
        let keep = u64::try_from(size.saturating_sub(free * PAGE)).unwrap();
        std::fs::OpenOptions::new().write(true).open(&ballast).unwrap().set_len(keep).unwrap();
        let tried = act(&writer, flow);
        let Err(message) = tried else { break };
        failed_cleanly(&desk, &before, &message, &format!("{flow} with {free} pages"));
        std::fs::remove_file(&ballast).unwrap();
        failures += 1;
    }
    std::fs::remove_file(&ballast).unwrap();
    assert!(failures > 2, "{flow}: the disk was full {failures} times");
    assert!(act(&writer, flow).unwrap(), "{flow}");
    settle(&writer);
    assert_eq!(see(&desk), after, "{flow}");
    desk.is_tidy();
}

/// Mounts the wiki's folders of pages on themselves, writable or not, and takes the mount away again.
fn lock_folder(flow: &str) {
    let [before, after] = find_ends(flow);
    for options in ["bind", "remount,bind,ro"] {
        let desk = prepare(flow);
        let writer = desk.writer();
        let folder = desk.file(FOLDER);
        let run = |program: &str, arguments: &[&str]| {
            assert!(Command::new(program).args(arguments).arg(&folder).status().unwrap().success(), "{program}");
        };
        assert!(Command::new("mount").arg("--bind").args([&folder, &folder]).status().unwrap().success());
        if options != "bind" {
            run("mount", &["-o", options]);
        }
        let message = act(&writer, flow).unwrap_err();
        failed_cleanly(&desk, &before, &message, &format!("{flow} under {options}"));
        run("umount", &[]);
        assert!(!act(&writer, flow).unwrap(), "{flow} under {options}");
        settle(&writer);
        assert_eq!(see(&desk), after, "{flow} under {options}");
        desk.is_tidy();
    }
}
