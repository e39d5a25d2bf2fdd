//! The walk: a few threads that take folders from one queue, always the one that comes first.
//!
//! So the first files of the tree are visited early, and a visitor that needs only those can refuse
//! all later folders ([`Visitor::enters`]). A stopped walk ends before the next file. After
//! [`ENTRIES_MAX`] entries the walk enters no further folder.

use std::ffi::{CStr, CString};
use std::io;
use std::mem;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use super::NEVER_ENTERED;
use super::deadline::Deadline;
use super::display::grouped;
use super::folder::{Folder, Kind};
use super::path::{self, RelPath};
use super::queue::{Queue, Step, Work};
use super::rules::{RuleBudget, RuleFiles, Rules, Verdict};
use super::search_start::SearchStart;

/// Most folder entries of one walk.
pub(crate) const ENTRIES_MAX: usize = 5_000_000;

/// Threads of one walk.
const THREADS_MIN: usize = 2;
const THREADS_MAX: usize = 4;

/// Files of one folder per step; another thread can take the rest.
const BATCH_FILES: usize = 128;

/// One walk.
#[derive(Debug)]
pub(crate) struct Walk<'a> {
    start: &'a Folder,
    deadline: &'a Deadline<'a>,
    hidden: bool,
    /// Paths that are never entered nor shown, relative to the start.
    secret: Vec<Vec<u8>>,
    /// The path of the start from where the rules begin. All paths in here begin there.
    above: RelPath,
    rules: Option<Arc<Rules>>,
    budget: Arc<RuleBudget>,
    entries: AtomicUsize,
}

/// Receives the files of a walk, on one thread. Paths are relative to the start of the walk.
pub(crate) trait Visitor {
    /// Whether to enter a folder.
    fn enters(&mut self, folder: &[u8]) -> bool;
    /// Whether a file is of interest, by its path.
    fn wants(&mut self, path: &[u8]) -> bool;
    /// Handles a wanted file. It may have been replaced since it was listed.
    fn visit(&mut self, folder: &Folder, name: &CStr, path: &[u8]);
    /// Handles a folder that cannot be read.
    fn fails(&mut self, folder: &[u8], error: &io::Error);
}

impl<'a> Walk<'a> {
    /// A walk through the folder `start`, which is at `place`.
    pub(crate) fn new(
        start: &'a Folder,
        place: &SearchStart,
        hidden: bool,
        deadline: &'a Deadline<'a>,
    ) -> Self {
        let budget = Arc::new(RuleBudget::default());
        let (above, rules) = Rules::above(&place.real, &place.root, &budget);
        let secret = place.secret.iter().map(|path| path.as_os_str().as_bytes().to_vec()).collect();
        let entries = AtomicUsize::new(0);
        Self { start, deadline, hidden, secret, above, rules, budget, entries }
    }

    /// Walks. Each thread gets a visitor of its own.
    pub(crate) fn run<V: Visitor>(&self, visitor: impl Fn() -> V + Sync) {
        let queue = Queue::default();
        let (path, rules) = (self.above.clone(), self.rules.clone());
        queue.add([Step { path, rules, work: Work::Folder }]);
        let work = || {
            Worker { walk: self, queue: &queue, visitor: visitor(), listing: Vec::new() }.run();
        };
        thread::scope(|scope| {
            // If no more threads can be started, one is enough.
            let start =
                || thread::Builder::new().name("search-walk".to_owned()).spawn_scoped(scope, work);
            let others: Vec<_> = (1..threads()).filter_map(|_| start().ok()).collect();
            work();
            for other in others {
                if let Err(panic) = other.join() {
                    std::panic::resume_unwind(panic);
                }
            }
        });
    }

    /// Remarks about an incomplete walk.
    pub(crate) fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        if self.entries.load(Ordering::Relaxed) > ENTRIES_MAX {
            remarks.push(format!(
                "[stopped after {} entries of folders, before everything was seen: narrow `path`]",
                grouped(ENTRIES_MAX as u64)
            ));
        }
        if self.budget.was_exceeded() {
            remarks.push("[ignore files are too long: some rules were not read]".to_owned());
        }
        remarks
    }

    /// Whether a file or folder is neither ignored nor hidden.
    fn is_visible(&self, name: &CStr, path: &[u8], kind: Kind, rules: Option<&Rules>) -> bool {
        if NEVER_ENTERED.iter().any(|never| never.as_bytes() == name.to_bytes()) {
            return false;
        }
        if !self.secret.is_empty() {
            let path = self.relative_to_start(path);
            if self.secret.iter().any(|secret| secret == path) {
                return false;
            }
        }
        let verdict =
            rules.map_or(Verdict::Silent, |rules| rules.verdict(path::as_path(path), kind));
        match verdict {
            Verdict::Ignored => false,
            Verdict::Wanted => true,
            Verdict::Silent => self.hidden || !name.to_bytes().starts_with(b"."),
        }
    }

    fn relative_to_start<'p>(&self, path: &'p [u8]) -> &'p [u8] {
        match self.above.0.len() {
            0 => path,
            above => path.get(above + 1..).unwrap_or_default(),
        }
    }
}

fn threads() -> usize {
    let cores = thread::available_parallelism().map_or(THREADS_MIN, usize::from);
    cores.clamp(THREADS_MIN, THREADS_MAX)
}

struct Worker<'w, V> {
    walk: &'w Walk<'w>,
    queue: &'w Queue,
    visitor: V,
    listing: Vec<u8>,
}

impl<V: Visitor> Worker<'_, V> {
    fn run(mut self) {
        while let Some(mut turn) = self.queue.take() {
            if self.walk.deadline.is_over() {
                self.queue.clear();
                continue;
            }
            let path = mem::take(&mut turn.step.path);
            let from_start = self.walk.relative_to_start(&path.0);
            if !self.visitor.enters(from_start) {
                continue;
            }
            let work = mem::replace(&mut turn.step.work, Work::Folder);
            let done = self.walk.start.folder(from_start).and_then(|folder| match work {
                Work::Folder => self.enter(&folder, &path, turn.step.rules.take()),
                Work::Files(names) => {
                    self.visit(&folder, &path, &names);
                    Ok(())
                }
            });
            if let Err(error) = done {
                self.visitor.fails(from_start, &error);
            }
        }
    }

    fn enter(
        &mut self,
        folder: &Folder,
        path: &RelPath,
        rules: Option<Arc<Rules>>,
    ) -> io::Result<()> {
        if folder.is_virtual() {
            return Err(io::Error::other("made up by the kernel"));
        }
        let mut entries = folder.list(&mut self.listing, ENTRIES_MAX)?;
        let met = self.walk.entries.fetch_add(entries.len(), Ordering::Relaxed);
        if met + entries.len() > ENTRIES_MAX {
            self.queue.clear();
            return Ok(());
        }
        entries.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        let mut rule_files = RuleFiles::default();
        for (name, _) in &entries {
            rule_files.note(name);
        }
        let rules = Rules::enter(rules, folder, path, rule_files, &self.walk.budget);

        let (mut files, mut steps) = (Vec::new(), Vec::new());
        let mut full = path.0.clone();
        for (name, kind) in entries {
            full.truncate(path.0.len());
            path::push(&mut full, name.to_bytes());
            let is_seen = || self.walk.is_visible(&name, &full, kind, rules.as_deref());
            match kind {
                Kind::Folder if is_seen() => {
                    let path = RelPath(full.clone());
                    steps.push(Step { path, rules: rules.clone(), work: Work::Folder });
                }
                // The name decides for most files, which is faster than the rules.
                Kind::File
                    if self.visitor.wants(self.walk.relative_to_start(&full)) && is_seen() =>
                {
                    files.push(name);
                }
                Kind::Folder | Kind::File | Kind::Other => {}
            }
        }
        while files.len() > BATCH_FILES {
            let names = files.split_off(files.len() - BATCH_FILES);
            steps.push(Step { path: path.clone(), rules: None, work: Work::Files(names) });
        }
        self.queue.add(steps);
        self.visit(folder, path, &files);
        Ok(())
    }

    fn visit(&mut self, folder: &Folder, path: &RelPath, names: &[CString]) {
        let mut full = path.0.clone();
        for name in names {
            if self.walk.deadline.is_over() {
                return;
            }
            full.truncate(path.0.len());
            path::push(&mut full, name.to_bytes());
            self.visitor.visit(folder, name, self.walk.relative_to_start(&full));
        }
    }
}
