//! Rules above those of the user.

use crate::world::World;

const TOUCH: &str = "{ name = \"bash\", arguments = { command = \"touch done && echo touched\" } }";

#[test]
fn what_the_policy_denies_nothing_allows() {
    for world in World::all(&[TOUCH]) {
        world.run(&[]).is_done("touched");
        std::fs::remove_file(world.path("project/done")).unwrap();
        world.policy(
            "[permissions]\ndeny = [{ rule = \"bash(touch *)\", reason = \"no files\" }]\n",
        );
        world.configure(
            "[permissions]\nmode = \"full\"\nallow = [\"*\", \"bash\", \"bash(touch *)\"]\n",
        );
        let root = world.path("project");
        let always =
            format!("[projects.\"{}\"]\nallow = [\"bash(touch *)\", \"bash\"]\n", root.display());
        world.write("home/.config/antiphon/permissions.toml", &always);
        std::fs::set_permissions(
            world.path("home/.config/antiphon/permissions.toml"),
            std::os::unix::fs::PermissionsExt::from_mode(0o600),
        )
        .unwrap();
        for more in [
            &[][..],
            &["--allow", "bash(touch *)"],
            &["--allow", "bash"],
            &["--mode", "full"],
            &["--ask", "wait"],
        ] {
            let refused = world.run(more);
            refused.names_policy("line 2: no files");
            assert!(!world.path("project/done").exists(), "{more:?}");
        }
    }
}

#[test]
fn what_the_policy_asks_is_asked_each_time() {
    for world in World::all(&[TOUCH]) {
        world.policy("[permissions]\nask = [\"bash(touch *)\"]\n");
        world.configure("[permissions]\nmode = \"full\"\nallow = [\"*\", \"bash\"]\n");
        world.run(&["--allow", "bash(touch *)"]).names_policy("asks");
        assert!(!world.path("project/done").exists());
        assert_eq!(world.run(&["--ask", "wait"]).code, 3);
        let always = world.antiphon(&["approvals", "allow", "--always", "last"]);
        assert_ne!(always.code, 0, "{}", always.out);
        assert!(always.err.contains("allow it once"), "{}", always.err);
        assert_eq!(world.antiphon(&["approvals", "allow", "last"]).code, 0);
        world.antiphon(&["run", "--resume", "last"]).is_done("touched");
        assert!(world.path("project/done").exists());
        assert_eq!(world.run(&["--ask", "wait"]).code, 3, "the next call asks again");
    }
}

#[test]
fn the_policy_holds_in_the_sandbox_runner() {
    for world in World::all(&[TOUCH]) {
        let work = world.path("project/work.toml");
        world.configure(&format!(
            "[scripts]\nwork = \"{}\"\n[permissions]\nallow = [\"bash\"]\n",
            work.display()
        ));
        world.write(
            "home/.config/antiphon/agents/boxed.md",
            "---\ndescription: Boxed.\nmodel: scripted/work\nruntimes: [sandbox]\n---\nWork.\n",
        );
        let run = ["run", "go", "--agent", "boxed", "--json"];
        world.antiphon(&run).is_done("touched");
        std::fs::remove_file(world.path("project/done")).unwrap();
        world.policy("[permissions]\ndeny = [\"bash(touch *)\"]\n");
        world.antiphon(&run).names_policy("line 2");
        assert!(!world.path("project/done").exists());
    }
}
