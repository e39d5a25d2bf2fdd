//! What a person sees, as files: `screens/NAME.txt`.

use std::fs;
use std::path::Path;

use crate::screen::Screen;
use crate::world::World;

pub(crate) const SIZE: (u16, u16) = (30, 100);

/// Compares the screen with its file, or writes it.
pub(crate) fn assert_screen(name: &str, screen: &Screen) {
    let text = stable(&screen.text());
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/terminal/screens/{name}.txt"));
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&path, format!("{text}\n")).unwrap();
        return;
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(text, expected.trim_end(), "{name}: UPDATE=1 writes the file anew");
}

/// The text without what differs from run to run: times, ids, folders and versions; and without counts of tokens,
/// which follow the length of the system prompt.
fn stable(text: &str) -> String {
    let mut lines = Vec::new();
    for line in text.lines() {
        let mut words: Vec<String> = Vec::new();
        let mut after_number = false;
        for word in line.split(' ') {
            let unit = word.trim_end_matches([',', ':']);
            let is_time = matches!(unit, "s" | "ms" | "min" | "tokens" | "+") && after_number;
            let number = word.trim_end_matches(',').trim_start_matches('$');
            after_number =
                !number.is_empty() && number.chars().all(|c| c.is_ascii_digit() || c == '.');
            if is_time && let Some(last) = words.last_mut() {
                "N".clone_into(last);
            }
            words.push(match word {
                "⠋" | "⠙" | "⠹" | "⠸" | "⠼" | "⠴" | "⠦" | "⠧" | "⠇" | "⠏" => {
                    "⠋".to_owned()
                }
                word if word.starts_with('/') && word.contains("/project") => "~/harbor".to_owned(),
                env!("CARGO_PKG_VERSION") => "VERSION".to_owned(),
                word if is_id(word) => "01a2b3c4".to_owned(),
                word if is_age(word) => "Ns".to_owned(),
                word => word.to_owned(),
            });
        }
        lines.push(words.join(" "));
    }
    lines.join("\n")
}

/// Whether a word looks like the id of a task, short or whole.
fn is_id(word: &str) -> bool {
    matches!(word.len(), 8 | 36)
        && word.chars().all(|c| c.is_ascii_hexdigit() || c == '-')
        && word.chars().any(|c| c.is_ascii_digit())
}

/// Whether a word is an age in seconds.
fn is_age(word: &str) -> bool {
    let number = word.strip_suffix('s');
    number.is_some_and(|number| !number.is_empty() && number.chars().all(|c| c.is_ascii_digit()))
}

fn said(world: &World, replies: &str, prompt: &str, until: &str) -> Screen {
    world.script(replies);
    let mut screen = world.chat(SIZE);
    screen.press(prompt);
    screen.press("\r");
    screen.until(until);
    screen
}

pub(crate) const ANSWER: &str = r#"
[[reply]]
steps = [
  { thinking = "The user wants an overview. I begin with the code." },
  { text = """
# Overview

A **small** program, see [the page](https://example.com/page):

```rust
// says hello
fn main() { println!("hello {}", 1); }
```

| part | lines |
|------|------:|
| core | 1200 |
| cli | 80 |

- one
  1. first
  2. second

Done.""" },
]
"#;

#[test]
fn an_answer_with_code_a_table_and_a_list() {
    let world = World::new();
    let mut screen = said(&world, ANSWER, "What is this?", "tokens");
    screen.until("Ask anything");
    assert_screen("answer", &screen);
    screen.press("\x14");
    screen.until("q closes");
    assert_screen("transcript", &screen);
    screen.press("/println\r");
    screen.until("n N, q closes");
    assert_screen("transcript_search", &screen);
    screen.press("q");
    screen.until("Ask anything");
    screen.press("\x1b");
    screen.until("Esc again goes back");
    screen.press("\x1b");
    screen.until("type to search\n  › What is this?");
    assert_screen("earlier", &screen);
    screen.press("\r");
    screen.until("› What is this?");
    screen.press("\x03");
    screen.quit();
}

#[test]
fn a_failed_task_says_what_to_do() {
    let world = World::new();
    let error = "{ kind = \"authentication\", message = \"the key is wrong\" }";
    let replies = format!("[[reply]]\nsteps = [{{ error = {error} }}]\n");
    let screen = said(&world, &replies, "go", "check the key of the provider `scripted`");
    assert!(screen.text().contains("the key is wrong"), "{}", screen.text());
    screen.quit();
}

#[test]
fn a_question_about_an_edit_shows_the_difference() {
    let world = World::new();
    world.write("a.txt", "one\ntwo\nthree\n");
    let edits = r#"[{ old = "one\ntwo\n", new = "one\n2\n" }]"#;
    let replies = format!(
        "[[reply]]\nwhen = {{ turn = 0 }}\nsteps = [{{ text = \"I change it.\" }}, {{ call = {{ name = \"read\", arguments = {{ path = \"a.txt\" }} }} }}]\n\
         [[reply]]\nwhen = {{ turn = 1 }}\nsteps = [{{ call = {{ name = \"edit\", arguments = {{ path = \"a.txt\", edits = {edits} }} }} }}]\n\
         [[reply]]\nsteps = [{{ text = \"Changed.\" }}]\n"
    );
    world.script(&replies);
    world.config("[permissions]\nask = [\"edit(a.txt)\"]\n");
    let mut screen = world.chat(SIZE);
    screen.press("Change it\r");
    screen.until("y once, t for this task");
    assert_screen("question", &screen);
    screen.press("a");
    screen.until("Always? y");
    assert_screen("question_always", &screen);
    screen.press("x");
    screen.until("Not allowed");
    screen.press("\x7f");
    screen.until("y once, t for this task");
    screen.press("y");
    screen.until("Changed.");
    screen.until("Ask anything");
    assert_screen("edit", &screen);
    screen.quit();
}

#[test]
fn lists_of_commands_files_and_everything() {
    let world = World::new();
    world.write("src/login.rs", "");
    world.script(ANSWER);
    let mut screen = world.chat(SIZE);
    screen.press("/");
    // The status names `/help`, too; this is the last row of the list.
    screen.until("    1 of 28");
    assert_screen("commands", &screen);
    screen.press("\x03");
    screen.press("@log");
    screen.until("› @log");
    screen.until("src/login.rs");
    assert_screen("files", &screen);
    screen.press("\x03");
    screen.press("\x10");
    screen.until("Commands, conversations, tasks, files");
    screen.press("log");
    screen.until("files: log");
    // What `lo` alone finds, in the last rows of the frame.
    screen.until_gone("/theme");
    screen.until_gone("/cancel");
    screen.until("src/login.rs");
    assert_screen("palette", &screen);
    screen.press("\x1b");
    screen.until_gone("Commands, conversations");
    screen.quit();
}

#[test]
fn a_command_of_a_file_is_completed_and_its_prompt_is_sent() {
    let world = World::new();
    let commands = crate::project_folder::home(world.path()).join(".config/antiphon/commands");
    fs::create_dir_all(&commands).unwrap();
    let text = "---\ndescription: Repairs things.\nargument-hint: NUMBER\n---\nRepair number $1.\n";
    fs::write(commands.join("repair.md"), text).unwrap();
    world.script("[[reply]]\nsteps = [{ text = \"I do: {{last_user}}\" }]\n");
    let mut screen = world.chat(SIZE);
    screen.press("/rep");
    screen.until("/repair NUMBER");
    screen.press("\t12 34\r");
    screen.until("I do: Repair number 12.");
}
