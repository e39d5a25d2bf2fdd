//! Modes, the network, and everything that has no sandbox.

use crate::world::{World, greeter};

const WRITE_BESIDE: &str =
    "{ name = \"bash\", arguments = { command = \"echo x > ../home/beside && echo written\" } }";

const LEAVE: &str = "{ name = \"bash\", arguments = { command = \"echo x > ../home/beside && echo written\", \
                     without_sandbox = true } }";

#[test]
fn no_mode_beyond_the_widest() {
    for world in World::all(&[WRITE_BESIDE]) {
        world.run(&["--mode", "full"]).is_done("written");
        world.policy("mode_max = \"workspace\"");
        world.run(&["--mode", "full"]).is_refused("line 1: `mode_max = \"workspace\"`");
        world.antiphon(&["serve", "--mode", "full"]).is_refused("mode_max");
        world.configure("[permissions]\nmode = \"full\"\nallow = [\"*\", \"bash\"]\n");
        let narrowed = world.run(&["--allow", "bash"]);
        assert!(!narrowed.out.contains("written\n"), "{}", narrowed.out);
        narrowed.names_policy("`workspace` and not `full`");
        world.policy("mode_max = \"read-only\"");
        let narrowed = world.run(&[]);
        assert!(!narrowed.out.contains("written\n"), "{}", narrowed.out);
        world.run(&["--mode", "workspace"]).is_refused("read-only");
        world.run(&["--mode", "read-only"]).is_done("");
    }
}

#[test]
fn only_listed_hosts() {
    let (port, count) = greeter();
    let call = format!(
        "{{ name = \"bash\", arguments = {{ command = \"curl -sS http://localhost:{port}/\", \
         hosts = [\"localhost:{port}\"] }} }}"
    );
    let rule = format!("network(localhost:{port})");
    for world in World::all(&[&call]) {
        *count.lock().unwrap() = 0;
        world.run(&["--allow", &rule]).is_done("welcome");
        assert_eq!(*count.lock().unwrap(), 1);
        world.policy("[network]\nhosts = [\"a.example.com\"]\n");
        let refused = world.run(&["--allow", &rule]);
        refused.names_policy("line 2: `hosts = [\"a.example.com\"]`");
        world.run(&["--network"]).is_refused("line 2");
        world.antiphon(&["serve", "--network"]).is_refused("line 2");
        world.configure(&format!("[sandbox]\nnetwork = true\nunix_sockets = true\n[permissions]\nallow = [\"network\", \"{rule}\"]\n"));
        world.run(&["--ask", "wait"]).names_policy("`sandbox.network` has no effect");
        world.configure("");
        world.policy("[network]\ndeny = [\"localhost\"]\n");
        world.run(&["--allow", &rule]).names_policy("denies it");
        assert_eq!(*count.lock().unwrap(), 1, "nothing reached it since");
        world.policy(&format!("[network]\nhosts = [\"localhost:{port}\"]\n"));
        let asked = world.run(&[]);
        assert!(
            asked.out.contains("not allowed"),
            "a listed host still needs the user: {}",
            asked.out
        );
        world.run(&["--allow", &rule]).is_done("welcome");
    }
}

#[test]
fn an_unlisted_host_is_not_reached_without_being_named_either() {
    let (port, count) = greeter();
    let call = format!(
        "{{ name = \"bash\", arguments = {{ command = \"curl -sS http://localhost:{port}/; true\" }} }}"
    );
    for world in World::all(&[&call]) {
        *count.lock().unwrap() = 0;
        let rule = format!("network(localhost:{port})");
        world.run(&["--allow", &rule]).is_done("welcome");
        world.policy("[network]\nhosts = [\"a.example.com\"]\n");
        let refused = world.run(&["--allow", &rule, "--allow", "network", "--allow", "bash"]);
        assert!(!refused.out.contains("welcome"), "{}", refused.out);
        assert_eq!(*count.lock().unwrap(), 1);
    }
}

#[test]
fn nothing_leaves_the_sandbox() {
    for world in World::all(&[LEAVE]) {
        world.run(&["--allow", "unsandboxed"]).is_done("written");
        std::fs::remove_file(world.path("home/beside")).unwrap();
        world.policy("[sandbox]\nmay_leave = false\n");
        world.configure("[permissions]\nallow = [\"unsandboxed\", \"bash\"]\n");
        world.run(&["--allow", "unsandboxed"]).names_policy("may_leave = false");
        world.run(&["--mode", "full"]).is_refused("may_leave = false");
        // There is no question to answer.
        world.run(&["--ask", "wait"]).names_policy("denies it");
        assert!(!world.path("home/beside").exists());
    }
}

#[test]
fn an_answer_from_before_the_policy_does_not_count() {
    for world in World::all(&[LEAVE]) {
        assert_eq!(world.run(&["--ask", "wait"]).code, 3);
        assert_eq!(world.antiphon(&["approvals", "allow", "last"]).code, 0);
        world.policy("[sandbox]\nmay_leave = false\n");
        world.antiphon(&["run", "--resume", "last"]).names_policy("may_leave = false");
        assert!(!world.path("home/beside").exists());
        // The same for an answer that is given after it.
        world.no_policy();
        assert_eq!(world.run(&["--ask", "wait"]).code, 3);
        world.policy("[sandbox]\nmay_leave = false\n");
        world.antiphon(&["approvals", "allow", "last"]);
        world.antiphon(&["run", "--resume", "last"]).names_policy("may_leave = false");
        assert!(!world.path("home/beside").exists());
    }
}

#[test]
fn no_program_in_a_terminal() {
    for world in World::all(&[]) {
        world.configure(
            "[terminals.toucher]\ncommand = [\"sh\", \"-c\", \"touch started; exit\"]\n",
        );
        world.write(
            "home/.config/antiphon/agents/shell.md",
            "---\ndescription: A shell.\nruntimes: [{kind: terminal, config: {profile: toucher}}]\n---\nA shell.\n",
        );
        world.policy("terminals = false\n");
        let refused = world.antiphon(&["run", "go", "--agent", "shell"]);
        assert_ne!(refused.code, 0);
        refused.names_policy("no programs in terminals: `toucher`");
        assert!(!world.path("project/started").exists());
        world.no_policy();
        world.antiphon(&["run", "go", "--agent", "shell"]);
        assert!(world.path("project/started").exists(), "it starts without the policy");
    }
}
