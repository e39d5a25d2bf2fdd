//! Notes of a result: skipped paths, and how names are displayed.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Mutex, PoisonError};

use super::display::{ShownPath, cut_around, grouped, shown_path};
use super::path::RelPath;
use super::search_start::SearchStart;

/// Most places that are kept: the first ones.
const PLACES_MAX: usize = 1000;

/// Most places that are named.
const PLACES_NAMED: usize = 3;

/// Skipped paths, with the reason.
#[derive(Debug, Default)]
pub(crate) struct Notes(Mutex<BTreeMap<RelPath, String>>);

impl Notes {
    pub(crate) fn add(&self, path: &[u8], reason: impl Into<String>) {
        let mut places = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        places.insert(RelPath(path.to_vec()), reason.into());
        if places.len() > PLACES_MAX {
            places.pop_last();
        }
    }

    /// Records a path that could not be read. Ignores paths that no longer exist.
    pub(crate) fn add_error(&self, path: &[u8], error: &io::Error) {
        let kind = error.kind();
        if kind == io::ErrorKind::Other {
            self.add(path, error.to_string());
        } else if kind != io::ErrorKind::NotFound {
            self.add(path, kind.to_string());
        }
    }

    /// A line about the skipped paths up to and including `last`, if there are any.
    pub(crate) fn remarks(&self, place: &SearchStart, last: Option<&RelPath>) -> Option<String> {
        let places = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut counted = places.iter().filter(|(path, _)| last.is_none_or(|last| *path <= last));
        let named: Vec<String> = counted
            .by_ref()
            .take(PLACES_NAMED)
            .map(|(path, reason)| {
                let name = shown_path(&place.path_of(&path.0)).text;
                format!("{} ({reason})", cut_around(name.as_bytes(), name.len()))
            })
            .collect();
        let more = match counted.count() as u64 {
            0 => String::new(),
            more => format!(", and {} more", grouped(more)),
        };
        (!named.is_empty()).then(|| format!("[not searched: {}{more}]", named.join(", ")))
    }
}

/// The names in a result, as they are shown.
#[derive(Debug)]
pub(crate) struct Names<'a> {
    place: &'a SearchStart,
    some_escaped: bool,
    some_lossy: bool,
}

impl<'a> Names<'a> {
    pub(crate) fn new(place: &'a SearchStart) -> Self {
        Self { place, some_escaped: false, some_lossy: false }
    }

    /// The name of a file, given by its path from where the search began.
    pub(crate) fn show(&mut self, path: &[u8]) -> String {
        let ShownPath { text, is_escaped, is_lossy } = shown_path(&self.place.path_of(path));
        self.some_escaped |= is_escaped;
        self.some_lossy |= is_lossy;
        text
    }

    /// Remarks about names that are displayed with escapes.
    pub(crate) fn remarks(&self) -> Vec<String> {
        let escaped = "[some names have characters that cannot be seen, shown as escapes: \\n]";
        let lossy = "[some names are not UTF-8, shown with �: only bash can open those]";
        let remarks = [(self.some_escaped, escaped), (self.some_lossy, lossy)];
        remarks.into_iter().filter(|(is_so, _)| *is_so).map(|(_, text)| text.to_owned()).collect()
    }
}
