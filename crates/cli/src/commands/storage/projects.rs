//! `antiphon projects`: the state that is kept for each project.

use std::path::PathBuf;

use antiphon_core::port::{Clock as _, SystemClock};
use antiphon_project::environment::Environment;
use antiphon_project::project::Project;
use antiphon_project::state::registry::{KnownProject, Registry, RootStatus};
use antiphon_view::text::size;
use clap::Subcommand;

use crate::failure::Failure;
use crate::terminal;

/// Look after the state that is kept for each project: tasks, sessions, keys (see docs/projects.md).
#[derive(Debug, Subcommand)]
#[command(after_help = "\
PROJECT is the path of a project's folder, or the name of its state folder as `list` shows it.

Examples:
  antiphon projects list
  antiphon projects show                            # the project of this folder
  antiphon projects move /old/place/shop ~/shop     # the folder was moved
  antiphon projects forget /old/place/shop          # the folder is gone for good")]
pub(crate) enum Projects {
    /// List the projects that state is kept for, the last used first.
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show where the state of a project is.
    #[command(after_help = "\
Examples:
  antiphon projects show
  antiphon projects show ~/shop --json")]
    Show {
        /// The project; that of this folder when absent.
        project: Option<String>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Give the state of a project to another folder: its folder was moved.
    #[command(after_help = "\
Examples:
  antiphon projects move ~/old-shop ~/shop")]
    Move {
        /// The project.
        project: String,
        /// The folder it is in now; this folder when absent.
        folder: Option<PathBuf>,
    },
    /// Delete the state of a project: its tasks, sessions, keys, and the rules always allowed in it. Its own
    /// folder is not touched.
    #[command(after_help = "\
Examples:
  antiphon projects forget ~/old-shop")]
    Forget {
        /// The project.
        project: String,
        /// Do not ask.
        #[arg(long)]
        yes: bool,
    },
}

impl Projects {
    pub(crate) fn run(self, environment: &Environment) -> Result<(), Failure> {
        let registry = Registry::new(environment)?;
        match self {
            Self::List { json } => list(&registry, json),
            Self::Show { project, json } => show(&registry, project, json, environment),
            Self::Move { project, folder } => {
                let known = registry.find(&project, environment)?;
                let folder = environment.absolute(&folder.unwrap_or_else(|| ".".into()))?;
                let moved = registry.move_to(&known, &folder)?;
                let (from, to) = (known.root.display(), moved.root.display());
                terminal::print(&if known.root == moved.root {
                    format!("{to} is the folder of its project again\n")
                } else {
                    format!("the state of {from} now belongs to {to}\n")
                });
                Ok(())
            }
            Self::Forget { project, yes } => forget(&registry, &project, yes, environment),
        }
    }
}

fn list(registry: &Registry, json: bool) -> Result<(), Failure> {
    let projects = registry.list()?;
    if json {
        terminal::print(&terminal::json(&projects)?);
        return Ok(());
    }
    if projects.is_empty() {
        terminal::print(&format!("no project has state in {}\n", registry.base().display()));
        return Ok(());
    }
    let now = SystemClock.now();
    let row = |project: &KnownProject| {
        let used = project.last_used.map_or_else(|| "-".to_owned(), |at| terminal::age(now - at));
        vec![
            project.root.display().to_string(),
            project.status.as_str().to_owned(),
            size(project.bytes),
            used,
            project.id.clone(),
        ]
    };
    let mut rows: Vec<Vec<String>> =
        vec![["FOLDER", "STATUS", "SIZE", "USED", "ID"].map(str::to_owned).into()];
    rows.extend(projects.iter().map(row));
    terminal::print(&terminal::table(&rows));
    Ok(())
}

fn show(
    registry: &Registry,
    project: Option<String>,
    json: bool,
    environment: &Environment,
) -> Result<(), Failure> {
    let known = match project {
        Some(project) => registry.find(&project, environment)?,
        None => {
            let project = Project::find(environment)?;
            let root = project.root().display().to_string();
            registry.find(&root, environment)?
        }
    };
    if json {
        terminal::print(&terminal::json(&known)?);
        return Ok(());
    }
    let advice = match known.status {
        RootStatus::Present => "",
        RootStatus::Gone => {
            " (`antiphon projects move` when it was moved, `forget` when it no longer exists)"
        }
        RootStatus::Replaced => {
            " (`antiphon projects move` when it is the same project, `forget` when not)"
        }
    };
    terminal::print(&format!(
        "folder  {}\nstatus  {}{advice}\nstate   {}\nsize    {}\n",
        known.root.display(),
        known.status.as_str(),
        known.state.display(),
        size(known.bytes),
    ));
    Ok(())
}

fn forget(
    registry: &Registry,
    project: &str,
    yes: bool,
    environment: &Environment,
) -> Result<(), Failure> {
    let known = registry.find(project, environment)?;
    let root = known.root.display();
    let question =
        format!("Delete all tasks, sessions, keys and rules of {root} ({})?", size(known.bytes));
    let sure = yes
        || terminal::ask(&question).ok_or_else(|| {
            Failure::usage(format!(
                "this deletes all tasks, sessions, keys and rules of {root}: confirm with --yes"
            ))
        })?;
    if !sure {
        terminal::print("nothing was deleted\n");
        return Ok(());
    }
    registry.forget(&known, environment)?;
    terminal::print(&format!("deleted the state of {root}\n"));
    Ok(())
}
