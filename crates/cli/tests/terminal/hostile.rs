//! Text that controls a terminal, wherever it comes from, is shown as what it is.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::project_folder::{antiphon, state};
use crate::world::World;

/// Sets the title, clears the screen, moves the cursor and reverses text; in TOML.
const HOSTILE: &str = r"evil\u001b]0;pwned\u0007\u001b[2J\u001b[999D\rOVER\u009b2J\u202eend";

/// The sequences that the program itself writes.
fn without_own_sequences(written: &str) -> String {
    let mut rest = String::new();
    let mut text = written;
    while let Some((before, after)) = text.split_once('\x1b') {
        rest.push_str(before);
        let end = after.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(after.len());
        let (parameters, last) = after.split_at(end);
        let is_own = match (parameters, last.chars().next()) {
            ("[?2026" | "[?25" | "[?2004" | "[?1004" | "[?1049", Some('h' | 'l')) => true,
            (parameters, Some('A' | 'C' | 'K' | 'J' | 'H' | 'm')) => {
                parameters[1..].chars().all(|c| c.is_ascii_digit() || c == ';')
            }
            _ => false,
        };
        if is_own {
            text = &last[1..];
        } else {
            rest.push('\x1b');
            text = after;
        }
    }
    rest.push_str(text);
    rest
}

fn assert_harmless(written: &str) {
    let rest = without_own_sequences(written);
    let bad = rest.chars().find(|c| {
        (c.is_control() && !matches!(c, '\r' | '\n')) || matches!(c, '\u{202e}' | '\u{2066}')
    });
    assert_eq!(bad, None, "{}", rest.escape_debug());
    assert!(!written.contains("\rOVER"), "{}", written.escape_debug());
}

#[test]
fn texts_of_models_tools_files_and_people_do_not_control_the_terminal() {
    let world = World::new();
    world.write("evil\x1b[2J\u{202e}.txt", "a file");
    world.write("out.txt", "out \x1b]0;pwned\x07\x1b[2J\x1b[999D\rOVER\u{9b}2J\u{202e}end\n");
    let call = "{ name = \"bash\", arguments = { command = \"cat out.txt\" } }";
    world.script(&format!(
        "[[reply]]\nwhen = {{ turn = 0 }}\nsteps = [{{ thinking = \"{HOSTILE}\" }}, {{ text = \"# {HOSTILE}\\n\\n```rust\\n{HOSTILE}\\n```\\n[{HOSTILE}](http://{HOSTILE})\\n\" }}, {{ call = {call} }}]\n\
         [[reply]]\nsteps = [{{ text = \"finished {HOSTILE}\" }}]\n"
    ));
    let mut screen = world.chat((40, 100));
    screen.press("@evil");
    screen.until(r"evil\u{1b}[2J\u{202e}.txt");
    screen.press("\x03");
    screen.paste("go \x1b[2J\u{9b}2J \u{202e}now");
    screen.press("\r");
    screen.until("finished");
    screen.until("tokens");
    screen.press("\x14");
    screen.until("q closes");
    screen.press("/evil\r");
    screen.until("n N, q closes");
    screen.press("q");
    screen.until("Ask anything");
    screen.press("/sessions\r");
    screen.until("Conversations");
    screen.press("\x1b");
    screen.until_gone("Conversations");
    assert_harmless(&screen.written());
    screen.quit();
}

/// A name of a conversation as another program may have written it into the file of names.
fn name_with_hostile_text(world: &World) {
    let listed = antiphon(world.path()).args(["sessions", "list", "--json"]).output().unwrap();
    let listed: serde_json::Value = serde_json::from_slice(&listed.stdout).unwrap();
    let session = listed[0]["session_id"].as_str().unwrap();
    let names = format!("{{\"{session}\": \"{HOSTILE}\"}}").replace("\\r", "\\u000d");
    let path = state(world.path()).join("session_names.json");
    fs::write(&path, names).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
}

#[test]
fn lists_questions_names_and_conversations_do_not_control_the_terminal() {
    let world = World::new();
    let todo = format!("{{ items = [{{ text = \"{HOSTILE}\", status = \"in_progress\" }}] }}");
    let ask = format!("{{ question = \"{HOSTILE}\", choices = [\"{HOSTILE}\", \"b\"] }}");
    world.script(&format!(
        "[[reply]]\nwhen = {{ turn = 0 }}\nsteps = [{{ call = {{ name = \"todo\", arguments = {todo} }} }}]\n\
         [[reply]]\nwhen = {{ turn = 1 }}\nsteps = [{{ call = {{ name = \"ask_user\", arguments = {ask} }} }}]\n\
         [[reply]]\nsteps = [{{ text = \"finished\" }}]\n"
    ));
    let mut screen = world.chat((40, 100));
    screen.paste("go \x1b[2J\u{9b}2J \u{202e}now");
    screen.press("\r");
    screen.until("Type a number");
    screen.until("[~] evil");
    screen.paste("\x1b]0;pwned\x07 later");
    screen.press("\t");
    screen.until("queued: ");
    screen.until("Type a number");
    screen.press("1\r");
    screen.until_written("finished");
    screen.until("Ask anything");
    screen.paste("/name a\x1b[2Jb");
    screen.press("\r");
    screen.until("the name has control characters");
    name_with_hostile_text(&world);
    screen.press("/sessions\r");
    screen.until("Conversations");
    screen.press("\r");
    screen.until("evil");
    screen.press("/export no\x1bsuch/folder\r");
    screen.press("\x10evil");
    screen.until("Commands, conversations, tasks, files");
    screen.press("\x1b");
    screen.until_gone("Commands, conversations, tasks, files");
    assert_harmless(&screen.written());
    screen.press("\x03");
    screen.until("Ask anything");
    screen.quit();
}
