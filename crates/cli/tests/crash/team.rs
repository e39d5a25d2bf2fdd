//! A tree of tasks: a scripted team of three levels and more, five agents side by side, every kind of
//! join. The script, `team.toml`, draws it.

use serde_json::Value;

use crate::kill::Kill;
use crate::project::{Fate, Project};
use crate::tree::Tree;

const SCRIPT: &str = include_str!("team.toml");

/// Who there is: a name, what its file says of it, and who it is in the script.
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

/// The agents that run elsewhere where a team has a sandbox.
const BOXED: [&str; 2] = ["boxed", "stuck"];

/// Where some of the agents run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Housing {
    /// All in the program itself.
    Together,
    /// Some of them in the runner `sandbox`.
    Boxed,
}

/// A project with a team.
pub(crate) struct Team {
    project: Project,
    housing: Housing,
}

impl Team {
    pub(crate) fn new(housing: Housing) -> Self {
        let agent = |(name, about, role): (&str, &str, &str)| {
            let runtimes = match housing {
                Housing::Boxed if BOXED.contains(&name) => "\nruntimes: [sandbox]",
                Housing::Boxed | Housing::Together => "",
            };
            let file =
                format!("---\ndescription: Is {name}.\n{about}{runtimes}\n---\nYou are {role}.\n");
            (format!(".antiphon/agents/{name}.md"), file)
        };
        let agents = AGENTS.map(agent);
        let mut files = vec![("team.toml", SCRIPT)];
        files.extend(agents.iter().map(|(path, file)| (path.as_str(), file.as_str())));
        Self { project: Project::new(&files), housing }
    }

    /// Begins the task at the top, or takes the tree up again, and dies if told to.
    pub(crate) fn start(&self, kill: Option<Kill>) -> Fate {
        let output = self.project.look(&["tasks", "tree", "--json"]);
        let Ok(top) = serde_json::from_slice::<Value>(&output) else {
            let begin = ["run", "go", "--agent", "lead", "--model", "scripted/team"];
            return self.project.start(&[&begin[..], &["--script", "team.toml"]].concat(), kill);
        };
        if top["status"] == "completed" {
            return Fate::Ended;
        }
        self.project.start(&["run", "--resume", top["task_id"].as_str().unwrap()], kill)
    }

    /// Checks everything that must hold of a tree that has ended. Says how many calls were cut
    /// off.
    pub(crate) fn check(&self, place: &str) -> usize {
        let left = self.project.processes_left();
        assert!(left.is_empty(), "processes are left: {left:?}: {place}");
        let tree = Tree::of(self.project.by_task(place), place);
        tree.check_family();
        tree.check_results();
        tree.check_housing(|agent| self.housing == Housing::Boxed && BOXED.contains(&agent));
        tree.check_calls();
        tree.check_joins();
        tree.check_waits();
        tree.check_reports();
        tree.check_handover();
        tree.check_effects(&self.project.text("log"))
    }
}
