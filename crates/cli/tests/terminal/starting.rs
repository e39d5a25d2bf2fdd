//! How the program is started, and what it begins with.

use crate::screen::Screen;
use crate::world::World;

const SIZE: (u16, u16) = (30, 100);

const SAYS: &str = "[[reply]]\nsteps = [{ text = \"You said {{last_user}}.\" }]\n";

fn configured() -> World {
    let world = World::new();
    world.script(SAYS);
    let script = world.path().join("s.toml");
    world.config(&format!("model = \"scripted/s\"\n[scripts]\ns = \"{}\"\n", script.display()));
    world
}

fn start(world: &World, arguments: &[&str]) -> Screen {
    Screen::start(world.command(SIZE, arguments), SIZE)
}

#[test]
fn options_alone_and_a_prompt_begin_the_program() {
    let world = configured();
    let state = world.path().with_file_name("state");
    for arguments in [
        &[][..],
        &["--model", "scripted/s"][..],
        &["--trust"][..],
        &["--state", state.to_str().unwrap()][..],
    ] {
        let mut screen = start(&world, arguments);
        screen.until("Ask anything");
        screen.quit();
    }
    for arguments in [&["two words"][..], &["--plan", "two words"][..], &["--", "--words"][..]] {
        let mut screen = start(&world, arguments);
        screen.until_written(&format!("You said {}.", arguments.last().unwrap()));
        screen.until("Ask anything");
        screen.quit();
    }
}

#[test]
fn the_last_conversation_goes_on() {
    let world = configured();
    let mut screen = start(&world, &["first words"]);
    screen.until_written("You said first words.");
    screen.until("Ask anything");
    screen.press("second words\r");
    screen.until_written("You said second words.");
    screen.until("Ask anything");
    assert!(screen.quit().contains("The conversation goes on with: antiphon -c"));
    let mut screen = start(&world, &["-c"]);
    screen.until("You said second words.");
    assert!(screen.text().contains("› first words"), "{}", screen.text());
    screen.press("third words\r");
    screen.until_written("You said third words.");
    screen.until("Ask anything");
    screen.press("/cost\r");
    screen.until("3 tasks of this conversation");
    assert!(!screen.text().contains("is a copy of"), "{}", screen.text());
    screen.quit();
}

#[test]
fn a_task_whose_model_cannot_be_reached_says_so_and_is_at_rest() {
    let world = configured();
    let mut screen = start(&world, &["first words"]);
    screen.until_written("You said first words.");
    screen.until("Ask anything");
    screen.quit();
    world.config("model = \"scripted/hello\"\n");
    let mut screen = start(&world, &["-c"]);
    screen.until("You said first words.");
    screen.until("scripted/s · ");
    screen.press("second words\r");
    screen.until_written("is not available: there");
    screen.until("Enter resumes the task");
    assert!(!screen.text().contains("ERROR"), "{}", screen.text());
    let goodbye = screen.quit();
    assert!(goodbye.contains("The task goes on with: antiphon run --resume"), "{goodbye}");
}

#[test]
fn commands_that_the_program_runs_have_its_state_folder() {
    let world = configured();
    let state = world.path().with_file_name("elsewhere");
    let mut screen = start(&world, &["--state", state.to_str().unwrap()]);
    screen.until("Ask anything");
    screen.press("/budget\r");
    screen.until_written("budget show");
    screen.until("Ask anything");
    screen.until_written("--state");
    screen.quit();
    assert!(state.exists());
    let default = crate::project_folder::state(world.path());
    assert!(!default.exists(), "{}", default.display());
}

/// An agent that asks another one.
const ASKS: &str = r#"
[[reply]]
when = { system_contains = "You help." }
steps = [{ text = "I help with {{last_user}}." }]
[[reply]]
when = { results_since_user = 0 }
steps = [{ call = { name = "call_agent", arguments = { agent = "helper", prompt = "a part" } } }]
[[reply]]
steps = [{ text = "All of {{last_user}} is done." }]
"#;

#[test]
fn what_agents_say_to_each_other_is_no_conversation_of_the_user() {
    let world = World::new();
    world.script(ASKS);
    world.write(".antiphon/agents/helper.md", "---\ndescription: Helps.\n---\nYou help.\n");
    world.write(
        ".antiphon/agents/lead.md",
        "---\ndescription: Leads.\nagents: [helper]\n---\nYou lead.\n",
    );
    world.trust();
    let mut screen = world.start(SIZE, &["--agent", "lead"]);
    screen.until("Ask anything");
    screen.press("the whole\r");
    screen.until_written("All of the whole is done.");
    screen.until("Ask anything");
    screen.quit();
    let mut screen = world.start(SIZE, &["-c"]);
    screen.until("All of the whole is done.");
    screen.until("Ask anything");
    screen.press("/sessions\r");
    screen.until("Conversations: type to search\n  › the whole");
    assert!(!screen.text().contains("    a part"), "{}", screen.text());
    screen.press("\x1b");
    screen.until_gone("Conversations: type to search");
    screen.press("\x10part");
    screen.until("files: part");
    screen.until("nothing matches");
    screen.press("\x1b");
    screen.until_gone("nothing matches");
    screen.quit();
}
