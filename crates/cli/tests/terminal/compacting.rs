//! Conversations that are shortened, named, and left while their task works.

use std::time::{Duration, Instant};

use crate::project_folder::antiphon;
use crate::world::World;

const SIZE: (u16, u16) = (30, 100);

/// How long a task may work without a terminal.
const PATIENCE: Duration = Duration::from_secs(40);

/// A model that sums up when it is asked to, and says how many answers it has read.
const COUNTS: &str = r###"
[[reply]]
when = { last_user_contains = "about to be shortened" }
delay_ms = 300
steps = [{ text = "## Goal\nTalk about parsers." }]
[[reply]]
steps = [{ text = "I read {{turn}} answers, then: {{last_user}}." }]
"###;

#[test]
fn a_conversation_goes_on_from_a_summary_when_the_user_asks_for_that() {
    let world = World::new();
    world.script(COUNTS);
    let mut screen = world.chat(SIZE);
    screen.press("/compact\r");
    screen.until("there is no conversation to compact yet");
    screen.press("one\r");
    screen.until_written("I read 0 answers, then: one.");
    screen.until("Ask anything");
    screen.press("two\r");
    screen.until_written("I read 1 answers, then: two.");
    screen.until("Ask anything");
    // A prompt that comes meanwhile waits for the summary.
    screen.press("/compact\r");
    screen.until("Esc interrupts");
    screen.press("three\r");
    screen.until_written("The next prompt goes on from a summary: Ctrl-T shows it");
    screen.until_written("I read 0 answers, then: three.");
    screen.until("Ask anything");
    screen.press("\x14");
    screen.until("q closes");
    screen.press("g");
    screen.until("Talk about parsers.");
    screen.until("I read 1 answers, then: two.");
    screen.press("q");
    screen.until("Ask anything");
    screen.quit();
    let mut screen = world.start(SIZE, &["-c"]);
    screen.until("Ask anything");
    screen.press("four\r");
    screen.until_written("I read 1 answers, then: four.");
    screen.until("Ask anything");
    screen.quit();
}

#[test]
fn the_list_of_everything_gets_the_files_that_are_read_meanwhile() {
    let world = World::new();
    world.script(COUNTS);
    world.write("deep/folder/only_here.rs", "");
    let mut screen = world.chat(SIZE);
    screen.press("\x10only_h");
    screen.until("deep/folder/only_here.rs");
    screen.press("\r");
    screen.until("› @deep/folder/only_here.rs");
    screen.press("\x15");
    screen.until("Ask anything");
    screen.quit();
}

#[test]
fn a_conversation_is_found_by_the_name_that_it_got() {
    let world = World::new();
    world.script(COUNTS);
    let mut screen = world.chat(SIZE);
    screen.press("/name early\r");
    screen.until("there is no conversation to name yet");
    screen.press("hello\r");
    screen.until_written("then: hello.");
    screen.until("Ask anything");
    screen.press("/name the parser\r");
    screen.until("the parser · scripted/s");
    screen.press("/new\r");
    screen.until_gone("the parser · scripted/s");
    screen.press("/sessions\r");
    screen.until("the parser · hello");
    screen.press("\r");
    screen.until("the parser · scripted/s");
    screen.press("/sessions PARSER\r");
    screen.until("Conversations with this text");
    screen.press("\x1b");
    screen.until_gone("Conversations with this text");
    screen.quit();
    let run = |arguments: &[&str]| {
        let output = antiphon(world.path()).args(arguments).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(run(&["sessions", "list"]).contains("the parser"));
    assert!(run(&["sessions", "show", "the parser"]).contains("then: hello."));
    run(&["sessions", "name", "the parser", "docs"]);
    assert!(run(&["sessions", "list"]).contains("docs"));
    run(&["sessions", "name", "docs"]);
    assert!(run(&["sessions", "list"]).contains("hello"));
}

#[test]
fn a_task_goes_on_after_the_program_has_left_it() {
    let world = World::new();
    world.script("delay_ms = 100\n[[reply]]\nsteps = [{ text = \"a long answer \", repeat = 20 }, { text = \"of one call\" }]\n");
    let mut screen = world.chat(SIZE);
    screen.press("/detach\r");
    screen.until("no task works here");
    screen.press("go\r");
    screen.until("a long answer a long");
    screen.press("/detach\r");
    let (code, written) = screen.end();
    assert_eq!(code, 0, "{written}");
    assert!(written.contains("The task goes on without this terminal"), "{written}");
    let end = Instant::now() + PATIENCE;
    let listed = || {
        let output = antiphon(world.path()).args(["tasks", "list"]).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    while !listed().contains("completed") {
        assert!(Instant::now() < end, "{}", listed());
    }
    let mut screen = world.start(SIZE, &["-c"]);
    screen.until_written("of one call");
    screen.until("Ask anything");
    screen.quit();
}
