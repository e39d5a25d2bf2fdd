//! A tree of tasks: a scripted team with more than three levels, five siblings, and every kind of join.
//! The script, `team.toml`, contains a drawing of it.

use std::time::Duration;

use serde_json::Value;

use crate::full_disk::SmallDisk;
use crate::kill::Kill;
use crate::project::{Exit, Project};
use crate::signal::Signal;
use crate::tree::Tree;

const SCRIPT: &str = include_str!("team.toml");

/// The agents: name, front matter, and role in the script.
const AGENTS: [(&str, &str, &str); 13] = [
    ("lead", "agents: any", "lead"),
    ("mapper", "agents: [worker, quitter, boxed]", "mapper"),
    ("racer", "agents: [worker, failing, stuck, hopeless]", "racer"),
    ("voter", "agents: [worker, failing, stuck]", "voter"),
    ("sender", "agents: [worker, boxed]", "sender"),
    ("waiter", "agents: [worker, heir]\ntools: bash", "waiter"),
    ("heir", "agents: [worker]\ntools: bash\nmodel: scripted/heir", "heir"),
    ("hopeless", "agents: [stuck]", "hopeless"),
    ("failing", "tools: []", "failing"),
    ("quitter", "agents: [stuck]", "quitter"),
    ("worker", "tools: bash", "worker"),
    ("boxed", "tools: bash", "worker"),
    ("stuck", "tools: []", "stuck"),
];

/// The agents that run in the sandbox with `Placement::Sandboxed`.
const SANDBOXED: [&str; 2] = ["boxed", "stuck"];

/// The command that creates the tree.
const NEW_TREE: [&str; 8] =
    ["run", "go", "--agent", "lead", "--model", "scripted/team", "--script", "team.toml"];

/// Where the agents run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Placement {
    /// All in the program itself.
    InProcess,
    /// Some of them in the runner `sandbox`.
    Sandboxed,
}

/// A project with a team.
pub(crate) struct Team {
    project: Project,
    placement: Placement,
}

impl Team {
    pub(crate) fn new(placement: Placement) -> Self {
        let agent = |(name, fields, role): (&str, &str, &str)| {
            let runtimes = match placement {
                Placement::Sandboxed if SANDBOXED.contains(&name) => "\nruntimes: [sandbox]",
                Placement::Sandboxed | Placement::InProcess => "",
            };
            let file =
                format!("---\ndescription: Is {name}.\n{fields}{runtimes}\n---\nYou are {role}.\n");
            (format!(".antiphon/agents/{name}.md"), file)
        };
        let agents = AGENTS.map(agent);
        let mut files = vec![("team.toml", SCRIPT)];
        files.extend(agents.iter().map(|(path, file)| (path.as_str(), file.as_str())));
        Self { project: Project::new(&files), placement }
    }

    /// Creates the task at the top or resumes the tree. The program dies at `kill`.
    pub(crate) fn start(&self, kill: Option<Kill>) -> Exit {
        self.arguments().map_or(Exit::Completed, |arguments| {
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            self.project.start(&arguments, kill)
        })
    }

    /// The same, and the program gets a signal after a while.
    pub(crate) fn start_and_signal(&self, signal: Signal, after: Duration) -> Exit {
        self.arguments().map_or(Exit::Completed, |arguments| {
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            self.project.start_and_signal(&arguments, signal, after)
        })
    }

    /// Runs the tree with its state on a small disk, which is full every now and then. Returns how often it was
    /// filled.
    pub(crate) fn run_on_full_disk(&self, random: impl FnMut(u64) -> u64) -> u64 {
        // The trust of the project is on the other disk.
        let arguments = [&NEW_TREE[..], &["--trust"]].concat();
        self.project.run_on_full_disk(&arguments, SmallDisk { megabytes: 24 }, random)
    }

    /// What starts or resumes the tree; `None` when its top has completed.
    fn arguments(&self) -> Option<Vec<String>> {
        let output = self.project.output(&["tasks", "tree", "--json"]);
        let Ok(top) = serde_json::from_slice::<Value>(&output) else {
            return Some(NEW_TREE.map(str::to_owned).to_vec());
        };
        if top["status"] == "completed" {
            return None;
        }
        let task = top["task_id"].as_str().unwrap();
        Some(["run", "--resume", task].map(str::to_owned).to_vec())
    }

    /// Checks a tree that has ended. Returns how many calls were interrupted.
    pub(crate) fn check(&self, context: &str) -> usize {
        let left = self.project.processes_left();
        assert!(left.is_empty(), "processes are left: {left:?}: {context}");
        let tree = Tree::of(self.project.by_task(context), context);
        tree.check_members();
        tree.check_results();
        tree.check_placement(|agent| {
            self.placement == Placement::Sandboxed && SANDBOXED.contains(&agent)
        });
        tree.check_calls();
        tree.check_joins();
        tree.check_waits();
        tree.check_reports();
        tree.check_handover();
        tree.check_effects(&self.project.text("log"))
    }
}
