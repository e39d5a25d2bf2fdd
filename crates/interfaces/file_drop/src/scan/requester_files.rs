//! The files of one requester: their status, and what is to be done about each.
//!
//! | a file                                         | action                                             |
//! |------------------------------------------------|----------------------------------------------------|
//! | has a response with the digest of its text     | none, ever                                         |
//! | the same, and the response rejects it          | it is moved to the name in its response            |
//! | was answered under another name that is gone   | its response is moved, too                         |
//! | is a JSON object and a valid request           | it is executed at once                             |
//! | is a JSON object and not a valid request       | it is answered with an error and moved at once     |
//! | is not JSON, or must not be read               | the same, once it has settled                      |
//!
//! Every decision can be made again from the files on disk after a restart. Everything here blocks.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::digest::{Identity, digest, key};
use crate::execute::pending_request::{FileKey, Outcome, PendingRequest, RequestAction};
use crate::fault::Fault;
use crate::folder::file_state::{FileId, FileState, now_ns};
use crate::folder::name::{REJECTED, RequestName, is_request, is_response, response_to};
use crate::folder::rejected_folder::rejected_names;
use crate::folder::requester_folder::{FileRead, RequesterFolder};
use crate::parse_request::{ParseError, parse};
use crate::response::Response;
use crate::settings::FileDropSettings;

/// Longest time that a file may keep changing without being valid JSON.
pub(crate) const INCOMPLETE_MAX: Duration = Duration::from_secs(30);

pub(crate) struct RequesterFiles {
    root: usize,
    requester: Arc<str>,
    folder: Arc<RequesterFolder>,
    statuses: HashMap<OsString, FileStatus>,
    /// Files that run or are answered, and their names.
    known: HashMap<FileId, OsString>,
    /// New names of requests that still run under their old name.
    renamed: BTreeSet<OsString>,
    is_first_scan: bool,
}

#[derive(Debug, Clone, Copy)]
enum FileStatus {
    Running(FileState),
    /// `is_sure` is false for a file that was modified so recently that a change would not show: it
    /// is read once more.
    Answered {
        state: FileState,
        is_sure: bool,
    },
    /// Not executed: not tried again until the file changes.
    Postponed(FileState),
    /// Not a request yet: in this state since `since`, and incomplete since `first`.
    Incomplete {
        state: FileState,
        since: Instant,
        first: Instant,
    },
}

impl FileStatus {
    fn incomplete_since(&self) -> Option<Instant> {
        match self {
            Self::Incomplete { since, .. } => Some(*since),
            Self::Running(_) | Self::Answered { .. } | Self::Postponed(_) => None,
        }
    }
}

impl RequesterFiles {
    pub(crate) fn new(root: usize, requester: Arc<str>, folder: RequesterFolder) -> Self {
        Self {
            root,
            requester,
            folder: Arc::new(folder),
            statuses: HashMap::new(),
            known: HashMap::new(),
            renamed: BTreeSet::new(),
            is_first_scan: true,
        }
    }

    pub(crate) fn folder(&self) -> &RequesterFolder {
        &self.folder
    }

    /// Every file to read, with its modification time, and whether the list is complete.
    pub(crate) fn candidates(&mut self, now_ns: i128) -> io::Result<(Vec<(i128, FileKey)>, bool)> {
        let (names, is_all) = self.folder.names()?;
        if std::mem::take(&mut self.is_first_scan) {
            self.first_scan(&names, now_ns);
        }
        let existing: HashSet<&OsStr> = names.iter().map(OsString::as_os_str).collect();
        let is_running = |status: &FileStatus| matches!(status, FileStatus::Running(_));
        self.statuses
            .retain(|name, status| is_running(status) || existing.contains(name.as_os_str()));
        let statuses = &self.statuses;
        self.known.retain(|_, name| {
            let has = |name: &OsStr| existing.contains(name);
            statuses.contains_key(name)
                || name.to_str().is_some_and(|name| has(response_to(name).as_ref()))
        });
        let mut found = Vec::new();
        for file in names.iter().filter(|name| is_request(name.as_encoded_bytes())) {
            let Some(state) = self.folder.state(file) else { continue };
            let is_answered = match self.statuses.get(file) {
                Some(FileStatus::Answered { state: before, is_sure }) => {
                    *is_sure && *before == state
                }
                // An incomplete file is read again when it has settled.
                Some(
                    FileStatus::Postponed(before) | FileStatus::Incomplete { state: before, .. },
                ) if *before == state => {
                    continue;
                }
                Some(FileStatus::Running(_)) => continue,
                Some(FileStatus::Postponed(_) | FileStatus::Incomplete { .. }) | None => false,
            };
            let has_response = RequestName::of(file)
                .is_some_and(|name| existing.contains(OsStr::new(&name.response())));
            if is_answered && !has_response {
                // The response was deleted: it is written again.
                self.statuses.remove(file);
            }
            if !(is_answered && has_response) {
                found.push((state.modified_ns(), self.key(file)));
            }
        }
        Ok((found, is_all))
    }

    /// The same for one file.
    pub(crate) fn candidate(&self, file: &OsStr) -> Option<(i128, FileKey)> {
        let state = self.folder.state(file)?;
        Some((state.modified_ns(), self.key(file)))
    }

    /// Since when each incomplete file has its current state.
    pub(crate) fn incomplete(&self) -> impl Iterator<Item = Instant> {
        self.statuses.values().filter_map(FileStatus::incomplete_since)
    }

    /// Incomplete files, also deleted ones, that have not changed for `settle`.
    pub(crate) fn settled(
        &self,
        now: Instant,
        settle: Duration,
    ) -> impl Iterator<Item = (i128, FileKey)> {
        let has_settled = move |status: &FileStatus| {
            status.incomplete_since().is_some_and(|since| since + settle <= now)
        };
        self.statuses.iter().filter(move |(_, status)| has_settled(status)).map(|(file, _)| {
            let written = self.folder.state(file).map_or(0, |state| state.modified_ns());
            (written, self.key(file))
        })
    }

    pub(crate) fn forget(&mut self, file: &OsStr) {
        self.statuses.remove(file);
    }

    /// Reads one file and decides what is to be done about it.
    pub(crate) fn read_file(
        &mut self,
        file: &OsStr,
        settings: &FileDropSettings,
        now: Instant,
    ) -> io::Result<Option<PendingRequest>> {
        let Some(name) = RequestName::of(file) else { return Ok(None) };
        let Some(state) = self.folder.state(file) else {
            if !matches!(self.statuses.get(file), Some(FileStatus::Running(_))) {
                self.statuses.remove(file);
            }
            return Ok(None);
        };
        match self.statuses.get(file) {
            Some(FileStatus::Running(_)) => return Ok(None),
            Some(
                FileStatus::Answered { state: before, is_sure: true }
                | FileStatus::Postponed(before),
            ) if *before == state => {
                return Ok(None);
            }
            Some(
                FileStatus::Answered { .. }
                | FileStatus::Postponed(_)
                | FileStatus::Incomplete { .. },
            )
            | None => {}
        }
        // A file that cannot be read is recognized by its state alone.
        let is_known = matches!(
            self.statuses.get(file),
            Some(FileStatus::Answered { state: before, .. }) if *before == state
        );
        if is_known && name.fault.is_some() {
            return Ok(None);
        }
        if let Some(fault) = name.fault.clone() {
            return Ok(Some(self.reject(name, state, None, None, fault)));
        }
        let looked_ns = now_ns();
        match self.folder.read(file, settings.request_bytes_max)? {
            FileRead::Gone => Ok(None),
            FileRead::Refused(..) if is_known => Ok(None),
            FileRead::Refused(state, fault) => {
                Ok(self.reject_if_overdue(name, state, None, fault, settings, now))
            }
            FileRead::Content(state, bytes) => {
                if let Some(response) = self.response(&name, &bytes) {
                    return Ok(self.answered(name, state, response, looked_ns));
                }
                Ok(self.parse_content(name, state, &bytes, settings, now))
            }
        }
    }

    /// Records the outcome of a request, and returns the files to read again now.
    pub(crate) fn finish(&mut self, file: &OsStr, outcome: Outcome) -> BTreeSet<OsString> {
        if let Some(FileStatus::Running(state)) = self.statuses.remove(file) {
            match outcome {
                Outcome::Answered | Outcome::SetAside => {
                    self.statuses
                        .insert(file.to_owned(), FileStatus::Answered { state, is_sure: false });
                }
                Outcome::Postponed => {
                    self.statuses.insert(file.to_owned(), FileStatus::Postponed(state));
                }
                Outcome::Withdrawn => {
                    self.known.remove(&state.file_id);
                }
            }
        }
        let mut again = std::mem::take(&mut self.renamed);
        again.insert(file.to_owned());
        again
    }

    /// First scan: removes abandoned temporary files, and reads which files are answered.
    fn first_scan(&mut self, names: &[OsString], now_ns: i128) {
        self.folder.remove_leftovers(names, now_ns);
        for name in names.iter().filter(|name| is_response(name.as_encoded_bytes())) {
            let found = name.to_str().and_then(|name| self.folder.answered_file(name));
            let Some((file_id, response)) = found else { continue };
            let request = match self.known.get(&file_id).and_then(|before| before.to_str()) {
                Some(before) => self.folder.remove_duplicate_response(file_id, response, before),
                None => response.request,
            };
            self.known.insert(file_id, request.into());
        }
    }

    fn parse_content(
        &mut self,
        name: RequestName,
        state: FileState,
        bytes: &[u8],
        settings: &FileDropSettings,
        now: Instant,
    ) -> Option<PendingRequest> {
        let digest = digest(bytes);
        match parse(bytes) {
            Err(ParseError::Incomplete(fault)) => {
                self.reject_if_overdue(name, state, Some(digest), fault, settings, now)
            }
            Err(ParseError::Invalid { id, fault }) => {
                Some(self.reject(name, state, id, Some(digest), fault))
            }
            Ok(request) => {
                let identity = match &request.id {
                    Some(id) => Identity::Id(id),
                    None => Identity::File { name: &name.shown, digest: &digest },
                };
                let key = key(&self.requester, identity);
                let action = match self.earlier_name(&name, state.file_id, &digest) {
                    EarlierName::None => RequestAction::Execute { order: request.order, key },
                    EarlierName::Answered { response, old } => {
                        RequestAction::AdoptResponse { response, old }
                    }
                    EarlierName::Running => {
                        self.renamed.insert(name.file);
                        return None;
                    }
                };
                self.known.insert(state.file_id, name.file.clone());
                Some(self.pending(name, state, request.id, Some(digest), action, bytes.len()))
            }
        }
    }

    /// The response to this content, if it exists.
    fn response(&self, name: &RequestName, bytes: &[u8]) -> Option<Response> {
        let response = self.folder.response(&name.response())?;
        Some(response).filter(|it| it.digest.as_ref() == Some(&digest(bytes)))
    }

    /// The request has its response: finishes an interrupted move, or records that it is answered.
    fn answered(
        &mut self,
        name: RequestName,
        state: FileState,
        response: Response,
        looked_ns: i128,
    ) -> Option<PendingRequest> {
        let target = response.set_aside.as_deref().and_then(|target| {
            let target = target.strip_prefix(REJECTED)?.strip_prefix('/')?;
            rejected_names(&name).find(|allowed| allowed == target)
        });
        if let (Some(target), Some(error)) = (target, response.error) {
            let action = RequestAction::MoveRejected { target, error };
            return Some(self.pending(name, state, response.id, response.digest, action, 0));
        }
        self.known.insert(state.file_id, name.file.clone());
        self.statuses
            .insert(name.file, FileStatus::Answered { state, is_sure: state.is_sure(looked_ns) });
        None
    }

    /// Whether this file had another name before.
    fn earlier_name(&self, name: &RequestName, file_id: FileId, digest: &str) -> EarlierName {
        let Some(old) = self.known.get(&file_id).filter(|old| **old != name.file) else {
            return EarlierName::None;
        };
        if self.folder.state(old).is_some_and(|state| state.file_id == file_id) {
            // The file still has that name: this is a hard link, and another request.
            return EarlierName::None;
        }
        if matches!(self.statuses.get(old), Some(FileStatus::Running(_))) {
            return EarlierName::Running;
        }
        let Some(old) = RequestName::of(old).map(|old| old.response()) else {
            return EarlierName::None;
        };
        // A new file may reuse the inode of a deleted one. It is then younger than the response.
        let answered = self.folder.state(OsStr::new(&old));
        if !answered.is_some_and(|state| file_id.is_no_younger_than(&state)) {
            return EarlierName::None;
        }
        match self.folder.response(&old) {
            Some(response) if response.digest.as_deref() == Some(digest) => {
                EarlierName::Answered { response: Box::new(response), old }
            }
            Some(_) | None => EarlierName::None,
        }
    }

    /// Rejects a file that has been incomplete for too long.
    fn reject_if_overdue(
        &mut self,
        name: RequestName,
        state: FileState,
        digest: Option<String>,
        fault: Fault,
        settings: &FileDropSettings,
        now: Instant,
    ) -> Option<PendingRequest> {
        let (since, first) = match self.statuses.get(&name.file) {
            Some(FileStatus::Incomplete { state: before, since, first }) => {
                (if *before == state { *since } else { now }, *first)
            }
            Some(
                FileStatus::Running(_) | FileStatus::Answered { .. } | FileStatus::Postponed(_),
            )
            | None => (now, now),
        };
        if now - since >= settings.settle || now - first >= INCOMPLETE_MAX {
            return Some(self.reject(name, state, None, digest, fault));
        }
        self.statuses.insert(name.file, FileStatus::Incomplete { state, since, first });
        None
    }

    fn reject(
        &mut self,
        name: RequestName,
        state: FileState,
        id: Option<String>,
        digest: Option<String>,
        fault: Fault,
    ) -> PendingRequest {
        self.pending(name, state, id, digest, RequestAction::Reject(fault.into()), 0)
    }

    fn pending(
        &mut self,
        name: RequestName,
        state: FileState,
        id: Option<String>,
        digest: Option<String>,
        action: RequestAction,
        bytes: usize,
    ) -> PendingRequest {
        self.statuses.insert(name.file.clone(), FileStatus::Running(state));
        let (key, folder) = (self.key(&name.file), Arc::clone(&self.folder));
        PendingRequest { key, folder, name, state, bytes, id, digest, action }
    }

    fn key(&self, file: &OsStr) -> FileKey {
        let requester = Arc::clone(&self.requester);
        FileKey { root: self.root, requester, file: file.to_owned() }
    }
}

/// What is known about the earlier name of a file.
enum EarlierName {
    None,
    Running,
    Answered { response: Box<Response>, old: String },
}
