//! Permissions, plan mode and limits of the tasks that the program starts.

use crate::world::World;

const SIZE: (u16, u16) = (30, 100);

/// A model that writes a file, and then says what it read.
const WRITES: &str = r#"
[[reply]]
when = { results_since_user = 0 }
steps = [{ call = { name = "write", arguments = { path = "new.txt", content = "new" } } }]
[[reply]]
steps = [{ text = "The end of {{last_user}}." }]
"#;

#[test]
fn the_mode_of_the_next_tasks_is_on_the_status_line_and_can_be_set() {
    let world = World::new();
    world.script(WRITES);
    let mut screen =
        world.start(SIZE, &["--mode", "read-only", "--ask", "refuse", "--allow", "bash(ls *)"]);
    screen.until("scripted/s · read-only · /help");
    screen.press("one\r");
    screen.until_written("The end of one.");
    assert!(!world.path().join("new.txt").exists());
    screen.until("Ask anything");
    screen.press("/permissions\r");
    screen.until("mode     read-only (chosen here)");
    screen.until("allow    bash(ls *) (--allow)");
    screen.press("/permissions everything\r");
    screen.until("there is no mode `everything`: choose read-only, workspace or full");
    screen.press("/permissions workspace\r");
    screen.until("scripted/s · workspace · /help");
    screen.press("two\r");
    screen.until_written("The end of two.");
    assert!(world.path().join("new.txt").exists());
    screen.until("Ask anything");
    screen.quit();
}

#[test]
fn the_settings_of_the_user_count_for_every_prompt() {
    let world = World::new();
    world.script(WRITES);
    world.config("[permissions]\ndeny = [\"write\"]\n");
    let mut screen = world.chat(SIZE);
    for prompt in ["one", "two", "three"] {
        screen.press(&format!("{prompt}\r"));
        screen.until_written(&format!("The end of {prompt}."));
        screen.until("Ask anything");
        assert!(!world.path().join("new.txt").exists(), "{prompt}");
    }
    screen.quit();
}

#[test]
fn a_wrong_mode_rule_or_amount_is_refused_before_the_program_begins() {
    let world = World::new();
    world.script(WRITES);
    for (arguments, reason) in [
        (["--mode", "wide"], "read-only"),
        (["--allow", "bash("], "bash("),
        (["--budget-usd", "much"], "must be an amount of US dollars"),
        (["--max-turns", "0"], "must be a whole number from 1"),
    ] {
        let (code, written) = world.start(SIZE, &arguments).end();
        assert_eq!(code, 2, "{written}");
        assert!(written.contains(reason), "{written}");
        assert!(!written.contains("Ask anything"), "{written}");
    }
}

#[test]
fn shift_tab_and_a_command_say_whether_the_next_task_plans_first() {
    let world = World::new();
    world.script(WRITES);
    let mut screen = world.chat(SIZE);
    screen.press("\x1b[Z");
    screen.until("workspace · plan first");
    screen.press("/plan\r");
    screen.until_gone("plan first · /help");
    screen.press("/plan\r");
    screen.until("workspace · plan first");
    screen.press("go\r");
    screen.until_written("The end of go.");
    assert!(!world.path().join("new.txt").exists(), "the task only read");
    screen.until_gone("plan first · /help");
    screen.quit();
}

#[test]
fn a_task_ends_at_the_limits_that_the_program_was_started_with() {
    let world = World::new();
    world.script(WRITES);
    let mut screen = world.start(SIZE, &["--max-turns", "1"]);
    screen.until("Ask anything");
    screen.press("go\r");
    screen.until_written("✗");
    screen.until("Ask anything");
    screen.quit();
}
