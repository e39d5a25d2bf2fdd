//! Scans all folders and their requesters: which files to read, and in which order.
//!
//! Files are read by modification time, then by name, and no more at a time than the queues can
//! hold: the others stay on disk. A folder that cannot be used is skipped and logged once.
//! Everything here blocks.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use antiphon_folder_watch::{FolderWatcher, Links};

use crate::execute::pending_request::{FileKey, Outcome, PendingRequest};
use crate::folder::file_state::now_ns;
use crate::folder::name::{is_request, requester};
use crate::folder::request_root::{ENTRIES_MAX, RequestRoot, RootError, names};
use crate::folder::requester_folder::RequesterFolder;
use crate::scan::changes::ChangedFiles;
use crate::scan::requester_files::RequesterFiles;
use crate::settings::FileDropSettings;

/// Most requesters of one folder. Above the limit, the first by name are served.
pub const REQUESTERS_MAX: usize = 256;

/// Most files that one scan reads, so that responses are not delayed for long.
const READS_MAX: usize = 2048;

/// Most distinct warnings that are remembered, so that none is repeated.
const WARNINGS_MAX: usize = 1024;

/// Scans all folders of requests.
pub(crate) struct Scanner {
    project: PathBuf,
    settings: Arc<FileDropSettings>,
    watcher: FolderWatcher,
    folders: Vec<Folder>,
    warnings: BTreeSet<(PathBuf, String)>,
}

struct Folder {
    path: PathBuf,
    root: Option<RequestRoot>,
    busy: bool,
    requesters: BTreeMap<Arc<str>, RequesterFiles>,
}

/// How many requests, and how many bytes, the queues can accept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Capacity {
    pub(crate) requests: usize,
    pub(crate) bytes: usize,
}

/// The result of a scan.
pub(crate) struct ScanResult {
    pub(crate) requests: Vec<PendingRequest>,
    /// False when files were skipped because the capacity was used up.
    pub(crate) is_all: bool,
    /// When an incomplete file should be read again.
    pub(crate) next: Option<Instant>,
}

impl Scanner {
    pub(crate) fn new(
        project: &Path,
        settings: Arc<FileDropSettings>,
        watcher: FolderWatcher,
    ) -> Self {
        let folder =
            |path: PathBuf| Folder { path, root: None, busy: false, requesters: BTreeMap::new() };
        let folders = paths(project, &settings).into_iter().map(folder).collect();
        let project = project.to_owned();
        Self { project, settings, watcher, folders, warnings: BTreeSet::new() }
    }

    /// Reads changed files and incomplete files that have settled.
    pub(crate) fn scan(&mut self, changed: ChangedFiles, capacity: Capacity) -> ScanResult {
        let mut candidates = if changed.everything {
            self.scan_everything()
        } else {
            changed.files.iter().filter_map(|path| self.candidate(path)).collect()
        };
        let (now, settle) = (Instant::now(), self.settings.settle);
        let settled: Vec<_> =
            self.requesters().flat_map(|files| files.settled(now, settle)).collect();
        candidates.extend(settled);
        candidates.sort();
        candidates.dedup();
        let (mut requests, mut bytes, mut reads, mut is_all) = (Vec::new(), 0, 0, true);
        for (_, key) in candidates {
            if reads >= READS_MAX || requests.len() >= capacity.requests || bytes >= capacity.bytes
            {
                is_all = false;
                break;
            }
            // A file that cannot be read now is read again at the next full scan, and delays no
            // other.
            match self.read_file(&key) {
                Ok(Some(pending)) => {
                    bytes += pending.bytes;
                    requests.push(pending);
                }
                Ok(None) => {}
                Err(error) => {
                    self.skip(&key, &error);
                    continue;
                }
            }
            reads += 1;
        }
        let next = self
            .requesters()
            .flat_map(RequesterFiles::incomplete)
            .min()
            .map(|since| since + settle);
        ScanResult { requests, is_all, next }
    }

    /// Records the outcome of a request, and returns the files to read again now.
    pub(crate) fn finish(&mut self, key: &FileKey, outcome: Outcome) -> Vec<PathBuf> {
        let Some(folder) = self.folders.get_mut(key.root) else { return Vec::new() };
        let Some(files) = folder.requesters.get_mut(&key.requester) else { return Vec::new() };
        let path = folder.path.join(&*key.requester);
        files.finish(&key.file, outcome).into_iter().map(|name| path.join(name)).collect()
    }

    /// Folders that another process answers.
    pub(crate) fn busy(&self) -> Vec<PathBuf> {
        self.folders.iter().filter(|it| it.busy).map(|it| it.path.clone()).collect()
    }

    fn requesters(&self) -> impl Iterator<Item = &RequesterFiles> {
        self.folders.iter().flat_map(|folder| folder.requesters.values())
    }

    fn scan_everything(&mut self) -> Vec<(i128, FileKey)> {
        let now_ns = now_ns();
        let mut candidates = Vec::new();
        for index in 0..self.folders.len() {
            self.open_root(index);
            self.open_requesters(index);
            let Some(folder) = self.folders.get_mut(index) else { continue };
            let mut warnings = Vec::new();
            for (requester, files) in &mut folder.requesters {
                let path = folder.path.join(&**requester);
                match files.candidates(now_ns) {
                    Ok((found, is_all)) => {
                        candidates.extend(found);
                        if !is_all {
                            warnings.push((path, too_many(ENTRIES_MAX, "entries")));
                        }
                    }
                    Err(error) => warnings.push((path, error.to_string())),
                }
            }
            for (path, reason) in warnings {
                self.warn(path, reason);
            }
        }
        candidates
    }

    fn open_root(&mut self, index: usize) {
        let Some(folder) = self.folders.get_mut(index) else { return };
        let Some(stat) = self.settings.folders.get(index) else { return };
        if folder.root.as_ref().is_some_and(|root| root.is_at(&folder.path)) {
            return;
        }
        // A new folder: the status of its files is obsolete.
        folder.root = None;
        folder.requesters.clear();
        match RequestRoot::open(&self.project, stat, self.settings.owner, &self.settings.trust) {
            Ok(root) => {
                (folder.root, folder.busy) = (Some(root), false);
                self.watcher.watch(&folder.path, Links::Keep);
            }
            Err(RootError::Absent) => folder.busy = false,
            Err(error) => {
                folder.busy = error == RootError::Busy;
                let path = folder.path.clone();
                self.warn(path, error.to_string());
            }
        }
    }

    fn open_requesters(&mut self, index: usize) {
        let Some(folder) = self.folders.get_mut(index) else { return };
        let Some(root) = &folder.root else { return };
        let owner = self.settings.owner;
        let mut warnings = Vec::new();
        folder
            .requesters
            .retain(|name, it| it.folder().is_at(&root.descriptor, OsStr::new(&**name)));
        for name in requesters(root) {
            let path = folder.path.join(&name);
            let requester: Arc<str> = match requester(&name) {
                Ok(name) => name.into(),
                Err(fault) => {
                    warnings.push((path, fault.message));
                    continue;
                }
            };
            if folder.requesters.contains_key(&requester) {
                continue;
            }
            if folder.requesters.len() >= REQUESTERS_MAX {
                warnings.push((folder.path.clone(), too_many(REQUESTERS_MAX, "requesters")));
                break;
            }
            match RequesterFolder::open(&root.descriptor, &name, owner, root.group_writes) {
                Err(_) if is_request(name.as_encoded_bytes()) => {
                    let reason = "a request goes into the folder of its requester: move it there";
                    warnings.push((path, reason.to_owned()));
                }
                Ok(opened) => {
                    if let Some(fault) = opened.fault() {
                        warnings.push((path.clone(), fault.to_owned()));
                    }
                    // Watched before it is read: no change is missed.
                    self.watcher.watch(&path, Links::Keep);
                    let files = RequesterFiles::new(index, Arc::clone(&requester), opened);
                    folder.requesters.insert(requester, files);
                }
                Err(reason) => warnings.push((path, reason)),
            }
        }
        let (root, requesters) = (&folder.path, &folder.requesters);
        self.watcher.unwatch(|path| {
            let name = path.strip_prefix(root).ok().and_then(Path::to_str);
            name.is_some_and(|name| !name.is_empty() && !requesters.contains_key(name))
        });
        for (path, reason) in warnings {
            self.warn(path, reason);
        }
    }

    fn candidate(&self, path: &Path) -> Option<(i128, FileKey)> {
        let (parent, file) = (path.parent()?, path.file_name()?);
        let folder = self.folders.iter().find(|it| Some(it.path.as_path()) == parent.parent())?;
        let requester = parent.file_name()?;
        let files = folder.requesters.get(requester.to_str()?)?;
        // A folder that was replaced, or opened to other users, is skipped.
        let root = folder.root.as_ref()?;
        files.folder().is_at(&root.descriptor, requester).then(|| files.candidate(file))?
    }

    fn read_file(&mut self, key: &FileKey) -> io::Result<Option<PendingRequest>> {
        let folder = self.folders.get_mut(key.root);
        match folder.and_then(|folder| folder.requesters.get_mut(&key.requester)) {
            Some(files) => files.read_file(&key.file, &self.settings, Instant::now()),
            None => Ok(None),
        }
    }

    fn skip(&mut self, key: &FileKey, error: &io::Error) {
        let Some(folder) = self.folders.get_mut(key.root) else { return };
        if let Some(files) = folder.requesters.get_mut(&key.requester) {
            files.forget(&key.file);
        }
        let path = folder.path.join(&*key.requester).join(&key.file);
        self.warn(path, error.to_string());
    }

    /// Logs a warning, once.
    fn warn(&mut self, path: PathBuf, reason: String) {
        if self.warnings.len() >= WARNINGS_MAX {
            self.warnings.clear();
        }
        if self.warnings.insert((path.clone(), reason.clone())) {
            tracing::warn!(path = %path.display(), reason, "requests in this folder are not answered");
        }
    }
}

/// The absolute paths of the folders of requests.
pub(crate) fn paths(project: &Path, settings: &FileDropSettings) -> Vec<PathBuf> {
    settings.folders.iter().map(|folder| project.join(&folder.path)).collect()
}

fn requesters(root: &RequestRoot) -> Vec<OsString> {
    let Ok(listing) = crate::folder::request_root::open_folder(&root.descriptor, ".") else {
        return Vec::new();
    };
    let mut names = names(&listing).map(|(names, _)| names).unwrap_or_default();
    let is_hidden = |name: &OsString| name.as_encoded_bytes().starts_with(b".");
    names.retain(|name| !is_hidden(name));
    names.sort();
    names
}

fn too_many(max: usize, what: &str) -> String {
    format!(
        "there are more than {max} {what}: delete answered requests; until then, some are ignored"
    )
}
