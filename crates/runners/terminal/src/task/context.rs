//! Gives a program the context of its agent. Never overwrites a file of the user: a name in use is
//! refused with the reason.
//!
//! The context is always in a file of the task's private folder, whose path is in the variable
//! `ANTIPHON_CONTEXT`. In addition it goes where the profile says: to the command line, or into a
//! file of the working folder that is removed at the end.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use antiphon_core::TaskId;
use antiphon_private_file::{Durability, write_atomic};

use crate::profile::TerminalProfile;
use crate::task::folder::{TaskFolder, is_free};

/// Longest context, in bytes. The kernel takes no argument beyond 131,071.
pub const CONTEXT_BYTES_MAX: usize = 100_000;

/// Longest argument that the kernel takes.
const ARGUMENT_BYTES_MAX: usize = 131_071;

/// The variable that names the file with the context.
const VARIABLE: &str = "ANTIPHON_CONTEXT";

/// First line of a context file that a task created; the task's id follows.
const FILE_PREFIX: &str = "<!-- antiphon: the context of task ";

/// How the program gets its context.
#[derive(Debug, Default)]
pub(crate) struct Context {
    pub(crate) args: Vec<String>,
    pub(crate) env: Vec<(OsString, OsString)>,
    _placed: Option<ContextFile>,
}

/// Where to write the context.
pub(crate) struct ContextTarget<'a> {
    pub(crate) profile: &'a TerminalProfile,
    pub(crate) folder: &'a TaskFolder,
    /// The folder that contains the folders of all tasks.
    pub(crate) tasks_folder: &'a Path,
    pub(crate) root: &'a Path,
    pub(crate) task_id: &'a TaskId,
}

impl Context {
    /// Writes the context. The error is for the client that created the task.
    pub(crate) fn put(text: &str, to: &ContextTarget<'_>) -> Result<Self, String> {
        let text = text.replace('\0', "");
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        if text.len() > CONTEXT_BYTES_MAX {
            return Err(format!("its context has more than {CONTEXT_BYTES_MAX} bytes"));
        }
        let file = to.folder.file("context.md");
        let failed = |error: io::Error| format!("its context cannot be written: {error}");
        write_atomic(&file, text.as_bytes(), Durability::Buffered).map_err(failed)?;
        let args = to.profile.context_args.iter().map(|word| fill(word, &text, &file));
        let args: Vec<String> = args.collect();
        if args.iter().any(|arg| arg.len() > ARGUMENT_BYTES_MAX) {
            return Err("its context is too long for a command line".to_owned());
        }
        let name = to.profile.context_file.as_ref();
        let placed = name.map(|name| ContextFile::put(&text, name, to)).transpose()?;
        Ok(Self { args, env: vec![(VARIABLE.into(), file.into())], _placed: placed })
    }
}

fn fill(word: &str, text: &str, file: &Path) -> String {
    // Replaced one after the other: the inserted context is not searched again.
    if word.contains("{text}") {
        word.replace("{text}", text)
    } else if word.contains("{quoted}") {
        // DEL is the only character that JSON allows unescaped and TOML does not.
        let quoted = serde_json::Value::from(text.replace('\u{7f}', "")).to_string();
        word.replace("{quoted}", &quoted)
    } else {
        word.replace("{file}", &file.to_string_lossy())
    }
}

/// A context file in the working folder. Removed on drop.
#[derive(Debug)]
struct ContextFile {
    path: PathBuf,
    text: String,
}

impl ContextFile {
    fn put(text: &str, name: &str, to: &ContextTarget<'_>) -> Result<Self, String> {
        let path = to.root.join(name);
        let text = format!("{FILE_PREFIX}{}; removed when it ends -->\n{text}", to.task_id);
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(0o600);
        let failed = |error: io::Error| format!("`{name}` cannot be written: {error}");
        match options.open(&path) {
            Ok(mut file) => file.write_all(text.as_bytes()).map_err(failed)?,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                if !is_left_over(&path, to) {
                    return Err(format!(
                        "the agent's context is written to `{name}`, but another file is there: move it, \
                         or use a profile with `context_args`"
                    ));
                }
                write_atomic(&path, text.as_bytes(), Durability::Buffered).map_err(failed)?;
            }
            Err(error) => return Err(failed(error)),
        }
        Ok(Self { path, text })
    }
}

impl Drop for ContextFile {
    fn drop(&mut self) {
        // A changed file belongs to the user now, and stays.
        if read(&self.path).is_some_and(|found| found == self.text) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Whether a task created this file that no longer runs, or this task did.
fn is_left_over(path: &Path, to: &ContextTarget<'_>) -> bool {
    let Some(text) = read(path) else { return false };
    let Some(rest) = text.strip_prefix(FILE_PREFIX) else { return false };
    let Some((task, _)) = rest.split_once(';') else { return false };
    task == to.task_id.as_str() || is_free(to.tasks_folder, task)
}

/// `None` if the path is no regular file, or longer than a context file can be.
fn read(path: &Path) -> Option<String> {
    if !fs::symlink_metadata(path).ok()?.is_file() {
        return None;
    }
    let mut text = String::new();
    let most = u64::try_from(CONTEXT_BYTES_MAX).unwrap_or(u64::MAX).saturating_add(1024);
    fs::File::open(path).ok()?.take(most).read_to_string(&mut text).ok()?;
    Some(text)
}
