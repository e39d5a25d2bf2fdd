//! `antiphon config`, and what a broken file says.

use crate::world::World;

#[test]
fn settings_are_shown_and_changed_and_comments_stay() {
    let world = World::new();
    world.write_config("# mine\nmodel = \"scripted/hello\" # offline\n[providers.openai]\napi_key = \"sk-secret\"\n");
    let shown = world.seen(&["config", "show"], &[]);
    assert_eq!(shown.out, "model = \"scripted/hello\"\nproviders.openai.api_key = ***\n");
    let json = world.seen(&["config", "show", "--json"], &[]);
    let json: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(json["model"], "scripted/hello");
    assert_eq!(json["providers"]["openai"]["api_key"], "***");
    assert_eq!(world.seen(&["config", "get", "model"], &[]).out, "scripted/hello\n");
    assert_eq!(world.seen(&["config", "set", "sandbox.network", "true"], &[]).code, 0);
    assert_eq!(world.seen(&["config", "set", "model", "scripted/slow"], &[]).code, 0);
    let written = world.config_text();
    assert!(written.starts_with("# mine\nmodel = \"scripted/slow\" # offline\n"), "{written}");
    assert!(written.contains("[sandbox]\nnetwork = true\n"), "{written}");
    assert_eq!(world.seen(&["config", "get", "sandbox.network", "--json"], &[]).out, "true\n");
    assert_eq!(world.seen(&["config", "unset", "sandbox.network"], &[]).code, 0);
    let gone = world.seen(&["config", "get", "sandbox.network"], &[]);
    assert_eq!(gone.code, 1);
    assert!(
        gone.err.contains("is not set. What it does: Commands may use the network."),
        "{}",
        gone.err
    );
    let path = world.seen(&["config", "path"], &[]);
    assert_eq!(path.out.trim(), world.config().display().to_string());
}

#[test]
fn what_is_not_valid_is_refused_and_nothing_is_written() {
    let world = World::new();
    world.write_config("model = 'scripted/hello'\n");
    for (key, value, expected) in [
        ("sandbox.netwrok", "true", "did you mean `sandbox.network`?"),
        ("sandbox.network", "maybe", "expected a boolean"),
        ("model", "hello", "names no model"),
        ("permissions.mode", "all", "line "),
    ] {
        let seen = world.seen(&["config", "set", key, value], &[]);
        assert_eq!(seen.code, 2, "{}", seen.err);
        assert!(seen.err.contains(expected), "{expected}: {}", seen.err);
        assert_eq!(world.config_text(), "model = 'scripted/hello'\n");
    }
}

#[test]
fn an_edited_file_is_taken_over_only_when_it_is_valid() {
    let world = World::new();
    world.write_config("model = 'scripted/hello'\n");
    let edit = |command: &str| world.seen(&["config", "edit"], &[("EDITOR", command)]);
    let good = edit("sed -i s/hello/slow/");
    assert_eq!(good.code, 0, "{}", good.err);
    assert_eq!(world.config_text(), "model = 'scripted/slow'\n");
    let bad = edit("sed -i s/model/modle/");
    assert_eq!(bad.code, 2, "{}", bad.err);
    assert!(
        bad.err.contains("did you mean `model`?") && bad.err.contains("nothing was changed"),
        "{}",
        bad.err
    );
    assert_eq!(world.config_text(), "model = 'scripted/slow'\n");
    // A broken file can be edited, too.
    world.write_config("modle = 'scripted/hello'\n");
    let mended = edit("sed -i s/modle/model/");
    assert_eq!(mended.code, 0, "{}", mended.err);
    assert_eq!(world.config_text(), "model = 'scripted/hello'\n");
}

#[test]
fn a_broken_file_says_where_and_what_was_meant() {
    let world = World::new();
    for (text, expected) in [
        ("\n[sandbox]\n  netwrok = true\n", "line 3, column 3: unknown field `netwrok`"),
        ("\n[sandbox]\n  netwrok = true\n", "did you mean `network`?"),
        ("model = 'scripted/hello'\n[providers.x]\napi_key = 'sk-secret\n", "line 3, column "),
        ("version = 9\nlantern = 1\n", "written by a newer Antiphon"),
        ("[providers.mine]\nbase_url = 'http://127.0.0.1:1'\n", "needs a `kind`"),
        (
            "[providers.mine]\nkind = 'openai'\n",
            "antiphon config set providers.mine '{kind = \"openai\"",
        ),
    ] {
        world.write_config(text);
        let seen = world.seen(&["run", "hi"], &[]);
        assert_eq!(seen.code, 2, "{}", seen.err);
        assert!(seen.err.contains(expected), "{expected}: {}", seen.err);
        assert!(!seen.err.contains("sk-secret"), "{}", seen.err);
    }
}
