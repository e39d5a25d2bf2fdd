//! A project with a server, and a folder elsewhere.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::project_folder::{home, trust};
use crate::served::project::{Project, Seen};

const KEEPER: &str = "---\ndescription: Keeps the harbor.\nmodel: scripted/hello\ntools: read, nonesuch\n\
                      runtimes: [local]\nlimits: {turns: 7}\nsilent_intents: [ping]\n---\nYou keep it.\n";

/// A project with a task that asks, two agents, a file that is no agent, and what agents have and had in
/// their inboxes. Returns the ids of the interactions.
pub(super) fn harbor() -> (Project, crate::served::project::Server, Vec<String>) {
    let project = Project::that_asks("go");
    let agents = project.path().join(".antiphon/agents");
    fs::create_dir_all(&agents).unwrap();
    fs::write(agents.join("keeper.md"), KEEPER).unwrap();
    let plain = "---\ndescription: Works.\nmodel: scripted/hello\n---\nYou work.\n";
    fs::write(agents.join("plain.md"), "You work elsewhere.\n").unwrap();
    fs::write(agents.join("modest.md"), "You have no model.\n").unwrap();
    fs::write(agents.join("broken.md"), "---\nlimits: {turns: 0}\n---\nx\n").unwrap();
    trust(project.path());
    let own = home(project.path()).join(".config/antiphon/agents");
    fs::create_dir_all(&own).unwrap();
    fs::write(own.join("plain.md"), plain).unwrap();
    let server = project.serve();
    let mut ids = Vec::new();
    for order in [
        &["send", "keeper", "--request", "ask", "--wait", "--json"][..],
        &["send", "keeper", "--no-wake", "--from", "ci", "The build is red.", "--json"],
        &["send", "plain", "--no-wake", "Later.", "--json"],
    ] {
        let sent = project.antiphon(order);
        let sent: Value = serde_json::from_str(&sent.out).unwrap();
        ids.push(sent["id"].as_str().unwrap().to_owned());
    }
    assert_eq!(project.antiphon(&["agents", "stop", "plain"]).code, 0);
    (project, server, ids)
}

/// Without times and ages, which differ from one command to the next, and without the width of columns.
fn timeless(seen: &Seen) -> (i32, String, String) {
    let digits =
        |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit() || c == '.');
    let is_time = |word: &str| {
        let is_age = word.strip_suffix(['s', 'm', 'h', 'd']).is_some_and(digits);
        is_age || (word.len() == 8 && word.split(':').count() == 3)
    };
    let strip = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let is_span =
            |at: usize| digits(words[at]) && words.get(at + 1).is_some_and(|unit| *unit == "s");
        let shown = |at: usize| if is_time(words[at]) || is_span(at) { "TIME" } else { words[at] };
        (0..words.len()).map(shown).collect::<Vec<_>>().join(" ") + "\n"
    };
    let strip_all = |text: &str| text.lines().map(strip).collect::<String>();
    (seen.code, strip_all(&seen.out), strip_all(&seen.err))
}

/// The same answer here and through the server. Ages may differ by a second: then it is tried again.
pub(super) fn assert_same(project: &Project, elsewhere: &Path, order: &[&str]) {
    let pair = || {
        let here = timeless(&project.antiphon(order));
        (here, timeless(&project.antiphon_from(elsewhere, order)))
    };
    let mut tries = std::iter::repeat_with(pair).take(4);
    let last = tries.find(|(here, there)| here == there).or_else(|| Some(pair()));
    let (here, there) = last.unwrap();
    assert_eq!(here, there, "{order:?}");
}
