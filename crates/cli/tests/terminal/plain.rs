//! The terminal program as lines of text.

use crate::screen::Screen;
use crate::world::World;

const QUESTION: &str = "[[reply]]\nwhen = { turn = 0 }\nsteps = [{ text = \"# Title\\n\" }, { call = { name = \"bash\", arguments = { command = \"source x.sh\" } } }]\n\
    [[reply]]\nwhen = { last_user_contains = \"again\" }\nsteps = [{ text = \"Again it is.\" }]\n\
    [[reply]]\nsteps = [{ text = \"That was it.\" }]\n";

fn plain(world: &World, term: &str, more: &[&str]) -> Screen {
    let begin = ["chat", "--model", "scripted/s", "--script", "s.toml"];
    let mut command = world.command((24, 80), &[&begin, more].concat());
    command.env("TERM", term);
    let mut screen = Screen::start(command, (24, 80));
    screen.until("Prompt:");
    screen
}

#[test]
fn everything_is_text_and_a_question_is_answered_by_its_number() {
    let world = World::new();
    world.script(QUESTION);
    for (term, more) in [("dumb", &[][..]), ("xterm-256color", &["--plain"])] {
        let mut screen = plain(&world, term, more);
        screen.press("go\n");
        screen.until("# Title");
        screen.until("  4 deny it");
        screen.press("4\n");
        screen.until("That was it.");
        screen.until_last("Prompt:");
        screen.press("again\n");
        screen.until("Again it is.");
        screen.until_last("Prompt:");
        screen.press("\x04");
        let (code, written) = screen.end();
        assert_eq!(code, 0, "{written}");
        assert!(!written.contains('\x1b'), "{written:?}");
    }
}

#[test]
fn ctrl_c_interrupts_and_enter_goes_on() {
    let world = World::new();
    world.script("[[reply]]\nwhen = { turn = 0 }\nsteps = [{ call = { name = \"bash\", arguments = { command = \"until [ -e go ]; do sleep 0.02; done\" } } }]\n[[reply]]\nsteps = [{ text = \"It went on.\" }]\n");
    let mut screen = plain(&world, "dumb", &[]);
    screen.press("go\n");
    screen.until("→ bash");
    screen.press("\x03");
    screen.until("Enter goes on");
    world.write("go", "");
    screen.press("\n");
    screen.until("It went on.");
    screen.until_last("Prompt:");
    screen.press("/quit\n");
    let (code, written) = screen.end();
    assert_eq!(code, 0, "{written}");
    assert!(!written.contains('\x1b'), "{written:?}");
}
