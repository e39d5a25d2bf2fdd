//! In the background of an interactive shell: no process reads the terminal there.

use crate::project::Project;
use crate::pty::Terminal;

/// A job is stopped by the terminal when it reads there. The shell waits for one that is stopped, too.
#[test]
fn commands_that_would_read_the_terminal_are_not_stopped_in_the_background() {
    let project = Project::new();
    project.succeed(&["agents", "new", "someone", "--description", "Waits."]);
    let mut terminal = Terminal::start(project.shell(&["-i"]));
    for (number, command) in ["run", "request -", "send someone -"].into_iter().enumerate() {
        terminal
            .press(&format!("\"$ANTIPHON\" {command} & wait -f $!; echo '@@'{number}:$?'@@'\n"));
        terminal.until(&format!("@@{number}:2@@"));
    }
    assert_eq!(terminal.text().matches("from the terminal in the background").count(), 3);
    terminal.press("exit\n");
    terminal.end();
}

#[test]
fn the_demo_plays_in_the_background() {
    let project = Project::new();
    let mut terminal = Terminal::start(project.shell(&["-i"]));
    terminal.press("\"$ANTIPHON\" demo --fast --rm & wait -f $!; echo '@@'demo:$?'@@'\n");
    terminal.until("@@demo:0@@");
    terminal.press("exit\n");
    terminal.end();
}
