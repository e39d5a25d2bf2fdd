//! The file itself: who may write it, and what happens when it cannot be used.

use crate::world::World;

const READ: &str = "{ name = \"glob\", arguments = { pattern = \"*.toml\" } }";

#[test]
fn without_the_file_nothing_changes_and_with_an_empty_one_neither() {
    for world in World::all(&[READ]) {
        world.run(&["--mode", "full"]).is_done("work.toml");
        world.prepare("true");
        world.run(&["--mode", "full"]).is_done("work.toml");
        world.policy("");
        world.run(&["--mode", "full"]).is_done("work.toml");
    }
}

#[test]
fn a_file_that_cannot_be_trusted_stops_everything_that_runs_agents() {
    for world in World::all(&[READ]) {
        world.policy("");
        // There is a task to resume, too.
        world.run(&[]).is_done("work.toml");
        let file = "printf '' > policy.toml; chmod 644 policy.toml;";
        let cases = [
            (format!("{file} chown 12345 policy.toml"), "belongs to user"),
            (format!("{file} chmod 664 policy.toml"), "can be changed by other users"),
            (format!("{file} chmod 646 policy.toml"), "can be changed by other users"),
            (format!("{file} chmod 777 ."), "can be changed by other users"),
            (format!("{file} chown 12345 ."), "belongs to user"),
            (format!("{file} mv policy.toml a.toml; ln -s a.toml policy.toml"), "is a link"),
            ("ln -s /nowhere policy.toml".to_owned(), "is a link"),
            ("mkfifo -m 644 policy.toml".to_owned(), "not a plain file"),
            ("mkdir policy.toml".to_owned(), "not a plain file"),
            (format!("{file} head -c 2000000 /dev/zero > policy.toml"), "more than"),
            (format!("{file} echo 'mode = 1' > policy.toml"), "line 1: unknown field"),
            (format!("{file} echo 'mode_max = ' > policy.toml"), "line 1"),
            (format!("{file} cd ..; mv antiphon real; ln -s real antiphon"), "is not a folder"),
        ];
        for (prepare, part) in &cases {
            // Without the other users that only root can make, the two about owners cannot be tried.
            if prepare.contains("chown") && !crate::users::is_root() {
                continue;
            }
            world.prepare(prepare);
            let refused = world.run(&[]);
            assert_eq!(refused.code, 3, "{prepare}: {}{}", refused.out, refused.err);
            assert!(
                refused.err.contains(part) && refused.err.contains("/etc/antiphon"),
                "{}",
                refused.err
            );
            assert!(refused.err.contains("Ask its administrator"), "{}", refused.err);
        }
        let commands: [&[&str]; 6] = [
            &["serve", "--listen", "127.0.0.1:0"],
            &["run", "--resume", "last"],
            &["send", "a", "b"],
            &["tasks", "resume", "last"],
            &["doctor"],
            &["approvals", "allow", "last"],
        ];
        for command in commands {
            let refused = world.antiphon(command);
            assert_eq!(refused.code, 3, "{command:?}: {}{}", refused.out, refused.err);
            assert!(refused.err.contains("is not a folder"), "{command:?}: {}", refused.err);
        }
    }
}

#[test]
fn a_file_that_the_user_cannot_read_is_no_missing_file() {
    for world in World::all(&[READ]).into_iter().filter(|world| !world.is_root()) {
        for prepare in ["printf '' > policy.toml; chmod 600 policy.toml", "chmod 700 ."] {
            world.prepare(prepare);
            world.run(&[]).is_refused("cannot be read");
        }
    }
}

#[test]
fn no_variable_and_no_flag_names_another_file() {
    for world in World::all(&[READ]) {
        world.policy("mode_max = \"read-only\"");
        world.write("home/empty.toml", "");
        let empty = world.path("home/empty.toml");
        let (empty, home) = (empty.to_str().unwrap(), world.path("home"));
        let home = home.to_str().unwrap();
        for variable in ["ANTIPHON_POLICY", "ANTIPHON_POLICY_FILE", "ANTIPHON_CONFIG"] {
            let run = ["run", "go", "--mode", "workspace", "--model", "scripted/hello"];
            world.antiphon_with(&[(variable, empty)], &run).is_refused("mode_max = \"read-only\"");
        }
        for variable in ["XDG_CONFIG_HOME", "XDG_CONFIG_DIRS", "HOME", "ANTIPHON_STATE"] {
            let run = ["run", "go", "--mode", "workspace", "--model", "scripted/hello"];
            world.antiphon_with(&[(variable, home)], &run).is_refused("mode_max = \"read-only\"");
        }
        let policy = world.antiphon(&["--policy", empty, "run", "go"]);
        assert_eq!(policy.code, 2, "{}", policy.err);
    }
}

#[test]
fn doctor_shows_the_policy_and_tries_it() {
    for world in World::all(&[READ]) {
        let report = world.antiphon(&["doctor", "--json"]).json();
        assert_eq!(report["policy"]["status"], "not_configured");
        world.configure("[permissions]\nmode = \"full\"\n[mcp.x]\ncommand = \"/bin/false\"\n");
        world.policy(
            "mode_max = \"workspace\"\nmodels = [\"scripted/*\"]\n[network]\nhosts = [\"a.example.com\"]\n\
             [mcp]\n[budget]\ndaily_usd = 1\n\
             [permissions]\ndeny = [{ rule = \"bash(curl *)\", examples = [\"curl a.org\"] }]\n",
        );
        let seen = world.antiphon(&["doctor", "--json"]);
        assert!(!seen.err.contains("the policy"), "{}", seen.err);
        let policy = &seen.json()["policy"];
        assert_eq!(
            (&policy["path"], &policy["status"]),
            (&"/etc/antiphon/policy.toml".into(), &"ready".into())
        );
        let trials = policy["trials"].as_array().unwrap();
        assert!(trials.iter().all(|trial| trial["holds"] == true), "{policy}");
        for what in [
            "--mode full",
            "--network",
            "leaving the sandbox",
            "a host",
            "a model",
            "an MCP server",
            "a larger budget",
            "`curl a.org`",
        ] {
            assert!(
                trials.iter().any(|trial| trial["what"].as_str().unwrap().contains(what)),
                "{what}: {policy}"
            );
        }
        assert!(policy["limits"].to_string().contains("line 1: mode_max"), "{policy}");
        let narrowed = policy["narrowed"].to_string();
        assert!(narrowed.contains("not `full`") && narrowed.contains("MCP server `x`"), "{policy}");
        let text = world.antiphon(&["doctor"]).out;
        assert!(
            text.contains("policy         /etc/antiphon/policy.toml in force; tried and refused"),
            "{text}"
        );
        assert!(!world.path("project/.antiphon").exists(), "it leaves nothing in the folder");
    }
}
