//! The state of every agent file at one moment, and the agents that follow from it.
//!
//! A file that became invalid keeps its last valid definition. A file that was never valid hides agents of
//! the same name in later folders: another agent under that name would be a surprise.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use antiphon_core::AgentDefinition;
use antiphon_core::port::AgentList;
use sha2::{Digest, Sha256};

use crate::file_check::{CheckedFile, Decide, FileCheck};
use crate::folder::{Folder, FolderOwner, OpenFolder};
use crate::foreign::{ForeignAgent, Imported};
use crate::markdown::FILE_BYTES_MAX;
use crate::parse::{ReadReferenced, parse};
use crate::problem::{AgentFileError, Problem, ProblemKind};
use crate::schema::SCHEMA_BYTES_MAX;

/// An agent with its file.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentFileEntry {
    /// Its definition.
    pub definition: Arc<AgentDefinition>,
    /// Path of its file.
    pub path: PathBuf,
    /// Whether the file belongs to the project or the user.
    pub origin: FolderOwner,
    /// Files of the same name in later folders, which it replaces.
    pub shadows: Vec<PathBuf>,
    /// Names the content of the file that is in force. Other content has another name.
    pub version: String,
    /// Why the file is invalid now; the definition is then its last valid version.
    pub fault: Option<AgentFileError>,
    /// The program it was written for, when that is another one.
    pub imported: Option<Imported>,
}

/// Every agent file at one moment.
#[derive(Debug, Default)]
pub(crate) struct Snapshot {
    pub(crate) entries: BTreeMap<String, AgentFileEntry>,
    /// The definitions in `entries`.
    pub(crate) definitions: AgentList,
    pub(crate) problems: Vec<Problem>,
    /// Files that agent files refer to.
    pub(crate) referenced: Vec<PathBuf>,
    files: BTreeMap<PathBuf, FileState>,
}

/// One agent file.
#[derive(Debug, Clone)]
struct FileState {
    name: String,
    folder: usize,
    valid: Option<Arc<AgentDefinition>>,
    /// Version of the content that is in force.
    version: String,
    fault: Option<AgentFileError>,
    referenced: Vec<PathBuf>,
    imported: Option<Imported>,
}

/// What a file says.
struct Content {
    definition: AgentDefinition,
    version: String,
    imported: Option<Imported>,
}

impl Snapshot {
    /// Reads all folders. `before` is the previous snapshot.
    pub(crate) fn read(
        folders: &[Folder],
        check: &FileCheck,
        fixed: &[AgentFileEntry],
        before: &Self,
    ) -> Self {
        let mut snapshot = Self::default();
        let decide = check.begin();
        for (index, folder) in folders.iter().enumerate() {
            let fault = match snapshot.read_folder(index, folder, &*decide, before) {
                Ok(fault) => fault,
                Err(reason) => {
                    // The folder cannot be read: its previous agents stay in force.
                    let remaining = before.files.iter().filter(|(_, file)| file.folder == index);
                    snapshot
                        .files
                        .extend(remaining.map(|(path, file)| (path.clone(), file.clone())));
                    Some(reason)
                }
            };
            if let Some(reason) = fault {
                let path = folder.path.clone();
                let kind = match &folder.foreign {
                    Some(_) => ProblemKind::Foreign,
                    None => ProblemKind::Invalid,
                };
                snapshot.problems.push(Problem { path, line: None, reason, kind, in_force: false });
            }
        }
        snapshot.resolve(folders);
        for entry in fixed {
            snapshot.add_fixed(entry);
        }
        snapshot.definitions = snapshot.definitions_since(before);
        snapshot
    }

    /// The definitions in `entries`: the list of `before` if they are the same.
    fn definitions_since(&self, before: &Self) -> AgentList {
        let definitions = self.entries.values().map(|entry| &entry.definition);
        let is_same = self.entries.len() == before.definitions.len()
            && definitions.clone().zip(&*before.definitions).all(|(one, it)| Arc::ptr_eq(one, it));
        if is_same { Arc::clone(&before.definitions) } else { definitions.cloned().collect() }
    }

    /// Adds the files of one folder. Returns a problem of the folder; fails when it cannot be read.
    fn read_folder(
        &mut self,
        index: usize,
        folder: &Folder,
        decide: &Decide,
        before: &Self,
    ) -> Result<Option<String>, String> {
        let Some(open) = folder.open()? else { return Ok(None) };
        let names = open.names()?;
        for name in names.names {
            let path = folder.path.join(&name);
            let last = before.files.get(&path);
            let mut file = FileState::read(index, folder, &open, &name, last);
            if folder.origin == FolderOwner::Project {
                file = file.checked(&path, decide, last);
            }
            self.files.insert(path, file);
        }
        Ok(names.fault)
    }

    /// Resolves names: the agent of the first folder wins.
    fn resolve(&mut self, folders: &[Folder]) {
        let mut files: Vec<(&PathBuf, &FileState)> = self.files.iter().collect();
        files.sort_by_key(|(_, file)| file.folder);
        let mut hidden: HashSet<&str> = HashSet::new();
        for (path, file) in files {
            self.referenced.extend(file.referenced.iter().cloned());
            if let Some(AgentFileError { line, reason, kind }) = file.fault.clone() {
                let (path, in_force) = (path.clone(), file.valid.is_some());
                let line = (kind != ProblemKind::NotTrusted).then_some(line);
                self.problems.push(Problem { path, line, reason, kind, in_force });
            }
            match (self.entries.get_mut(&file.name), &file.valid) {
                (Some(entry), Some(_)) if entry.path.parent() == path.parent() => {
                    self.problems.push(same_name(entry, path));
                }
                (Some(entry), _) => entry.shadows.push(path.clone()),
                (None, _) if hidden.contains(file.name.as_str()) => {}
                (None, None) => drop(hidden.insert(&file.name)),
                (None, Some(valid)) => {
                    let entry = AgentFileEntry {
                        definition: Arc::clone(valid),
                        path: path.clone(),
                        origin: folders[file.folder].origin,
                        shadows: Vec::new(),
                        version: file.version.clone(),
                        fault: file.fault.clone(),
                        imported: file.imported.clone(),
                    };
                    self.entries.insert(file.name.clone(), entry);
                }
            }
        }
    }
}

impl Snapshot {
    /// Adds an agent without a file of its own, unless a file of the user has its name.
    fn add_fixed(&mut self, entry: &AgentFileEntry) {
        let name = entry.definition.name.as_str();
        let mut entry = entry.clone();
        match self.entries.get(name) {
            Some(file) if file.origin == FolderOwner::User && file.imported.is_none() => return,
            Some(file) => {
                entry.shadows.push(file.path.clone());
                entry.shadows.extend(file.shadows.iter().cloned());
            }
            None => {}
        }
        self.entries.insert(name.to_owned(), entry);
    }
}

impl FileState {
    fn read(
        index: usize,
        folder: &Folder,
        open: &OpenFolder,
        name: &Path,
        last: Option<&Self>,
    ) -> Self {
        let stem = name.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let mut referenced = Vec::new();
        let mut read_referenced = |path: &Path| {
            referenced.push(folder.path.join(path));
            open.read(path, SCHEMA_BYTES_MAX)
        };
        let read = open
            .read(name, FILE_BYTES_MAX)
            .map_err(|reason| AgentFileError::new(1, reason))
            .and_then(|bytes| Content::read(folder, &stem, &bytes, &mut read_referenced));
        let in_force = last.and_then(|last| last.valid.as_ref());
        let last_import = last.and_then(|last| last.imported.clone());
        let (valid, version, fault, imported) = match (read, in_force) {
            (Ok(same), Some(last)) if same.definition == **last => {
                (Some(Arc::clone(last)), same.version, None, same.imported)
            }
            (Ok(read), _) => (Some(Arc::new(read.definition)), read.version, None, read.imported),
            (Err(fault), in_force) => {
                let version = last.map(|last| last.version.clone()).unwrap_or_default();
                let fault = match &folder.foreign {
                    Some(_) => fault.of_foreign_file(),
                    None => fault,
                };
                (in_force.cloned(), version, Some(fault), last_import)
            }
        };
        // The name of another program's file need not be the name of its agent.
        let name = valid.as_ref().map_or(stem, |valid| valid.name.to_string());
        Self { name, folder: index, valid, version, fault, referenced, imported }
    }

    /// The file as `decide` says: refused content has no effect. What was in force before stays, unless
    /// that is refused by now, too.
    fn checked(self, path: &Path, decide: &Decide, last: Option<&Self>) -> Self {
        let Err(reason) = self.check(path, decide) else { return self };
        let last = last.filter(|last| last.check(path, decide).is_ok());
        let fault = self.fault.unwrap_or_else(|| AgentFileError::not_trusted(reason));
        Self {
            valid: last.and_then(|last| last.valid.clone()),
            version: last.map(|last| last.version.clone()).unwrap_or_default(),
            fault: Some(fault),
            ..self
        }
    }

    /// Whether the content that is in force may be.
    fn check(&self, path: &Path, decide: &Decide) -> Result<(), String> {
        match self.valid.as_deref() {
            Some(definition) => decide(&CheckedFile {
                path,
                version: &self.version,
                definition,
                is_foreign: self.imported.is_some(),
            }),
            None => Ok(()),
        }
    }
}

impl Content {
    fn read(
        folder: &Folder,
        stem: &str,
        bytes: &[u8],
        read_referenced: &mut ReadReferenced<'_>,
    ) -> Result<Self, AgentFileError> {
        let version = version_of(bytes);
        let Some(format) = &folder.foreign else {
            let definition = parse(stem, bytes, read_referenced)?;
            return Ok(Self { definition, version, imported: None });
        };
        let ForeignAgent { definition, dropped } = format.read(stem, bytes)?;
        let imported = Some(Imported { format: format.name, dropped });
        Ok(Self { definition, version, imported })
    }
}

/// Two files of one folder define an agent of the same name. Only files of other programs can.
fn same_name(first: &AgentFileEntry, path: &Path) -> Problem {
    let (name, file) = (&first.definition.name, first.path.display());
    let reason = format!("it defines `{name}`, as {file} does, which is used: rename one of them");
    let kind = ProblemKind::Foreign;
    Problem { path: path.to_owned(), line: None, reason, kind, in_force: false }
}

/// The name of a content: its SHA-256.
pub fn version_of(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().flat_map(|byte| [byte >> 4, byte & 15]).map(hex_digit).collect()
}

fn hex_digit(value: u8) -> char {
    char::from_digit(value.into(), 16).unwrap_or('0')
}
