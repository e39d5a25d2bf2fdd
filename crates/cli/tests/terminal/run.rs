//! `antiphon run` at a terminal: formatted answers, and a line that is typed beneath them.

use crate::screen::Screen;
use crate::screens::{ANSWER, SIZE, assert_screen};
use crate::world::World;

/// Text that arrives slowly, a call that waits for the file `go`, and what the model was told meanwhile.
fn slow(lines: usize) -> String {
    let lines: Vec<String> = (0..lines).map(|number| format!("line {number}\\n\\n")).collect();
    let wait = "until [ -e go ]; do sleep 0.02; done";
    format!(
        "chunk_chars = 5\ndelay_ms = 20\n\
         [[reply]]\nwhen = {{ turn = 0 }}\nsteps = [{{ text = \"{}\" }}, {{ call = {{ name = \"bash\", arguments = {{ command = \"{wait}\" }} }} }}]\n\
         [[reply]]\nsteps = [{{ text = \"Heard: {{{{last_user}}}}.\" }}]\n",
        lines.concat()
    )
}

fn run(world: &World, size: (u16, u16), more: &[&str]) -> Screen {
    let begin = ["run", "--model", "scripted/s", "--script", "s.toml"];
    Screen::start(world.command(size, &[&begin, more].concat()), size)
}

#[test]
fn an_answer_is_formatted() {
    let world = World::new();
    world.script(ANSWER);
    let mut screen = run(&world, SIZE, &["What is this?"]);
    screen.until("cost unknown");
    assert_screen("run", &screen);
    let (code, written) = screen.end();
    assert_eq!(code, 0, "{written}");
    assert!(written.contains("\x1b[1m"), "{written:?}");
}

#[test]
fn the_theme_of_the_settings_is_used() {
    let world = World::new();
    world.script(ANSWER);
    world.config("[tui]\ntheme = \"dark\"\n");
    let (code, written) = run(&world, SIZE, &["What is this?"]).end();
    assert_eq!(code, 0, "{written}");
    assert!(written.contains("38;5;") && !written.contains("\x1b[36m"), "{written:?}");
}

#[test]
fn without_colors_nothing_is_colored() {
    let world = World::new();
    world.script(ANSWER);
    let arguments = ["run", "--model", "scripted/s", "--script", "s.toml", "What is this?"];
    let mut command = world.command(SIZE, &arguments);
    command.env("NO_COLOR", "1");
    let (code, written) = Screen::start(command, SIZE).end();
    assert_eq!(code, 0, "{written}");
    let colored = written.split("\x1b[").any(|part| {
        let end = part.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(0);
        part[end..].starts_with('m')
    });
    assert!(!colored, "{written:?}");
}

#[test]
fn a_dumb_terminal_gets_no_escape_sequences() {
    let world = World::new();
    world.script(ANSWER);
    let arguments = ["run", "--model", "scripted/s", "--script", "s.toml", "What is this?"];
    let mut command = world.command(SIZE, &arguments);
    command.env("TERM", "dumb");
    let (code, written) = Screen::start(command, SIZE).end();
    assert_eq!(code, 0, "{written}");
    assert!(!written.contains('\x1b') && written.contains("| core | 1200 |"), "{written:?}");
}

#[test]
fn output_in_a_file_is_as_the_model_wrote_it_and_the_terminal_shows_the_rest() {
    let world = World::new();
    world.script(&slow(3));
    let mut screen = world.shell((24, 80));
    screen.until("shell>");
    screen.press("\"$ANTIPHON\" run --mode full --model scripted/s --script s.toml go > out.txt\n");
    screen.until("→ bash");
    screen.press("a line");
    screen.until_last("› a line");
    screen.press("\r");
    screen.until("Queued: the agent reads it");
    world.write("go", "");
    screen.until("cost unknown");
    screen.until_last("shell>");
    assert!(!screen.text().contains("line 1"), "{}", screen.text());
    let written = std::fs::read_to_string(world.path().join("out.txt")).unwrap();
    assert_eq!(written, "line 0\n\nline 1\n\nline 2\n\nHeard: a line.\n");
    screen.press("exit\n");
    screen.end();
}

#[test]
fn a_result_of_a_schema_is_shown_as_it_is() {
    let world = World::new();
    world.write("schema.json", "{\"type\": \"object\"}");
    world.script("[[reply]]\nsteps = [{ text = '{\"a\": \"**b**\", \"c\": 1}' }]\n");
    let mut screen = run(&world, SIZE, &["--output-schema", "schema.json", "go"]);
    screen.until("cost unknown");
    screen.until_last("}");
    let text = screen.text();
    assert!(text.starts_with("{\"a\": \"**b**\", \"c\": 1}\n"), "{text}");
    assert!(text.ends_with("{\n  \"a\": \"**b**\",\n  \"c\": 1\n}"), "{text}");
    assert_eq!(screen.end().0, 0);
}

#[test]
fn what_is_typed_never_mixes_with_what_is_written() {
    let world = World::new();
    world.script(&slow(30));
    let mut screen = run(&world, (20, 60), &["--mode", "full", "go"]);
    screen.until("line 2");
    screen.press("typed meanwhileX\x7f");
    screen.until("› typed meanwhile");
    screen.until("line 29");
    screen.until("→ bash");
    screen.until("› typed meanwhile");
    assert_eq!(screen.text().matches("typed meanwhile").count(), 1, "{}", screen.text());
    screen.resize(12, 40);
    screen.press("!");
    screen.until("› typed meanwhile!");
    screen.press("\r");
    screen.until("Queued: the agent reads it");
    world.write("go", "");
    screen.until("Heard: typed meanwhile!.");
    screen.until("cost unknown");
    let lines = screen.all_lines();
    let lines: Vec<&str> = lines.iter().map(|line| line.trim()).collect();
    let numbered: Vec<&str> =
        lines.iter().copied().filter(|line| line.starts_with("line ")).collect();
    let expected: Vec<String> = (0..30).map(|number| format!("line {number}")).collect();
    assert_eq!(numbered, expected, "{}", lines.join("\n"));
    // In the transcript, the line was sent once.
    let sent = lines.iter().filter(|line| **line == "› typed meanwhile!").count();
    assert_eq!(sent, 1, "{}", lines.join("\n"));
    assert_eq!(screen.end().0, 0);
}

#[test]
fn a_text_that_was_begun_before_a_question_does_not_answer_it() {
    let world = World::new();
    let text = "a long answer that goes on and on";
    world.script(&format!(
        "chunk_chars = 2\ndelay_ms = 100\n\
         [[reply]]\nwhen = {{ turn = 0 }}\nsteps = [{{ text = \"{text}\" }}, {{ call = {{ name = \"bash\", arguments = {{ command = \"echo effect >> effects; source x.sh\" }} }} }}]\n\
         [[reply]]\nsteps = [{{ text = \"That was it.\" }}]\n",
    ));
    let mut screen = run(&world, (30, 100), &["go"]);
    screen.until("a long");
    screen.press("y");
    screen.until("› y");
    screen.until("allow? [y]es once");
    screen.press("\r");
    screen.until("Nothing is sent: the question appeared while you typed");
    screen.until_last("› y");
    assert!(!world.path().join("effects").exists());
    screen.press("\x15");
    screen.until("› y once, t for this task");
    screen.press("n\r");
    screen.until("That was it.");
    assert!(!world.path().join("effects").exists());
    assert_eq!(screen.end().0, 0);
}

#[test]
fn in_the_background_a_task_leaves_the_terminal_to_the_shell() {
    let world = World::new();
    world.script(&slow(20));
    let mut screen = world.shell((24, 80));
    screen.until("shell>");
    screen.press("\"$ANTIPHON\" run --mode full --model scripted/s --script s.toml go\n");
    screen.until("line 2");
    screen.press("a line");
    screen.until("› a line");
    screen.press("\x1a");
    screen.until("Stopped");
    screen.press("bg\n");
    screen.until("line 19");
    screen.until("→ bash");
    // The shell has the keyboard, and what is typed stays where it is.
    screen.press("echo '@@'$((6*7))'@@'\n");
    screen.until("@@42@@");
    screen.press("fg\n");
    screen.until("› a line");
    screen.press("\r");
    screen.until("Queued: the agent reads it");
    world.write("go", "");
    screen.until("Heard: a line.");
    screen.until_last("shell>");
    screen.press("exit\n");
    screen.end();
}

#[test]
fn ctrl_c_interrupts_and_the_terminal_is_as_before() {
    let world = World::new();
    world.script(&slow(2));
    let mut screen = world.shell((24, 80));
    screen.until("shell>");
    screen.press("\"$ANTIPHON\" run --mode full --model scripted/s --script s.toml go\n");
    screen.until("→ bash");
    screen.press("unsent");
    screen.until("› unsent");
    screen.press("\x03");
    screen.until("--resume");
    screen.until_last("shell>");
    screen.press("echo both:$(stty -a | tr ';' ' ' | tr ' ' '\\n' | grep -cx -e icanon -e echo)\n");
    screen.until("both:2");
    assert_eq!(screen.switched_on(), (false, false, false));
    screen.press("exit\n");
    screen.end();
}
