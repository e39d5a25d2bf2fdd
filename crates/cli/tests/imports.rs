//! Agents, commands and MCP servers of other programs: inert until they are trusted, read in place after that, copied
//! by `antiphon import`, and never more than they were. With the real binary.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/project_folder.rs"]
mod project_folder;

use std::fs;
use std::path::Path;
use std::process::Stdio;

use project_folder::{ProjectFolder, antiphon as binary, home};
use serde_json::{Value, json};

const CODER: &str = "---\nname: coder\ndescription: Codes when: asked. <example>x: y</example>\n\
                     tools: Read, Bash(git:*), MultiEdit, WebSearch, mcp__docs__find\nmodel: inherit\n\
                     permissionMode: bypassPermissions\ncolor: red\n---\nYou code.\u{202e}hidden\n";

fn write(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// A project with the user's configuration, whose model is a script that answers `done`.
fn project(config: &str) -> ProjectFolder {
    let folder = ProjectFolder::new();
    let model = format!("model = 'scripted/echo'\n{config}\n[scripts]\necho = 'echo.toml'\n");
    write(&home(folder.path()), ".config/antiphon/config.toml", &model);
    write(
        &home(folder.path()),
        ".config/antiphon/echo.toml",
        "[[reply]]\nsteps = [{ text = \"{{last_user}}\" }]\n",
    );
    folder
}

/// Exit code, output, errors.
fn antiphon(folder: &Path, arguments: &[&str]) -> (i32, String, String) {
    let mut command = binary(folder);
    let output = command.args(arguments).stdin(Stdio::null()).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

fn output_of(folder: &Path, arguments: &[&str]) -> String {
    let (code, out, err) = antiphon(folder, arguments);
    assert_eq!(code, 0, "{arguments:?}: {out}{err}");
    out
}

fn json_of(folder: &Path, arguments: &[&str]) -> Value {
    serde_json::from_str(&output_of(folder, arguments)).unwrap()
}

/// Names and programs of the agents that are listed.
fn agents(root: &Path) -> Vec<(String, String)> {
    let found = json_of(root, &["agents", "list", "--json"]);
    let text = |value: &Value| value.as_str().unwrap_or("antiphon").to_owned();
    let agents = found["agents"].as_array().unwrap().iter();
    agents.map(|agent| (text(&agent["name"]), text(&agent["imported"]["program"]))).collect()
}

#[test]
fn an_agent_of_another_program_has_no_effect_until_it_is_trusted_and_never_more_rights() {
    let folder = project("");
    let root = folder.path();
    write(root, ".claude/agents/coder.md", CODER);
    // It only reads, and needs trust all the same.
    write(
        root,
        ".opencode/agent/reader.md",
        "---\ndescription: Reads.\nmode: subagent\ntools:\n  \"*\": false\n  read: true\n---\nYou read.\n",
    );
    assert_eq!(agents(root), []);
    let items = json_of(root, &["trust", "--list", "--json"]);
    assert_eq!(items[0]["path"], ".claude/agents/coder.md");
    assert_eq!(items[0]["effects"], json!(["tools: read, edit, mcp__docs__find"]));
    assert_eq!(items[1]["path"], ".opencode/agent/reader.md");
    let (code, _, err) = antiphon(root, &["run", "--agent", "coder", "hello"]);
    assert!(code == 2 && err.contains("antiphon trust"), "{code} {err}");

    output_of(root, &["trust", "--yes"]);
    let both = [("coder", "claude"), ("reader", "opencode")];
    assert_eq!(agents(root), both.map(|(name, program)| (name.to_owned(), program.to_owned())));
    let shown = output_of(root, &["agents", "show", "coder"]);
    for line in [
        "project, for claude",
        "Bash(git:*) is left out",
        "WebSearch is not available",
        "bypassPermissions is not used",
        "`color`",
        "You code.\\u{202e}hidden",
    ] {
        assert!(shown.contains(line), "{line}: {shown}");
    }
    let listed = output_of(root, &["agents", "list"]);
    assert!(listed.contains("project, for opencode"), "{listed}");

    // Changed content has no effect again.
    write(
        root,
        ".claude/agents/coder.md",
        &CODER.replace("tools: Read,", "tools: Read, Bash, Write,"),
    );
    assert_eq!(agents(root), [("reader".to_owned(), "opencode".to_owned())]);
}

#[test]
fn an_agent_of_another_program_never_takes_the_place_of_ours() {
    let folder = project("");
    let root = folder.path();
    write(root, ".antiphon/agents/coder.md", "---\ndescription: Ours.\ntools: read\n---\nOurs.\n");
    write(root, ".claude/agents/coder.md", CODER);
    write(root, ".claude/agents/other.md", CODER);
    write(&home(root), ".claude/agents/coder.md", &CODER.replace("Codes", "The user's"));
    output_of(root, &["trust", "--yes"]);
    let found = json_of(root, &["agents", "list", "--json"]);
    assert_eq!(found["agents"].as_array().unwrap().len(), 1);
    assert_eq!(found["agents"][0]["description"], "Ours.");
    let shadows = found["agents"][0]["shadows"].as_array().unwrap();
    assert_eq!(shadows.len(), 3, "{found}");
}

#[test]
fn of_two_files_of_a_folder_with_one_name_the_first_is_used_and_the_other_is_a_problem() {
    let folder = project("");
    let root = folder.path();
    write(&home(root), ".claude/agents/a.md", CODER);
    write(&home(root), ".claude/agents/b.md", &CODER.replace("Codes", "Another"));
    let found = json_of(root, &["agents", "list", "--json"]);
    assert!(found["agents"][0]["path"].as_str().unwrap().ends_with("/a.md"), "{found}");
    let reason = found["problems"][0]["reason"].as_str().unwrap();
    assert!(reason.starts_with("it defines `coder`, as "), "{reason}");
}

#[test]
fn hostile_files_are_refused_with_a_reason_and_the_others_load() {
    let folder = project("");
    let root = folder.path();
    let agent = |fields: &str| format!("---\ndescription: A.\n{fields}\n---\nBody.\n");
    write(root, ".claude/agents/big.md", &format!("---\nx: {}\n---\nB\n", "a".repeat(10 << 20)));
    write(root, ".claude/agents/slash.md", &agent("name: ../../etc/passwd\ntools: Read"));
    write(root, ".claude/agents/twice.md", &agent("tools: Read\nmodel: a: b\ntools: Bash"));
    write(root, ".claude/agents/none.md", "No front matter.");
    write(root, ".claude/agents/odd.md", &agent("tools:\n  a: b"));
    write(root, ".claude/agents/plan.md", &agent("permissionMode: plan"));
    write(root, ".claude/agents/less.md", &agent("disallowedTools: Bash, Write"));
    write(root, ".opencode/agent/asks.md", &agent("permission:\n  bash: ask\n  edit: deny"));
    std::os::unix::fs::symlink("/etc/passwd", root.join(".claude/agents/link.md")).unwrap();
    output_of(root, &["trust", "--yes"]);
    let found = json_of(root, &["agents", "list", "--json"]);
    let problems = found["problems"].to_string();
    for part in
        ["big.md", "more than", "`tools` is defined twice", "it has no front matter", "link.md"]
    {
        assert!(problems.contains(part), "{part}: {problems}");
    }
    let tools = |name: &str| {
        json_of(root, &["agents", "show", name, "--json"])["tools"]["wanted"].to_string()
    };
    assert_eq!(tools("slash"), r#"["read"]"#);
    assert_eq!(tools("odd"), "[]");
    assert_eq!(tools("plan"), r#"["read","grep","glob"]"#);
    for (name, gone) in [
        ("less", "\"bash\""),
        ("less", "\"write\""),
        ("asks", "\"bash\""),
        ("asks", "\"edit\""),
        ("asks", "\"write\""),
    ] {
        assert!(!tools(name).contains(gone), "{name}: {}", tools(name));
    }
    assert!(tools("asks").contains("\"read\""));
}

#[test]
fn a_folder_behind_a_link_is_not_read() {
    let folder = project("");
    let root = folder.path();
    let elsewhere = root.with_file_name("elsewhere");
    write(&elsewhere, "agents/coder.md", CODER);
    write(&elsewhere, "commands/go.md", "Go.");
    std::os::unix::fs::symlink(&elsewhere, root.join(".claude")).unwrap();
    assert_eq!(json_of(root, &["trust", "--list", "--json"]), json!([]));
    assert_eq!(agents(root), []);
}

#[test]
fn an_import_replaces_nothing_and_gives_nothing_more() {
    let folder = project("");
    let root = folder.path();
    write(root, ".claude/agents/coder.md", CODER);
    write(root, ".claude/commands/front/go.md", "Go $1.");
    write(&home(root), ".codex/prompts/mine.md", "Mine.");
    write(&home(root), ".config/antiphon/agents/taken.md", "---\ndescription: Mine.\n---\nMine.\n");
    write(root, ".claude/agents/taken.md", "---\ndescription: Theirs.\n---\nTheirs.\n");
    let report = json_of(root, &["import", "--dry-run", "--json"]);
    let by_name = |report: &Value, name: &str| {
        report.as_array().unwrap().iter().find(|file| file["name"] == name).unwrap().clone()
    };
    assert_eq!(by_name(&report, "coder")["status"], "would_write");
    assert!(!root.join(".antiphon/agents/coder.md").exists());

    let refused = json_of(root, &["import", "--user", "--json"]);
    assert!(by_name(&refused, "coder")["reason"].as_str().unwrap().contains("antiphon trust"));
    assert_eq!(by_name(&refused, "mine")["status"], "written");

    let report = json_of(root, &["import", "--json"]);
    assert_eq!(by_name(&report, "coder")["status"], "written");
    assert_eq!(by_name(&report, "coder")["needs_trust"], true);
    assert!(by_name(&report, "taken")["reason"].as_str().unwrap().contains("would hide it"));
    assert!(by_name(&report, "mine")["reason"].as_str().unwrap().contains("would hide it"));
    assert!(root.join(".antiphon/commands/front/go.md").exists());
    // The copy of what is not trusted is not trusted.
    assert_eq!(agents(root), [("taken".to_owned(), "antiphon".to_owned())]);
    output_of(root, &["trust", "--yes"]);
    assert!(agents(root).contains(&("coder".to_owned(), "antiphon".to_owned())));
    let again = json_of(root, &["import", "--json", "--from", "claude"]);
    assert!(by_name(&again, "coder")["reason"].as_str().unwrap().contains("exists already"));
}

#[test]
fn an_import_writes_nothing_behind_a_link() {
    for link in [".antiphon/commands", ".antiphon/commands/front", ".antiphon/agents"] {
        let folder = project("");
        let root = folder.path();
        let outside = home(root).join(".config/antiphon/outside");
        fs::create_dir_all(&outside).unwrap();
        write(root, ".claude/commands/front/deep/go.md", "Go.");
        write(root, ".claude/agents/coder.md", CODER);
        let link = root.join(link);
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(&outside, &link).unwrap();
        let report = output_of(root, &["import", "--json"]);
        assert!(report.contains("is a link or no folder"), "{report}");
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 0, "{link:?}");
    }
}

#[test]
fn the_question_about_trust_shows_every_word_of_every_server() {
    let folder = project("");
    let root = folder.path();
    let mut servers = serde_json::Map::new();
    for n in 0..60 {
        servers.insert(format!("s{n:02}"), json!({ "command": "true" }));
    }
    let script = "# list the docs\ntouch x`\u{202e}          ; touch y";
    servers.insert("z".to_owned(), json!({ "command": "sh", "args": ["-c", script, ""] }));
    write(root, ".mcp.json", &json!({ "mcpServers": servers }).to_string());
    let (_, _, asked) = antiphon(root, &["run", "hello"]);
    let shown = r"`sh -c '# list the docs\ntouch x\u{60}\u{202e}…10 blanks…; touch y' ''` outside";
    assert!(asked.contains(shown), "{asked}");
}

#[test]
fn a_command_is_run_with_its_arguments_after_trust() {
    let folder = project("");
    let root = folder.path();
    write(
        root,
        ".claude/commands/front/fix.md",
        "---\ndescription: Fixes.\nallowed-tools: Bash(*)\n---\nFix $1 of $2: $ARGUMENTS !`touch ran`\n",
    );
    write(&home(root), ".codex/prompts/hello.md", "Say hello.\n");
    let run = |arguments: &[&str]| antiphon(root, &[&["run", "--command"], arguments].concat());
    let (code, _, err) = run(&["front:fix", "a"]);
    assert!(code == 2 && err.contains("has no effect"), "{code} {err}");
    let (code, out, err) = run(&["hello", "you"]);
    assert!(code == 0 && out.contains("Say hello.\n\nArguments: you"), "{code} {out} {err}");
    output_of(root, &["trust", "--yes"]);
    let (code, out, err) = run(&["front:fix", "a b", "$1"]);
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("Fix a b of $1: a b $1 !`touch ran`"), "{out}");
    assert!(out.contains("were not run"), "{out}");
    assert!(!root.join("ran").exists());
    let (code, _, err) = run(&["nothing"]);
    assert!(code == 2 && err.contains("there is no command `nothing`"), "{code} {err}");
}

#[test]
fn servers_of_mcp_json_need_trust_and_get_no_variable_without_consent() {
    let folder = project("");
    let root = folder.path();
    let servers = json!({ "mcpServers": {
        "plain": { "command": "sh", "args": ["-c", "echo started > started"], "env": { "A": "b" } },
        "secret": { "command": "sh", "args": ["-c", "echo ${TOKEN_OF_USER} > leaked"] },
        "old": { "type": "sse", "url": "https://old.example/sse" },
    }});
    write(root, ".mcp.json", &servers.to_string());
    let with_token = |arguments: &[&str]| {
        let mut command = binary(root);
        let output = command
            .args(arguments)
            .env("TOKEN_OF_USER", "t0ken")
            .stdin(Stdio::null())
            .output()
            .unwrap();
        String::from_utf8(output.stderr).unwrap()
    };
    with_token(&["run", "hello"]);
    assert!(!root.join("started").exists());
    let items = json_of(root, &["trust", "--list", "--json"]);
    let effects = items[0]["effects"].to_string();
    for part in [
        "MCP server `plain` runs `sh -c",
        "with `A=b`",
        "${TOKEN_OF_USER}",
        "`sse` is not supported",
    ] {
        assert!(effects.contains(part), "{part}: {effects}");
    }
    output_of(root, &["trust", "--yes"]);
    let warnings = with_token(&["run", "hello"]);
    assert!(root.join("started").exists(), "{warnings}");
    assert!(!root.join("leaked").exists());
    for part in
        ["`secret` of .mcp.json is not used", "`mcp_json_env`", "`old` of .mcp.json is not used"]
    {
        assert!(warnings.contains(part), "{part}: {warnings}");
    }
    let config = home(root).join(".config/antiphon/config.toml");
    let text = fs::read_to_string(&config).unwrap();
    fs::write(&config, format!("mcp_json_env = ['TOKEN_OF_USER']\n{text}")).unwrap();
    with_token(&["run", "hello"]);
    assert_eq!(fs::read_to_string(root.join("leaked")).unwrap(), "t0ken\n");
}

/// A project with a skill, and a model that loads it.
fn project_with_skill() -> ProjectFolder {
    let folder = project("");
    let root = folder.path();
    let loads = r#"
[[reply]]
when = { turn = 0, tool_offered = "skill" }
steps = [{ call = { name = "skill", arguments = { name = "brew" } } }]
[[reply]]
steps = [{ text = "I got: {{last_result}}" }]
"#;
    write(&home(root), ".config/antiphon/echo.toml", loads);
    write(
        root,
        ".claude/skills/brew/SKILL.md",
        "---\nname: brew\ndescription: Brews: tea.\n---\nBoil water.\u{202e}\n",
    );
    write(root, ".claude/skills/brew/scripts/boil.sh", "echo boil\n");
    folder
}

#[test]
fn a_skill_is_loaded_after_trust_as_data_with_its_source_and_its_files() {
    let folder = project_with_skill();
    let root = folder.path();
    let (_, out, _) = antiphon(root, &["run", "Make tea."]);
    assert!(!out.contains("Boil water"), "{out}");
    let items = json_of(root, &["trust", "--list", "--json"]);
    assert_eq!(items[0]["kind"], "skill");
    assert_eq!(items[0]["path"], ".claude/skills/brew");
    output_of(root, &["trust", "--yes"]);
    let out = output_of(root, &["run", "Make tea."]);
    for part in [
        "Skill brew, from a file of the project, .claude/skills/brew/SKILL.md",
        "Boil water.\\u{202e}",
        ".claude/skills/brew/scripts/boil.sh",
    ] {
        assert!(out.contains(part), "{part}: {out}");
    }
    // Another file of its folder is another skill.
    write(root, ".claude/skills/brew/scripts/boil.sh", "rm -rf /\n");
    let (_, out, _) = antiphon(root, &["run", "Make tea."]);
    assert!(!out.contains("Boil water"), "{out}");
}

#[test]
fn a_skill_of_the_user_needs_no_trust_and_comes_first() {
    let folder = project_with_skill();
    let root = folder.path();
    write(
        &home(root),
        ".claude/skills/brew/SKILL.md",
        "---\ndescription: Mine.\n---\nUse the kettle.\n",
    );
    output_of(root, &["trust", "--yes"]);
    let out = output_of(root, &["run", "Make tea."]);
    assert!(out.contains("a file of the user") && out.contains("Use the kettle."), "{out}");
}

/// A model that runs the skill in a child. The child says what its prompt and its first message are.
const RUNS_SKILL: &str = r#"
[[reply]]
when = { system_contains = "Skill brew, from" }
steps = [{ text = "Child: {{last_user}}" }]
[[reply]]
when = { turn = 0, tool_offered = "run_skill" }
steps = [{ call = { name = "run_skill", arguments = { name = "brew", prompt = "Two cups." } } }]
[[reply]]
steps = [{ text = "I got: {{last_result}}" }]
"#;

#[test]
fn run_skill_works_in_a_child_that_knows_the_conversation() {
    let folder = project_with_skill();
    let root = folder.path();
    write(&home(root), ".config/antiphon/echo.toml", RUNS_SKILL);
    // Not before trust: there is no skill, and the tool is not offered.
    let (_, out, _) = antiphon(root, &["run", "Make tea."]);
    assert!(out.contains("I got") && !out.contains("Child"), "{out}");
    output_of(root, &["trust", "--yes"]);
    let events = output_of(root, &["run", "--json", "Make tea."]);
    assert!(events.contains("Child: Two cups."), "{events}");
    let events: Vec<Value> =
        events.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let dispatched = events.iter().find(|event| event["type"] == "dispatched").unwrap();
    assert_eq!(dispatched["data"]["context"], "inherited", "{dispatched}");
    let tasks = json_of(root, &["tasks", "list", "--all", "--json"]);
    assert!(tasks.to_string().contains("ad_hoc"), "{tasks}");
}

#[test]
fn a_rule_that_denies_skills_denies_running_one() {
    let folder = project_with_skill();
    let root = folder.path();
    output_of(root, &["trust", "--yes"]);
    write(&home(root), ".config/antiphon/echo.toml", RUNS_SKILL);
    let config = home(root).join(".config/antiphon/config.toml");
    let text = fs::read_to_string(&config).unwrap();
    fs::write(&config, format!("{text}[permissions]\ndeny = ['skill']\n")).unwrap();
    let (_, out, err) = antiphon(root, &["run", "Make tea."]);
    assert!(out.contains("I got") && !out.contains("Child"), "{out}{err}");
}

#[test]
fn servers_of_the_users_other_programs_are_imported_into_the_settings() {
    let folder = project("[mcp.mine]\ncommand = 'true'\n");
    let root = folder.path();
    let claude = json!({
        "mcpServers": {
            "web": { "type": "http", "url": "https://mcp.example/mcp", "headers": { "X-Key": "s3cret" } },
            "mine": { "command": "other" },
            "asks": { "command": "sh", "env": { "TOKEN": "${TOKEN}" } },
        },
        "projects": { root.to_str().unwrap(): { "mcpServers": {
            "near": { "command": "sh", "args": ["-c", "true"], "env": { "A": "b" } },
        }}},
    });
    write(&home(root), ".claude.json", &claude.to_string());
    write(&home(root), ".codex/config.toml", "[mcp_servers.shelf]\ncommand = 'cat'\n");
    let rows = json_of(root, &["import", "--user", "--dry-run", "--json"]);
    let status = |name: &str| {
        let rows = rows.as_array().unwrap();
        let row = rows.iter().find(|row| row["name"] == name).unwrap();
        (row["status"].as_str().unwrap().to_owned(), row["reason"].to_string())
    };
    for name in ["web", "near", "shelf"] {
        assert_eq!(status(name).0, "would_write", "{rows}");
    }
    assert!(status("mine").1.contains("already"), "{rows}");
    assert!(status("asks").1.contains("inherit_env"), "{rows}");
    assert!(!rows.to_string().contains("s3cret"), "{rows}");
    assert_eq!(json_of(root, &["mcp", "list", "--json"]).as_array().unwrap().len(), 1);
    let shown = output_of(root, &["import", "--user"]);
    assert!(shown.contains("`near`, MCP server of claude"), "{shown}");
    assert!(!shown.contains("s3cret"), "{shown}");
    let listed = json_of(root, &["mcp", "list", "--json"]);
    let target = |name: &str| {
        let rows = listed.as_array().unwrap();
        rows.iter().find(|row| row["name"] == name).unwrap()["target"].to_string()
    };
    assert_eq!(target("near"), "\"sh -c true\"");
    assert_eq!(target("mine"), "\"true\"", "nothing is replaced");
    assert_eq!(target("web"), "\"https://mcp.example/mcp\"");
    let text = fs::read_to_string(home(root).join(".config/antiphon/config.toml")).unwrap();
    assert!(text.contains("s3cret") && text.contains("[mcp.shelf]"), "{text}");
    // Without --user the servers stay where they are.
    let again = output_of(root, &["import"]);
    assert!(!again.contains("MCP server"), "{again}");
}

#[test]
fn mcp_list_has_the_servers_of_the_project_and_says_what_is_not_used() {
    let folder = project("[mcp.mine]\nurl = 'https://mcp.example/mcp?key=s3cret'\n");
    let root = folder.path();
    let servers = json!({ "mcpServers": {
        "theirs": { "command": "cat" },
        "old": { "type": "sse", "url": "https://old.example/sse" },
    }});
    write(root, ".mcp.json", &servers.to_string());
    let (code, out, err) = antiphon(root, &["mcp", "list"]);
    assert!(code == 0 && !out.contains("theirs"), "{out}{err}");
    assert!(err.contains("until you trust the file"), "{err}");
    output_of(root, &["trust", "--yes"]);
    let (_, out, err) = antiphon(root, &["mcp", "list"]);
    assert!(out.contains("theirs  project  cat") && out.contains("mine"), "{out}");
    assert!(!out.contains("s3cret"), "{out}");
    assert!(err.contains("`old` of .mcp.json is not used"), "{err}");
    let (_, out, err) = antiphon(root, &["config", "show"]);
    assert!(!out.contains("s3cret") && out.contains("mcp.example/mcp?***"), "{out}");
    assert_eq!(err, "");
    // Commands that start no server say nothing about servers.
    let (_, _, err) = antiphon(root, &["tasks", "list"]);
    assert_eq!(err, "antiphon: there are no tasks here: begin with `antiphon run`\n");
}
