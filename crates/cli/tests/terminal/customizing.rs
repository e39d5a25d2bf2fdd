//! Keys, themes and vi; conversations that are looked at and searched; images of the clipboard.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::screens::assert_screen;
use crate::world::World;

const SIZE: (u16, u16) = (30, 100);

const SAYS: &str = "[[reply]]\nsteps = [{ text = \"You said {{last_user}}.\" }]\n";

#[test]
fn keys_and_the_theme_of_the_settings_are_used() {
    let world = World::new();
    world.script(SAYS);
    world.config("[tui]\ntheme = \"dark\"\n[tui.keys]\ntranscript = [\"f5\", \"alt-t\"]\n");
    let mut screen = world.chat(SIZE);
    screen.press("hello\r");
    screen.until_written("You said hello.");
    screen.until("Ask anything");
    screen.press("\x1b[15~");
    screen.until("q closes");
    screen.press("q");
    screen.until("Ask anything");
    screen.press("/keys\r");
    screen.until("f5, alt-t");
    screen.press("/theme light\r");
    screen.until("The theme is light from now on");
    screen.press("/theme pink\r");
    screen.until("Choose a theme: /theme with one of terminal, light, dark, mono");
    screen.press("again\r");
    screen.until_written("You said again.");
    screen.until("Ask anything");
    let written = screen.quit();
    // The sign of the prompt, cyan: first for a dark ground, then for a light one.
    let (dark, light) = (written.find("\x1b[38;5;80m"), written.find("\x1b[38;5;30m"));
    assert!(dark.is_some() && dark < light, "{dark:?} {light:?}");
    assert!(!written.contains("\x1b[36m"), "{written:?}");
}

#[test]
fn settings_of_the_program_that_cannot_be_are_refused_with_the_reason() {
    let world = World::new();
    world.script(SAYS);
    for (settings, reason) in [
        ("[tui.keys]\nscript = \"f5\"\n", "there is no action `script`: use one of new-line"),
        (
            "[tui.keys]\neditor = \"ctrl-t\"\n",
            "the key `ctrl-t` is given to `transcript` and to `editor`",
        ),
        ("[tui]\ntheme = \"pink\"\n", "pink"),
    ] {
        world.config(settings);
        let (code, written) = world.start(SIZE, &[]).end();
        assert_eq!(code, 2, "{written}");
        assert!(written.contains(reason), "{written}");
    }
}

#[test]
fn the_prompt_has_the_keys_of_vi() {
    let world = World::new();
    world.script(SAYS);
    world.config("[tui]\nvi = true\n");
    let mut screen = world.chat(SIZE);
    screen.press("one two three\x1b");
    screen.until("vi commands");
    screen.press("0wdw");
    screen.until("› one three");
    screen.press("u");
    screen.until("› one two three");
    screen.press("cwfour\r");
    screen.until_written("You said one four three.");
    screen.until("Ask anything");
    screen.press("/vi\r");
    screen.until("The prompt has its usual keys");
    screen.quit();
}

#[test]
fn a_conversation_is_looked_at_before_it_is_chosen_and_found_by_what_was_said() {
    let world = World::new();
    world.script(SAYS);
    let mut screen = world.chat(SIZE);
    for (number, prompt) in ["about the harbor", "about the Lighthouse keeper"].iter().enumerate() {
        screen.press(&format!("{prompt}\r"));
        screen.until_written(&format!("You said {prompt}."));
        screen.until("Ask anything");
        if number == 0 {
            screen.press("/new\r");
            screen.until_written("A new conversation");
        }
    }
    screen.press("/sessions\r");
    screen.until("You said about the Lighthouse keeper.\n");
    screen.press("\x1b[B");
    screen.until("      You said about the harbor.");
    assert_screen("session_preview", &screen);
    screen.press("\x1b");
    screen.until_gone("type to search");
    screen.press("/sessions LIGHTHOUSE\r");
    screen.until("Conversations with this text");
    screen.until("about the Lighthouse keeper");
    screen.press("\x1b");
    screen.until_gone("Conversations with this text");
    screen.press("/sessions nowhere\r");
    screen.until("nothing was found");
    screen.quit();
}

/// A folder with a program that prints what the clipboard holds.
fn clipboard(world: &World, script: &str) -> String {
    let folder = world.path().with_file_name("programs");
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join("wl-paste");
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    format!("{}:/usr/bin:/bin", folder.display())
}

#[test]
fn an_image_of_the_clipboard_is_sent_with_a_prompt_and_with_a_message_to_a_task() {
    let world = World::new();
    world.script("[[reply]]\nwhen = { last_user_contains = \"slowly\" }\ndelay_ms = 200\nsteps = [{ text = \"an answer that takes its time, and more of it, and more\" }]\n[[reply]]\nsteps = [{ text = \"I see it.\" }]\n");
    let path = clipboard(&world, r"printf '\211PNG\r\n\032\nrest'");
    let mut screen = world.start_with(SIZE, &[], &[("PATH", &path)]);
    screen.until("Ask anything");
    screen.press("look\x16");
    screen.until("clipboard-1.png");
    screen.press("\r");
    screen.until_written("I see it.");
    screen.until("Ask anything");
    screen.press("slowly\r");
    screen.until("an answer");
    screen.press("and this \x16");
    screen.until("clipboard-2.png");
    screen.press("\r");
    screen.until_written("Queued: the agent reads it after the current step");
    screen.until("Ask anything");
    screen.press("/export out.json\r");
    screen.until("saved to out.json");
    let exported = fs::read_to_string(world.path().join("out.json")).unwrap();
    assert_eq!(exported.matches("image/png").count(), 2, "{exported}");
    screen.quit();
}

#[test]
fn a_clipboard_without_an_image_is_an_error_that_says_what_to_do() {
    let world = World::new();
    world.script(SAYS);
    let path = clipboard(&world, "echo text");
    let mut screen = world.start_with(SIZE, &[], &[("PATH", &path)]);
    screen.until("Ask anything");
    screen.press("\x16");
    screen.until("the clipboard has no image: copy one first");
    screen.quit();
}

#[test]
fn mcp_servers_are_listed_with_their_errors() {
    let world = World::new();
    world.script(SAYS);
    let mut screen = world.chat(SIZE);
    screen.press("/mcp\r");
    screen.until("no MCP server is configured");
    screen.quit();
    world.config("[mcp.broken]\ncommand = \"/nonexistent/server\"\n");
    let mut screen = world.chat(SIZE);
    screen.press("/mcp\r");
    screen.until("broken · 0 tools");
    screen.until("✗");
    screen.quit();
}
