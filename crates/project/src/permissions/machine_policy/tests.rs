//! The policy of a folder that stands in for `/etc/antiphon`, with the user of the test in place of root.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

use antiphon_core::ModelRef;
use antiphon_permissions::PermissionMode;

use super::narrow_settings::narrow_to;
use super::{Policy, document};
use crate::environment::Environment;
use crate::error::ProjectError;
use crate::settings::UserSettings;

struct Folder(tempfile::TempDir);

impl Folder {
    fn new(policy: Option<&str>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        set_mode(folder.path(), 0o755);
        if let Some(text) = policy {
            fs::write(folder.path().join("policy.toml"), text).unwrap();
            set_mode(&folder.path().join("policy.toml"), 0o644);
        }
        Self(folder)
    }

    fn load(&self) -> Result<Policy, ProjectError> {
        Policy::load_from(self.0.path(), fs::metadata(self.0.path()).unwrap().uid())
    }

    fn file(&self) -> std::path::PathBuf {
        self.0.path().join("policy.toml")
    }
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn refusal(loaded: Result<Policy, ProjectError>) -> String {
    match loaded {
        Err(ProjectError::Refused(text)) => text,
        other => panic!("{other:?}"),
    }
}

#[test]
fn no_file_is_no_policy() {
    assert!(!Folder::new(None).load().unwrap().is_found());
    assert!(!Policy::load_from(Path::new("/nonexistent/antiphon"), 0).unwrap().is_found());
    assert!(Folder::new(Some("")).load().unwrap().is_found());
}

#[test]
fn a_file_that_others_can_change_is_refused() {
    for (of_file, mode) in
        [(true, 0o664), (true, 0o646), (false, 0o775), (false, 0o757), (false, 0o1777)]
    {
        let folder = Folder::new(Some(""));
        set_mode(&if of_file { folder.file() } else { folder.0.path().to_owned() }, mode);
        let text = refusal(folder.load());
        assert!(
            text.contains("can be changed by other users") && text.contains("chmod go-w"),
            "{text}"
        );
    }
    let folder = Folder::new(Some(""));
    let other = fs::metadata(folder.0.path()).unwrap().uid() + 1;
    let text = refusal(Policy::load_from(folder.0.path(), other));
    assert!(text.contains("not to root") && text.contains("chown root:root"), "{text}");
}

#[test]
fn a_link_a_folder_and_a_pipe_are_refused() {
    let folder = Folder::new(None);
    fs::write(folder.0.path().join("elsewhere.toml"), "").unwrap();
    symlink("elsewhere.toml", folder.file()).unwrap();
    assert!(refusal(folder.load()).contains("is a link"));
    fs::remove_file(folder.file()).unwrap();
    symlink("nowhere.toml", folder.file()).unwrap();
    assert!(refusal(folder.load()).contains("is a link"), "also one that leads nowhere");
    fs::remove_file(folder.file()).unwrap();
    fs::create_dir(folder.file()).unwrap();
    assert!(refusal(folder.load()).contains("not a plain file"));
    let uid = fs::metadata(folder.0.path()).unwrap().uid();
    let outer = tempfile::tempdir().unwrap();
    let linked = outer.path().join("antiphon");
    symlink(folder.0.path(), &linked).unwrap();
    assert!(refusal(Policy::load_from(&linked, uid)).contains("is not a folder"));
    symlink("nowhere", outer.path().join("dangling")).unwrap();
    assert!(
        refusal(Policy::load_from(&outer.path().join("dangling"), uid)).contains("is not a folder")
    );
}

#[test]
fn what_cannot_be_read_is_refused() {
    let folder = Folder::new(Some(&format!("#{}", " ".repeat(1024 * 1024))));
    assert!(refusal(folder.load()).contains("more than"));
    fs::write(folder.file(), [0xff, 0xfe]).unwrap();
    assert!(refusal(folder.load()).contains("cannot be read"));
    if !rustix::process::geteuid().is_root() {
        set_mode(&folder.file(), 0o000);
        assert!(refusal(folder.load()).contains("chmod go+rX"));
        set_mode(folder.0.path(), 0o000);
        assert!(refusal(folder.load()).contains("cannot be read"));
        set_mode(folder.0.path(), 0o755);
    }
}

#[test]
fn what_is_not_understood_is_refused_with_its_line() {
    for (text, line, part) in [
        ("# a\nmode = \"full\"", "line 2", "unknown field `mode`"),
        ("mode_max = \"fully\"", "line 1", "unknown variant"),
        ("models = [\"corp/*\"]", "line 1", "no built-in address"),
        ("models = \"anthropic/*\"", "line 1", "invalid type"),
        ("models = [{ model = \"a/b\", url = \"x\" }]", "line 1", "unknown field `url`"),
        ("[network]\nwhole = true\nhosts = []", "line 2", "contradicts line 3"),
        ("mode_max = \"full\"\n[network]\nhosts = []", "line 1", "which line 3"),
        ("mode_max = \"full\"\n[sandbox]\nmay_leave = false", "line 1", "which line 3"),
        ("peers = [\"nonsense\"]", "line 1", "not an address"),
        ("[mcp.x]\ncommand = \"npx\"", "mcp.x", "absolute path"),
        ("[budget]\ndaily_usd = 0", "daily_usd", "an amount"),
        ("[budget]\nweekly_usd = 1", "line 2", "unknown field"),
        ("[permissions]\nallow = [\"bash\"]", "line 2", "unknown field `allow`"),
        ("[permissions]\ndeny = [\"bash(\"]", "bash(", "not closed"),
        ("[permissions]\ndeny = [\"mcp__x__y\"]", "mcp__x__y", "needs [mcp]"),
        ("[network]\nhosts = [\"https://a.org\"]", "https://a.org", "port"),
        ("mode_max", "line 1", ""),
    ] {
        let error = refusal(Folder::new(Some(text)).load());
        assert!(error.contains(line) && error.contains(part), "{text}: {error}");
        assert!(error.contains("/etc/antiphon/policy.toml"), "{error}");
    }
}

fn narrowed(policy: &str, config: &str) -> UserSettings {
    narrowed_with(policy, config, Environment::default())
}

fn narrowed_with(policy: &str, config: &str, environment: Environment) -> UserSettings {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config.toml");
    fs::write(&path, config).unwrap();
    let settings = UserSettings::load_file(&path, &environment).unwrap();
    narrow_to(settings, document::parse(policy).unwrap()).unwrap()
}

fn model(text: &str) -> ModelRef {
    ModelRef::parse(text).unwrap()
}

#[test]
fn an_empty_policy_takes_nothing() {
    let config = r#"
[permissions]
mode = "full"
[sandbox]
network = true
unix_sockets = true
[mcp.x]
command = "x"
[terminals.bash]
[peers.a]
url = "https://a.org"
"#;
    for policy in ["", "[network]", "[sandbox]\nmay_leave = true\nunix_sockets = true", "[budget]"]
    {
        let settings = narrowed(policy, config);
        assert_eq!(settings.permissions.mode, PermissionMode::Full);
        assert!(settings.sandbox.network && settings.sandbox.unix_sockets);
        assert_eq!(
            (settings.mcp.0.len(), settings.terminals.len(), settings.peers.len()),
            (1, 1, 1)
        );
        assert!(settings.policy.narrowed().is_empty());
        settings.policy.check_model(&model("any/thing"), &settings).unwrap();
        settings.policy.check_mode(PermissionMode::Full).unwrap();
        settings.policy.check_whole_network().unwrap();
    }
}

#[test]
fn settings_are_narrowed_with_a_note_for_each_part() {
    let policy = r#"
mode_max = "workspace"
terminals = false
peers = ["https://peer.example.com"]
[network]
whole = false
[sandbox]
unix_sockets = false
[mcp.docs]
command = "/usr/bin/docs"
"#;
    let config = r#"
[permissions]
mode = "full"
[sandbox]
network = true
unix_sockets = true
[mcp.docs]
command = "/home/me/docs"
[mcp.other]
command = "/usr/bin/docs"
[terminals.bash]
[peers.good]
url = "https://peer.example.com/"
[peers.evil]
url = "https://peer.example.com.evil.org"
[a2a.remote.good]
card = "https://peer.example.com/a2a/good/.well-known/agent-card.json"
[a2a.remote.evil]
card = "https://peer.example.com.evil.org/card"
"#;
    let settings = narrowed(policy, config);
    assert_eq!(settings.permissions.mode, PermissionMode::Workspace);
    assert!(!settings.sandbox.network && !settings.sandbox.unix_sockets);
    assert!(settings.mcp.0.is_empty() && settings.terminals.is_empty());
    assert_eq!(settings.peers.keys().collect::<Vec<_>>(), ["good"]);
    let remote: Vec<&str> =
        settings.a2a.remote.keys().map(antiphon_core::AgentName::as_str).collect();
    assert_eq!(remote, ["good"]);
    let notes = settings.policy.narrowed().join("\n");
    for part in [
        "`workspace` and not `full`",
        "sandbox.network",
        "unix_sockets",
        "`docs`",
        "`other`",
        "no programs in terminals: `bash`",
        "`evil`",
    ] {
        assert!(notes.contains(part), "{part}: {notes}");
    }
    assert!(
        settings
            .policy
            .narrowed()
            .iter()
            .all(|note| note.contains("/etc/antiphon/policy.toml, line "))
    );
    let notes = settings.policy.narrowed().to_vec();
    let again = narrow_to(settings, document::parse(policy).unwrap()).unwrap();
    assert_eq!(again.policy.narrowed(), notes, "narrowing again changes nothing");
}

#[test]
fn a_limit_of_hosts_closes_what_has_no_sandbox() {
    let policy = document::parse("[network]\nhosts = [\"a.org\"]").unwrap();
    assert!(policy.check_mode(PermissionMode::Full).unwrap_err().to_string().contains("line 2"));
    assert!(policy.check_whole_network().is_err() && !policy.allows_way_out());
    assert!(policy.no_terminals.is_some() && policy.no_unix_sockets.is_some());
    for rules in
        ["deny = [\"network\"]", "deny = [\"network(a.org)\"]", "ask = [\"network(a.org)\"]"]
    {
        let policy = document::parse(&format!("[permissions]\n{rules}")).unwrap();
        assert!(policy.check_whole_network().is_err() && !policy.allows_way_out(), "{rules}");
        policy.check_mode(PermissionMode::Full).unwrap_err();
    }
    let policy = document::parse("[permissions]\ndeny = [\"unsandboxed\"]").unwrap();
    policy.check_mode(PermissionMode::Full).unwrap_err();
    assert!(policy.no_terminals.is_some() && !policy.allows_way_out());
    policy.check_whole_network().unwrap();
    let open =
        "terminals = true\n[network]\nhosts = []\n[sandbox]\nmay_leave = true\nunix_sockets = true";
    let policy = document::parse(open).unwrap();
    assert!(
        policy.allows_way_out()
            && policy.no_terminals.is_none()
            && policy.no_unix_sockets.is_none()
    );
    policy.check_mode(PermissionMode::Full).unwrap();
    assert!(policy.check_whole_network().is_err());
}

#[test]
fn a_provider_of_the_name_of_an_allowed_one_is_no_way_around() {
    let policy = "models = [\"anthropic/claude-*\"]";
    let settings = narrowed(policy, "");
    let check =
        |settings: &UserSettings, name: &str| settings.policy.check_model(&model(name), settings);
    check(&settings, "anthropic/claude-x").unwrap();
    let refused = check(&settings, "openai/gpt").unwrap_err().to_string();
    assert!(refused.contains("policy.toml, line 1: `models = "), "{refused}");
    assert!(
        check(&settings, "scripted/hello").is_err() && check(&settings, "anthropic/other").is_err()
    );
    let own = "[providers.anthropic]\nkind = \"openai\"\nbase_url = \"http://127.0.0.1:9\"";
    assert!(check(&narrowed(policy, own), "anthropic/claude-x").is_err());
    let variable = ("ANTHROPIC_BASE_URL".into(), "http://127.0.0.1:9".into());
    let environment = Environment { variables: [variable].into(), ..Environment::default() };
    assert!(check(&narrowed_with(policy, "", environment), "anthropic/claude-x").is_err());
}

#[test]
fn a_budget_counts_with_prices_that_a_user_cannot_lower() {
    let policy = "[budget]\ndaily_usd = 5\n[prices.\"corp/a\"]\ninput = 1\noutput = 2";
    let config = r#"
[budget]
daily_usd = 50
monthly_usd = 70
[models."anthropic/claude-sonnet-4-5"]
price = { input = 0, output = 0 }
[models."anthropic/claude-sonnet-4-5-20250929"]
price = { input = 0, output = 0 }
[models."anthropic/claude-opus-4-1"]
price = { input = 1000, output = 1000 }
[models."corp/a"]
price = { input = 0.5, output = 2 }
[models."own/a"]
price = { input = 1, output = 1 }
"#;
    let settings = narrowed(policy, config);
    let limits = settings.budget;
    assert_eq!(limits.daily_nano_usd_max.unwrap().get(), 5_000_000_000);
    assert_eq!(limits.monthly_nano_usd_max.unwrap().get(), 70_000_000_000);
    let input =
        |name: &str| settings.prices.price(&model(name)).map(|price| f64::from(price.input));
    assert!(input("anthropic/claude-sonnet-4-5").unwrap() > 0.0);
    assert!(input("anthropic/claude-sonnet-4-5-20250929").unwrap() > 0.0);
    assert_eq!(input("anthropic/claude-opus-4-1"), Some(1000.0));
    assert_eq!(input("corp/a"), Some(1.0));
    let refused = settings.policy.check_model(&model("own/a"), &settings).unwrap_err().to_string();
    assert!(refused.contains("knows no price of `own/a`"), "{refused}");
    settings.policy.check_model(&model("corp/a"), &settings).unwrap();
    settings.policy.check_model(&model("scripted/hello"), &settings).unwrap();
    assert_eq!(
        narrowed("[budget]\nmonthly_usd = 1", "").budget.monthly_nano_usd_max.unwrap().get(),
        1_000_000_000
    );
}

#[test]
fn the_limits_are_shown_with_their_lines() {
    let text = "mode_max = \"workspace\"\n\n[mcp]\n\n[permissions]\ndeny = [\"bash(curl *)\"]";
    let limits = document::parse(text).unwrap().limits().join("\n");
    for part in ["the mode (line 1", "MCP servers (line 3", "deny: bash(curl *)"] {
        assert!(limits.contains(part), "{part}: {limits}");
    }
}

#[test]
fn the_guide_shows_a_policy_that_can_be_read_and_every_key() {
    let guide = include_str!("../../../../../docs/policy.md");
    let example = guide.split("```toml\n").nth(1).unwrap().split("```").next().unwrap();
    let policy = document::parse(example).unwrap();
    assert!(policy.models.is_some() && policy.mcp.is_some() && policy.budget.is_some());
    let error = document::parse("nonsense = 1").unwrap_err();
    let keys: Vec<&str> = error.split('`').skip(3).step_by(2).collect();
    assert!(keys.contains(&"mode_max") && keys.len() > 8, "{error}");
    for key in keys {
        assert!(guide.contains(&format!("| `{key}")), "{key} is not in the table");
        assert!(example.contains(key), "{key} is not in the example");
    }
}
