//! The terminal after the program has ended without a chance to restore it.

use std::process::Command;

use crate::screen::Screen;
use crate::world::World;

const SAYS: &str = "[[reply]]\nsteps = [{ text = \"You said {{last_user}}.\" }]\n";

/// The shell reads whole lines, which the terminal echoes, and nothing of the program is switched on.
fn assert_restored(screen: &mut Screen) {
    assert_eq!(screen.switched_on(), (false, false, false), "{}", screen.text());
    screen.press("echo both:$(stty -a | tr ';' ' ' | tr ' ' '\\n' | grep -cx -e icanon -e echo)\n");
    screen.until("both:2");
    screen.press("exit\n");
}

#[test]
fn the_terminal_is_restored_after_a_kill() {
    let world = World::new();
    world.script(SAYS);
    // At the prompt, and while the alternate screen is shown without a cursor.
    for (keys, shown) in [("", "Ask anything"), ("\x14", "q closes")] {
        let mut screen = world.shell((24, 80));
        screen.until("shell>");
        screen.press("\"$ANTIPHON\" chat --model scripted/s --script s.toml\n");
        screen.until("Ask anything");
        screen.press("hello\r");
        screen.until("You said hello.");
        screen.until("Ask anything");
        screen.press(keys);
        screen.until(shown);
        let (worker, _) = world.processes();
        assert!(
            Command::new("kill").args(["-KILL", &worker.to_string()]).status().unwrap().success()
        );
        screen.until("Killed");
        screen.until_last("shell>");
        assert!(screen.text().contains("You said hello."), "{}", screen.text());
        assert_restored(&mut screen);
        screen.end();
    }
}

#[test]
fn the_terminal_is_restored_after_a_panic() {
    let world = World::new();
    world.script(SAYS);
    let mut screen = world.shell((24, 80));
    screen.until("shell>");
    screen.press("export ANTIPHON_TEST_PANIC=panic\n");
    screen.press("\"$ANTIPHON\" chat --model scripted/s --script s.toml\n");
    screen.until("Ask anything");
    screen.press("hello\r");
    screen.until("You said hello.");
    screen.press("\x14");
    screen.until("q closes");
    world.write("panic", "");
    screen.until("a test asked for this panic");
    screen.until_last("shell>");
    assert_restored(&mut screen);
    screen.end();
}
