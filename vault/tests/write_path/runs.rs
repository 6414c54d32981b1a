//! Runs of a wiki: many files in one transaction, beside people and through crashes.
//!
//! A child process commits a run and kills itself at each point, at each file. The wiki is then wholly before the run or
//! wholly after it, with one record or none.

use crate::desk::{self, Desk, faults, lock, names, noon, settle};
use crate::wiki_desk::{WIKI, after, before, commit, plan, read_wiki, record_path, run, trash, wiki, wiki_records};
use std::path::Path;
use steward_domain::wiki::finding::{FindingCode, Severity, WikiFinding};
use steward_domain::wiki::run::{RunId, WikiRunType};
use steward_vault::action::writer::{ApplyError, VaultWriter};
use steward_vault::files::crash::{MANY_FILES, POINTS};
use steward_vault::wiki::health::check_wiki;
use steward_vault::wiki::runs::list_unreached_files;

const VAULT: &str = "STEWARD_TEST_WIKI_VAULT";

#[test]
fn a_run_is_committed_once_with_everything_in_place() {
    let desk = wiki();
    let writer = desk.writer();
    assert!(!commit(&writer).unwrap());
    assert_eq!(read_wiki(&desk), after());
    assert_eq!(trash(&desk), ["old-0.md", "old-1.md", "old-2.md"]);
    assert!(commit(&writer).unwrap(), "asked again, it is found");
    settle(&writer);
    assert_eq!((read_wiki(&desk), wiki_records(&desk).len()), (after(), 1));
    assert_eq!(wiki_records(&desk)[0].missing_files, Vec::<String>::new());
    desk.is_tidy();
}

#[test]
fn a_child_commits_a_run_and_dies_where_it_is_told() {
    let Ok(vault) = std::env::var(VAULT) else { return };
    let writer = lock(Path::new(&vault));
    match Path::new(&vault).join("large").exists() {
        false => drop(commit(&writer).unwrap()),
        true => commit_large(&writer),
    }
    settle(&writer);
}

/// Commits the run with ten long pages, as they stand.
fn commit_large(writer: &VaultWriter) {
    let (mut first, mut wanted) = (before(), after());
    for n in 0..10 {
        let name = format!("entities/page-{n:02}.md");
        let text = std::fs::read_to_string(writer.root().path().join(WIKI).join(&name)).unwrap();
        wanted.insert(name.clone(), text.replacen("Words", "New words", 1));
        first.insert(name, text);
    }
    writer.commit_run(&plan(run(WikiRunType::Manual, "a"), &first, &wanted)).unwrap();
}

/// Runs the child; returns whether it died.
fn dies(desk: &Desk, point: &str) -> bool {
    let test = "runs::a_child_commits_a_run_and_dies_where_it_is_told";
    desk::dies(test, &[(VAULT, desk.path().as_os_str())], point)
}

/// A wiki in which a run died after nine exchanges.
fn interrupted_wiki() -> Desk {
    let desk = wiki();
    assert!(dies(&desk, "between-exchanges:9"));
    desk
}

/// The restart: the wiki is before the run or after it, and the run can be committed then.
fn restart(desk: &Desk, what: &str) {
    let writer = desk.writer();
    let records = wiki_records(desk);
    let expected = if records.is_empty() { before() } else { after() };
    assert_eq!(read_wiki(desk), expected, "{what}");
    assert_eq!(trash(desk).len(), if records.is_empty() { 0 } else { 3 }, "{what}");
    assert_eq!(commit(&writer).unwrap(), !records.is_empty(), "{what}");
    settle(&writer);
    assert_eq!((read_wiki(desk), wiki_records(desk).len()), (after(), 1), "{what}");
    desk.is_tidy();
}

#[test]
fn a_crash_at_any_point_and_any_file_leaves_the_wiki_before_the_run_or_after_it() {
    let mut deaths = 0;
    for point in POINTS.into_iter().chain(MANY_FILES) {
        for pass in 1.. {
            let (desk, at) = (wiki(), format!("{point}:{pass}"));
            if !dies(&desk, &at) {
                restart(&desk, &at);
                break;
            }
            deaths += 1;
            assert_eq!(faults(&desk.root()), Vec::<String>::new(), "{at}: a reader before the restart");
            restart(&desk, &at);
        }
    }
    assert!(deaths > 60, "only {deaths} deaths: 20 files are exchanged");
}

/// A second crash while the first one is recovered.
#[test]
fn a_crash_during_the_recovery_of_a_run_changes_nothing() {
    for first in ["after-swap:1", "between-exchanges:7", "between-exchanges:16"] {
        for second in ["after-swap:1", "before-filing:1", "after-filing:1", "after-chain-head:1"] {
            let desk = wiki();
            assert!(dies(&desk, first));
            assert!(dies(&desk, second), "{first}, then {second}");
            restart(&desk, &format!("{first}, then {second}"));
        }
    }
}

/// A crash at each file while several are taken back.
#[test]
fn a_crash_while_a_run_is_taken_back_leaves_the_wiki_before_the_run() {
    for pass in 1..=9 {
        let desk = interrupted_wiki();
        desk.write(&format!("{WIKI}/_index.md"), b"# Index\n- mine\n");
        assert!(dies(&desk, &format!("after-giving-back:{pass}")), "nine files go back");
        let writer = desk.writer();
        let mut expected = before();
        expected.insert("_index.md".into(), "# Index\n- mine\n".into());
        assert_eq!((read_wiki(&desk), wiki_records(&desk).len(), trash(&desk).len()), (expected, 0, 0), "{pass}");
        settle(&writer);
        desk.is_tidy();
    }
}

#[test]
fn a_run_with_a_record_of_two_mebibytes_recovers_and_names_what_is_missing() {
    let desk = wiki();
    let large = "Words of a long page.\n".repeat(10_000);
    let (mut first, mut wanted) = (before(), after());
    for n in 0..10 {
        let name = format!("entities/page-{n:02}.md");
        first.insert(name.clone(), large.clone());
        desk.write(&format!("{WIKI}/{name}"), large.as_bytes());
        wanted.insert(name, large.replacen("Words", "New words", 1));
    }
    std::fs::write(desk.file("large"), "").unwrap();
    assert!(dies(&desk, "between-exchanges:9"), "the child finds the file `large`");
    desk.write(&format!("{WIKI}/entities/page-00.md"), b"# Page 0, mine\n");
    desk.write(&format!("{WIKI}/_index.md"), b"# Index\n- mine\n");
    let writer = desk.writer();
    let records = wiki_records(&desk);
    assert_eq!(records[0].missing_files, [format!("{WIKI}/_index.md")]);
    assert!(std::fs::metadata(desk.file(&record_path())).unwrap().len() > 2 << 20);
    wanted.insert("entities/page-00.md".into(), "# Page 0, mine\n".into());
    wanted.insert("_index.md".into(), "# Index\n- mine\n".into());
    assert_eq!(read_wiki(&desk), wanted);
    settle(&writer);
    desk.is_tidy();
}

#[test]
fn a_folder_that_became_a_link_after_a_crash_blocks_nothing() {
    for pass in 1..=18 {
        let desk = wiki();
        assert!(dies(&desk, &format!("between-exchanges:{pass}")));
        let (folder, moved) = (desk.file(&format!("{WIKI}/entities")), desk.file("moved"));
        std::fs::rename(&folder, &moved).unwrap();
        std::os::unix::fs::symlink(&moved, &folder).unwrap();
        let writer = desk.writer();
        let (records, is_new) = (wiki_records(&desk), moved.join("new-0.md").exists());
        assert_eq!(records.len(), usize::from(is_new), "{pass}: what is in place is on the record");
        assert!(records.iter().all(|record| pass == 18 || !record.missing_files.is_empty()), "{pass}");
        settle(&writer);
        desk.is_tidy();
    }
}

#[test]
fn a_person_at_a_file_that_was_not_exchanged_yet_takes_the_run_back_after_a_crash() {
    let desk = interrupted_wiki();
    desk.write(&format!("{WIKI}/_index.md"), b"# Index\n- mine\n");
    let writer = desk.writer();
    let mut expected = before();
    expected.insert("_index.md".into(), "# Index\n- mine\n".into());
    assert_eq!((read_wiki(&desk), wiki_records(&desk).len(), trash(&desk).len()), (expected, 0, 0));
    assert!(matches!(commit(&writer), Err(ApplyError::ChangedMeanwhile { .. })));
    settle(&writer);
    desk.is_tidy();
}

#[test]
fn a_person_at_a_file_that_was_exchanged_keeps_the_edit_and_the_run_goes_on_after_a_crash() {
    let desk = interrupted_wiki();
    let page = format!("{WIKI}/entities/page-00.md");
    assert!(desk.read(&page).contains("New"), "the first page is exchanged");
    desk.write(&page, b"# Page 0, mine\n");
    let writer = desk.writer();
    let mut expected = after();
    expected.insert("entities/page-00.md".into(), "# Page 0, mine\n".into());
    assert_eq!((read_wiki(&desk), wiki_records(&desk).len()), (expected, 1));
    assert_eq!(wiki_records(&desk)[0].missing_files, Vec::<String>::new(), "an edit on top of the change");
    settle(&writer);
    desk.is_tidy();
}

#[test]
fn people_at_both_get_a_record_that_names_what_is_missing() {
    let desk = interrupted_wiki();
    desk.write(&format!("{WIKI}/entities/page-00.md"), b"# Page 0, mine\n");
    desk.write(&format!("{WIKI}/_index.md"), b"# Index\n- mine\n");
    // Another crash between the record's new text and its filing.
    assert!(dies(&desk, "before-filing:1"));
    let writer = desk.writer();
    let mut expected = after();
    expected.insert("entities/page-00.md".into(), "# Page 0, mine\n".into());
    expected.insert("_index.md".into(), "# Index\n- mine\n".into());
    assert_eq!(read_wiki(&desk), expected);
    let records = wiki_records(&desk);
    assert_eq!(records.len(), 1);
    assert_eq!(records[0].missing_files, [format!("{WIKI}/_index.md")]);
    assert!(commit(&writer).unwrap());
    settle(&writer);
    desk.is_tidy();
    // A check names the record.
    desk.write(&format!("{WIKI}/KNOWLEDGE.md"), b"---\n---\n");
    let checked = check_wiki(&desk.file(WIKI), noon()).unwrap();
    let partial: Vec<&WikiFinding> =
        checked.findings.iter().filter(|it| it.code == FindingCode::PartialIngest).collect();
    let [finding] = partial[..] else { panic!("{:#?}", checked.findings) };
    assert_eq!((finding.file.as_str(), finding.severity), ("_index.md", Severity::Error));
    assert!(finding.problem.contains(&record_path()), "{finding}");
    // Rendered anew, it is in place.
    let unreached = || list_unreached_files(&desk.root(), "plot").unwrap().len();
    assert_eq!(unreached(), 1);
    let mut now = read_wiki(&desk);
    now.remove("KNOWLEDGE.md");
    let mut wanted = now.clone();
    wanted.insert("_index.md".into(), "# Index\n".into());
    let mut later = run(WikiRunType::Lint, "later");
    later.mark.run = RunId::derive(noon() + chrono::TimeDelta::minutes(1), &["later"]);
    writer.commit_run(&plan(later, &now, &wanted)).unwrap();
    assert_eq!(unreached(), 0);
}

#[test]
fn a_new_file_whose_name_a_person_took_and_a_removed_one_that_they_edited_stop_the_run() {
    for (file, text) in [("entities/new-1.md", "mine\n"), ("entities/old-1.md", "# Old 1, still wanted\n")] {
        let desk = wiki();
        let writer = desk.writer();
        desk.write(&format!("{WIKI}/{file}"), text.as_bytes());
        assert!(matches!(commit(&writer), Err(ApplyError::ChangedMeanwhile { .. })), "{file}");
        let mut expected = before();
        expected.insert(file.into(), text.into());
        assert_eq!((read_wiki(&desk), wiki_records(&desk).len()), (expected, 0), "{file}");
        settle(&writer);
        desk.is_tidy();
    }
}

#[test]
fn a_link_in_the_place_of_a_folder_leads_no_run_out_of_its_wiki() {
    let desk = wiki();
    let outside = desk.file("task");
    std::fs::remove_dir_all(desk.file(&format!("{WIKI}/sources"))).unwrap();
    std::os::unix::fs::symlink(&outside, desk.file(&format!("{WIKI}/sources"))).unwrap();
    let writer = desk.writer();
    let error = commit(&writer).unwrap_err().to_string();
    assert!(error.contains("link"), "{error}");
    assert_eq!((names(&outside), wiki_records(&desk).len()), (vec!["pay.md".to_owned()], 0));
    settle(&writer);
    std::fs::remove_file(desk.file(&format!("{WIKI}/sources"))).unwrap();
    assert_eq!(read_wiki(&desk), before());
    desk.is_tidy();
}

#[test]
fn under_a_stop_no_run_is_committed_but_a_rollback() {
    let desk = wiki();
    let writer = desk.writer();
    let stop = steward_vault::gates::stop::VaultStop { at: "now".into(), by: "ann".into(), reason: None };
    steward_vault::gates::stop::stop_vault(&desk.root(), &stop).unwrap();
    assert!(matches!(commit(&writer), Err(ApplyError::Stopped)));
    assert_eq!(read_wiki(&desk), before());
    writer.commit_run(&plan(run(WikiRunType::Rollback, "b"), &before(), &after())).unwrap();
    assert_eq!(read_wiki(&desk), after());
}

/// Words that a person added, each of them once.
struct Words {
    page: std::path::PathBuf,
    count: u32,
}

impl Words {
    /// Adds a word to whatever the page holds now, as an editor of either kind saves it. Now and then the page is moved away
    /// and back.
    fn add(&mut self) {
        // So that people come at every moment of a commit.
        (0..self.count * 7_919 % 1_500).for_each(|_| std::thread::yield_now());
        let Ok(text) = std::fs::read_to_string(&self.page) else { return };
        self.count += 1;
        let text = format!("{text}word-{}-{}.\n", self.page.file_stem().unwrap().display(), self.count);
        let new = self.page.with_extension("new");
        match self.count % 3 {
            0 => std::fs::write(&self.page, text).unwrap(),
            _ => {
                std::fs::write(&new, text).unwrap();
                std::fs::rename(&new, &self.page).unwrap();
            }
        }
        if self.count.is_multiple_of(7) && std::fs::rename(&self.page, &new).is_ok() {
            std::fs::rename(&new, &self.page).unwrap();
        }
    }
}

/// Every text that a person can find: the wiki, its trash and the conflicts.
fn all_texts(desk: &Desk) -> String {
    let mut texts: Vec<String> = read_wiki(desk).into_values().collect();
    texts.extend(desk.conflicts());
    for run in names(&desk.file(&format!("{WIKI}/.trash"))) {
        let folder = format!("{WIKI}/.trash/{run}/entities");
        texts.extend(names(&desk.file(&folder)).iter().map(|name| desk.read(&format!("{folder}/{name}"))));
    }
    texts.concat()
}

#[test]
fn no_word_of_a_person_is_lost_beside_many_runs() {
    let runs: u32 = std::env::var("WIKI_RUNS").ok().and_then(|text| text.parse().ok()).unwrap_or(200);
    let desk = wiki();
    let writer = desk.writer();
    let page = |n: u32| desk.file(&format!("{WIKI}/entities/page-{n:02}.md"));
    let (mut committed, mut refused) = (0, 0);
    let people: Vec<Words> = std::thread::scope(|threads| {
        let people: Vec<_> = (0..2)
            .map(|person| {
                let (turn, turns) = std::sync::mpsc::channel::<()>();
                let mut pages: Vec<Words> = (0..4).map(|n| Words { page: page(person * 4 + n), count: 0 }).collect();
                let person = threads.spawn(move || {
                    turns.iter().for_each(|()| pages.iter_mut().for_each(Words::add));
                    pages
                });
                (turn, person)
            })
            .collect();
        for number in 0..runs {
            let now = read_wiki(&desk);
            let mut wanted = now.clone();
            let log = format!("\n## [2026-11-21T12:00:00Z] manual | {number}\n");
            wanted.entry("_log.md".into()).and_modify(|text| text.push_str(&log));
            // Each run changes most pages, and makes a page that the next but one removes.
            for (name, text) in wanted.iter_mut().filter(|(name, _)| name.starts_with("entities/page-")) {
                *text = format!("# {name} by run {number}\n{}", text.split_once('\n').map_or("", |(_, below)| below));
            }
            wanted.insert(format!("entities/new-{number}.md"), "# New\n".into());
            wanted.remove(&format!("entities/new-{}.md", number.wrapping_sub(2)));
            let run = run(WikiRunType::Manual, &number.to_string());
            for ((turn, _), every) in people.iter().zip([3, 4]) {
                if number % every == 0 {
                    turn.send(()).unwrap();
                }
            }
            match writer.commit_run(&plan(run, &now, &wanted)) {
                Ok(_) => committed += 1,
                Err(ApplyError::ChangedMeanwhile { .. } | ApplyError::Root(_)) => refused += 1,
                Err(e) => panic!("{e}"),
            }
            if number % 5 == 0 {
                settle(&writer);
            }
        }
        people
            .into_iter()
            .flat_map(|(turn, person)| {
                drop(turn);
                person.join().unwrap()
            })
            .collect()
    });
    settle(&writer);
    // With nobody beside it, a run is committed.
    let now = read_wiki(&desk);
    let mut wanted = now.clone();
    wanted.insert("entities/last.md".into(), "# Last\n".into());
    writer.commit_run(&plan(run(WikiRunType::Manual, "last"), &now, &wanted)).unwrap();
    settle(&writer);
    let texts = all_texts(&desk);
    let mut words = 0;
    for person in &people {
        for number in 1..=person.count {
            words += 1;
            let word = format!("word-{}-{number}.", person.page.file_stem().unwrap().display());
            assert!(texts.contains(&word), "{word} is lost");
        }
    }
    println!("runs={runs} committed={committed} refused={refused} words={words} conflicts={}", desk.conflicts().len());
    assert!(committed + refused == runs && words > 50 && refused > 0, "{committed} {refused} {words}");
    assert_eq!(wiki_records(&desk).len(), committed as usize + 1);
    desk.is_tidy();
}
