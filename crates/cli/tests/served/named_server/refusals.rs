//! What a server does not do, and wrong addresses, tokens and arguments.

use std::fs;

use crate::served::project::Project;

/// Commands that work in the folder of a project alone.
const ALONE: &[&[&str]] = &[
    &["demo"],
    &["acp"],
    &["chat"],
    &["serve"],
    &["keys", "list"],
    &["token"],
    &["trust"],
    &["projects", "list"],
    &["request", "-"],
    &["reply", "x", "done", "--agent", "coder"],
    &["doctor"],
    &["backup", "x.db"],
    &["restore", "x.db"],
    &["journal", "verify"],
    &["agents", "attach", "coder"],
    &["mcp", "serve"],
    &["init"],
    &["config", "show"],
    &["completions", "bash"],
    &["man", "pages"],
    &["import", "--dry-run"],
    &["prompt", "show"],
];

#[test]
fn commands_that_work_here_alone_refuse_a_server_and_do_not_offer_it() {
    let project = Project::that_asks("go");
    let server = project.serve();
    let elsewhere = tempfile::tempdir().unwrap();
    for alone in ALONE {
        let seen = project.antiphon_from(elsewhere.path(), alone);
        let said = seen.err.contains("does not work through --server");
        assert!(seen.code == 2 && said, "{alone:?}: {seen:?}");
        let seen = project.antiphon(&[*alone, &["--server", &project.url()]].concat());
        assert_eq!(seen.code, 2, "{alone:?}: {seen:?}");
        let has_subcommands =
            ["agents", "config", "journal", "keys", "mcp", "projects"].contains(&alone[0]);
        let command = if has_subcommands { &alone[..2] } else { &alone[..1] };
        let help = project.antiphon(&[command, &["--help"]].concat());
        assert!(help.code == 0 && !help.out.contains("--server <"), "{command:?}: {}", help.out);
        assert!(!help.out.contains("--token-file"), "{command:?}: {}", help.out);
    }
    let offered = [
        &["tasks", "watch"][..],
        &["tasks", "list"],
        &["inbox", "show"],
        &["agents", "list"],
        &["send"],
        &["run"],
        &["models"],
        &["agents", "new"],
        &["budget", "allow"],
        &["usage"],
        &["sessions", "fork"],
        &["approvals", "deny"],
    ];
    for offered in offered {
        let help = project.antiphon(&[offered, &["--help"]].concat()).out;
        assert!(
            help.contains("--server <URL>") && help.contains("--token-file"),
            "{offered:?}: {help}"
        );
    }
    // A new command is in one of the two lists.
    let known: Vec<&str> = ALONE.iter().chain(&offered).map(|command| command[0]).collect();
    let help = project.antiphon(&["--help"]).out;
    let listed = help.split("Commands:").nth(1).unwrap().split("Options:").next().unwrap();
    let names = listed.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names: Vec<&str> = names.filter_map(|line| line.split_whitespace().next()).collect();
    assert!(names.len() > 20, "{help}");
    for name in names.into_iter().filter(|name| *name != "help") {
        assert!(known.contains(&name), "`{name}`: does it work through --server?");
    }
    server.end();
}

#[test]
fn a_wrong_address_token_or_argument_says_what_to_do() {
    let project = Project::that_asks("go");
    let token = "t".repeat(64);
    let seen = project.antiphon_at("http://127.0.0.1:1", &token, &["tasks", "list"]);
    assert_eq!(seen.code, 4, "{seen:?}");
    assert!(seen.err.contains("no server answers at http://127.0.0.1:1"), "{seen:?}");
    assert!(seen.err.contains("antiphon serve") && !seen.err.contains("broke"), "{seen:?}");
    for url in ["localhost:7117", "team.example"] {
        let seen = project.antiphon_at(url, &token, &["tasks", "list"]);
        assert!(seen.code == 2 && seen.err.contains("add http://"), "{seen:?}");
    }
    let refused = |arguments: &[&str], reason: &str| {
        let seen = project.antiphon(arguments);
        assert!(seen.code == 2 && seen.err.contains(reason), "{arguments:?}: {seen:?}");
    };
    refused(&["tasks", "list", "--server", "http://127.0.0.1:1"], "ANTIPHON_TOKEN");
    refused(&["tasks", "list", "--token-file", "x"], "needs --server");
    fs::write(project.path().join("x"), "t".repeat(64)).unwrap();
    refused(&["tasks", "list", "--server", "http://a.example", "--token-file", "x"], "https");
    refused(&["budget", "allow", "x"], "an amount in US dollars");
    refused(&["budget", "allow", "0"], "an amount in US dollars");
    refused(&["usage", "--from", "nope"], "a day as YEAR-MONTH-DAY");
    let server = project.serve();
    for order in
        [&["tasks", "list"][..], &["tasks", "watch"], &["inbox", "list"], &["budget", "show"]]
    {
        let seen = project.antiphon_at(&project.url(), &token, order);
        assert_eq!(seen.code, 3, "{order:?}: {seen:?}");
        assert!(seen.err.contains("does not accept the token: use what"), "{seen:?}");
    }
    server.end();
}

#[test]
fn a_key_that_may_only_read_is_told_the_level_that_it_needs() {
    let project = Project::that_asks("go");
    let key = project.antiphon(&["keys", "new", "--name", "reader", "--level", "read"]).out;
    let key = key.trim().to_owned();
    let server = project.serve();
    let at = |order: &[&str]| project.antiphon_at(&project.url(), &key, order);
    assert_eq!(at(&["tasks", "list"]).code, 0);
    for (order, level) in [
        (&["budget", "allow", "5"][..], "admin"),
        (&["approvals", "allow", "last"], "admin"),
        (&["agents", "new", "scribe"], "admin"),
        (&["tasks", "cancel", "last"], "write"),
    ] {
        let seen = at(order);
        let needed = format!("this needs a key of level `{level}`; yours is `read`");
        assert!(seen.code == 3 && seen.err.contains(&needed), "{order:?}: {seen:?}");
    }
    server.end();
}
