//! The `context` of a control request: a text, or the path of an `.md` file in the project whose text it is.

use std::fs::File;
use std::io::Read;
use std::path::{Component, Path};

use antiphon_core::CONTEXT_BYTES_MAX;
use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fstat, openat, openat2};
use rustix::io::Errno;

use super::edit::front;

/// Folders below the project's root in which a path may begin.
const FOLDERS: [&str; 3] = ["", ".antiphon", ".ideai"];

/// The context that a request means. A file's front matter is left out: a request cannot grant anything.
/// The error says what to do.
pub(crate) fn resolve(root: &Path, context: &str) -> Result<String, String> {
    let Some(path) = as_path(context) else { return Ok(context.to_owned()) };
    let is_sentence = context.trim().contains(char::is_whitespace);
    if !path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir)) {
        if is_sentence {
            return Ok(context.to_owned());
        }
        return Err(format!(
            "`context`: `{context}` is not below the project: give a relative path, or the text itself"
        ));
    }
    for folder in FOLDERS {
        match read(&root.join(folder), path) {
            Ok(text) => {
                let header = front(&text).map_or(0, str::len);
                return Ok(text[header..].trim().to_owned());
            }
            Err(ReadError::Missing) => {}
            Err(ReadError::Unreadable(reason)) => {
                return Err(format!("`context`: `{context}` cannot be read: {reason}"));
            }
        }
    }
    if is_sentence {
        return Ok(context.to_owned());
    }
    Err(format!(
        "`context`: there is no file `{context}` in the project: write it first, or give the text itself"
    ))
}

/// A context of one line that ends in `.md`.
fn as_path(context: &str) -> Option<&Path> {
    let line = context.trim();
    let path = Path::new(line);
    let is_markdown = path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("md"));
    (is_markdown && !line.contains('\n')).then_some(path)
}

enum ReadError {
    Missing,
    Unreadable(String),
}

/// Reads a file below `folder`. A link that leads out of it is refused.
fn read(folder: &Path, path: &Path) -> Result<String, ReadError> {
    let failed = |error: Errno| match error {
        Errno::NOENT | Errno::NOTDIR => ReadError::Missing,
        Errno::XDEV => {
            ReadError::Unreadable("it is a link that leads out of its folder".to_owned())
        }
        other => ReadError::Unreadable(other.to_string()),
    };
    let directory = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = openat(CWD, folder, directory, Mode::empty()).map_err(failed)?;
    // A pipe without a writer must not block the reader.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let beneath = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    let file = openat2(&folder, path, flags, Mode::empty(), beneath).map_err(failed)?;
    let about = fstat(&file).map_err(failed)?;
    if FileType::from_raw_mode(about.st_mode) != FileType::RegularFile {
        return Err(ReadError::Unreadable("it is not a regular file".to_owned()));
    }
    let unreadable = |error: std::io::Error| ReadError::Unreadable(error.to_string());
    let mut text = String::new();
    let limit = CONTEXT_BYTES_MAX as u64 + 1;
    File::from(file).take(limit).read_to_string(&mut text).map_err(unreadable)?;
    if text.len() > CONTEXT_BYTES_MAX {
        let reason = format!("a context may have {CONTEXT_BYTES_MAX} bytes at most");
        return Err(ReadError::Unreadable(reason));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_path_is_read_and_everything_else_is_the_text() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("project");
        fs::create_dir_all(root.join("agents")).unwrap();
        fs::create_dir_all(root.join(".ideai/agents")).unwrap();
        fs::write(root.join("agents/dev.md"), "---\ntools: [bash]\n---\nYou build.\n").unwrap();
        fs::write(root.join(".ideai/agents/old.md"), "You were there.").unwrap();
        fs::write(folder.path().join("secret.md"), "secret").unwrap();
        symlink("../../secret.md", root.join("agents/out.md")).unwrap();
        fs::create_dir(root.join("folder.md")).unwrap();
        for (context, text) in [
            ("agents/dev.md", "You build."),
            ("./agents/dev.md", "You build."),
            (" agents/old.md ", "You were there."),
            ("You build.", "You build."),
            ("# You\n\nread README.md", "# You\n\nread README.md"),
            ("Do what is in README.md", "Do what is in README.md"),
        ] {
            assert_eq!(resolve(&root, context).as_deref(), Ok(text), "{context}");
        }
        for (context, reason) in [
            ("agents/none.md", "there is no file"),
            ("../secret.md", "not below the project"),
            ("/etc/secret.md", "not below the project"),
            ("agents/out.md", "leads out of its folder"),
            ("folder.md", "not a regular file"),
        ] {
            let refused = resolve(&root, context).unwrap_err();
            assert!(refused.contains(reason), "{context}: {refused}");
        }
        fs::write(root.join("long.md"), "x".repeat(CONTEXT_BYTES_MAX + 1)).unwrap();
        assert!(resolve(&root, "long.md").unwrap_err().contains("at most"));
    }
}
