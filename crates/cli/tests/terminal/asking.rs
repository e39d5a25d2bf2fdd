//! Questions of agents, and plans: asked and answered where the prompt is.

use crate::screen::Screen;
use crate::screens::assert_screen;
use crate::world::World;

const SIZE: (u16, u16) = (30, 100);

/// A model that asks what the prompt names, and then says what it read.
const ASKS: &str = r#"
[[reply]]
when = { results_since_user = 0, last_user_contains = "several" }
steps = [{ call = { name = "ask_user", arguments = { question = "Which files?", choices = ["a.txt", "b.txt", "c.txt"], multiple = true } } }]
[[reply]]
when = { results_since_user = 0, last_user_contains = "free" }
steps = [{ call = { name = "ask_user", arguments = { question = "What is it called?" } } }]
[[reply]]
when = { results_since_user = 0 }
steps = [{ call = { name = "ask_user", arguments = { question = "Which database?", choices = [{ label = "SQLite", description = "one file" }, { label = "PostgreSQL" }], free_text = false, default = "SQLite" } } }]
[[reply]]
steps = [{ text = "I read: {{last_result}}." }]
"#;

fn answer(screen: &mut Screen, prompt: &str, typed: &str, read: &str) {
    screen.press(prompt);
    screen.press("\r");
    screen.until("Type a number");
    screen.press(typed);
    screen.press("\r");
    screen.until_written(read);
    screen.until("Ask anything");
}

#[test]
fn a_question_is_answered_by_number_by_several_in_words_and_by_its_default() {
    let world = World::new();
    world.script(ASKS);
    let mut screen = world.chat(SIZE);
    screen.press("a choice\r");
    screen.until("- leaves it unanswered");
    assert_screen("ask_user", &screen);
    screen.press("9\r");
    screen.until("`9` is no answer");
    screen.press("\x03");
    screen.until("Type a number");
    screen.press("2\r");
    screen.until_written("I read: The user chose: PostgreSQL.");
    screen.until("Ask anything");
    answer(&mut screen, "several", "1,3", "The user chose: a.txt, c.txt.");
    answer(&mut screen, "free", "harbor", "The user answered: harbor.");
    answer(&mut screen, "its default", "", "The user chose: SQLite.");
    answer(&mut screen, "none", "-", "The user does not answer this");
    screen.quit();
}

/// A model that plans, and then says what it read.
const PLANS: &str = r##"
[[reply]]
when = { results_since_user = 0, tool_offered = "submit_plan" }
steps = [{ call = { name = "submit_plan", arguments = { plan = "# Plan\n\n1. look at the code\n2. change it" } } }]
[[reply]]
when = { results_since_user = 0 }
steps = [{ text = "No plan is needed." }]
[[reply]]
steps = [{ text = "I read: {{last_result}}." }]
"##;

fn plans(editor: &str) -> (World, Screen) {
    let world = World::new();
    world.script(PLANS);
    let mut screen = world.start_with(SIZE, &["--plan"], &[("EDITOR", editor)]);
    screen.until("plan first");
    screen.press("go\r");
    screen.until("n rejects it; or type what to change");
    (world, screen)
}

#[test]
fn a_plan_is_accepted_and_the_next_task_does_not_plan() {
    let (_world, mut screen) = plans("true");
    assert_screen("plan", &screen);
    screen.press("y");
    screen.until_written("I read: The plan is accepted. Carry it out.");
    screen.until("Ask anything");
    screen.press("and now?\r");
    screen.until_written("No plan is needed.");
    screen.quit();
}

#[test]
fn a_plan_is_changed_in_the_editor_and_accepted_as_it_is_then() {
    let (_world, mut screen) = plans("sed -i s/change/rewrite/");
    screen.press("e");
    screen.until_written("I read: The plan is accepted with changes. Carry out this plan:");
    screen.until_written("2. rewrite it");
    screen.until("Ask anything");
    screen.quit();
}

#[test]
fn a_plan_that_was_not_changed_in_the_editor_still_waits() {
    let (_world, mut screen) = plans("true");
    screen.press("e");
    screen.until("The plan was not changed");
    screen.until("y accepts the plan");
    screen.press("leave the code as it is\r");
    screen.until_written("The plan is rejected: leave the code as it is.");
    screen.until("Ask anything");
    screen.quit();
}
