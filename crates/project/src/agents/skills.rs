//! Skills: folders with a `SKILL.md`, the user's own, and those of the project that the user trusts.
//!
//! A skill of a project is trusted with every file of its folder, by their content: when one changes, the skill has no
//! effect until it is trusted again.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use antiphon_agent_files::{FolderOwner, LenientFile, version_of};
use antiphon_core::{escaped, visible};
use antiphon_skills::{LoadedSkill, SkillSource, SkillTool};
use serde_json::Value;

use crate::agent_files::foreign_folders::{CLAUDE, OPENCODE, opencode_folder};
use crate::found_files::{FoundFile, LookedFolder};
use crate::project::Project;
use crate::prompt_commands::OURS;
use crate::settings::UserSettings;
use crate::trust::ProjectTrust;

/// Folders of a project with skills, below its root.
const OF_PROJECT: [(&str, &str); 3] =
    [(OURS, ".antiphon/skills"), (CLAUDE, ".claude/skills"), (OPENCODE, ".opencode/skills")];

/// The file with the instructions of a skill.
const FILE: &str = "SKILL.md";

/// Most skills.
const SKILLS_MAX: usize = 500;

/// Most files of a skill, and most bytes of all of them: they are read to know that none has changed.
const FILES_MAX: usize = 500;
const BYTES_MAX: usize = 16 * 1024 * 1024;

/// Longest name, in bytes.
const NAME_BYTES_MAX: usize = 64;

/// A skill that was found.
#[derive(Debug, Clone)]
pub(crate) struct FoundSkill {
    pub(crate) name: String,
    pub(crate) description: String,
    /// Its folder.
    pub(crate) path: PathBuf,
    /// The folder of skills that it is in.
    folder: LookedFolder,
    body: String,
    /// Names the content of its `SKILL.md`, from the bytes that its body is of.
    body_version: String,
    /// All of its files.
    files: Vec<FoundFile>,
}

impl FoundSkill {
    /// Names the paths and the content of all of its files, which are read for that.
    pub(crate) fn version(&self) -> io::Result<String> {
        let (mut names, mut left) = (String::new(), BYTES_MAX);
        for file in &self.files {
            let version = if file.path == self.path.join(FILE) {
                self.body_version.clone()
            } else {
                let (length, version) = self.folder.version(&file.path, left)?;
                left -= length;
                version
            };
            names.push_str(&content_line(&file.relative, &version));
        }
        Ok(version_of(names.as_bytes()))
    }

    fn is_usable(&self, trusts: impl Fn(&Path, &str) -> bool) -> bool {
        match self.folder.owner {
            FolderOwner::User => true,
            FolderOwner::Project => {
                self.version().is_ok_and(|version| trusts(&self.path, &version))
            }
        }
    }
}

/// The tool `skill` for the skills that can be used; `None` when there are none.
pub(crate) fn skill_tool(project: &Project, settings: &UserSettings) -> Option<SkillTool> {
    let folders = folders(project, settings);
    SkillTool::new(Arc::new(Skills {
        folders,
        trust: project.trust(),
        root: project.root().to_owned(),
    }))
}

/// Skills of the project's folders, whether they are trusted or not.
pub(crate) fn brought(root: &Path) -> Vec<FoundSkill> {
    let folders = OF_PROJECT.map(|folder| project_folder(root, folder));
    folders.iter().flat_map(in_folder).take(SKILLS_MAX).collect()
}

/// The skills that can be used, read anew at each call.
struct Skills {
    folders: Vec<LookedFolder>,
    trust: ProjectTrust,
    root: PathBuf,
}

impl Skills {
    fn found(&self) -> impl Iterator<Item = FoundSkill> {
        self.folders.iter().flat_map(in_folder).take(SKILLS_MAX)
    }

    /// An earlier folder wins.
    fn usable(&self) -> BTreeMap<String, FoundSkill> {
        let trusts = self.trust.trusted_content();
        let mut usable = BTreeMap::new();
        for skill in self.found().filter(|skill| skill.is_usable(&trusts)) {
            usable.entry(skill.name.clone()).or_insert(skill);
        }
        usable
    }

    /// The skill of this name. Only the files of skills with this name are read whole.
    fn named(&self, name: &str) -> Option<FoundSkill> {
        let trusts = self.trust.trusted_content();
        self.found().find(|skill| skill.name == name && skill.is_usable(&trusts))
    }
}

impl SkillSource for Skills {
    fn list(&self) -> Vec<(String, String)> {
        self.usable().into_values().map(|skill| (skill.name, skill.description)).collect()
    }

    fn load(&self, name: &str) -> Result<LoadedSkill, String> {
        let Some(skill) = self.named(name) else {
            let usable = self.usable();
            let known: Vec<&str> = usable.keys().map(String::as_str).collect();
            let known = known.join(", ");
            return Err(format!("there is no skill `{}` now; there are: {known}", visible(name)));
        };
        let shown =
            |path: &Path| path.strip_prefix(&self.root).unwrap_or(path).display().to_string();
        let owner = match skill.folder.owner {
            FolderOwner::Project => "a file of the project",
            FolderOwner::User => "a file of the user",
        };
        let file = skill.path.join(FILE);
        let others = skill.files.iter().filter(|found| found.path != file);
        Ok(LoadedSkill {
            source: format!("{owner}, {}", shown(&file)),
            files: others.map(|found| shown(&found.path)).collect(),
            body: skill.body,
        })
    }
}

/// Folders in order of precedence.
fn folders(project: &Project, settings: &UserSettings) -> Vec<LookedFolder> {
    let user = |program, path: PathBuf| LookedFolder {
        owner: FolderOwner::User,
        root: path.clone(),
        path,
        program,
    };
    let [ours, others @ ..] = OF_PROJECT.map(|folder| project_folder(project.root(), folder));
    let mut folders = vec![user(OURS, settings.path.with_file_name("skills")), ours];
    let home = settings.environment.home();
    folders.extend(home.map(|home| user(CLAUDE, home.join(".claude/skills"))));
    let opencode = opencode_folder(&settings.environment);
    folders.extend(opencode.map(|folder| user(OPENCODE, folder.join("skills"))));
    folders.extend(others);
    folders
}

fn project_folder(root: &Path, (program, path): (&'static str, &str)) -> LookedFolder {
    let owner = FolderOwner::Project;
    LookedFolder { owner, root: root.to_owned(), path: root.join(path), program }
}

/// The skills of a folder, in order. One that cannot be read is none.
fn in_folder(folder: &LookedFolder) -> Vec<FoundSkill> {
    let mut by_skill: BTreeMap<PathBuf, Vec<FoundFile>> = BTreeMap::new();
    for file in folder.files(|_| true) {
        if let Some(first) = file.relative.components().next() {
            let skill = folder.path.join(first);
            by_skill.entry(skill).or_default().push(file);
        }
    }
    let skill = |(path, files): (PathBuf, Vec<FoundFile>)| skill(folder, path, files).ok();
    by_skill.into_iter().take(SKILLS_MAX).filter_map(skill).collect()
}

fn skill(folder: &LookedFolder, path: PathBuf, files: Vec<FoundFile>) -> io::Result<FoundSkill> {
    if files.len() > FILES_MAX {
        return Err(io::Error::other("it has too many files"));
    }
    let (bytes, body_version) = folder.read(&path.join(FILE))?;
    let read = LenientFile::read(&bytes).map_err(io::Error::other)?;
    let fields = read.fields.unwrap_or_default();
    let text = |name: &str| {
        let found = fields.iter().find(|(field, _)| field == name);
        found.and_then(|(_, value)| Value::as_str(value)).map(|text| visible(text.trim()))
    };
    let of_folder = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let name = text("name").filter(|name| is_name(name));
    let name = name.or_else(|| is_name(of_folder).then(|| of_folder.to_owned()));
    let name = name.ok_or_else(|| io::Error::other("its name is no name of a skill"))?;
    let description = text("description").filter(|text| !text.is_empty());
    let description = description.ok_or_else(|| io::Error::other("it has no description"))?;
    let (folder, body) = (folder.clone(), read.body);
    Ok(FoundSkill { name, description, path, folder, body, body_version, files })
}

fn content_line(path: &Path, version: &str) -> String {
    format!("{version} {}\n", escaped(&path.to_string_lossy()))
}

fn is_name(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    !text.is_empty() && text.len() <= NAME_BYTES_MAX && text.chars().all(is_plain)
}
