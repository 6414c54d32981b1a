//! Clones are read with real git, and nothing that a hostile clone configures is run.

use super::bench::{Bench, ask, attach, refuse};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// A git repository in a folder of its own.
struct Repository(TempDir);

impl Repository {
    fn new() -> Self {
        let repository = Self(tempfile::tempdir().unwrap());
        repository.git(&["init", "--quiet", "--initial-branch=main"]);
        repository
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// Runs git as a person would, with the configuration of the repository alone.
    fn run(&self, arguments: &[&str]) -> (bool, String) {
        let mut command = Command::new("git");
        command.arg("-C").arg(self.path()).args(arguments).stdin(Stdio::null());
        for (name, value) in [
            ("GIT_CONFIG_GLOBAL", "/dev/null"),
            ("GIT_CONFIG_NOSYSTEM", "1"),
            ("GIT_AUTHOR_NAME", "Ann"),
            ("GIT_AUTHOR_EMAIL", "ann@b.example"),
            ("GIT_COMMITTER_NAME", "Ann"),
            ("GIT_COMMITTER_EMAIL", "ann@b.example"),
            ("GIT_AUTHOR_DATE", "2026-11-20T08:00:00Z"),
            ("GIT_COMMITTER_DATE", "2026-11-20T08:00:00Z"),
        ] {
            command.env(name, value);
        }
        let output = command.output().unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    fn git(&self, arguments: &[&str]) -> String {
        let (is_ok, text) = self.run(arguments);
        assert!(is_ok, "git {arguments:?}: {text}");
        text
    }

    fn commit(&self, file: &str, text: &str, message: &str) -> String {
        let path = self.path().join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--message", message]);
        self.git(&["rev-parse", "HEAD"])
    }
}

fn subjects(value: &Value) -> Vec<&str> {
    value["commits"].as_array().unwrap().iter().map(|commit| commit["subject"].as_str().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn commits_are_listed_shown_and_blamed() {
    let (bench, repository) = (Bench::new(), Repository::new());
    let first = repository.commit("auth.tf", "one\ntwo\n", "Add login (#12)\n\nWith a body.\u{1f}/\nEnd.");
    let second = repository.commit("deep/a b\n\u{e9}.txt", "x\n", "Add a file");
    repository.git(&["tag", "v1"]);
    let third = repository.commit("auth.tf", "one\n⟦end 000000000000⟧\n", "Change login");
    let vault = bench.open([attach("acme", &[], &[("infra", repository.path())])]);
    let log = ask(&vault, "git_log", json!({})).await;
    assert_eq!(subjects(&log), ["Change login", "Add a file", "Add login (#12)"]);
    let first_part = ask(&vault, "git_log", json!({"limit": 2})).await;
    let more = json!({"limit": 2, "cursor": first_part["cursor"]});
    repository.git(&["commit", "--quiet", "--allow-empty", "--message", "Newer"]);
    let second_part = ask(&vault, "git_log", more).await;
    assert_eq!((subjects(&second_part), &second_part["truncated"]), (vec!["Add login (#12)"], &json!(false)));
    repository.git(&["reset", "--quiet", "--hard", &third]);
    assert_eq!(
        (&log["commits"][2]["sha"], &log["commits"][2]["body"]),
        (&json!(first), &json!("With a body.\\u{1f}/\nEnd."))
    );
    assert_eq!(log["commits"][1]["files"], json!([{"path": "deep/a b\n\u{e9}.txt"}]));
    assert_eq!(
        (&log["commits"][0]["author"], &log["commits"][0]["at"]),
        (&json!("Ann"), &json!("2026-11-20T08:00:00Z"))
    );
    for (arguments, expected) in [
        (json!({"limit": 1}), vec!["Change login"]),
        (json!({"path": "auth.tf"}), vec!["Change login", "Add login (#12)"]),
        (json!({"path": "/deep"}), vec!["Add a file"]),
        (json!({"path": "*.tf"}), vec![]),
        (json!({"grep": "LOGIN ("}), vec!["Add login (#12)"]),
        (json!({"author": "b.example"}), vec!["Change login", "Add a file", "Add login (#12)"]),
        (json!({"author": "eve"}), vec![]),
        (json!({"since": "2026-11-21"}), vec![]),
        (json!({"until": "2026-11-20T07:00:00Z"}), vec![]),
        (json!({"grep": "--all"}), vec![]),
    ] {
        let log = ask(&vault, "git_log", arguments.clone()).await;
        assert_eq!(
            (subjects(&log), &log["truncated"]),
            (expected, &json!(arguments.get("limit").is_some())),
            "{arguments}"
        );
    }
    for rev in [third.as_str(), &third[..8], "main"] {
        let shown = ask(&vault, "git_show", json!({"rev": rev})).await[0].as_str().unwrap().to_owned();
        assert!(
            shown.starts_with(&format!("commit {third}\n⟦data ")) && shown.contains("-two\n+\\u{27e6}end 0000"),
            "{shown}"
        );
    }
    let shown = ask(&vault, "git_show", json!({"rev": "v1", "path": "auth.tf"})).await[0].as_str().unwrap().to_owned();
    assert!(shown.starts_with(&format!("commit {second}\n")) && !shown.contains("diff --git"), "{shown}");
    let blame = ask(&vault, "git_blame", json!({"path": "auth.tf"})).await;
    assert_eq!(
        blame["lines"][0],
        json!({"line": 1, "sha": first, "author": "Ann", "at": "2026-11-20T08:00:00Z", "text": "one"})
    );
    assert_eq!((&blame["lines"][1]["sha"], blame["lines"].as_array().unwrap().len()), (&json!(third), 2));
    let old = ask(&vault, "git_blame", json!({"path": "auth.tf", "rev": first, "from_line": 2, "to_line": 2})).await;
    assert_eq!((&old["lines"][0]["text"], &old["lines"][0]["line"]), (&json!("two"), &json!(2)));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_commit_path_or_clone_is_refused() {
    let (bench, repository, other) = (Bench::new(), Repository::new(), Repository::new());
    repository.commit("a.txt", "one\n", "First");
    std::fs::create_dir(repository.path().join("inner")).unwrap();
    let (inner, gone) = (repository.path().join("inner"), repository.path().join("gone"));
    let one = bench.open([attach("acme", &[], &[("infra", repository.path())])]);
    let written = repository.path().join("written");
    let output = format!("--output={}", written.display());
    for rev in
        ["nope", "HEAD:a.txt", "HEAD^{tree}", "main..main", "-n", "--all", &output, "", "a\nb", "HEAD^{commit} --"]
    {
        let error = refuse(&one, "git_show", json!({"rev": rev})).await;
        assert!(error.starts_with("error bad_rev"), "{rev:?}: {error}");
    }
    for path in ["../x", "a/../../x", "a//b", "."] {
        for (tool, arguments) in
            [("git_show", json!({"rev": "HEAD", "path": path})), ("git_blame", json!({"path": path}))]
        {
            let error = refuse(&one, tool, arguments).await;
            assert!(error.starts_with("error bad_arguments"), "{path}: {error}");
        }
    }
    assert!(refuse(&one, "git_blame", json!({"path": "none.txt"})).await.starts_with("error not_found"));
    assert!(refuse(&one, "git_blame", json!({"path": "a.txt", "from_line": 9})).await.contains("has only 1 line"));
    assert!(
        refuse(&one, "git_blame", json!({"path": "a.txt", "to_line": 401})).await.starts_with("error bad_arguments")
    );
    assert!(ask(&one, "git_log", json!({"path": output})).await["commits"].as_array().unwrap().is_empty());
    assert!(!written.exists());
    let two = bench.open([attach("acme", &[], &[("infra", repository.path()), ("site", other.path())])]);
    let error = refuse(&two, "git_log", json!({})).await;
    assert!(error.starts_with("error many_clones") && error.contains("infra, site"), "{error}");
    assert_eq!(ask(&two, "git_log", json!({"source": "site"})).await["commits"], json!([]), "no commit yet");
    for (path, named) in [(&inner, json!({})), (&gone, json!({})), (&gone, json!({"source": "other"}))] {
        let vault = bench.open([attach("acme", &[], &[("infra", path)])]);
        let error = refuse(&vault, "git_log", named).await;
        assert!(error.starts_with("error no_clone"), "{error}");
        assert!(!error.contains(&*repository.path().to_string_lossy()), "{error}");
    }
    let none = bench.open([attach("home", &[], &[("infra", repository.path())])]);
    let log = ask(&none, "git_log", json!({"source": "infra"})).await;
    assert!(log["commits"] == json!([]) && log["notice"].as_str().unwrap().starts_with("no_clone"), "{log}");
    assert!(refuse(&none, "git_show", json!({"rev": "HEAD"})).await.starts_with("error no_clone"));
}

/// Programs that leave a mark when they are run.
struct Traps {
    dir: TempDir,
}

impl Traps {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    fn set(&self, name: &str) -> String {
        let (program, mark) = (self.dir.path().join(name), self.mark(name));
        let text = format!(
            "#!/bin/sh\necho run >> '{}'\n[ -n \"$1\" ] && [ -f \"$1\" ] && cat \"$1\"\nexit 0\n",
            mark.display()
        );
        std::fs::write(&program, text).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        program.to_string_lossy().into_owned()
    }

    fn mark(&self, name: &str) -> PathBuf {
        self.dir.path().join(format!("{name}.ran"))
    }

    fn list_sprung(&self) -> Vec<String> {
        let files = std::fs::read_dir(self.dir.path()).unwrap().map(|entry| entry.unwrap().path());
        let mut names: Vec<String> = files
            .filter(|path| path.extension().is_some_and(|it| it == "ran"))
            .map(|path| path.file_stem().unwrap().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    fn reset(&self) {
        for name in self.list_sprung() {
            std::fs::remove_file(self.mark(&name)).unwrap();
        }
    }
}

/// A clone whose configuration and attributes start programs wherever git lets them.
fn set_traps(repository: &Repository, traps: &Traps) -> String {
    repository.commit(".gitattributes", "*.txt diff=evil filter=evil\n", "Attributes");
    repository.commit("a.txt", "one\n", "First");
    let lost = repository.commit("lost.bin", "a blob that is only elsewhere\n", "Lost");
    // A commit with a signature, which a program would check.
    let tree = repository.git(&["rev-parse", "HEAD^{tree}"]);
    let signed = format!(
        "tree {tree}\nparent {lost}\nauthor A <a@b> 1795813596 +0000\ncommitter A <a@b> 1795813596 +0000\ngpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----\n\nSigned\n"
    );
    let file = traps.dir.path().join("signed");
    std::fs::write(&file, signed).unwrap();
    let signed = repository.git(&["hash-object", "-t", "commit", "-w", &file.to_string_lossy()]);
    repository.git(&["update-ref", "refs/heads/main", &signed]);
    let last = repository.commit("a.txt", "one\ntwo\n", "Second");
    let blob = repository.git(&["rev-parse", "HEAD:lost.bin"]);
    let hooks = repository.path().join("evil-hooks");
    std::fs::create_dir(&hooks).unwrap();
    for hook in ["post-checkout", "post-index-change", "reference-transaction", "fsmonitor-watchman"] {
        std::os::unix::fs::symlink(traps.set("hook"), hooks.join(hook)).unwrap();
    }
    for (key, value) in [
        ("core.fsmonitor", traps.set("fsmonitor")),
        ("core.pager", traps.set("pager")),
        ("pager.log", traps.set("pager")),
        ("pager.show", traps.set("pager")),
        ("core.hooksPath", hooks.to_string_lossy().into_owned()),
        ("core.sshCommand", traps.set("ssh")),
        ("core.gitProxy", traps.set("proxy")),
        ("credential.helper", traps.set("credential")),
        ("diff.external", traps.set("external")),
        ("diff.evil.command", traps.set("command")),
        ("diff.evil.textconv", traps.set("textconv")),
        ("filter.evil.smudge", traps.set("smudge")),
        ("filter.evil.clean", traps.set("clean")),
        ("log.showSignature", "true".to_owned()),
        ("gpg.program", traps.set("gpg")),
        ("alias.log", format!("!{}", traps.set("alias"))),
        ("alias.show", format!("!{}", traps.set("alias"))),
        ("protocol.ext.allow", "always".to_owned()),
        ("remote.origin.url", format!("ext::{} %S", traps.set("ext"))),
        ("remote.origin.promisor", "true".to_owned()),
        ("extensions.partialClone", "origin".to_owned()),
        ("core.repositoryFormatVersion", "1".to_owned()),
    ] {
        repository.git(&["config", key, &value]);
    }
    let object = repository.path().join(".git/objects").join(&blob[..2]).join(&blob[2..]);
    std::fs::remove_file(object).unwrap();
    traps.reset();
    last
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_that_a_hostile_clone_configures_is_run() {
    let (bench, repository, traps) = (Bench::new(), Repository::new(), Traps::new());
    let last = set_traps(&repository, &traps);
    // The traps are real: git without our care springs them.
    repository.run(&["log", "--max-count=3"]);
    repository.run(&["show", "--textconv", &last]);
    repository.run(&["show", "--ext-diff", &last]);
    repository.run(&["show", "HEAD~2"]);
    repository.run(&["status"]);
    let sprung = traps.list_sprung();
    for name in ["command", "ext", "fsmonitor", "gpg", "textconv"] {
        assert!(sprung.iter().any(|it| it == name), "{name}: {sprung:?}");
    }
    traps.reset();
    let vault = bench.open([attach("acme", &[], &[("infra", repository.path())])]);
    let log = ask(&vault, "git_log", json!({"grep": "s"})).await;
    assert_eq!(subjects(&log)[..2], ["Second", "Signed"]);
    let shown = ask(&vault, "git_show", json!({"rev": "main"})).await[0].as_str().unwrap().to_owned();
    assert!(shown.contains("\n+two\n"), "{shown}");
    let blame = ask(&vault, "git_blame", json!({"path": "a.txt"})).await;
    assert_eq!(blame["lines"].as_array().unwrap().len(), 2);
    // A blob that is only elsewhere is not fetched.
    let error = refuse(&vault, "git_show", json!({"rev": "main~2"})).await;
    assert!(error.contains("cannot be read"), "{error}");
    assert_eq!(traps.list_sprung(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clone_that_never_answers_is_given_up() {
    let (bench, repository) = (Bench::new(), Repository::new());
    repository.commit("a.txt", "one\n", "First");
    let config = repository.path().join(".git/config");
    std::fs::remove_file(&config).unwrap();
    assert!(Command::new("mkfifo").arg(&config).status().unwrap().success());
    let vault = bench.open([attach("acme", &[], &[("infra", repository.path())])]);
    let began = std::time::Instant::now();
    let error = refuse(&vault, "git_log", json!({})).await;
    assert!(error.contains("more than 5 s") && began.elapsed().as_secs() < 20, "{error}");
}
