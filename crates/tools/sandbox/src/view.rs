//! What of the file system is seen, and what of it can be changed: the mounts.
//!
//! Nothing is unmounted or moved. The roots and the private temp folder are mounted over
//! themselves, everything else becomes read-only where it is, and what must not be seen is mounted
//! over. The order matters: a place is opened before it is covered.

use std::fs::{self, File};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode as FileMode, OFlags, open};
use rustix::io::Errno;
use rustix::mount::{
    MountFlags, MountPropagationFlags, mount, mount_bind_recursive, mount_change, mount_remount,
};

use crate::device::{self, NOTHING};
use crate::mount_table::mounts;
use crate::sandbox_error::{NAMESPACES_REMEDY, Step};
use crate::shield::{Shield, look};
use crate::{Guard, Policy, SandboxError};

/// What may be needed of `/run`: the programs of some systems.
const KEPT_IN_RUN: [&str; 2] = ["/run/current-system", "/run/opengl-driver"];

/// How names are resolved; often it leads to `/run`.
const RESOLVER: &str = "/etc/resolv.conf";

/// Most sockets that are hidden one by one. With more there is no sandbox.
const LISTENERS_MAX: usize = 4096;

/// What has to stay true of the view for as long as it is used.
#[derive(Debug, Default)]
pub(crate) struct View {
    /// Where writing is allowed.
    pub(crate) writable: Vec<PathBuf>,
    /// Places that are mounted over. One that is not any more has been replaced from outside.
    pub(crate) covered: Vec<PathBuf>,
    /// Places that would have to be covered if they were there.
    pub(crate) absent: Vec<PathBuf>,
    /// `/tmp`, `/run` and the like: what is in them belongs to whoever is inside.
    private: Vec<PathBuf>,
}

impl View {
    /// Builds the view in the mount namespace of this process, which must be its own.
    pub(crate) fn build(
        policy: &Policy,
        shields: &[Shield],
        listeners: &[PathBuf],
    ) -> Result<Self, SandboxError> {
        mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)
            .map_err(not_allowed)?;
        let mut view = Self::default();
        let tmp = held(&over_itself(&policy.tmp)?)?;
        let mut shown = Vec::new();
        for root in outermost_first(&policy.roots) {
            if policy.mode.writes_roots() {
                view.covered.push(over_itself(&root)?);
                view.writable.push(root.clone());
            }
            shown.push((held(&root)?, root));
        }
        read_only_but(&view.writable, &policy.tmp)?;
        for path in &policy.readable {
            shown.push((held(path)?, path.clone()));
        }
        device::devices()?;
        processes()?;
        view.cover_private(&tmp, &shown)?;
        for shield in shields {
            view.raise(shield)?;
        }
        cover_listeners(listeners)?;
        std::env::set_current_dir("/").during("leave its folder")?;
        Ok(view)
    }

    /// Covers `/tmp` with the private folder and `/run` with nothing, and shows again what lies
    /// beneath them and belongs to the policy.
    fn cover_private(
        &mut self,
        tmp: &OwnedFd,
        shown: &[(OwnedFd, PathBuf)],
    ) -> Result<(), SandboxError> {
        let resolver = Path::new(RESOLVER).canonicalize().ok();
        let resolver = resolver.filter(|path| path.starts_with("/run"));
        let kept = KEPT_IN_RUN.into_iter().map(PathBuf::from).chain(resolver);
        let kept: Vec<_> = kept.filter_map(Kept::find).collect();
        for path in ["/run", "/var/run", "/tmp", "/var/tmp"] {
            let Ok(real) = Path::new(path).canonicalize() else { continue };
            if self.private.contains(&real) {
                continue;
            }
            if path.ends_with("run") {
                tmpfs(&real, MountFlags::empty(), c"size=1m,mode=755")?;
            } else {
                bind(&fd_path(tmp), &real)?;
                self.writable.push(real.clone());
            }
            self.private.push(real);
        }
        for kept in kept {
            kept.show()?;
        }
        for (fd, path) in shown.iter().filter(|(_, path)| self.is_private(path)) {
            fs::create_dir_all(path).during(format!("make `{}`", path.display()))?;
            bind(&fd_path(fd), path)?;
        }
        self.private
            .iter()
            .filter(|at| at.ends_with("run"))
            .try_for_each(|at| remount_read_only(at))
    }

    fn is_private(&self, path: &Path) -> bool {
        self.private.iter().any(|at| path.starts_with(at))
    }

    fn raise(&mut self, shield: &Shield) -> Result<(), SandboxError> {
        let path = &shield.path;
        let Some(found) = look(path) else {
            if shield.root.is_some() || !self.is_private(path) {
                self.absent.push(path.clone());
            }
            return Ok(());
        };
        for pin in shield.pins() {
            if !self.covered.iter().any(|covered| covered == pin) {
                self.covered.push(over_itself(pin)?);
            }
        }
        match shield.guard {
            Guard::ReadOnly => {
                over_itself(path)?;
                read_only_beneath(path)?;
            }
            Guard::Hidden if found.is_dir() => {
                tmpfs(path, MountFlags::RDONLY, c"size=4k,mode=555")?;
            }
            Guard::Hidden => bind(Path::new(NOTHING), path)?,
        }
        self.covered.push(path.clone());
        Ok(())
    }
}

/// Hides the sockets that are still seen.
fn cover_listeners(listeners: &[PathBuf]) -> Result<(), SandboxError> {
    let is_seen = |path: &&PathBuf| look(path).is_some_and(|found| found.file_type().is_socket());
    let seen: Vec<_> = listeners.iter().filter(is_seen).collect();
    if seen.len() > LISTENERS_MAX {
        return Err(SandboxError::Failed {
            step: "hide the sockets of other programs".to_owned(),
            reason: format!("there are {}, more than {LISTENERS_MAX}", seen.len()),
        });
    }
    seen.into_iter().try_for_each(|socket| bind(Path::new(NOTHING), socket))
}

/// Something in `/run` that is shown although the rest is not.
enum Kept {
    Link { at: PathBuf, to: PathBuf },
    Place { at: PathBuf, fd: OwnedFd, folder: bool },
}

impl Kept {
    fn find(at: PathBuf) -> Option<Self> {
        let found = look(&at)?;
        if found.is_symlink() {
            let to = fs::read_link(&at).ok()?;
            return Some(Self::Link { at, to });
        }
        let fd = held(&at).ok()?;
        Some(Self::Place { at, fd, folder: found.is_dir() })
    }

    fn show(self) -> Result<(), SandboxError> {
        let (Self::Link { at, .. } | Self::Place { at, .. }) = &self;
        let step = format!("keep `{}`", at.display());
        fs::create_dir_all(at.parent().unwrap_or(at)).during(&step)?;
        match &self {
            Self::Link { at, to } => symlink(to, at).during(&step),
            Self::Place { at, fd, folder } => {
                let made = if *folder { fs::create_dir(at) } else { File::create(at).map(drop) };
                made.during(&step)?;
                bind(&fd_path(fd), at)
            }
        }
    }
}

/// A `/proc` that shows this process namespace alone, and that nobody writes to.
fn processes() -> Result<(), SandboxError> {
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount("proc", "/proc", "proc", flags, None).map_err(|error| SandboxError::Unavailable {
        what: "a `/proc` of the sandbox's own",
        reason: error.to_string(),
        remedy: NAMESPACES_REMEDY,
    })?;
    // Older kernels have only the limit of processes per user.
    crate::limits::namespace_tasks();
    mount_remount("/proc", MountFlags::BIND | MountFlags::RDONLY | flags, "")
        .during("make `/proc` read-only")
}

fn outermost_first(roots: &[PathBuf]) -> Vec<PathBuf> {
    let mut roots = roots.to_vec();
    roots.sort();
    roots.dedup();
    roots
}

fn read_only_but(writable: &[PathBuf], tmp: &Path) -> Result<(), SandboxError> {
    remount(|at| !writable.iter().any(|root| at.starts_with(root)) && !at.starts_with(tmp))
}

fn read_only_beneath(path: &Path) -> Result<(), SandboxError> {
    remount(|at| at.starts_with(path))
}

fn remount_read_only(path: &Path) -> Result<(), SandboxError> {
    remount(|at| at == path)
}

/// Makes the mounts read-only that `chosen` chooses.
fn remount(chosen: impl Fn(&Path) -> bool) -> Result<(), SandboxError> {
    let table = fs::read("/proc/self/mountinfo").during("read its mounts")?;
    let table: Vec<_> = mounts(&table).into_iter().filter(|mount| chosen(&mount.at)).collect();
    for mount in &table {
        let same = table.iter().filter(|other| other.at == mount.at);
        let all = same.map(|other| other.flags).fold(MountFlags::empty(), MountFlags::union);
        let set =
            |flags| mount_remount(&mount.at, MountFlags::BIND | MountFlags::RDONLY | flags, "");
        match set(mount.flags) {
            // Something else may be mounted here as well, and only the uppermost can be changed.
            Err(Errno::PERM) => set(all),
            answer => answer,
        }
        .or_else(ignore_unreachable)
        .during(format!("make `{}` read-only", mount.at.display()))?;
    }
    Ok(())
}

/// A mount that we do not reach by its path is not reached by anyone inside.
fn ignore_unreachable(error: Errno) -> Result<(), Errno> {
    const UNREACHABLE: [Errno; 7] = [
        Errno::ACCESS,
        Errno::INVAL,
        Errno::NOENT,
        Errno::NOTCONN,
        Errno::NOTDIR,
        Errno::STALE,
        Errno::NODEV,
    ];
    if UNREACHABLE.contains(&error) { Ok(()) } else { Err(error) }
}

/// Mounts a place over itself: a mount of its own, with rights of its own.
fn over_itself(path: &Path) -> Result<PathBuf, SandboxError> {
    bind(path, path)?;
    Ok(path.to_owned())
}

pub(crate) fn bind(source: &Path, target: &Path) -> Result<(), SandboxError> {
    mount_bind_recursive(source, target).during(format!(
        "mount `{}` on `{}`",
        source.display(),
        target.display()
    ))
}

pub(crate) fn tmpfs(
    target: &Path,
    flags: MountFlags,
    options: &std::ffi::CStr,
) -> Result<(), SandboxError> {
    mount("tmpfs", target, "tmpfs", flags | MountFlags::NOSUID | MountFlags::NODEV, options)
        .during(format!("cover `{}`", target.display()))
}

pub(crate) fn held(path: &Path) -> Result<OwnedFd, SandboxError> {
    open(path, OFlags::PATH | OFlags::CLOEXEC, FileMode::empty())
        .during(format!("open `{}`", path.display()))
}

/// The way to something that is open, whatever covers its path by now.
pub(crate) fn fd_path(fd: &OwnedFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", fd.as_raw_fd()))
}

fn not_allowed(error: Errno) -> SandboxError {
    SandboxError::Unavailable {
        what: "mounts in a user namespace",
        reason: error.to_string(),
        remedy: NAMESPACES_REMEDY,
    }
}
