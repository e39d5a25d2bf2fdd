//! What is known of the files of one requester, and what is to be done about them.
//!
//! | a file                                         | what is done                                       |
//! |------------------------------------------------|----------------------------------------------------|
//! | has a response with the digest of its text     | nothing, ever                                      |
//! | the same, and was to be set aside              | it is set aside, where its response says           |
//! | was answered under another name that is gone   | its response follows it                            |
//! | is a JSON object that makes sense              | it is carried out, at once                         |
//! | is a JSON object that makes none               | it is answered and set aside, at once              |
//! | is no JSON, or not to be read                  | the same, once it has not changed for a while      |
//!
//! Nothing is decided from memory that a start could not find again on disk. Everything here
//! blocks.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::digest::{Identity, digest, key};
use crate::drawer::{Drawer, Sight};
use crate::fault::Fault;
use crate::job::{FileKey, Job, Outcome, Work};
use crate::name::{REJECTED, RequestName, is_request, is_response, response_to};
use crate::rejected::places;
use crate::request::{NotOne, parse};
use crate::response::Response;
use crate::settings::Settings;
use crate::stamp::{Mark, Stamp, now_ns};

/// How long a file may go on changing without ever being JSON.
pub(crate) const UNFINISHED_MAX: Duration = Duration::from_secs(30);

/// The files of one requester.
pub(crate) struct Tray {
    base: usize,
    requester: Arc<str>,
    drawer: Arc<Drawer>,
    notes: HashMap<OsString, Note>,
    /// Files that are under way or answered, and the names they had.
    known: HashMap<Mark, OsString>,
    /// Names that wait for what becomes of the name they had before.
    renamed: BTreeSet<OsString>,
    is_new: bool,
}

/// What is known of a file.
#[derive(Debug, Clone, Copy)]
enum Note {
    UnderWay(Stamp),
    /// Answered. Not sure yet, if it was only just written: then it is read once more.
    Settled {
        stamp: Stamp,
        is_sure: bool,
    },
    /// Could not be answered: not again as long as it stays as it is.
    Left(Stamp),
    /// No request yet: unchanged since then, and first seen then.
    Unfinished {
        stamp: Stamp,
        since: Instant,
        first: Instant,
    },
}

impl Note {
    fn unfinished_since(&self) -> Option<Instant> {
        match self {
            Self::Unfinished { since, .. } => Some(*since),
            Self::UnderWay(_) | Self::Settled { .. } | Self::Left(_) => None,
        }
    }
}

impl Tray {
    pub(crate) fn new(base: usize, requester: Arc<str>, drawer: Drawer) -> Self {
        Self {
            base,
            requester,
            drawer: Arc::new(drawer),
            notes: HashMap::new(),
            known: HashMap::new(),
            renamed: BTreeSet::new(),
            is_new: true,
        }
    }

    pub(crate) fn drawer(&self) -> &Drawer {
        &self.drawer
    }

    /// Every file that is worth a look, with when it was written, and whether that is all.
    pub(crate) fn candidates(&mut self, now_ns: i128) -> io::Result<(Vec<(i128, FileKey)>, bool)> {
        let (names, is_all) = self.drawer.names()?;
        if std::mem::take(&mut self.is_new) {
            self.begin(&names, now_ns);
        }
        let there: HashSet<&OsStr> = names.iter().map(OsString::as_os_str).collect();
        let is_under_way = |note: &Note| matches!(note, Note::UnderWay(_));
        self.notes.retain(|name, note| is_under_way(note) || there.contains(name.as_os_str()));
        let notes = &self.notes;
        self.known.retain(|_, name| {
            let has = |name: &OsStr| there.contains(name);
            notes.contains_key(name)
                || name.to_str().is_some_and(|name| has(response_to(name).as_ref()))
        });
        let mut found = Vec::new();
        for file in names.iter().filter(|name| is_request(name.as_encoded_bytes())) {
            let Some(stamp) = self.drawer.stamp(file) else { continue };
            let settled = match self.notes.get(file) {
                Some(Note::Settled { stamp: before, is_sure }) => *is_sure && *before == stamp,
                // What is unfinished is looked at again when it is ripe.
                Some(Note::Left(before) | Note::Unfinished { stamp: before, .. })
                    if *before == stamp =>
                {
                    continue;
                }
                Some(Note::UnderWay(_)) => continue,
                Some(Note::Left(_) | Note::Unfinished { .. }) | None => false,
            };
            let answered = RequestName::of(file)
                .is_some_and(|name| there.contains(OsStr::new(&name.response())));
            if settled && !answered {
                // Somebody took the response away. A request that is there has one.
                self.notes.remove(file);
            }
            if !(settled && answered) {
                found.push((stamp.modified_ns(), self.key(file)));
            }
        }
        Ok((found, is_all))
    }

    /// The same for one file.
    pub(crate) fn candidate(&self, file: &OsStr) -> Option<(i128, FileKey)> {
        let stamp = self.drawer.stamp(file)?;
        Some((stamp.modified_ns(), self.key(file)))
    }

    /// Since when unfinished files are as they are.
    pub(crate) fn unfinished(&self) -> impl Iterator<Item = Instant> {
        self.notes.values().filter_map(Note::unfinished_since)
    }

    /// Files that are unfinished and may have been left alone for long enough, also those that are
    /// gone.
    pub(crate) fn ripe(
        &self,
        now: Instant,
        settle: Duration,
    ) -> impl Iterator<Item = (i128, FileKey)> {
        let is_ripe =
            move |note: &Note| note.unfinished_since().is_some_and(|since| since + settle <= now);
        self.notes.iter().filter(move |(_, note)| is_ripe(note)).map(|(file, _)| {
            let written = self.drawer.stamp(file).map_or(0, |stamp| stamp.modified_ns());
            (written, self.key(file))
        })
    }

    /// Knows nothing of a file any more.
    pub(crate) fn forget(&mut self, file: &OsStr) {
        self.notes.remove(file);
    }

    /// Looks at one file.
    pub(crate) fn look(
        &mut self,
        file: &OsStr,
        settings: &Settings,
        now: Instant,
    ) -> io::Result<Option<Job>> {
        let Some(name) = RequestName::of(file) else { return Ok(None) };
        let Some(stamp) = self.drawer.stamp(file) else {
            if !matches!(self.notes.get(file), Some(Note::UnderWay(_))) {
                self.notes.remove(file);
            }
            return Ok(None);
        };
        match self.notes.get(file) {
            Some(Note::UnderWay(_)) => return Ok(None),
            Some(Note::Settled { stamp: before, is_sure: true } | Note::Left(before))
                if *before == stamp =>
            {
                return Ok(None);
            }
            Some(Note::Settled { .. } | Note::Left(_) | Note::Unfinished { .. }) | None => {}
        }
        // What is not read is known by its stamp only.
        let is_known = matches!(
            self.notes.get(file),
            Some(Note::Settled { stamp: before, .. }) if *before == stamp
        );
        if is_known && name.fault.is_some() {
            return Ok(None);
        }
        if let Some(fault) = name.fault.clone() {
            return Ok(Some(self.set_aside(name, stamp, None, None, fault)));
        }
        let looked_ns = now_ns();
        match self.drawer.read(file, settings.request_bytes_max)? {
            Sight::Gone => Ok(None),
            Sight::Bad(..) if is_known => Ok(None),
            Sight::Bad(stamp, fault) => {
                Ok(self.unfinished_yet(name, stamp, None, fault, settings, now))
            }
            Sight::Read(stamp, bytes) => {
                if let Some(response) = self.response(&name, &bytes) {
                    return Ok(self.answered(name, stamp, response, looked_ns));
                }
                Ok(self.read(name, stamp, &bytes, settings, now))
            }
        }
    }

    /// Notes what became of a file, and says which are worth another look now.
    pub(crate) fn finish(&mut self, file: &OsStr, outcome: Outcome) -> BTreeSet<OsString> {
        if let Some(Note::UnderWay(stamp)) = self.notes.remove(file) {
            match outcome {
                Outcome::Answered | Outcome::SetAside => {
                    self.notes.insert(file.to_owned(), Note::Settled { stamp, is_sure: false });
                }
                Outcome::Left => {
                    self.notes.insert(file.to_owned(), Note::Left(stamp));
                }
                Outcome::Withdrawn => {
                    self.known.remove(&stamp.mark);
                }
            }
        }
        let mut again = std::mem::take(&mut self.renamed);
        again.insert(file.to_owned());
        again
    }

    /// What was left behind is taken away, and what was answered is known by its file as well.
    fn begin(&mut self, names: &[OsString], now_ns: i128) {
        self.drawer.clean(names, now_ns);
        for name in names.iter().filter(|name| is_response(name.as_encoded_bytes())) {
            let found = name.to_str().and_then(|name| self.drawer.answered_file(name));
            let Some((mark, response)) = found else { continue };
            let request = match self.known.get(&mark).and_then(|before| before.to_str()) {
                Some(before) => self.drawer.keep_one(mark, response, before),
                None => response.request,
            };
            self.known.insert(mark, request.into());
        }
    }

    fn read(
        &mut self,
        name: RequestName,
        stamp: Stamp,
        bytes: &[u8],
        settings: &Settings,
        now: Instant,
    ) -> Option<Job> {
        let digest = digest(bytes);
        match parse(bytes) {
            Err(NotOne::Unfinished(fault)) => {
                self.unfinished_yet(name, stamp, Some(digest), fault, settings, now)
            }
            Err(NotOne::Wrong { id, fault }) => {
                Some(self.set_aside(name, stamp, id, Some(digest), fault))
            }
            Ok(request) => {
                let identity = match &request.id {
                    Some(id) => Identity::Id(id),
                    None => Identity::File { name: &name.shown, digest: &digest },
                };
                let key = key(&self.requester, identity);
                let work = match self.earlier(&name, stamp.mark, &digest) {
                    Earlier::Nothing => Work::Act { order: request.order, key },
                    Earlier::Answered { response, old } => Work::Adopt { response, old },
                    Earlier::UnderWay => {
                        self.renamed.insert(name.file);
                        return None;
                    }
                };
                self.known.insert(stamp.mark, name.file.clone());
                Some(self.job(name, stamp, request.id, Some(digest), work, bytes.len()))
            }
        }
    }

    /// The response to a file with this text, if there is one.
    fn response(&self, name: &RequestName, bytes: &[u8]) -> Option<Response> {
        let response = self.drawer.response(&name.response())?;
        Some(response).filter(|it| it.digest.as_ref() == Some(&digest(bytes)))
    }

    /// It has its response.
    fn answered(
        &mut self,
        name: RequestName,
        stamp: Stamp,
        response: Response,
        looked_ns: i128,
    ) -> Option<Job> {
        let place = response.set_aside.as_deref().and_then(|place| {
            let place = place.strip_prefix(REJECTED)?.strip_prefix('/')?;
            places(&name).find(|allowed| allowed == place)
        });
        if let (Some(place), Some(error)) = (place, response.error) {
            let work = Work::Move { place, error };
            return Some(self.job(name, stamp, response.id, response.digest, work, 0));
        }
        self.known.insert(stamp.mark, name.file.clone());
        self.notes.insert(name.file, Note::Settled { stamp, is_sure: stamp.is_sure(looked_ns) });
        None
    }

    /// Whether this very file had another name before.
    fn earlier(&self, name: &RequestName, mark: Mark, digest: &str) -> Earlier {
        let Some(old) = self.known.get(&mark).filter(|old| **old != name.file) else {
            return Earlier::Nothing;
        };
        if self.drawer.stamp(old).is_some_and(|stamp| stamp.mark == mark) {
            // It still has that name too: this one is another request.
            return Earlier::Nothing;
        }
        if matches!(self.notes.get(old), Some(Note::UnderWay(_))) {
            return Earlier::UnderWay;
        }
        let Some(old) = RequestName::of(old).map(|old| old.response()) else {
            return Earlier::Nothing;
        };
        // A new file may have the number of one that is gone. Made after its response, it is younger
        // than that.
        let answered = self.drawer.stamp(OsStr::new(&old));
        if !answered.is_some_and(|stamp| mark.is_no_younger_than(&stamp)) {
            return Earlier::Nothing;
        }
        match self.drawer.response(&old) {
            Some(response) if response.digest.as_deref() == Some(digest) => {
                Earlier::Answered { response: Box::new(response), old }
            }
            Some(_) | None => Earlier::Nothing,
        }
    }

    /// Bad, if it has been so for long enough.
    fn unfinished_yet(
        &mut self,
        name: RequestName,
        stamp: Stamp,
        digest: Option<String>,
        fault: Fault,
        settings: &Settings,
        now: Instant,
    ) -> Option<Job> {
        let (since, first) = match self.notes.get(&name.file) {
            Some(Note::Unfinished { stamp: before, since, first }) => {
                (if *before == stamp { *since } else { now }, *first)
            }
            Some(Note::UnderWay(_) | Note::Settled { .. } | Note::Left(_)) | None => (now, now),
        };
        if now - since >= settings.settle || now - first >= UNFINISHED_MAX {
            return Some(self.set_aside(name, stamp, None, digest, fault));
        }
        self.notes.insert(name.file, Note::Unfinished { stamp, since, first });
        None
    }

    fn set_aside(
        &mut self,
        name: RequestName,
        stamp: Stamp,
        id: Option<String>,
        digest: Option<String>,
        fault: Fault,
    ) -> Job {
        self.job(name, stamp, id, digest, Work::SetAside(fault.into()), 0)
    }

    fn job(
        &mut self,
        name: RequestName,
        stamp: Stamp,
        id: Option<String>,
        digest: Option<String>,
        work: Work,
        bytes: usize,
    ) -> Job {
        self.notes.insert(name.file.clone(), Note::UnderWay(stamp));
        let (key, drawer) = (self.key(&name.file), Arc::clone(&self.drawer));
        Job { key, drawer, name, stamp, bytes, id, digest, work }
    }

    fn key(&self, file: &OsStr) -> FileKey {
        let requester = Arc::clone(&self.requester);
        FileKey { base: self.base, requester, file: file.to_owned() }
    }
}

/// What became of a file under another name.
enum Earlier {
    Nothing,
    UnderWay,
    Answered { response: Box<Response>, old: String },
}
