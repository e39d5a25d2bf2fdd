//! The files that results are kept in: one folder for each task, one file for each result.

use std::ffi::OsString;
use std::fmt::{self, Write as _};
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use antiphon_core::{TaskId, ToolCallId};
use rustix::fs::OFlags;

/// Most that is kept of one result, in bytes: what is behind it is lost.
pub const ASIDE_RESULT_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Most that is kept for one task, in bytes: for more, its oldest results go.
pub const ASIDE_TASK_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// Longest name of a file or folder, in bytes. An id that needs more is not kept.
const NAME_BYTES_MAX: usize = 200;

/// Results of one call: one that is run again has several.
const SAME_CALL_MAX: u32 = 1_000;

#[derive(Debug)]
pub(super) struct Store {
    folder: PathBuf,
}

/// A result that was kept.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Kept {
    pub(super) id: String,
    /// Of the whole result.
    bytes: usize,
    lines: usize,
    /// Less than `bytes` when it was too long.
    stored_bytes: usize,
}

impl Store {
    pub(super) fn open(folder: &Path) -> io::Result<Self> {
        make_private(folder)?;
        Ok(Self { folder: folder.to_owned() })
    }

    pub(super) fn keep(&self, task: &TaskId, call: &ToolCallId, text: &str) -> io::Result<Kept> {
        let kept = &text[..text.floor_char_boundary(ASIDE_RESULT_BYTES_MAX)];
        let folder = self.folder.join(name_of(task.as_str())?);
        make_private(&folder)?;
        make_room(&folder, kept.len() as u64)?;
        let (id, mut file) = create(&folder, &name_of(call.as_str())?)?;
        if let Err(error) = file.write_all(kept.as_bytes()) {
            drop(fs::remove_file(folder.join(&id)));
            return Err(error);
        }
        let lines = memchr::memchr_iter(b'\n', text.as_bytes()).count()
            + usize::from(!text.ends_with('\n'));
        Ok(Kept { id, bytes: text.len(), lines, stored_bytes: kept.len() })
    }

    /// Opens a result of a task. Any text may be given as its id.
    pub(super) fn find(&self, task: &TaskId, id: &str) -> io::Result<File> {
        let not_found = || io::Error::from(io::ErrorKind::NotFound);
        if !is_name(id) {
            return Err(not_found());
        }
        let path = self.folder.join(name_of(task.as_str())?).join(id);
        let file = OpenOptions::new().read(true).custom_flags(no_follow()).open(path)?;
        if file.metadata()?.is_file() { Ok(file) } else { Err(not_found()) }
    }

    pub(super) fn sweep(&self, older_than: Duration) -> io::Result<usize> {
        let mut swept = 0;
        for folder in fs::read_dir(&self.folder)? {
            let folder = folder?;
            if !folder.file_type()?.is_dir() {
                continue;
            }
            for file in files_of(&folder.path())? {
                let age = file.kept_at.elapsed().unwrap_or_default();
                if age >= older_than && fs::remove_file(folder.path().join(&file.name)).is_ok() {
                    swept += 1;
                }
            }
            // Only an empty one goes.
            drop(fs::remove_dir(folder.path()));
        }
        Ok(swept)
    }
}

impl fmt::Display for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, bytes, lines, stored_bytes } = self;
        write!(f, "The whole is in result `{id}` ({bytes} bytes, {lines} lines): read it with ")?;
        write!(f, "read_result.")?;
        if stored_bytes < bytes {
            write!(f, " Only its first {stored_bytes} bytes could be kept.")?;
        }
        Ok(())
    }
}

struct Entry {
    name: OsString,
    bytes: u64,
    kept_at: SystemTime,
}

fn files_of(folder: &Path) -> io::Result<Vec<Entry>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let about = entry.metadata()?;
        if about.is_file() {
            let kept_at = about.modified()?;
            files.push(Entry { name: entry.file_name(), bytes: about.len(), kept_at });
        }
    }
    Ok(files)
}

/// Removes the oldest results of a task until `bytes` more fit.
fn make_room(folder: &Path, bytes: u64) -> io::Result<()> {
    let mut files = files_of(folder)?;
    files.sort_by(|a, b| (b.kept_at, &b.name).cmp(&(a.kept_at, &a.name)));
    let mut taken: u64 = files.iter().map(|file| file.bytes).sum();
    while taken + bytes > ASIDE_TASK_BYTES_MAX {
        let Some(oldest) = files.pop() else {
            break;
        };
        fs::remove_file(folder.join(&oldest.name))?;
        taken -= oldest.bytes;
    }
    Ok(())
}

/// A file that was not there before: a call that is run again does not replace what it said
/// the first time.
fn create(folder: &Path, name: &str) -> io::Result<(String, File)> {
    for attempt in 1..=SAME_CALL_MAX {
        let id = if attempt == 1 { name.to_owned() } else { format!("{name}.{attempt}") };
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(0o600);
        match options.open(folder.join(&id)) {
            Ok(file) => return Ok((id, file)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::other("this call has too many results"))
}

/// Makes a folder that only we look into. A project may come with one: a link is refused, and
/// others are locked out.
fn make_private(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let about = fs::symlink_metadata(folder)?;
    if !about.is_dir() {
        return Err(io::Error::new(io::ErrorKind::NotADirectory, "it is a symlink"));
    }
    if about.permissions().mode() & 0o077 != 0 {
        fs::set_permissions(folder, Permissions::from_mode(0o700))?;
    }
    Ok(())
}

/// An id as a name: whatever is not plain is written as `%` and its code.
fn name_of(id: &str) -> io::Result<String> {
    let mut name = String::new();
    for byte in id.bytes() {
        if byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_' {
            name.push(char::from(byte));
        } else {
            // Writing to a string does not fail.
            let _ = write!(name, "%{byte:02x}");
        }
    }
    if name.len() > NAME_BYTES_MAX {
        return Err(io::Error::other("its id is too long"));
    }
    Ok(name)
}

/// Whether `id` is a name that [`create`] could have made.
fn is_name(id: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_%.".contains(&b);
    !id.is_empty()
        && id.len() <= NAME_BYTES_MAX + 8
        && !id.starts_with('.')
        && id.bytes().all(plain)
}

fn no_follow() -> i32 {
    (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed()
}
