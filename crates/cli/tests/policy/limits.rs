//! MCP servers, peers and budgets.

use crate::world::World;

const READ: &str = "{ name = \"glob\", arguments = { pattern = \"*.toml\" } }";

#[test]
fn an_mcp_server_is_what_it_runs_and_not_its_name() {
    for world in World::all(&[READ]) {
        let program = |name: &str, more: &str| {
            let started = world.path("project").join(name);
            format!(
                "[mcp.docs]\ncommand = \"/bin/sh\"\nargs = [\"-c\", \"echo $PATH > {}\"]\n{more}",
                started.display()
            )
        };
        let good = program("good", "");
        let started = |name: &str| std::fs::read_to_string(world.path("project").join(name)).ok();
        world.configure(&program("evil", ""));
        world.run(&[]).is_done("work.toml");
        assert!(started("evil").is_some(), "it starts without the policy");
        std::fs::remove_file(world.path("project/evil")).unwrap();
        world.policy(&good);
        for config in [
            program("evil", ""),
            good.replace("mcp.docs", "mcp.other").replace("good", "evil"),
            good.replace("/bin/sh", "sh").replace("good", "evil"),
            program("evil", "env = { LD_PRELOAD = \"/x\" }\n"),
        ] {
            world.configure(&config);
            world.run(&[]).names_policy("line 1: `[mcp.docs]`");
            assert_eq!(started("evil"), None, "{config}");
        }
        world.configure(&format!("{good}env = {{ BASH_ENV = \"/x\" }}\n"));
        world.run(&[]).names_policy("may not get the variable `BASH_ENV`");
        assert_eq!(started("good"), None);
        world.configure(&good);
        world.run(&[]).is_done("work.toml");
        let path = started("good").unwrap();
        assert_eq!(path.trim(), "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
        world.policy("[mcp]\n");
        std::fs::remove_file(world.path("project/good")).unwrap();
        world.run(&[]).names_policy("line 1: `[mcp]`");
        assert_eq!(started("good"), None);
    }
}

#[test]
fn a_trusted_project_brings_no_server_that_the_policy_does_not_name() {
    for world in World::all(&[READ]) {
        let started = world.path("project/started");
        let server = format!(
            "[mcp.docs]\ncommand = \"/bin/sh\"\nargs = [\"-c\", \"touch {}\"]\n",
            started.display()
        );
        world.folder("project/.antiphon");
        world.write("project/.antiphon/antiphon.toml", &server);
        world.run(&["--trust"]).is_done("work.toml");
        assert!(started.exists(), "it starts without the policy");
        std::fs::remove_file(&started).unwrap();
        world.policy("[mcp]\n");
        world.run(&["--trust"]).names_policy("MCP server `docs` is not allowed");
        assert!(!started.exists());
        world.policy(&server);
        world.run(&["--trust"]).is_done("work.toml");
        assert!(started.exists(), "the policy allows exactly this one");
    }
}

#[test]
fn only_listed_peers() {
    for world in World::all(&[READ]) {
        world.configure("[peers.office]\nurl = \"http://127.0.0.1:1\"\ntoken_env = \"HOME\"\n");
        world.policy("peers = [\"https://office.example.com\"]\n");
        world.write(
            "home/.config/antiphon/agents/far.md",
            "---\ndescription: Far.\nruntimes: [{kind: loopback, config: {peer: office}}]\n---\nFar.\n",
        );
        let refused = world.antiphon(&["run", "go", "--agent", "far"]);
        assert_ne!(refused.code, 0, "{}", refused.out);
        refused.names_policy("the peer `office` is not used");
    }
}

/// Two answers of two tenths of a cent each.
const BUDGET: &str =
    "[budget]\ndaily_usd = 0.003\n[prices.\"scripted/work\"]\ninput = 1.0\noutput = 1.0\n";

#[test]
fn no_user_spends_more_than_the_budget() {
    for world in World::all(&[READ]) {
        world.configure(
            "[budget]\ndaily_usd = 100\n[models.\"scripted/work\"]\nprice = { input = 0.0, output = 0.0 }\n",
        );
        world.run(&[]).is_done("work.toml");
        world.policy(BUDGET);
        let spent = world.run(&[]);
        assert_eq!(spent.code, 3, "{}{}", spent.out, spent.err);
        spent.names_policy("no user can raise it");
        world.antiphon(&["budget", "allow", "5"]).names_policy("as large as it may be");
        let server = world.serve(&[]);
        let (status, body) = server.post("/v1/budget/allow", r#"{"usd":5}"#);
        assert!(status >= 400 && body.contains("policy.toml, line 2"), "{status} {body}");
        let (status, body) =
            server.post("/v1/tasks", r#"{"message":"go","model":"scripted/hello"}"#);
        assert_eq!(status, 503, "{body}");
        drop(server);
        let shown = world.antiphon(&["budget", "show", "--json"]).json();
        assert_eq!(shown["total"]["day"]["limit_nano_usd"], 3_000_000, "{shown}");
    }
}

#[test]
fn a_user_raises_an_own_budget_up_to_the_policy_and_a_raise_from_before_counts_no_further() {
    for world in World::all(&[READ]) {
        world.configure("[budget]\ndaily_usd = 0.001\n");
        world.run(&[]).is_done("work.toml");
        world.antiphon(&["budget", "allow", "50"]).is_done("");
        world.policy(&BUDGET.replace("0.003", "0.9"));
        let limit = || {
            world.antiphon(&["budget", "show", "--json"]).json()["total"]["day"]["limit_nano_usd"]
                .clone()
        };
        assert_eq!(limit(), 900_000_000);
        world.policy(&BUDGET.replace("0.003", "100"));
        assert_eq!(limit(), 50_001_000_000u64);
        world.antiphon(&["budget", "allow", "60"]).names_policy("by $49.9990 at most");
        world.antiphon(&["budget", "allow", "40"]).is_done("");
        assert_eq!(limit(), 90_001_000_000u64);
    }
}

#[test]
fn a_model_that_the_budget_cannot_count_is_refused() {
    for world in World::all(&[]) {
        world.configure(
            "[providers.own]\nkind = \"openai\"\nbase_url = \"http://127.0.0.1:1\"\n\
             [models.\"own/a\"]\nprice = { input = 0.0, output = 0.0 }\n",
        );
        world.policy(BUDGET);
        world.antiphon(&["run", "go", "--model", "own/a"]).is_refused("knows no price of `own/a`");
    }
}
