//! The folder of a requester: reads requests, writes responses, moves rejected files.
//!
//! All access goes through the folder's descriptor and follows no symbolic link, so nothing outside
//! can be read, written or moved. Writes are atomic. Everything here blocks.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;

use antiphon_private_file::create_new_at;
use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, Stat, fstat, fsync, mkdirat, openat, renameat, statat,
    unlinkat,
};
use rustix::io::Errno;
use rustix::process::getuid;

use crate::fault::Fault;
use crate::folder::atomic::{remove_leftovers, rename_no_replace, write_response_file};
use crate::folder::file_state::{FileId, FileState};
use crate::folder::name::{REJECTED, RequestName, drop_temp, response_to};
use crate::folder::rejected_folder::RejectedFolder;
use crate::folder::request_root::{
    GroupWrites, check_mode, check_owner, is_folder, names, open_folder,
};
use crate::response::{RESPONSE_BYTES_MAX, Response};

/// An open folder of a requester.
#[derive(Debug)]
pub(crate) struct RequesterFolder {
    descriptor: OwnedFd,
    owner: u32,
    group_writes: GroupWrites,
    /// Why none of its files is read: others may write to the folder. Each is answered with that.
    fault: Option<String>,
    identity: (u64, u64),
}

/// The result of reading a file.
#[derive(Debug)]
pub(crate) enum FileRead {
    Gone,
    /// The file must not be read in its current state.
    Refused(FileState, Fault),
    Content(FileState, Vec<u8>),
}

impl RequesterFolder {
    /// Opens the folder of a requester. The error says why it cannot be used.
    pub(crate) fn open(
        root: &OwnedFd,
        requester: &OsStr,
        owner: u32,
        group_writes: GroupWrites,
    ) -> Result<Self, String> {
        let descriptor = open_folder(root, requester).map_err(|error| match error {
            Errno::NOTDIR | Errno::LOOP => "it is a link, or no folder".to_owned(),
            other => other.to_string(),
        })?;
        let stat = fstat(&descriptor).map_err(|error| error.to_string())?;
        check_folder(&stat, owner)?;
        let fault = check_mode(&stat, group_writes).err();
        let identity = (stat.st_dev, stat.st_ino);
        Ok(Self { descriptor, owner, group_writes, fault, identity })
    }

    /// Why none of its files is read.
    pub(crate) fn fault(&self) -> Option<&str> {
        self.fault.as_deref()
    }

    /// Whether the folder of that name is still this one and still passes the checks.
    pub(crate) fn is_at(&self, root: &OwnedFd, requester: &OsStr) -> bool {
        statat(root, requester, AtFlags::SYMLINK_NOFOLLOW).is_ok_and(|stat| {
            (stat.st_dev, stat.st_ino) == self.identity
                && check_folder(&stat, self.owner).is_ok()
                && check_mode(&stat, self.group_writes).err() == self.fault
        })
    }

    /// The names in the folder, and whether the list is complete.
    pub(crate) fn names(&self) -> io::Result<(Vec<OsString>, bool)> {
        // A directory stream has one position: each listing opens its own.
        Ok(names(&open_folder(&self.descriptor, ".")?)?)
    }

    /// The state of a file; `None` when it does not exist.
    pub(crate) fn state(&self, name: &OsStr) -> Option<FileState> {
        let stat = statat(&self.descriptor, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        Some(FileState::of(&stat))
    }

    /// Reads a file that may be a request.
    pub(crate) fn read(&self, name: &OsStr, bytes_max: usize) -> io::Result<FileRead> {
        let Ok(stat) = statat(&self.descriptor, name, AtFlags::SYMLINK_NOFOLLOW) else {
            return Ok(FileRead::Gone);
        };
        if let Some(fault) = &self.fault {
            let fault =
                format!("the folder of the requester: {fault}, then drop the request again");
            return Ok(FileRead::Refused(FileState::of(&stat), Fault::forbidden(fault)));
        }
        if let Err(fault) = check_file(&stat, self.owner, self.group_writes, bytes_max) {
            return Ok(FileRead::Refused(FileState::of(&stat), fault));
        }
        let file = match self.open_file(name) {
            Ok(file) => file,
            Err(Errno::NOENT) => return Ok(FileRead::Gone),
            // Replaced by a link since the check: the next scan reads it again.
            Err(Errno::LOOP) => return Ok(FileRead::Refused(FileState::of(&stat), link())),
            Err(Errno::ACCESS) => {
                let fault = Fault::forbidden("it cannot be read: `chmod u+r` it");
                return Ok(FileRead::Refused(FileState::of(&stat), fault));
            }
            Err(error) => return Err(error.into()),
        };
        // The checks must hold for the opened file.
        let stat = fstat(&file)?;
        let state = FileState::of(&stat);
        if let Err(fault) = check_file(&stat, self.owner, self.group_writes, bytes_max) {
            return Ok(FileRead::Refused(state, fault));
        }
        let bytes = read_at_most(file, bytes_max)?;
        if bytes.len() > bytes_max {
            return Ok(FileRead::Refused(state, too_large(bytes_max)));
        }
        Ok(FileRead::Content(state, bytes))
    }

    /// Reads the response of that name, if this user wrote it.
    pub(crate) fn response(&self, name: &str) -> Option<Response> {
        let file = self.open_file(OsStr::new(name)).ok()?;
        let (stat, owner) = (fstat(&file).ok()?, getuid().as_raw());
        check_file(&stat, owner, GroupWrites::Refused, RESPONSE_BYTES_MAX).ok()?;
        let bytes = read_at_most(file, RESPONSE_BYTES_MAX).ok()?;
        serde_json::from_slice(&bytes).ok()
    }

    /// The response of that name, and the file that it answers.
    pub(crate) fn answered_file(&self, name: &str) -> Option<(FileId, Response)> {
        let response = self.response(name).filter(|it| response_to(&it.request) == name)?;
        Some((FileId::parse(response.file.as_deref()?)?, response))
    }

    /// Writes a response atomically and durably, and replaces an existing file of that name.
    pub(crate) fn write_response(&self, name: &str, response: &Response) -> io::Result<()> {
        let mut text = serde_json::to_vec_pretty(response)?;
        text.push(b'\n');
        write_response_file(&self.descriptor, name, &text)
    }

    /// Drops a request: written under a hidden name, synced, then renamed to a free name.
    pub(crate) fn drop_request(&self, name: &str, text: &[u8]) -> io::Result<()> {
        let hidden = drop_temp();
        let dropped = create_new_at(&self.descriptor, &hidden, text).and_then(|_| {
            Ok(rename_no_replace(&self.descriptor, &hidden, &self.descriptor, name)?)
        });
        if dropped.is_err() {
            self.remove(&hidden);
        }
        dropped?;
        Ok(fsync(&self.descriptor)?)
    }

    pub(crate) fn remove(&self, name: &str) {
        // It may be gone already.
        let _ = unlinkat(&self.descriptor, name, AtFlags::empty());
    }

    /// A kill while a response was moved to the new name of its request leaves two responses.
    /// Removes the one whose request no longer exists, and returns the name that the request has.
    pub(crate) fn remove_duplicate_response(
        &self,
        file_id: FileId,
        one: Response,
        before: &str,
    ) -> String {
        let has =
            |name: &str| self.state(OsStr::new(name)).is_some_and(|now| now.file_id == file_id);
        let is_gone = |name: &str| self.state(OsStr::new(name)).is_none();
        let name = one.request.clone();
        let (old, new) = match (has(&name), has(before)) {
            (true, false) => (before, name.as_str()),
            (false, true) => (name.as_str(), before),
            (true, true) | (false, false) => return name,
        };
        let is_same = self
            .response(&response_to(before))
            .is_some_and(|other| Response { request: before.to_owned(), ..one } == other);
        if is_same && is_gone(old) {
            self.remove(&response_to(old));
        }
        new.to_owned()
    }

    /// Removes abandoned temporary files, here and in the folder of rejected files.
    pub(crate) fn remove_leftovers(&self, names: &[OsString], now_ns: i128) {
        remove_leftovers(&self.descriptor, names, now_ns);
        if names.iter().any(|name| name == REJECTED)
            && let Ok(rejected) = self.rejected_folder()
            && let Ok((names, _)) = self::names(&rejected.descriptor)
        {
            remove_leftovers(&rejected.descriptor, &names, now_ns);
        }
    }

    /// Opens the folder of rejected files, and creates it if necessary.
    pub(crate) fn rejected_folder(&self) -> io::Result<RejectedFolder> {
        match mkdirat(&self.descriptor, REJECTED, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        let descriptor = open_folder(&self.descriptor, REJECTED)?;
        let stat = fstat(&descriptor)?;
        check_folder(&stat, getuid().as_raw()).map_err(io::Error::other)?;
        check_mode(&stat, GroupWrites::Refused).map_err(io::Error::other)?;
        Ok(RejectedFolder { descriptor })
    }

    /// Moves a file to the rejected files, unless it was replaced meanwhile.
    pub(crate) fn reject(
        &self,
        name: &RequestName,
        file_id: FileId,
        rejected: &RejectedFolder,
        target: &str,
    ) -> io::Result<()> {
        match renameat(&self.descriptor, &name.file, &rejected.descriptor, target) {
            Ok(()) => {}
            Err(Errno::NOENT) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
        let moved = statat(&rejected.descriptor, target, AtFlags::SYMLINK_NOFOLLOW)?;
        if FileState::of(&moved).file_id != file_id {
            // The file was replaced right before the move. If a third one exists by now, that one
            // stays.
            let _ = rename_no_replace(&rejected.descriptor, target, &self.descriptor, &name.file);
        }
        fsync(&rejected.descriptor)?;
        Ok(fsync(&self.descriptor)?)
    }

    fn open_file(&self, name: &OsStr) -> Result<OwnedFd, Errno> {
        // Without NONBLOCK, opening a pipe that has no writer would block.
        let flags =
            OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        openat(&self.descriptor, name, flags, Mode::empty())
    }
}

fn check_folder(stat: &Stat, owner: u32) -> Result<(), String> {
    if !is_folder(stat) {
        return Err("it is a link, or no folder".to_owned());
    }
    check_owner(stat, owner)
}

fn check_file(
    stat: &Stat,
    owner: u32,
    group_writes: GroupWrites,
    bytes_max: usize,
) -> Result<(), Fault> {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => {}
        FileType::Symlink => return Err(link()),
        FileType::Directory
        | FileType::Fifo
        | FileType::Socket
        | FileType::CharacterDevice
        | FileType::BlockDevice
        | FileType::Unknown => {
            return Err(Fault::forbidden("it is not a regular file: put a file here"));
        }
    }
    check_owner(stat, owner).map_err(Fault::forbidden)?;
    check_mode(stat, group_writes).map_err(Fault::forbidden)?;
    match usize::try_from(stat.st_size) {
        Ok(bytes) if bytes <= bytes_max => Ok(()),
        Ok(_) | Err(_) => Err(too_large(bytes_max)),
    }
}

fn link() -> Fault {
    Fault::forbidden("it is a link: put the file itself here")
}

fn too_large(bytes_max: usize) -> Fault {
    Fault::invalid(format_args!("a request may have {bytes_max} bytes at most"))
}

fn read_at_most(file: OwnedFd, bytes_max: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let limit = u64::try_from(bytes_max).unwrap_or(u64::MAX).saturating_add(1);
    File::from(file).take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}
