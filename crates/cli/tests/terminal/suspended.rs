//! The program while it is suspended, and while another program has its terminal.

use std::process::Command;

use crate::screen::Screen;
use crate::world::World;

/// A task that waits for the file `go`.
const WAITS: &str = "[[reply]]\nwhen = { turn = 0 }\nsteps = [{ call = { name = \"bash\", arguments = { command = \"until [ -e go ]; do sleep 0.02; done\" } } }]\n\
    [[reply]]\nsteps = [{ text = \"It went on.\" }]\n";

fn in_shell(world: &World) -> Screen {
    let mut screen = world.shell((24, 80));
    screen.until("shell>");
    screen.press("\"$ANTIPHON\" chat --model scripted/s --script s.toml\n");
    screen.until("Ask anything");
    screen
}

/// The shell has a terminal without rows of the program, and continues it.
fn use_shell_and_continue(screen: &mut Screen) {
    screen.until("Stopped");
    assert_eq!(screen.switched_on(), (false, false, false), "{}", screen.text());
    screen.press("printf '\\033[2J\\033[H'; echo '@@'$((6*7))'@@'\n");
    screen.until("@@42@@");
    screen.until_gone("Ask anything");
    screen.press("fg\n");
    screen.until("Ask anything");
    screen.press("typed");
    screen.until("› typed");
    screen.press("\x03");
    screen.until("Ask anything");
}

fn send(signal: &str, pid: &str) {
    let done = Command::new("kill").args([signal, "--", pid]).status().unwrap();
    assert!(done.success());
}

#[test]
fn ctrl_z_gives_the_terminal_to_the_shell() {
    let world = World::new();
    world.script(WAITS);
    let mut screen = in_shell(&world);
    screen.press("\x1a");
    use_shell_and_continue(&mut screen);
    screen.press("\x04");
    screen.until_last("shell>");
    screen.press("exit\n");
    screen.end();
}

#[test]
fn signals_of_other_processes_suspend_the_program_as_the_key_does() {
    let world = World::new();
    world.script(WAITS);
    let mut screen = in_shell(&world);
    let (worker, foreground) = world.processes();
    for pid in [foreground.to_string(), worker.to_string(), format!("-{foreground}")] {
        send("-TSTP", &pid);
        use_shell_and_continue(&mut screen);
    }
    screen.press("\x04");
    screen.until_last("shell>");
    screen.press("exit\n");
    screen.end();
}

/// SIGSTOP cannot be caught: the program learns of it when it goes on.
#[test]
fn the_program_draws_again_after_it_was_stopped_without_notice() {
    let world = World::new();
    world.script(WAITS);
    let mut screen = in_shell(&world);
    let (_, foreground) = world.processes();
    send("-STOP", &format!("-{foreground}"));
    screen.until("Stopped");
    screen.press("printf '\\033[2J\\033[H'; echo '@@'$((6*7))'@@'\n");
    screen.until("@@42@@");
    screen.press("fg\n");
    screen.until("Ask anything");
    screen.press("typed");
    screen.until("› typed");
    screen.press("\x03\x04");
    screen.until_last("shell>");
    screen.press("exit\n");
    screen.end();
}

#[test]
fn ctrl_c_in_a_shell_command_is_for_that_command_alone() {
    let world = World::new();
    world.script(WAITS);
    let mut screen = world.start((24, 80), &[]);
    screen.until("Ask anything");
    screen.press("go\r");
    screen.until("→ bash");
    // A shell that is about to start its last command may lose a signal; a trap is never lost.
    screen.press("!trap 'exit 7' INT; echo $((6*7)); while :; do sleep 0.05; done\r");
    screen.until("\n42");
    screen.press("\x03");
    screen.until("exit status: 7");
    screen.press("kept");
    screen.until("› kept");
    world.write("go", "");
    screen.until("It went on.");
    screen.until("› kept");
    assert!(!screen.text().contains("interrupted"), "{}", screen.text());
    screen.press("\x03\x04");
    screen.end();
}
