//! A requester's folder: reading requests, writing responses, setting files aside.
//!
//! Everything goes through the folder's descriptor and follows no link, so nothing outside can be
//! read, written or moved. What is written appears whole or not at all. Everything here blocks.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;

use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, Stat, fstat, fsync, mkdirat, openat, renameat, statat,
    unlinkat,
};
use rustix::io::Errno;
use rustix::process::getuid;

use crate::base::{check_mode, check_owner, is_folder, names, open_folder};
use crate::fault::Fault;
use crate::name::{REJECTED, RequestName, drop_temp, response_to};
use crate::rejected::Rejected;
use crate::response::{RESPONSE_BYTES_MAX, Response};
use crate::stamp::{Mark, Stamp};
use crate::whole::{clean, rename_if_free, write_new, write_whole};

/// A requester's folder.
#[derive(Debug)]
pub(crate) struct Drawer {
    descriptor: OwnedFd,
    owner: u32,
    identity: (u64, u64),
}

/// What a look at a file found.
#[derive(Debug)]
pub(crate) enum Sight {
    Gone,
    /// Not to be read, as it is now.
    Bad(Stamp, Fault),
    Read(Stamp, Vec<u8>),
}

impl Drawer {
    /// Opens a requester's folder. Says why it cannot be used.
    pub(crate) fn open(base: &OwnedFd, requester: &OsStr, owner: u32) -> Result<Self, String> {
        let descriptor = open_folder(base, requester).map_err(|error| match error {
            Errno::NOTDIR | Errno::LOOP => "it is a link, or no folder".to_owned(),
            other => other.to_string(),
        })?;
        let about = fstat(&descriptor).map_err(|error| error.to_string())?;
        check_folder(&about, owner)?;
        Ok(Self { descriptor, owner, identity: (about.st_dev, about.st_ino) })
    }

    /// Whether this is still the folder of that name, and still good.
    pub(crate) fn is_at(&self, base: &OwnedFd, requester: &OsStr) -> bool {
        statat(base, requester, AtFlags::SYMLINK_NOFOLLOW).is_ok_and(|about| {
            (about.st_dev, about.st_ino) == self.identity
                && check_folder(&about, self.owner).is_ok()
        })
    }

    /// What is in it, and whether that is all.
    pub(crate) fn names(&self) -> io::Result<(Vec<OsString>, bool)> {
        // A descriptor has one place to read at; each list begins at the beginning with its own.
        Ok(names(&open_folder(&self.descriptor, ".")?)?)
    }

    /// The state of a file; `None` when it is not there.
    pub(crate) fn stamp(&self, name: &OsStr) -> Option<Stamp> {
        let about = statat(&self.descriptor, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        Some(Stamp::of(&about))
    }

    /// Reads a file that may be a request.
    pub(crate) fn read(&self, name: &OsStr, bytes_max: usize) -> io::Result<Sight> {
        let Ok(about) = statat(&self.descriptor, name, AtFlags::SYMLINK_NOFOLLOW) else {
            return Ok(Sight::Gone);
        };
        if let Err(fault) = check_file(&about, self.owner, bytes_max) {
            return Ok(Sight::Bad(Stamp::of(&about), fault));
        }
        let file = match self.open_file(name) {
            Ok(file) => file,
            Err(Errno::NOENT) => return Ok(Sight::Gone),
            // Put in its place since: looked at anew.
            Err(Errno::LOOP) => return Ok(Sight::Bad(Stamp::of(&about), link())),
            Err(Errno::ACCESS) => {
                let fault = Fault::forbidden("it cannot be read: `chmod u+r` it");
                return Ok(Sight::Bad(Stamp::of(&about), fault));
            }
            Err(error) => return Err(error.into()),
        };
        // What counts is what was opened.
        let about = fstat(&file)?;
        let stamp = Stamp::of(&about);
        if let Err(fault) = check_file(&about, self.owner, bytes_max) {
            return Ok(Sight::Bad(stamp, fault));
        }
        let bytes = read_at_most(file, bytes_max)?;
        if bytes.len() > bytes_max {
            return Ok(Sight::Bad(stamp, too_large(bytes_max)));
        }
        Ok(Sight::Read(stamp, bytes))
    }

    /// The response of that name, if there is one of ours.
    pub(crate) fn response(&self, name: &str) -> Option<Response> {
        let file = self.open_file(OsStr::new(name)).ok()?;
        check_file(&fstat(&file).ok()?, getuid().as_raw(), RESPONSE_BYTES_MAX).ok()?;
        let bytes = read_at_most(file, RESPONSE_BYTES_MAX).ok()?;
        serde_json::from_slice(&bytes).ok()
    }

    /// The same, and which file it answered.
    pub(crate) fn answered_file(&self, name: &str) -> Option<(Mark, Response)> {
        let response = self.response(name).filter(|it| response_to(&it.request) == name)?;
        Some((Mark::parse(response.file.as_deref()?)?, response))
    }

    /// Writes a response: whole, durable, and in place of whatever has its name.
    pub(crate) fn write_response(&self, name: &str, response: &Response) -> io::Result<()> {
        let mut text = serde_json::to_vec_pretty(response)?;
        text.push(b'\n');
        write_whole(&self.descriptor, name, &text)
    }

    /// Puts a request in: written under a hidden name, durable, then renamed to a name that is
    /// free.
    pub(crate) fn drop_in(&self, name: &str, text: &[u8]) -> io::Result<()> {
        let hidden = drop_temp();
        let dropped = write_new(&self.descriptor, &hidden, text)
            .and_then(|()| Ok(rename_if_free(&self.descriptor, &hidden, &self.descriptor, name)?));
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

    /// Killed while a response followed a request that was renamed, there are two of it: the one whose
    /// request has that name no more is taken away. Says which name that file has.
    pub(crate) fn keep_one(&self, mark: Mark, one: Response, before: &str) -> String {
        let has = |name: &str| self.stamp(OsStr::new(name)).is_some_and(|now| now.mark == mark);
        let is_gone = |name: &str| self.stamp(OsStr::new(name)).is_none();
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

    /// Takes away what nobody will finish, here and among the rejected.
    pub(crate) fn clean(&self, names: &[OsString], now_ns: i128) {
        clean(&self.descriptor, names, now_ns);
        if names.iter().any(|name| name == REJECTED)
            && let Ok(rejected) = self.rejected()
            && let Ok((names, _)) = self::names(&rejected.descriptor)
        {
            clean(&rejected.descriptor, &names, now_ns);
        }
    }

    /// The folder of the rejected.
    pub(crate) fn rejected(&self) -> io::Result<Rejected> {
        match mkdirat(&self.descriptor, REJECTED, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        let descriptor = open_folder(&self.descriptor, REJECTED)?;
        check_folder(&fstat(&descriptor)?, getuid().as_raw()).map_err(io::Error::other)?;
        Ok(Rejected { descriptor })
    }

    /// Moves a file to the rejected, unless it is another by now: then it stays where it is.
    pub(crate) fn set_aside(
        &self,
        name: &RequestName,
        mark: Mark,
        rejected: &Rejected,
        place: &str,
    ) -> io::Result<()> {
        match renameat(&self.descriptor, &name.file, &rejected.descriptor, place) {
            Ok(()) => {}
            Err(Errno::NOENT) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
        let moved = statat(&rejected.descriptor, place, AtFlags::SYMLINK_NOFOLLOW)?;
        if Stamp::of(&moved).mark != mark {
            // Somebody put another in its place at the last moment. If there is a third by now,
            // that one counts.
            let _ = rename_if_free(&rejected.descriptor, place, &self.descriptor, &name.file);
        }
        fsync(&rejected.descriptor)?;
        Ok(fsync(&self.descriptor)?)
    }

    fn open_file(&self, name: &OsStr) -> Result<OwnedFd, Errno> {
        // A pipe that nobody writes to must not hold up its reader.
        let flags =
            OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        openat(&self.descriptor, name, flags, Mode::empty())
    }
}

fn check_folder(about: &Stat, owner: u32) -> Result<(), String> {
    if !is_folder(about) {
        return Err("it is a link, or no folder".to_owned());
    }
    check_owner(about, owner)?;
    check_mode(about)
}

fn check_file(about: &Stat, owner: u32, bytes_max: usize) -> Result<(), Fault> {
    match FileType::from_raw_mode(about.st_mode) {
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
    check_owner(about, owner).map_err(Fault::forbidden)?;
    check_mode(about).map_err(Fault::forbidden)?;
    match usize::try_from(about.st_size) {
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
