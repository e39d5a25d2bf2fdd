//! What is known of every file at one moment, and who there is because of it.
//!
//! A file that turned bad keeps what it said before. One that was never good hides what it would stand
//! in front of: another agent of the same name would be a surprise.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use antiphon_core::AgentDefinition;

use crate::folder::{Folder, OpenFolder, Origin};
use crate::markdown::FILE_BYTES_MAX;
use crate::parse::parse;
use crate::problem::{Fault, Problem};
use crate::schema::SCHEMA_BYTES_MAX;

/// An agent, and where it is from.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Who it is.
    pub definition: Arc<AgentDefinition>,
    /// Its file.
    pub path: PathBuf,
    /// Whose folder that is in.
    pub origin: Origin,
    /// Files of the same name that it stands in front of.
    pub shadows: Vec<PathBuf>,
    /// What is wrong with the file now, when this is what it said before.
    pub fault: Option<Fault>,
}

/// Everything that is known at one moment.
#[derive(Debug, Default)]
pub(crate) struct Pages {
    pub(crate) entries: BTreeMap<String, Entry>,
    pub(crate) problems: Vec<Problem>,
    /// Files that agents' files lead to.
    pub(crate) beside: Vec<PathBuf>,
    files: BTreeMap<PathBuf, Page>,
}

/// One file.
#[derive(Debug, Clone)]
struct Page {
    name: String,
    folder: usize,
    good: Option<Arc<AgentDefinition>>,
    fault: Option<Fault>,
    beside: Vec<PathBuf>,
}

impl Pages {
    /// Reads all folders. `before` is what was known until now.
    pub(crate) fn read(folders: &[Folder], before: &Self) -> Self {
        let mut pages = Self::default();
        for (index, folder) in folders.iter().enumerate() {
            let fault = match pages.read_folder(index, folder, before) {
                Ok(fault) => fault,
                Err(reason) => {
                    // Nobody knows what is in it now: what it held stays in force.
                    let kept = before.files.iter().filter(|(_, page)| page.folder == index);
                    pages.files.extend(kept.map(|(path, page)| (path.clone(), page.clone())));
                    Some(reason)
                }
            };
            if let Some(reason) = fault {
                let path = folder.path.clone();
                pages.problems.push(Problem { path, line: None, reason, in_force: false });
            }
        }
        pages.settle(folders);
        pages
    }

    /// Adds the files of one folder. Tells what is wrong with it; an error when it cannot be read.
    fn read_folder(
        &mut self,
        index: usize,
        folder: &Folder,
        before: &Self,
    ) -> Result<Option<String>, String> {
        let Some(open) = folder.open()? else { return Ok(None) };
        let names = open.names()?;
        for name in names.names {
            let path = folder.path.join(&name);
            let last = before.files.get(&path).and_then(|page| page.good.as_ref());
            self.files.insert(path, Page::read(index, folder, &open, &name, last));
        }
        Ok(names.fault)
    }

    /// Says who there is: of one name, the agent of the first folder.
    fn settle(&mut self, folders: &[Folder]) {
        let mut files: Vec<(&PathBuf, &Page)> = self.files.iter().collect();
        files.sort_by_key(|(_, page)| page.folder);
        let mut hidden: Vec<&str> = Vec::new();
        for (path, page) in files {
            self.beside.extend(page.beside.iter().cloned());
            if let Some(Fault { line, reason }) = page.fault.clone() {
                let (path, line) = (path.clone(), Some(line));
                let in_force = page.good.is_some();
                self.problems.push(Problem { path, line, reason, in_force });
            }
            match (self.entries.get_mut(&page.name), &page.good) {
                (Some(front), _) => front.shadows.push(path.clone()),
                (None, _) if hidden.contains(&page.name.as_str()) => {}
                (None, None) => hidden.push(&page.name),
                (None, Some(good)) => {
                    let entry = Entry {
                        definition: Arc::clone(good),
                        path: path.clone(),
                        origin: folders[page.folder].origin,
                        shadows: Vec::new(),
                        fault: page.fault.clone(),
                    };
                    self.entries.insert(page.name.clone(), entry);
                }
            }
        }
    }
}

impl Page {
    fn read(
        index: usize,
        folder: &Folder,
        open: &OpenFolder,
        name: &Path,
        last: Option<&Arc<AgentDefinition>>,
    ) -> Self {
        let stem = name.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let mut beside = Vec::new();
        let mut read_beside = |path: &Path| {
            beside.push(folder.path.join(path));
            open.read(path, SCHEMA_BYTES_MAX)
        };
        let read = open
            .read(name, FILE_BYTES_MAX)
            .map_err(|reason| Fault::new(1, reason))
            .and_then(|bytes| parse(&stem, &bytes, &mut read_beside));
        let (good, fault) = match (read, last) {
            (Ok(same), Some(last)) if same == **last => (Some(Arc::clone(last)), None),
            (Ok(good), _) => (Some(Arc::new(good)), None),
            (Err(fault), last) => (last.cloned(), Some(fault)),
        };
        Self { name: stem, folder: index, good, fault, beside }
    }
}
