//! Folders with agents of other programs, which are read where they are.
//!
//! They come after every folder of ours: an agent of ours of the same name is used. Those of a project have no effect
//! until the user trusts them, also if they only read.

use std::path::{Path, PathBuf};

use antiphon_agent_files::{Folder, ForeignFormat};
use antiphon_core::ModelRef;
use antiphon_imports::{built_in_model, claude_agent, opencode_agent};

use crate::environment::Environment;
use crate::project::Project;
use crate::settings::{Key, UserSettings};

/// Claude Code, as it is named in lists and by `antiphon import --from`.
pub const CLAUDE: &str = "claude";

/// The same for opencode.
pub const OPENCODE: &str = "opencode";

/// Folders of a project with agents of other programs, below its root.
const OF_PROJECT: [(&str, &str); 3] =
    [(CLAUDE, ".claude/agents"), (OPENCODE, ".opencode/agent"), (OPENCODE, ".opencode/agents")];

/// The user's folders, then the project's, as they are read with these settings.
pub fn foreign_folders(project: &Project, settings: &UserSettings) -> Vec<Folder> {
    let names = Names::of(settings);
    let mut folders = of_user(&settings.environment, &names);
    folders.extend(of_project(project.root(), &names));
    folders
}

/// The project's folders, as they are read without settings: to see what they bring.
pub(crate) fn unconfigured_project_folders(root: &Path) -> Vec<Folder> {
    of_project(root, &Names::default())
}

fn of_user(environment: &Environment, names: &Names) -> Vec<Folder> {
    let claude = environment.home().map(|home| (CLAUDE, home.join(".claude/agents")));
    let opencode = opencode_folder(environment)
        .into_iter()
        .flat_map(|folder| ["agent", "agents"].map(|name| (OPENCODE, folder.join(name))));
    let found = claude.into_iter().chain(opencode);
    found.map(|(format, path)| Folder::user(path).in_format(names.format(format))).collect()
}

fn of_project(root: &Path, names: &Names) -> Vec<Folder> {
    let folder = |(format, path)| Folder::project(root.join(path)).in_format(names.format(format));
    OF_PROJECT.into_iter().map(folder).collect()
}

/// The configuration folder of opencode: `opencode` in `XDG_CONFIG_HOME`, or in `~/.config`.
pub(crate) fn opencode_folder(environment: &Environment) -> Option<PathBuf> {
    let home = || environment.home().map(|home| home.join(".config"));
    let folder = environment.absolute_path("XDG_CONFIG_HOME").or_else(home);
    folder.map(|folder| folder.join("opencode"))
}

/// What the user's settings say about names of models. Without settings, every known name is a model.
#[derive(Debug, Clone, Default)]
struct Names {
    settings: Option<KnownModels>,
}

#[derive(Debug, Clone)]
struct KnownModels {
    aliases: crate::settings::ModelAliases,
    /// Names of providers, each with the variable of the key that is missing.
    providers: Vec<(String, Option<String>)>,
}

impl Names {
    fn of(settings: &UserSettings) -> Self {
        let provider = |(name, config): (&String, &crate::settings::ProviderConfig)| {
            let missing = match &config.key {
                Key::Missing { variable } => Some(variable.clone()),
                Key::Set { .. } | Key::NotNeeded => None,
            };
            (name.clone(), missing)
        };
        let providers = settings.providers.iter().map(provider).collect();
        Self { settings: Some(KnownModels { aliases: settings.aliases.clone(), providers }) }
    }

    fn format(&self, program: &'static str) -> ForeignFormat {
        let names = self.clone();
        ForeignFormat::new(program, move |stem, bytes| {
            let find = |name: &str| names.find(name);
            if program == CLAUDE {
                claude_agent(stem, bytes, &find)
            } else {
                opencode_agent(stem, bytes, &find)
            }
        })
    }

    fn find(&self, name: &str) -> Result<ModelRef, String> {
        let own = self.settings.as_ref().and_then(|known| known.aliases.find(name));
        let own = own.and_then(|name| ModelRef::parse(name).ok());
        let model = own.or_else(|| built_in_model(name));
        let model = model.ok_or_else(|| "no model of this name is known".to_owned())?;
        let Some(known) = &self.settings else { return Ok(model) };
        let provider = model.provider();
        if provider == "scripted" {
            return Ok(model);
        }
        match known.providers.iter().find(|(name, _)| name == provider) {
            Some((_, None)) => Ok(model),
            Some((_, Some(variable))) => Err(format!("{model} needs {variable}, which is not set")),
            None => Err(format!("there is no provider `{provider}`")),
        }
    }
}

/// The model that a name of another program stands for, with the user's settings.
pub(crate) fn model_named(settings: &UserSettings, name: &str) -> Result<ModelRef, String> {
    Names::of(settings).find(name)
}
