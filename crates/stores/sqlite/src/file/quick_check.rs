//! A look at the files of a journal before it is opened: SQLite would take an empty file for a new
//! journal, drop a log without its database, and find a truncated file only when it reads there.
//!
//! | found                                       | it is                               |
//! |---------------------------------------------|-------------------------------------|
//! | no file, and a log                          | a journal whose file was deleted    |
//! | an empty file                               | a journal that was truncated        |
//! | fewer pages than its header or its log count | a journal that was truncated        |
//!
//! It reads the header, and of a log the heads of its frames.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::backup::with_suffix;
use crate::journal::OpenError;

/// Length of the header of a database.
const HEADER_BYTES: usize = 100;

/// First bytes of a database.
const MAGIC: &[u8] = b"SQLite format 3\0";

/// Length of the header of a log, and of each of its frames.
const LOG_HEADER_BYTES: usize = 32;
const FRAME_HEADER_BYTES: usize = 24;

/// Refuses files that cannot be a whole journal. No file and no log is a new journal.
pub(crate) fn quick_check(path: &Path) -> Result<(), OpenError> {
    let reason = fault(path).map_err(|error| OpenError::Unusable {
        path: path.to_owned(),
        reason: error.to_string(),
    })?;
    match reason {
        Some(reason) => Err(OpenError::Damaged { path: path.to_owned(), reason }),
        None => Ok(()),
    }
}

fn fault(path: &Path) -> io::Result<Option<String>> {
    let log = with_suffix(path, "-wal");
    let log_bytes = bytes_of(&log)?.unwrap_or_default();
    let Some(bytes) = bytes_of(path)? else {
        return Ok((log_bytes > 0).then(|| {
            format!(
                "the file is missing, but its log {0} is there with events that are in no other file. Put the \
                 file back, or move {0} away to start without them",
                log.display()
            )
        }));
    };
    // Pages of an unfinished transaction: SQLite rolls them back when it opens the file.
    if bytes_of(&with_suffix(path, "-journal"))?.unwrap_or_default() > 0 {
        return Ok(None);
    }
    if bytes == 0 {
        return Ok(Some("the file is empty: it was truncated".to_owned()));
    }
    if bytes < HEADER_BYTES as u64 {
        return Ok(Some(format!("it was truncated: {bytes} bytes are left")));
    }
    let Some(header) = Header::read(path)? else {
        // SQLite says what is wrong with it.
        return Ok(None);
    };
    let found = bytes / header.page_bytes;
    let logged = if log_bytes > 0 { Log::read(&log, header.page_bytes)? } else { None };
    let missing = match &logged {
        Some(log) => {
            (found + 1..=u64::from(log.pages)).any(|page| !log.contains(page)).then_some(log.pages)
        }
        None => header.pages.filter(|pages| u64::from(*pages) > found),
    };
    Ok(missing.map(|pages| format!("it was truncated: {found} of its {pages} pages are there")))
}

/// Size of a file; `None` when there is none.
fn bytes_of(path: &Path) -> io::Result<Option<u64>> {
    match fs::metadata(path) {
        Ok(about) => Ok(Some(about.len())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// What the header of a database says about its size.
struct Header {
    page_bytes: u64,
    /// `None` when the last writer did not keep it.
    pages: Option<u32>,
}

impl Header {
    /// `None` when it is no database.
    fn read(path: &Path) -> io::Result<Option<Self>> {
        let mut head = [0; HEADER_BYTES];
        File::open(path)?.read_exact(&mut head)?;
        let page_bytes = match u16::from_be_bytes([head[16], head[17]]) {
            // The largest size does not fit into the field.
            1 => 0x1_0000,
            bytes => u64::from(bytes),
        };
        if !head.starts_with(MAGIC) || page_bytes < 512 {
            return Ok(None);
        }
        let pages = number(&head, 28);
        let is_kept = pages > 0 && number(&head, 24) == number(&head, 92);
        Ok(Some(Self { page_bytes, pages: is_kept.then_some(pages) }))
    }
}

fn number(bytes: &[u8], at: usize) -> u32 {
    let mut number = [0; 4];
    number.copy_from_slice(&bytes[at..at + 4]);
    u32::from_be_bytes(number)
}

/// The committed content of a log.
struct Log {
    /// Pages of the database after its last transaction.
    pages: u32,
    logged: HashSet<u32>,
}

impl Log {
    /// `None` when it holds no transaction.
    fn read(path: &Path, page_bytes: u64) -> io::Result<Option<Self>> {
        let file = File::open(path)?;
        let mut header = [0; LOG_HEADER_BYTES];
        if file.read_exact_at(&mut header, 0).is_err() {
            return Ok(None);
        }
        let (mut pages, mut logged, mut uncommitted) = (None, HashSet::new(), Vec::new());
        let mut at = LOG_HEADER_BYTES as u64;
        let mut frame = [0; FRAME_HEADER_BYTES];
        // Frames of an earlier use of the file have other salts.
        while file.read_exact_at(&mut frame, at).is_ok() && frame[8..16] == header[16..24] {
            uncommitted.push(number(&frame, 0));
            let committed = number(&frame, 4);
            if committed > 0 {
                pages = Some(committed);
                logged.extend(uncommitted.drain(..));
            }
            at += FRAME_HEADER_BYTES as u64 + page_bytes;
        }
        Ok(pages.map(|pages| Self { pages, logged }))
    }

    fn contains(&self, page: u64) -> bool {
        u32::try_from(page).is_ok_and(|page| self.logged.contains(&page))
    }
}
