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

/// The user is at the terminal, and answers there with another command.
#[test]
fn an_approval_waits_in_the_background() {
    let project = Project::new();
    project.script("push", &[". ./settings.env"]);
    let mut terminal = Terminal::start(project.shell(&["-i"]));
    let run = "\"$ANTIPHON\" run --model scripted/push --script push.toml go";
    terminal.press(&format!("{run} & wait -f $!; echo '@@'push:$?'@@'\n"));
    terminal.until("@@push:3@@");
    assert!(terminal.text().contains("antiphon approvals list"), "{}", terminal.text());
    terminal.press("exit\n");
    terminal.end();
    let pending = project.json(&["approvals", "list", "--json"]);
    assert_eq!(pending.as_array().unwrap().len(), 1, "{pending}");
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
