//! What is refused before anything runs.

use std::collections::BTreeMap;

use antiphon_core::port::Runner;
use antiphon_terminal::{
    BASH, CLAUDE_CODE, CODEX, Restart, SettingsError, TerminalProfile, TerminalRunner,
    TerminalSettings,
};
use serde_json::json;

use crate::world::{World, script, settings};

#[tokio::test]
async fn a_config_names_a_profile_and_nothing_else() {
    let world = World::new(script("true"));
    assert_eq!(world.runner.check(&json!({ "profile": "test" })), Ok(()));
    for unknown in [BASH, CLAUDE_CODE, CODEX, "emacs"] {
        let error = world.runner.check(&json!({ "profile": unknown })).unwrap_err();
        let expected = format!("there is no terminal profile `{unknown}`; there are test");
        assert_eq!(error, expected);
    }
    let built_in: Vec<String> = TerminalProfile::built_in().into_keys().collect();
    assert_eq!(built_in, [BASH, CLAUDE_CODE, CODEX]);
    assert!(world.runner.is_unrestricted() && !world.runner.uses_run_provider());
    let wrong = [
        json!({}),
        json!(null),
        json!({ "profile": "bash", "command": ["rm"] }),
        json!({ "command": ["rm"] }),
    ];
    for config in wrong {
        let error = world.runner.check(&config).unwrap_err();
        assert!(error.starts_with("the config of the runner `terminal` is wrong"), "{error}");
    }
}

#[test]
fn a_profile_is_read_from_settings() {
    let text = r#"{"command": ["bash", "-i"], "restart": {"on_failure": {"max": 3}}}"#;
    let profile: TerminalProfile = serde_json::from_str(text).unwrap();
    assert_eq!(profile.restart, Restart::OnFailure { max: 3 });
    assert_eq!((profile.submit.as_str(), profile.quiet_ms), ("\r", 500));
    let unknown = r#"{"command": ["bash"], "shell": true}"#;
    assert!(serde_json::from_str::<TerminalProfile>(unknown).is_err());
    let tmp = tempfile::tempdir().unwrap();
    let profiles = BTreeMap::from([(BASH.to_owned(), profile.clone())]);
    let settings = TerminalSettings { profiles, ..settings(&tmp, script("true")) };
    let runner = TerminalRunner::new(settings).unwrap();
    assert_eq!(runner.profiles()[BASH], profile);
}

#[test]
fn a_profile_that_makes_no_sense_is_refused() {
    let bash = TerminalProfile::of("bash");
    let wrong = [
        TerminalProfile { command: Vec::new(), ..bash.clone() },
        TerminalProfile { command: vec![" ".to_owned()], ..bash.clone() },
        TerminalProfile { command: vec!["a\0b".to_owned()], ..bash.clone() },
        TerminalProfile { context_file: Some("../AGENTS.md".to_owned()), ..bash.clone() },
        TerminalProfile { context_file: Some("..".to_owned()), ..bash.clone() },
        TerminalProfile {
            env: BTreeMap::from([("A=B".to_owned(), String::new())]),
            ..bash.clone()
        },
        TerminalProfile { quiet_ms: 60_001, ..bash.clone() },
        TerminalProfile { restart: Restart::OnFailure { max: 101 }, ..bash },
    ];
    for profile in wrong {
        let tmp = tempfile::tempdir().unwrap();
        let error = TerminalRunner::new(settings(&tmp, profile)).unwrap_err();
        assert!(matches!(&error, SettingsError::Profile { name, .. } if name == "test"), "{error}");
    }
}

#[test]
fn a_folder_that_is_a_link_is_refused() {
    let tmp = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink("/tmp", tmp.path().join("terminals")).unwrap();
    let error = TerminalRunner::new(settings(&tmp, script("true"))).unwrap_err();
    assert!(matches!(error, SettingsError::Folder { .. }), "{error}");
}
