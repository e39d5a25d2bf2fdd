//! What tells a person who looks at something else.

use crate::world::World;

const ASKS: &str = r#"
[[reply]]
when = { results_since_user = 0, last_user_contains = "ask" }
steps = [{ call = { name = "bash", arguments = { command = "source x.sh" } } }]
[[reply]]
steps = [{ text = "You said {{last_user}}." }]
"#;

/// What a terminal sends when it loses the focus, and when it gets it again.
const AWAY: &str = "\x1b[O";
const HERE: &str = "\x1b[I";

#[test]
fn the_terminal_notifies_while_it_does_not_have_the_focus() {
    let world = World::new();
    world.script(ASKS);
    for (setting, mark) in [("osc777", "\x1b]777;notify;Antiphon;"), ("osc9", "\x1b]9;Antiphon: ")]
    {
        world.config(&format!("[notify]\nterminal = \"{setting}\"\n"));
        let mut screen = world.chat((24, 80));
        screen.press("one\r");
        screen.until("You said one.");
        screen.until("Ask anything");
        assert!(!screen.written().contains(mark), "{:?}", screen.written());
        screen.press(AWAY);
        screen.press("two\r");
        screen.until_bytes(": the task is done\x07");
        screen.press("ask\r");
        screen.until_bytes(": an agent needs an answer\x07");
        screen.press(HERE);
        screen.until("y once");
        screen.press("n");
        screen.until_written("You said ask.");
        screen.until("Ask anything");
        let written = screen.quit();
        assert_eq!(written.matches(mark).count(), 2, "{written:?}");
        let (on, off) = (written.rfind("\x1b[?1004h"), written.rfind("\x1b[?1004l"));
        assert!(on.is_some() && on < off, "{written:?}");
    }
}

#[test]
fn nothing_notifies_when_it_is_turned_off() {
    let world = World::new();
    world.script(ASKS);
    world.config("[notify]\nterminal = \"off\"\n");
    let mut screen = world.chat((24, 80));
    screen.press(AWAY);
    screen.press("two\r");
    screen.until("You said two.");
    screen.until("Ask anything");
    let written = screen.quit();
    assert!(!written.contains('\x07'), "{written:?}");
}
