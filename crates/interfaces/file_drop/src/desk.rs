//! All folders with all their requesters: which files are worth a look, and in which order.
//!
//! Files are taken in the order in which they were written, then by name, and no more at a time
//! than there is room for: the others stay on disk until their time comes. A folder that cannot be
//! used is left alone and told of once. Everything here blocks.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use crate::base::{Base, ENTRIES_MAX, Unusable, names};
use crate::drawer::Drawer;
use crate::eyes::{Changed, Eyes};
use crate::job::{FileKey, Job, Outcome};
use crate::name::{is_request, requester};
use crate::settings::Settings;
use crate::stamp::now_ns;
use crate::tray::Tray;

/// Most requesters of one folder. Of more, the first by name are served.
pub const REQUESTERS_MAX: usize = 256;

/// Most files that are read in one go: between two goes, others get their answers.
const LOOKS_MAX: usize = 2048;

/// Most different complaints that are remembered, so as not to be repeated.
const COMPLAINTS_MAX: usize = 1024;

/// All folders.
pub(crate) struct Desk {
    project: PathBuf,
    settings: Arc<Settings>,
    eyes: Eyes,
    folders: Vec<Folder>,
    complaints: BTreeSet<(PathBuf, String)>,
}

struct Folder {
    path: PathBuf,
    base: Option<Base>,
    taken: bool,
    trays: BTreeMap<Arc<str>, Tray>,
}

/// How much can be taken in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Room {
    pub(crate) jobs: usize,
    pub(crate) bytes: usize,
}

/// What a look around found.
pub(crate) struct Found {
    pub(crate) jobs: Vec<Job>,
    /// There may be more, for which there was no room.
    pub(crate) is_all: bool,
    /// When something unfinished may be worth another look.
    pub(crate) next: Option<Instant>,
}

impl Desk {
    pub(crate) fn new(project: &Path, settings: Arc<Settings>, eyes: Eyes) -> Self {
        let folder =
            |path: PathBuf| Folder { path, base: None, taken: false, trays: BTreeMap::new() };
        let folders = paths(project, &settings).into_iter().map(folder).collect();
        let project = project.to_owned();
        Self { project, settings, eyes, folders, complaints: BTreeSet::new() }
    }

    /// Looks at what changed, and at what may be ripe.
    pub(crate) fn look(&mut self, changed: Changed, room: Room) -> Found {
        let mut candidates = if changed.everything {
            self.everything()
        } else {
            changed.files.iter().filter_map(|path| self.candidate(path)).collect()
        };
        let (now, settle) = (Instant::now(), self.settings.settle);
        let ripe: Vec<_> = self.trays().flat_map(|tray| tray.ripe(now, settle)).collect();
        candidates.extend(ripe);
        candidates.sort();
        candidates.dedup();
        let (mut jobs, mut bytes, mut looks, mut is_all) = (Vec::new(), 0, 0, true);
        for (_, key) in candidates {
            if looks >= LOOKS_MAX || jobs.len() >= room.jobs || bytes >= room.bytes {
                is_all = false;
                break;
            }
            // What cannot be read now has its turn when everything is looked at again, and holds up
            // nobody.
            match self.look_at(&key) {
                Ok(Some(job)) => {
                    bytes += job.bytes;
                    jobs.push(job);
                }
                Ok(None) => {}
                Err(error) => {
                    self.put_off(&key, &error);
                    continue;
                }
            }
            looks += 1;
        }
        let next = self.trays().flat_map(Tray::unfinished).min().map(|since| since + settle);
        Found { jobs, is_all, next }
    }

    /// Notes what became of a file, and says which are worth another look now.
    pub(crate) fn finish(&mut self, key: &FileKey, outcome: Outcome) -> Vec<PathBuf> {
        let Some(folder) = self.folders.get_mut(key.base) else { return Vec::new() };
        let Some(tray) = folder.trays.get_mut(&key.requester) else { return Vec::new() };
        let path = folder.path.join(&*key.requester);
        tray.finish(&key.file, outcome).into_iter().map(|name| path.join(name)).collect()
    }

    /// Folders that somebody else answers.
    pub(crate) fn taken(&self) -> Vec<PathBuf> {
        self.folders.iter().filter(|it| it.taken).map(|it| it.path.clone()).collect()
    }

    fn trays(&self) -> impl Iterator<Item = &Tray> {
        self.folders.iter().flat_map(|folder| folder.trays.values())
    }

    fn everything(&mut self) -> Vec<(i128, FileKey)> {
        let now_ns = now_ns();
        let mut candidates = Vec::new();
        for index in 0..self.folders.len() {
            self.open_base(index);
            self.open_trays(index);
            let Some(folder) = self.folders.get_mut(index) else { continue };
            let mut complaints = Vec::new();
            for (requester, tray) in &mut folder.trays {
                let path = folder.path.join(&**requester);
                match tray.candidates(now_ns) {
                    Ok((found, is_all)) => {
                        candidates.extend(found);
                        if !is_all {
                            complaints.push((path, too_many(ENTRIES_MAX, "entries")));
                        }
                    }
                    Err(error) => complaints.push((path, error.to_string())),
                }
            }
            for (path, reason) in complaints {
                self.complain(path, reason);
            }
        }
        candidates
    }

    fn open_base(&mut self, index: usize) {
        let Some(folder) = self.folders.get_mut(index) else { return };
        let Some(about) = self.settings.folders.get(index) else { return };
        if folder.base.as_ref().is_some_and(|base| base.is_at(&folder.path)) {
            return;
        }
        // Another one: what was known of the files in it is of no use.
        folder.base = None;
        folder.trays.clear();
        match Base::open(&self.project, about, self.settings.owner) {
            Ok(base) => {
                (folder.base, folder.taken) = (Some(base), false);
                self.eyes.turn_to(&folder.path);
            }
            Err(Unusable::Absent) => folder.taken = false,
            Err(error) => {
                folder.taken = error == Unusable::Taken;
                let path = folder.path.clone();
                self.complain(path, error.to_string());
            }
        }
    }

    fn open_trays(&mut self, index: usize) {
        let Some(folder) = self.folders.get_mut(index) else { return };
        let Some(base) = &folder.base else { return };
        let owner = self.settings.owner;
        let mut complaints = Vec::new();
        folder.trays.retain(|name, it| it.drawer().is_at(&base.descriptor, OsStr::new(&**name)));
        for name in requesters(base) {
            let path = folder.path.join(&name);
            let requester: Arc<str> = match requester(&name) {
                Ok(name) => name.into(),
                Err(fault) => {
                    complaints.push((path, fault.message));
                    continue;
                }
            };
            if folder.trays.contains_key(&requester) {
                continue;
            }
            if folder.trays.len() >= REQUESTERS_MAX {
                complaints.push((folder.path.clone(), too_many(REQUESTERS_MAX, "requesters")));
                break;
            }
            match Drawer::open(&base.descriptor, &name, owner) {
                Err(_) if is_request(name.as_encoded_bytes()) => {
                    let reason = "a request goes into the folder of its requester: move it there";
                    complaints.push((path, reason.to_owned()));
                }
                Ok(drawer) => {
                    // Watched before it is read: nothing falls in between.
                    self.eyes.turn_to(&path);
                    let tray = Tray::new(index, Arc::clone(&requester), drawer);
                    folder.trays.insert(requester, tray);
                }
                Err(reason) => complaints.push((path, reason)),
            }
        }
        let (root, trays) = (&folder.path, &folder.trays);
        self.eyes.turn_from(|path| {
            let name = path.strip_prefix(root).ok().and_then(Path::to_str);
            name.is_some_and(|name| !name.is_empty() && !trays.contains_key(name))
        });
        for (path, reason) in complaints {
            self.complain(path, reason);
        }
    }

    fn candidate(&self, path: &Path) -> Option<(i128, FileKey)> {
        let (parent, file) = (path.parent()?, path.file_name()?);
        let folder = self.folders.iter().find(|it| Some(it.path.as_path()) == parent.parent())?;
        let requester = parent.file_name()?;
        let tray = folder.trays.get(requester.to_str()?)?;
        // A folder that was moved away or opened to others since is left alone.
        let base = folder.base.as_ref()?;
        tray.drawer().is_at(&base.descriptor, requester).then(|| tray.candidate(file))?
    }

    fn look_at(&mut self, key: &FileKey) -> io::Result<Option<Job>> {
        let folder = self.folders.get_mut(key.base);
        match folder.and_then(|folder| folder.trays.get_mut(&key.requester)) {
            Some(tray) => tray.look(&key.file, &self.settings, Instant::now()),
            None => Ok(None),
        }
    }

    fn put_off(&mut self, key: &FileKey, error: &io::Error) {
        let Some(folder) = self.folders.get_mut(key.base) else { return };
        if let Some(tray) = folder.trays.get_mut(&key.requester) {
            tray.forget(&key.file);
        }
        let path = folder.path.join(&*key.requester).join(&key.file);
        self.complain(path, error.to_string());
    }

    /// Says so, once.
    fn complain(&mut self, path: PathBuf, reason: String) {
        if self.complaints.len() >= COMPLAINTS_MAX {
            self.complaints.clear();
        }
        if self.complaints.insert((path.clone(), reason.clone())) {
            tracing::warn!(path = %path.display(), reason, "requests here are not answered");
        }
    }
}

/// Where the folders are.
pub(crate) fn paths(project: &Path, settings: &Settings) -> Vec<PathBuf> {
    settings.folders.iter().map(|folder| project.join(&folder.path)).collect()
}

fn requesters(base: &Base) -> Vec<OsString> {
    let Ok(listing) = crate::base::open_folder(&base.descriptor, ".") else { return Vec::new() };
    let mut names = names(&listing).map(|(names, _)| names).unwrap_or_default();
    let is_hidden = |name: &OsString| name.as_encoded_bytes().starts_with(b".");
    names.retain(|name| !is_hidden(name));
    names.sort();
    names
}

fn too_many(max: usize, what: &str) -> String {
    format!(
        "there are more than {max} {what}: delete what is answered; until then, some are left out"
    )
}
