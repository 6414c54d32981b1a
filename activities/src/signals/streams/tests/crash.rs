//! Kills the process at every point of the intake; the next start recovers.
//!
//! A child process ingests a drop folder and kills itself at the point. This process then plays the restart and checks
//! the files.

use super::*;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use steward_vault::files::crash::INTAKE;

const FOLDER: &str = "STEWARD_TEST_INTAKE";
const CHILD: &str = "signals::streams::tests::crash::a_child_takes_everything_in_and_dies_where_it_is_told";
const SIGKILL: i32 = 9;
/// The number of dropped lines, more than fit into one batch. Two mails come with them.
const LINES: usize = 450;

async fn take_in(folder: &Path) {
    let writer = Arc::new(VaultWriter::lock(VaultRoot::open(&folder.join("vault")).unwrap()).unwrap());
    let index = Arc::new(Index::open(&folder.join("state")).await.unwrap());
    let StreamSource::Polled(mut adapter) = StreamConfig::default_inbox().unwrap().open(writer.root()).unwrap() else {
        panic!()
    };
    let mut intake = Intake::new("inbox", Arc::clone(&writer), Arc::clone(&index));
    adapter.read_round(&mut intake).await.unwrap();
    index.close().await;
}

#[tokio::test]
async fn a_child_takes_everything_in_and_dies_where_it_is_told() {
    let Ok(folder) = std::env::var(FOLDER) else { return };
    take_in(Path::new(&folder)).await;
}

#[tokio::test]
async fn whatever_point_the_power_goes_out_at_each_thing_is_stored_once() {
    let everywhere = INTAKE.iter().flat_map(|point| [1, 2, 3].map(|times| (*point, times)));
    for (point, times) in everywhere {
        let bench = StreamFixture::new().await;
        let text: String = (0..LINES).map(|n| format!("{{\"text\":\"event {n}\"}}\n")).collect();
        bench.put("inbox/a.jsonl", text);
        bench.put("inbox/b.eml", "From: a@b.example\r\n\r\nmail one");
        bench.put("inbox/c.eml", "From: a@b.example\r\n\r\nmail two");
        let StreamFixture { dir, writer, index } = bench;
        index.close().await;
        drop(writer);
        let died = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", CHILD])
            .env(FOLDER, dir.path())
            .env("STEWARD_CRASH_AT", format!("{point}:{times}"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .unwrap();
        // Files are moved once for the mails and once for the lines.
        let is_met = times < 3 || point != "after-putting-away";
        assert_eq!(died.signal(), is_met.then_some(SIGKILL), "{point}:{times}");
        take_in(dir.path()).await;
        let names = |folder: &str| -> Vec<String> {
            let entries = fs::read_dir(dir.path().join("vault").join(folder)).unwrap();
            entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect()
        };
        assert_eq!(names("stream/inbox").len(), LINES + 2, "{point}:{times}");
        assert!(names("inbox").iter().all(|name| name == "done"), "{point}:{times}: {:?}", names("inbox"));
        assert!(names(".steward/staged").is_empty(), "{point}:{times}");
    }
}
