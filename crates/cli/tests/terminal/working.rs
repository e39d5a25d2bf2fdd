//! What the keys and commands do while agents work and after that.

use std::fs;

use crate::screen::Screen;
use crate::screens::assert_screen;
use crate::world::World;

const SIZE: (u16, u16) = (30, 100);

/// A model that keeps a list, and works for long on its second answer.
const WORKS: &str = r#"
[[reply]]
when = { results_since_user = 0, last_user_contains = "go" }
steps = [{ call = { name = "todo", arguments = { items = [{ text = "read the code", status = "done" }, { text = "write the parser", status = "in_progress" }, { text = "write the test", status = "pending" }] } } }]
[[reply]]
when = { last_user_contains = "go" }
delay_ms = 300
steps = [{ text = "a long answer that goes on and on and on and on and on and on and on and on and on and on and on and on" }]
[[reply]]
steps = [{ text = "You said {{last_user}}." }]
"#;

fn works() -> (World, Screen) {
    works_in("")
}

/// The same, with settings of the script.
fn works_in(settings: &str) -> (World, Screen) {
    let world = World::new();
    world.script(&format!("{settings}{WORKS}"));
    let mut screen = world.chat(SIZE);
    screen.press("go\r");
    screen.until("[~] write the parser");
    (world, screen)
}

#[test]
fn the_list_of_an_agent_is_above_the_prompt_and_again_when_its_conversation_is_opened_again() {
    // The answer does not begin before the interruption.
    let world = World::new();
    world.script(&WORKS.replace("delay_ms = 300", "delay_ms = 60000"));
    let mut screen = world.chat(SIZE);
    screen.press("go\r");
    screen.until("[~] write the parser");
    screen.until("[ ] write the test");
    screen.press("\x1b");
    screen.until("⏸ interrupted\n› Enter resumes the task, or type how it should go on");
    assert_screen("todo_interrupted", &screen);
    screen.quit();
    let mut screen = world.start(SIZE, &["-c"]);
    screen.until("⏸ interrupted");
    screen.until("[~] write the parser");
    screen.press("/cancel\r");
    screen.until_written("canceled");
    screen.until_gone("[~] write the parser");
    screen.quit();
}

#[test]
fn enter_steers_and_a_queued_prompt_can_be_edited() {
    let (_world, mut screen) = works();
    screen.press("look at b.txt\r");
    screen.until_written("Queued: the agent reads it after the current step");
    screen.press("later\t");
    screen.until("⋯ queued: later");
    screen.press("\x1b[A");
    screen.until("› later");
    screen.until_gone("⋯ queued");
    screen.press(" today\t");
    screen.until("⋯ queued: later today");
    screen.until_written("You said look at b.txt.");
    screen.until_written("You said later today.");
    screen.until("Ask anything");
    screen.quit();
}

#[test]
fn an_earlier_prompt_is_found_by_what_is_typed() {
    let world = World::new();
    world.script(WORKS);
    let mut screen = world.chat(SIZE);
    for prompt in ["an apple", "a pear"] {
        screen.press(&format!("{prompt}\r"));
        screen.until_written(&format!("You said {prompt}."));
        screen.until("Ask anything");
    }
    screen.press("app\x12");
    screen.until("Earlier prompts");
    screen.press("\r");
    screen.until("› an apple");
    screen.press("\x03");
    screen.quit();
}

/// Waits until the tree is empty. A key between makes sure that no frame is half written.
fn nothing_at_work(screen: &mut Screen) {
    screen.press("x");
    screen.until("› x");
    screen.press("\x7f");
    screen.until("! for a shell command");
    screen.until_gone("default");
}

#[test]
fn a_task_of_another_terminal_is_steered_paused_resumed_watched_and_canceled() {
    // Eight seconds of an answer.
    let (world, mut worker) = works_in("chunk_chars = 4\n");
    let mut screen = world.chat(SIZE);
    let focus = |screen: &mut Screen| {
        screen.until("default");
        screen.press("\x0f");
        screen.until("Enter transcript");
    };
    focus(&mut screen);
    assert_screen("tree", &screen);
    screen.press("s");
    screen.until("to task");
    screen.press("from the other terminal\r");
    screen.until_written("reads it after its current step");
    worker.until_written("You said from the other terminal.");
    worker.until("Ask anything");
    nothing_at_work(&mut screen);
    worker.press("go on\r");
    focus(&mut screen);
    screen.press("a");
    screen.until_written("this task asks nothing");
    focus(&mut screen);
    screen.press("p");
    screen.until_written("pauses after its current step");
    worker.until("⏸ interrupted");
    screen.press("r");
    screen.until_written("resumed");
    worker.until("Ask anything");
    // The tree has the keyboard until it is empty.
    screen.until_gone("Enter transcript");
    nothing_at_work(&mut screen);
    worker.press("go and go\r");
    focus(&mut screen);
    screen.press("c");
    screen.until("y cancels");
    screen.press("x");
    screen.until("Enter transcript");
    screen.press("w");
    screen.until("Enter steers");
    screen.press("\x1b");
    screen.until("⏸ interrupted");
    worker.until("⏸ interrupted");
    worker.press("/cancel\r");
    worker.until_written("canceled");
    screen.quit();
    worker.quit();
}

#[test]
fn a_task_is_steered_from_its_transcript_which_the_tree_opened() {
    let (world, mut worker) = works_in("chunk_chars = 4\n");
    let mut screen = world.chat(SIZE);
    screen.until("default");
    screen.press("\x0f");
    screen.until("Enter transcript");
    screen.press("\r");
    screen.until("s steers");
    screen.press("s");
    screen.until("to task");
    screen.press("from its transcript\r");
    screen.until_written("reads it after its current step");
    worker.until_written("You said from its transcript.");
    worker.until("Ask anything");
    nothing_at_work(&mut screen);
    screen.quit();
    worker.quit();
}

#[test]
fn a_task_is_paused_and_canceled_from_its_transcript() {
    let (world, mut worker) = works_in("chunk_chars = 4\n");
    let mut screen = world.chat(SIZE);
    screen.until("default");
    screen.press("\x0f");
    screen.until("Enter transcript");
    screen.press("\r");
    screen.until("c cancels");
    screen.press("p");
    screen.until("The task pauses after its current step");
    worker.until("⏸ interrupted");
    screen.press("c");
    screen.until("y cancels it and every task below it");
    screen.press("x");
    screen.until("c cancels");
    screen.press("cy");
    screen.until("The task is canceled");
    worker.until_written("canceled");
    screen.press("q");
    nothing_at_work(&mut screen);
    screen.quit();
    worker.quit();
}

#[test]
fn models_copies_and_files_of_a_conversation() {
    let world = World::new();
    world.script(WORKS);
    world.config("model = \"scripted/hello\"\n");
    let mut screen = world.chat(SIZE);
    screen.press("/model\r");
    screen.until("Models: type to search");
    screen.until("scripted/hello");
    screen.press("\x1b");
    screen.until_gone("type to search");
    screen.press("hello\r");
    screen.until_written("You said hello.");
    screen.until("Ask anything");
    screen.press("/export out.json\r");
    screen.until("saved to out.json");
    assert!(fs::read_to_string(world.path().join("out.json")).unwrap().contains("You said hello."));
    screen.press("/export out.json\r");
    screen.until("out.json cannot be written");
    screen.press("/fork\r");
    screen.until("continues a copy of the conversation");
    screen.press("again\r");
    screen.until_written("You said again.");
    screen.until("Ask anything");
    screen.press("/resume\r");
    screen.until("every task has ended");
    screen.press("/sessions\r");
    screen.until("Conversations: type to search");
    screen.until("2 tasks");
    screen.until("      You said again.");
    assert_screen("sessions", &screen);
    screen.press("\x1b");
    screen.until_gone("type to search");
    screen.quit();
}

#[test]
fn a_model_that_cannot_be_called_is_refused_at_once() {
    let world = World::new();
    world.script(WORKS);
    let mut screen = world.chat(SIZE);
    screen.press("/model nothing/at-all\r");
    screen.until("there is no provider `nothing`: use scripted, anthropic");
    screen.press("/model anthropic/claude-sonnet-4-5\r");
    screen.until("ANTHROPIC_API_KEY");
    screen.press("/model scripted/other\r");
    screen.until("The next task uses scripted/other");
    screen.quit();
}

#[test]
fn an_answer_that_is_cut_off_ends_on_a_line_of_its_own() {
    let (_world, mut screen) = works_in("chunk_chars = 4\n");
    screen.until("a long");
    screen.press("\x1b");
    screen.until("⏸ interrupted\n› Enter resumes the task");
    // In the status, and behind the answer.
    assert_eq!(screen.text().matches("⏸ interrupted").count(), 2, "{}", screen.text());
    screen.press("/cancel\r");
    screen.until_written("canceled");
    screen.quit();
}

#[test]
fn an_interrupted_task_is_resumed_from_the_list() {
    let (world, mut screen) = works();
    screen.press("\x1b");
    screen.until("⏸ interrupted");
    screen.quit();
    let mut screen = world.chat(SIZE);
    screen.press("/resume\r");
    screen.until("Tasks that have not ended");
    screen.until("go");
    screen.press("\r");
    screen.until("Enter steers");
    screen.press("/cancel\r");
    screen.until_written("canceled");
    screen.quit();
}

#[test]
fn help_a_failure_a_small_terminal_and_no_colors() {
    let world = World::new();
    world.script("[[reply]]\nsteps = [{ error = { kind = \"invalid_request\", message = \"the request is too strange\" } }]\n");
    let mut screen = world.start_with((50, 100), &[], &[("NO_COLOR", "1")]);
    screen.until("Ask anything");
    screen.press("/help\r");
    screen.until("Quit (Ctrl-D)\n\nscripted/s · workspace · /help\n› Ask anything, / for commands, @ for files, ! for a shell command");
    assert_screen("help", &screen);
    let written = screen.quit();
    for color in ["\x1b[2m", "\x1b[1m", "\x1b[36m", "\x1b[31m"] {
        assert!(!written.contains(color), "{color:?} in {written:?}");
    }
    let mut screen = world.chat(SIZE);
    screen.press("go\r");
    screen.until_written("too strange");
    screen.until("! for a shell command");
    assert_screen("failed", &screen);
    screen.quit();
    let size = (10, 40);
    let mut screen = world.start(size, &[]);
    screen.until("Ask any");
    screen.press("go\r");
    screen.until_written("too strange");
    screen.until("commands, @ for");
    assert_screen("small", &screen);
    screen.quit();
}

#[test]
fn the_scrollback_keeps_every_line_when_the_terminal_is_resized() {
    let world = World::new();
    world.script(WORKS);
    let mut screen = world.chat((24, 80));
    for number in 0..4 {
        screen.press(&format!("number {number}\r"));
        screen.until_written(&format!("You said number {number}."));
        screen.until("Ask any");
        let (rows, columns) = [(12, 60), (40, 120), (10, 50), (24, 80)][number];
        screen.resize(rows, columns);
        screen.press("x");
        screen.until("› x");
        screen.press("\x7f");
        screen.until("Ask any");
    }
    let lines = screen.all_lines();
    for number in 0..4 {
        let said = format!("You said number {number}.");
        let found = lines.iter().filter(|line| line.contains(&said)).count();
        assert_eq!(found, 1, "{said}\n{}", lines.join("\n"));
    }
    screen.quit();
}
