//! Terminals that lie about their size, change it all the time, or are not there.

use std::process::Command;

use crate::screen::Screen;
use crate::world::World;

const CHAT: [&str; 5] = ["chat", "--model", "scripted/s", "--script", "s.toml"];

#[test]
fn a_terminal_that_lies_about_its_size_gets_a_prompt_and_an_answer() {
    let world = World::new();
    world.script("[[reply]]\nsteps = [{ text = \"Fine.\" }]\n");
    for said in [(1, 1), (1, 10_000), (10_000, 1), (10_000, 10_000), (65_535, 65_535)] {
        let mut screen = Screen::start(world.command(said, &CHAT), (24, 80));
        screen.until_bytes("Ask any");
        screen.press("hi\r");
        screen.until_bytes("Fine.");
        screen.until_bytes("tokens");
        // The transcript has the whole screen, whatever size that is.
        screen.press("\x14");
        screen.until_bytes("\x1b[?1049h");
        screen.press("q");
        screen.until_bytes("\x1b[?1049l");
        screen.quit();
    }
}

#[test]
fn a_storm_of_sizes_leaves_one_prompt_and_every_line() {
    let world = World::new();
    world.script(
        "delay_ms = 2\nchunk_chars = 6\n[[reply]]\nsteps = [{ text = \"some words \\n\\n\", repeat = 200 }, { text = \"The end.\" }]\n",
    );
    let mut screen = world.chat((24, 80));
    screen.press("go\r");
    let sizes = [(10, 40), (50, 200), (4, 10), (24, 80), (5, 12), (30, 60)];
    for (rows, columns) in sizes.into_iter().cycle().take(300) {
        screen.resize(rows, columns);
    }
    screen.resize(24, 80);
    screen.until_written("The end.");
    screen.until("Ask anything");
    screen.press("after it");
    screen.until("› after it");
    assert_eq!(screen.text().matches("after it").count(), 1, "{}", screen.text());
    screen.press("\x15");
    screen.until("Ask anything");
    screen.press("go\r");
    screen.until("some words");
    screen.until("Ask anything");
    let lines = screen.all_lines();
    let second = lines.iter().rposition(|line| line.starts_with("› go")).unwrap();
    let words = lines[second..].iter().filter(|line| line.starts_with("some words")).count();
    assert_eq!(words, 200, "{}", lines[second..].join("\n"));
    screen.quit();
}

#[test]
fn without_an_input_or_an_output_that_is_a_terminal_it_says_what_to_use() {
    let world = World::new();
    world.script("[[reply]]\nsteps = [{ text = \"Fine.\" }]\n");
    for redirected in ["<&-", ">&-", "</dev/null", "2>&1 | cat"] {
        let size = (24, 80);
        let mut command = Command::new("setsid");
        let script = format!(
            "\"$0\" chat --model scripted/s --script s.toml {redirected}; echo \"code:$?\""
        );
        command.args(["--ctty", "--wait", "sh", "-c", &script]);
        command.arg(assert_cmd::cargo::cargo_bin!("antiphon"));
        let home = crate::project_folder::home(world.path());
        command.current_dir(world.path()).env_clear().env("HOME", home);
        command.env("PATH", std::env::var_os("PATH").unwrap()).env("TERM", "xterm-256color");
        let (_, written) = Screen::start(command, size).end();
        assert!(!written.contains("panicked"), "{redirected}: {written}");
        assert!(written.contains("needs a terminal"), "{redirected}: {written}");
    }
}
