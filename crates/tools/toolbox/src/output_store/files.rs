//! The files of stored results: one folder for each task, one file for each result.

use std::ffi::OsString;
use std::fmt::{self, Write as _};
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use antiphon_core::{TaskId, ToolCallId};
use rustix::fs::OFlags;

/// Most of one result that is stored, in bytes. The rest is lost.
pub const STORED_RESULT_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Most that is stored for one task, in bytes. Beyond it, the oldest results of the task are removed.
pub const STORED_TASK_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// Longest name of a file or folder, in bytes. A result whose id needs more is not stored.
const NAME_BYTES_MAX: usize = 200;

/// Most results of one call. A call that is run again has several.
const SAME_CALL_MAX: u32 = 1_000;

#[derive(Debug)]
pub(super) struct ResultFiles {
    folder: PathBuf,
}

/// A result that was stored.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct StoredResult {
    pub(super) id: String,
    /// Size of the whole result.
    bytes: usize,
    lines: usize,
    /// Less than `bytes` when the result was too long.
    stored_bytes: usize,
}

impl ResultFiles {
    pub(super) fn open(folder: &Path) -> io::Result<Self> {
        make_private(folder)?;
        Ok(Self { folder: folder.to_owned() })
    }

    pub(super) fn store(
        &self,
        task: &TaskId,
        call: &ToolCallId,
        text: &str,
    ) -> io::Result<StoredResult> {
        let stored = &text[..text.floor_char_boundary(STORED_RESULT_BYTES_MAX)];
        let folder = self.folder.join(name_of(task.as_str())?);
        make_private(&folder)?;
        free_space(&folder, stored.len() as u64)?;
        let (id, mut file) = create(&folder, &name_of(call.as_str())?)?;
        // The model reads its id from the journal, which is synced: so the result is, too.
        let written = file.write_all(stored.as_bytes()).and_then(|()| file.sync_all());
        if let Err(error) = written.and_then(|()| sync_folder(&folder)) {
            drop(fs::remove_file(folder.join(&id)));
            return Err(error);
        }
        let lines = memchr::memchr_iter(b'\n', text.as_bytes()).count()
            + usize::from(!text.ends_with('\n'));
        Ok(StoredResult { id, bytes: text.len(), lines, stored_bytes: stored.len() })
    }

    /// Opens a result of a task. `id` comes from the model and may be any text.
    pub(super) fn find(&self, task: &TaskId, id: &str) -> io::Result<File> {
        let not_found = || io::Error::from(io::ErrorKind::NotFound);
        if !is_name(id) {
            return Err(not_found());
        }
        let path = self.folder.join(name_of(task.as_str())?).join(id);
        let file = OpenOptions::new().read(true).custom_flags(no_follow()).open(path)?;
        if file.metadata()?.is_file() { Ok(file) } else { Err(not_found()) }
    }

    /// Whether a result of a task is stored. Looks at a few names.
    pub(super) fn has_results(&self, task: &TaskId) -> bool {
        let folder = name_of(task.as_str()).map(|name| self.folder.join(name));
        let Ok(mut entries) = folder.and_then(fs::read_dir) else { return false };
        entries
            .any(|entry| entry.is_ok_and(|entry| entry.file_name().to_str().is_some_and(is_name)))
    }

    pub(super) fn remove(&self, task: &TaskId) -> io::Result<bool> {
        match fs::remove_dir_all(self.folder.join(name_of(task.as_str())?)) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    pub(super) fn sweep(&self, older_than: Duration) -> io::Result<usize> {
        let mut swept = 0;
        for folder in fs::read_dir(&self.folder)? {
            let folder = folder?;
            if !folder.file_type()?.is_dir() {
                continue;
            }
            for file in files_of(&folder.path())? {
                let age = file.stored_at.elapsed().unwrap_or_default();
                if age >= older_than && fs::remove_file(folder.path().join(&file.name)).is_ok() {
                    swept += 1;
                }
            }
            // Fails, as it should, unless the folder is empty.
            drop(fs::remove_dir(folder.path()));
        }
        Ok(swept)
    }
}

impl fmt::Display for StoredResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, bytes, lines, stored_bytes } = self;
        write!(f, "The whole is in result `{id}` ({bytes} bytes, {lines} lines): read it with ")?;
        write!(f, "read_result.")?;
        if stored_bytes < bytes {
            write!(f, " Only its first {stored_bytes} bytes could be stored.")?;
        }
        Ok(())
    }
}

struct Entry {
    name: OsString,
    bytes: u64,
    stored_at: SystemTime,
}

fn files_of(folder: &Path) -> io::Result<Vec<Entry>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        if metadata.is_file() {
            let stored_at = metadata.modified()?;
            files.push(Entry { name: entry.file_name(), bytes: metadata.len(), stored_at });
        }
    }
    Ok(files)
}

/// Removes the oldest results of a task until `bytes` more fit.
fn free_space(folder: &Path, bytes: u64) -> io::Result<()> {
    let mut files = files_of(folder)?;
    files.sort_by(|a, b| (b.stored_at, &b.name).cmp(&(a.stored_at, &a.name)));
    let mut used: u64 = files.iter().map(|file| file.bytes).sum();
    while used + bytes > STORED_TASK_BYTES_MAX {
        let Some(oldest) = files.pop() else {
            break;
        };
        fs::remove_file(folder.join(&oldest.name))?;
        used -= oldest.bytes;
    }
    Ok(())
}

/// Creates a new file: a call that is run again does not replace its first result.
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

/// Creates a folder that only its owner can read. A folder of that name may exist, for example in a
/// cloned project: a symlink is refused, and wider permissions are removed.
fn make_private(folder: &Path) -> io::Result<()> {
    let is_new = !folder.exists();
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    if let Some(parent) = folder.parent().filter(|_| is_new) {
        sync_folder(parent)?;
    }
    let metadata = fs::symlink_metadata(folder)?;
    if !metadata.is_dir() {
        return Err(io::Error::new(io::ErrorKind::NotADirectory, "it is a symlink"));
    }
    if metadata.permissions().mode() & 0o077 != 0 {
        fs::set_permissions(folder, Permissions::from_mode(0o700))?;
    }
    Ok(())
}

/// Makes the names in a folder durable.
fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// An id as a file name: bytes other than letters, digits, `-` and `_` become `%` and their code.
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

/// Whether [`create`] could have created a file of this name.
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
