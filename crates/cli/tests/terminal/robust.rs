//! Terminals that are small, resized, closed or lie, large pastes, wide characters, and many agents at once.

use rustix::process::Signal;

use crate::screen::Screen;
use crate::world::World;

const ENTER: &str = "\r";

/// A model that says what it was asked.
const SAYS: &str = "[[reply]]\nsteps = [{ text = \"You said {{last_user}}.\" }]\n";

fn numbers(count: usize) -> String {
    let lines: Vec<String> = (0..count).map(|number| format!("line {number}\\n\\n")).collect();
    lines.concat()
}

/// Every one of the numbered lines is there once, in order.
fn assert_complete(screen: &mut Screen, count: usize) {
    let lines = screen.all_lines();
    let found: Vec<&str> =
        lines.iter().map(|line| line.trim()).filter(|line| line.starts_with("line ")).collect();
    let expected: Vec<String> = (0..count).map(|number| format!("line {number}")).collect();
    assert_eq!(found, expected, "{}", lines.join("\n"));
}

#[test]
fn nothing_is_lost_from_the_scrollback_when_more_is_written_than_fits() {
    let world = World::new();
    world.script(&format!(
        "chunk_chars = 7\n[[reply]]\nsteps = [{{ text = \"{}The end.\" }}]\n",
        numbers(200)
    ));
    for size in [(24, 80), (10, 40), (5, 20)] {
        let mut screen = world.start(size, &[]);
        screen.until("Ask");
        screen.press("go");
        screen.press(ENTER);
        screen.until("tokens");
        screen.until("Ask");
        assert_complete(&mut screen, 200);
        screen.quit();
    }
}

#[test]
fn the_prompt_works_at_every_size_and_after_every_resize() {
    let world = World::new();
    world.script(SAYS);
    let mut screen = world.chat((24, 80));
    for (index, (rows, columns)) in [(10, 40), (5, 20), (50, 200), (24, 80)].into_iter().enumerate()
    {
        screen.resize(rows, columns);
        let text = format!("word{index}");
        screen.press(&text);
        screen.until(&format!("› {text}"));
        screen.press(ENTER);
        // A small screen has room for the line of the cost alone.
        screen.until_written(&format!("said {text}."));
        screen.until("Ask any");
    }
    screen.quit();
}

#[test]
fn wide_and_combining_characters_take_their_columns() {
    let world = World::new();
    world.script(SAYS);
    let mut screen = world.chat((24, 40));
    for (text, columns) in [("日本語", 6), ("e\u{301}a", 2), ("한글x", 5), ("🦀", 2)] {
        screen.press(text);
        screen.until(&format!("› {text}"));
        let (_, column) = screen.cursor();
        assert_eq!(column, 2 + columns, "{text}");
        screen.press("\x15");
        screen.until("Ask anything");
    }
    screen.press(&"漢字".repeat(15));
    screen.press(ENTER);
    screen.until("You said");
    screen.until("tokens");
    screen.quit();
}

#[test]
fn a_paste_of_a_megabyte_is_folded_and_sent_whole() {
    let world = World::new();
    let last = "the last words of the paste";
    world.script(&format!(
        "[[reply]]\nwhen = {{ last_user_contains = \"{last}\" }}\nsteps = [{{ text = \"All of it.\" }}]\n"
    ));
    let mut screen = world.chat((24, 80));
    let text = format!("{}{last}", "sixteen letters\n".repeat(65_536));
    screen.paste(&text);
    screen.until("[Pasted text 1: 65537 lines]");
    screen.press(ENTER);
    screen.until("All of it.");
    screen.quit();
}

#[test]
fn a_terminal_that_says_it_has_no_size_gets_a_prompt() {
    let world = World::new();
    world.script(SAYS);
    let mut screen = world.chat((0, 0));
    screen.press("hello\r");
    screen.until("You said hello.");
    screen.quit();
}

#[test]
fn a_signal_ends_the_program_and_the_terminal_is_as_before() {
    let world = World::new();
    world.script(
        "delay_ms = 200\n[[reply]]\nsteps = [{ text = \"a long answer that goes on and on\" }]\n",
    );
    for signal in [Signal::TERM, Signal::HUP] {
        let mut screen = world.chat((24, 80));
        screen.press("go\r");
        screen.until("a long");
        screen.press("\x14");
        screen.until("q closes");
        screen.signal(signal);
        let (_, written) = screen.end();
        let restored = written.rfind("\x1b[?2004l").unwrap_or_else(|| panic!("{written:?}"));
        assert!(written[restored..].contains("\x1b[?25h"), "{written:?}");
        let (begun, left) = (written.rfind("\x1b[?1049h"), written.rfind("\x1b[?1049l"));
        assert!(begun < left, "{written:?}");
    }
}

#[test]
fn every_process_ends_when_the_terminal_is_closed() {
    let world = World::new();
    world.script(
        "delay_ms = 200\n[[reply]]\nsteps = [{ text = \"a long answer that goes on and on\" }]\n",
    );
    // At the prompt, while the model answers, and while another program has the terminal.
    for (keys, shown) in
        [("", "Ask anything"), ("go\r", "a long"), ("!echo $((6*7)); sleep 1000\r", "42")]
    {
        let mut screen = world.chat((24, 80));
        screen.press(keys);
        screen.until(shown);
        screen.hang_up();
    }
}

#[test]
fn a_single_prompt_ends_when_the_terminal_that_was_opened_for_it_is_closed() {
    let world = World::new();
    world.script(
        "delay_ms = 200\n[[reply]]\nsteps = [{ text = \"a long answer that goes on and on\" }]\n",
    );
    let size = (24, 80);
    let arguments = ["run", "--model", "scripted/s", "--script", "s.toml", "go"];
    let mut screen = Screen::start(world.command(size, &arguments), size);
    screen.until("a long");
    screen.hang_up();
}

#[test]
fn keys_are_answered_while_fifty_agents_work() {
    let world = World::new();
    world.write(
        ".antiphon/agents/worker.md",
        "---\ndescription: works\nmodel: scripted/s\n---\nYou are a worker.\n",
    );
    world.trust();
    let targets: Vec<String> = (0..50)
        .map(|number| format!("{{ agent = \"worker\", prompt = \"part {number}\" }}"))
        .collect();
    world.script(&format!(
        "[[reply]]\nwhen = {{ system_contains = \"You are a worker\" }}\ndelay_ms = 20\nsteps = [{{ text = \"{}\" }}]\n\
         [[reply]]\nwhen = {{ turn = 0 }}\nsteps = [{{ call = {{ name = \"call_agent\", arguments = {{ join = \"all\", targets = [{}] }} }} }}]\n\
         [[reply]]\nsteps = [{{ text = \"All have reported.\" }}]\n",
        "word ".repeat(200),
        targets.join(", ")
    ));
    let mut screen = world.chat((24, 80));
    screen.press("go\r");
    screen.until("worker");
    screen.press("typed meanwhile");
    screen.until("› typed meanwhile");
    // The tree has the keyboard, and opens a transcript.
    screen.press("\x15\x0f");
    screen.until("Enter transcript");
    screen.press("\r");
    screen.until("q closes");
    screen.press("q");
    screen.until("All have reported.");
    screen.quit();
}

#[test]
fn keys_are_answered_while_a_transcript_of_ten_megabytes_is_formatted() {
    let world = World::new();
    world.script(SAYS);
    let at = "2026-01-01T00:00:00Z";
    let said = "words of a prompt that is long ".repeat(340);
    let messages: Vec<serde_json::Value> = (0..1000)
        .map(|number| {
            let text = format!("prompt {number}\n{said}");
            serde_json::json!({ "type": "user", "timestamp": at, "content": [{ "type": "text", "text": text }] })
        })
        .collect();
    let session = serde_json::json!({ "version": 1, "id": "long", "system_prompt": "", "created_at": at,
        "updated_at": at, "messages": messages });
    let session = session.to_string();
    assert!(session.len() > 10_000_000);
    world.write("long.json", &session);
    let mut import = crate::project_folder::antiphon(world.path());
    let imported = import.args(["sessions", "import", "long.json"]).output().unwrap();
    assert!(imported.status.success(), "{imported:?}");
    let mut screen = world.start((24, 80), &["-c"]);
    screen.until("Ask anything");
    screen.press("\x14x");
    screen.until("› x");
    screen.until("q closes");
    screen.press("g");
    screen.until("› prompt 0");
    screen.press("q");
    screen.until("› x");
    screen.press("\x7f");
    screen.until("Ask anything");
    screen.quit();
}
