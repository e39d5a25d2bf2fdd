//! Where a program finds its agent's context. Nobody's file is ever written over: a name that
//! somebody uses already is refused with the reason.
//!
//! The context is always in a file of the task's private folder, whose path is in the variable
//! `ANTIPHON_CONTEXT`. Beyond that it goes where the profile says: on the command line, or into a
//! file of the working folder that is taken away in the end.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use antiphon_core::TaskId;
use antiphon_private_file::{Durability, write_atomic};

use crate::place::{Place, is_free};
use crate::profile::TerminalProfile;

/// Longest context, in bytes. The kernel takes no argument beyond 131,071.
pub const CONTEXT_BYTES_MAX: usize = 100_000;

/// Longest argument that the kernel takes.
const ARGUMENT_BYTES_MAX: usize = 131_071;

/// The variable that names the file with the context.
const VARIABLE: &str = "ANTIPHON_CONTEXT";

/// How a file that we made begins; the task's id follows.
const OURS: &str = "<!-- antiphon: the context of task ";

/// What a program is told about its context.
#[derive(Debug, Default)]
pub(crate) struct Context {
    pub(crate) args: Vec<String>,
    pub(crate) env: Vec<(OsString, OsString)>,
    _placed: Option<Placed>,
}

/// Where to put it.
pub(crate) struct Where<'a> {
    pub(crate) profile: &'a TerminalProfile,
    pub(crate) place: &'a Place,
    /// The folder above the place.
    pub(crate) folder: &'a Path,
    pub(crate) root: &'a Path,
    pub(crate) task_id: &'a TaskId,
}

impl Context {
    /// Puts it there. An error is for whoever asked for the task.
    pub(crate) fn put(text: &str, to: &Where<'_>) -> Result<Self, String> {
        let text = text.replace('\0', "");
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        if text.len() > CONTEXT_BYTES_MAX {
            return Err(format!("its context has more than {CONTEXT_BYTES_MAX} bytes"));
        }
        let file = to.place.file("context.md");
        let failed = |error: io::Error| format!("its context cannot be written: {error}");
        write_atomic(&file, text.as_bytes(), Durability::Buffered).map_err(failed)?;
        let args = to.profile.context_args.iter().map(|word| fill(word, &text, &file));
        let args: Vec<String> = args.collect();
        if args.iter().any(|arg| arg.len() > ARGUMENT_BYTES_MAX) {
            return Err("its context is too long for a command line".to_owned());
        }
        let name = to.profile.context_file.as_ref();
        let placed = name.map(|name| Placed::put(&text, name, to)).transpose()?;
        Ok(Self { args, env: vec![(VARIABLE.into(), file.into())], _placed: placed })
    }
}

fn fill(word: &str, text: &str, file: &Path) -> String {
    // One after the other: what the context says is not looked through again.
    if word.contains("{text}") {
        word.replace("{text}", text)
    } else if word.contains("{quoted}") {
        // A delete character is the only one that JSON takes as it is and TOML does not.
        let quoted = serde_json::Value::from(text.replace('\u{7f}', "")).to_string();
        word.replace("{quoted}", &quoted)
    } else {
        word.replace("{file}", &file.to_string_lossy())
    }
}

/// A file of ours in the working folder.
#[derive(Debug)]
struct Placed {
    path: PathBuf,
    text: String,
}

impl Placed {
    fn put(text: &str, name: &str, to: &Where<'_>) -> Result<Self, String> {
        let path = to.root.join(name);
        let text = format!("{OURS}{}; taken away when it ends -->\n{text}", to.task_id);
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(0o600);
        let failed = |error: io::Error| format!("`{name}` cannot be written: {error}");
        match options.open(&path) {
            Ok(mut file) => file.write_all(text.as_bytes()).map_err(failed)?,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                if !is_left_over(&path, to) {
                    return Err(format!(
                        "its context belongs into `{name}`, and somebody's file is there: move it, \
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

impl Drop for Placed {
    fn drop(&mut self) {
        // Whoever changed it made it theirs.
        if read(&self.path).is_some_and(|found| found == self.text) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Whether we made it, for a task that nobody works on any more, or for this one.
fn is_left_over(path: &Path, to: &Where<'_>) -> bool {
    let Some(text) = read(path) else { return false };
    let Some(rest) = text.strip_prefix(OURS) else { return false };
    let Some((task, _)) = rest.split_once(';') else { return false };
    task == to.task_id.as_str() || is_free(to.folder, task)
}

/// `None` for what is no ordinary file, or longer than any of ours.
fn read(path: &Path) -> Option<String> {
    if !fs::symlink_metadata(path).ok()?.is_file() {
        return None;
    }
    let mut text = String::new();
    let most = u64::try_from(CONTEXT_BYTES_MAX).unwrap_or(u64::MAX).saturating_add(1024);
    fs::File::open(path).ok()?.take(most).read_to_string(&mut text).ok()?;
    Some(text)
}
