//! A tree of tasks: a scripted team with more than three levels, five siblings, and every kind of join.
//! The script, `team.toml`, contains a drawing of it.

use serde_json::Value;

use crate::kill::Kill;
use crate::project::{Exit, Project};
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
        let output = self.project.output(&["tasks", "tree", "--json"]);
        let Ok(top) = serde_json::from_slice::<Value>(&output) else {
            let arguments = ["run", "go", "--agent", "lead", "--model", "scripted/team"];
            return self
                .project
                .start(&[&arguments[..], &["--script", "team.toml"]].concat(), kill);
        };
        if top["status"] == "completed" {
            return Exit::Completed;
        }
        self.project.start(&["run", "--resume", top["task_id"].as_str().unwrap()], kill)
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
