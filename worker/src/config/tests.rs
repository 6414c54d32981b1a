//! Which source sets a value, and which value replaces an invalid one.

use super::*;
use steward_domain::action::mutation::MutationClass;
use steward_domain::gates::mode::Mode;

fn load(toml: &str, variables: &[(&str, &str)]) -> anyhow::Result<StewardConfig> {
    let table = toml.parse()?;
    let variables = sources::collect_variables(variables.iter().map(|(n, v)| ((*n).into(), (*v).into())))?;
    StewardConfig::from_parts(&ConfigFile::new("steward.toml".into(), table, false), variables)
}

#[test]
fn a_clerk_may_not_take_longer_than_a_tick_waits() {
    let with = |seconds: &str| {
        let clerk = [("STEWARD_CLERK", "openai"), ("STEWARD_CLERK_BASE_URL", "http://a"), ("STEWARD_CLERK_MODEL", "m")];
        load("", &[&clerk[..], &[("STEWARD_CLERK_TIMEOUT_SECONDS", seconds)]].concat())
    };
    assert!(with("80").is_ok());
    for seconds in ["0", "81"] {
        assert!(format!("{:#}", with(seconds).unwrap_err()).contains("expected 1 to 80"), "{seconds}");
    }
}

#[test]
fn the_environment_wins_over_the_file() {
    let config = load(
        "task_queue = \"file\"\n[cadence]\ntask_seconds = 60\n",
        &[("STEWARD_TASK_QUEUE", "env"), ("STEWARD_CADENCE_MATTER_SECONDS", "120"), ("STEWARD_CAPS_PER_MINUTE", "7")],
    )
    .unwrap();
    assert_eq!(config.task_queue, "env");
    assert_eq!((config.cadence.task_seconds, config.cadence.matter_seconds), (60, 120));
    assert_eq!((config.caps.per_minute, config.caps.per_hour), (7, 600));
}

#[test]
fn an_unknown_key_is_an_error_that_names_it() {
    let message = format!("{:#}", load("live_mod = \"live\"", &[]).unwrap_err());
    assert!(message.contains("live_mod") && message.contains("steward.toml"), "{message}");
    let message = format!("{:#}", load("", &[("STEWARD_LIVE_MOD", "live")]).unwrap_err());
    assert!(message.contains("STEWARD_LIVE_MOD:") && message.contains("`STEWARD_LIVE_MODE`"), "{message}");
}

#[test]
fn an_invalid_mode_is_shadow_and_is_reported() {
    let config = load("", &[("STEWARD_LIVE_MODE", "LIVE")]).unwrap();
    assert_eq!(config.policy.mode, Mode::Shadow);
    assert_eq!(config.warnings.len(), 1);
    assert_eq!(load("", &[("STEWARD_LIVE_MODE", "live")]).unwrap().policy.mode, Mode::Live);
}

#[test]
fn a_threshold_outside_its_range_falls_back_and_is_reported() {
    for bad in ["1.5", "-0.1", "high", "nan"] {
        let config = load("", &[("STEWARD_CONFIDENCE_THRESHOLD", bad)]).unwrap();
        assert!((config.policy.confidence_threshold - 0.6).abs() < f64::EPSILON, "{bad}");
        assert_eq!(config.warnings.len(), 1, "{bad}");
    }
    let config = load("confidence_threshold = 0.7", &[]).unwrap();
    assert!((config.policy.confidence_threshold - 0.7).abs() < f64::EPSILON);
}

#[test]
fn an_invalid_ceiling_is_ask_and_is_reported() {
    let config = load("", &[("STEWARD_DEFAULT_CEILING", "acts")]).unwrap();
    assert_eq!((config.default_ceiling, config.warnings.len()), (Ceiling::Ask, 1));
    for (n, name) in ["STATE_CHANGE", "CONTEXT_EDIT", "PARENT_MATTER", "RELATED"].into_iter().enumerate() {
        let config = load("", &[(&format!("STEWARD_{name}_CEILING"), "Confirm")]).unwrap();
        let ceilings = MutationClass::ALL.map(|class| config.policy.class_ceiling(class));
        let mut expected = [Ceiling::Act; 4];
        expected[n] = Ceiling::Confirm;
        assert_eq!((ceilings, config.warnings.len()), (expected, 0));
    }
}

#[test]
fn timestamps_are_written_back_only_if_configured() {
    assert!(!load("", &[]).unwrap().stamp_files);
    assert!(load("stamp_files = true", &[]).unwrap().stamp_files);
    assert!(load("", &[("STEWARD_STAMP_FILES", "true")]).unwrap().stamp_files);
    assert!(!load("stamp_files = true", &[("STEWARD_STAMP_FILES", "false")]).unwrap().stamp_files);
    for unclear in ["yes", "1", "True", ""] {
        let message = format!("{:#}", load("", &[("STEWARD_STAMP_FILES", unclear)]).unwrap_err());
        assert!(message.contains("STEWARD_STAMP_FILES") && message.contains("a boolean"), "{message}");
    }
}

#[test]
fn a_vault_named_like_a_number_is_a_path() {
    let config = load("", &[("STEWARD_VAULT", "2026")]).unwrap();
    assert_eq!(config.vault.unwrap(), Path::new("2026"));
}

#[test]
fn a_doubled_prefix_is_an_unknown_key() {
    let message = format!("{:#}", load("", &[("STEWARD_STEWARD_LIVE_MODE", "live")]).unwrap_err());
    assert!(message.contains("STEWARD_STEWARD_LIVE_MODE"), "{message}");
}

#[test]
fn an_empty_variable_is_unset_except_where_that_could_widen_what_a_steward_may_do() {
    let config = load(
        "vault = \"here\"\nscan_seconds = 7",
        &[("STEWARD_VAULT", ""), ("STEWARD_SCAN_SECONDS", ""), ("STEWARD_TEMPORAL_CLI", "")],
    )
    .unwrap();
    assert_eq!((config.vault.unwrap().as_path(), config.scan_seconds), (Path::new("here"), 7));
    assert_eq!(config.temporal_cli, None);
    let config = load(
        "live_mode = \"live\"\nconfidence_threshold = 0.1",
        &[("STEWARD_LIVE_MODE", ""), ("STEWARD_CONFIDENCE_THRESHOLD", "")],
    )
    .unwrap();
    assert_eq!((config.policy.mode, config.warnings.len()), (Mode::Shadow, 2));
    assert!((config.policy.confidence_threshold - 0.6).abs() < f64::EPSILON);
}

#[test]
fn a_folder_has_one_spelling() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("vault")).unwrap();
    std::os::unix::fs::symlink(dir.path().join("vault"), dir.path().join("link")).unwrap();
    let plain = canonicalize_folder(&dir.path().join("vault"), "it").unwrap();
    assert_eq!(canonicalize_folder(&dir.path().join("link"), "it").unwrap(), plain);
    assert_eq!(canonicalize_folder(&dir.path().join("link/../vault"), "it").unwrap(), plain);
    assert!(canonicalize_folder(Path::new("not-there-yet"), "it").unwrap().is_absolute());
}

#[test]
fn a_folder_whose_name_is_not_utf8_is_refused_by_its_setting() {
    use std::os::unix::ffi::OsStrExt;
    let name = std::ffi::OsStr::from_bytes(b"/tmp/caf\xe9");
    let message = canonicalize_folder(Path::new(name), "STEWARD_STATE_DIR").unwrap_err().to_string();
    assert!(message.contains("STEWARD_STATE_DIR") && message.contains("UTF-8"), "{message}");
}

#[test]
fn the_drop_folder_always_exists_and_other_streams_are_read_strictly() {
    assert_eq!(load("", &[]).unwrap().streams[0].name, "inbox");
    let two = load("[streams.post]\nkind = \"maildir\"\npath = \"/m\"\n", &[]).unwrap().streams;
    assert_eq!(two.iter().map(|s| s.name.as_str()).collect::<Vec<_>>(), ["post", "inbox"]);
    for (toml, part) in [
        ("[streams.post]\nkind = \"maildir\"\npaht = \"/m\"\n", "paht"),
        ("[streams.inbox]\nkind = \"maildir\"\npath = \"/m\"\n", "another name"),
        ("[streams.a]\nkind = \"inbox\"\n[streams.b]\nkind = \"inbox\"\n", "one drop folder"),
    ] {
        let message = format!("{:#}", load(toml, &[]).unwrap_err());
        assert!(message.contains(part), "{message}");
    }
}

#[test]
fn a_clerk_behind_a_server_needs_its_model_and_some_know_their_server() {
    let message = load("", &[("STEWARD_CLERK", "openai")]).unwrap_err().to_string();
    assert!(message.contains("STEWARD_CLERK_BASE_URL"), "{message}");
    for (name, url) in [("anthropic", "https://api.anthropic.com"), ("ollama", "http://127.0.0.1:11434")] {
        let message = load("", &[("STEWARD_CLERK", name)]).unwrap_err().to_string();
        assert!(message.contains(name) && message.contains("STEWARD_CLERK_MODEL"), "{message}");
        let clerk = |more: &[(&str, &str)]| {
            let set = [&[("STEWARD_CLERK", name), ("STEWARD_CLERK_MODEL", "7")], more].concat();
            serde_json::to_value(load("", &set).unwrap().clerk).unwrap()
        };
        let own = clerk(&[]);
        assert_eq!((&own["kind"], &own["base_url"], &own["model"]), (&name.into(), &url.into(), &"7".into()), "{own}");
        assert_eq!(clerk(&[("STEWARD_CLERK_BASE_URL", "http://other")])["base_url"], "http://other");
    }
    let message = load("", &[("STEWARD_CLERK", "gpt")]).unwrap_err().to_string();
    assert!(message.contains("rules, openai, anthropic or ollama"), "{message}");
}

#[test]
fn events_are_kept_for_a_week_or_for_the_configured_days() {
    assert_eq!(load("", &[]).unwrap().keep_events_days, 7);
    assert_eq!(load("keep_events_days = 30", &[("STEWARD_KEEP_EVENTS_DAYS", "90")]).unwrap().keep_events_days, 90);
    for bad in ["0", "40000"] {
        let message = load("", &[("STEWARD_KEEP_EVENTS_DAYS", bad)]).unwrap_err().to_string();
        assert!(message.contains("STEWARD_KEEP_EVENTS_DAYS") && message.contains("1 to 36500"), "{message}");
    }
}
