//! The mounts: which part of the file system is visible, and which part is writable.
//!
//! Nothing is unmounted or moved. The roots and the private temp folder are mounted over
//! themselves, everything else becomes read-only where it is, and hidden paths are mounted over.
//! The order matters: a path is opened before it is covered.

pub(crate) mod device;
pub(crate) mod mount_table;
pub(crate) mod placeholder;
pub(crate) mod tmp_folder;

use std::fs::{self, File};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode as FileMode, OFlags, open};
use rustix::io::Errno;
use rustix::mount::{
    MountFlags, MountPropagationFlags, mount, mount_bind_recursive, mount_change, mount_remount,
};

use crate::mount_table::mounts;
use crate::protected_path::{ProtectedPath, metadata_of};
use crate::repository::Repository;
use crate::sandbox_error::{NAMESPACES_REMEDY, Step};
use crate::{Guard, Policy, SandboxError};
use device::NOTHING;

/// Paths in `/run` that stay visible: the programs of some systems.
const VISIBLE_IN_RUN: [&str; 2] = ["/run/current-system", "/run/opengl-driver"];

/// The resolver configuration, often a link into `/run`.
const RESOLVER: &str = "/etc/resolv.conf";

/// Most sockets that are hidden one by one. With more, the sandbox is refused.
const LISTENERS_MAX: usize = 4096;

/// The paths that must stay as they are while the view is used.
#[derive(Debug, Default)]
pub(crate) struct View {
    /// Writable paths.
    pub(crate) writable: Vec<PathBuf>,
    /// Mount points. One that is no longer a mount point has been replaced from outside.
    pub(crate) covered: Vec<PathBuf>,
    /// Missing paths that would have to be covered if they existed.
    pub(crate) absent: Vec<PathBuf>,
    /// `/tmp`, `/run` and similar folders, whose contents belong to the sandbox.
    private: Vec<PathBuf>,
    /// Paths that are protected, and with each everything below it.
    protected: Vec<PathBuf>,
}

impl View {
    /// Builds the view in the mount namespace of this process, which must be its own.
    pub(crate) fn build(
        policy: &Policy,
        protected_paths: &[ProtectedPath],
        repository: Option<&Repository>,
        listeners: &[PathBuf],
    ) -> Result<Self, SandboxError> {
        mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)
            .map_err(not_allowed)?;
        let mut view = Self::default();
        let tmp = open_path(&over_itself(&policy.tmp)?)?;
        let mut shown = Vec::new();
        for root in outermost_first(&policy.roots) {
            if policy.mode.writes_roots() {
                view.covered.push(over_itself(&root)?);
                view.writable.push(root.clone());
            }
            shown.push((open_path(&root)?, root));
        }
        let mut opened = Vec::new();
        for folder in repository.iter().flat_map(|repository| &repository.writable) {
            let fd = folder.open_again()?;
            bind(&fd_path(&fd), &fd_path(&fd))?;
            view.covered.push(folder.path.clone());
            view.writable.push(folder.path.clone());
            opened.push((folder.open_again()?, folder));
            shown.push((folder.open_again()?, folder.path.clone()));
        }
        read_only_but(&view.writable, &policy.tmp)?;
        for path in &policy.readable {
            shown.push((open_path(path)?, path.clone()));
        }
        device::devices()?;
        processes()?;
        view.cover_private(&tmp, &shown)?;
        let is_in_repository = |protected: &&ProtectedPath| {
            opened.iter().any(|(_, folder)| protected.path.starts_with(&folder.path))
        };
        for protected in protected_paths.iter().filter(|path| !is_in_repository(path)) {
            view.protect(protected)?;
        }
        // What contains them may have become read-only meanwhile.
        for (fd, folder) in &opened {
            bind(&fd_path(fd), &fd_path(&folder.open_again()?))?;
        }
        for path in repository.iter().flat_map(|repository| repository.kept_paths()) {
            view.keep(&path)?;
        }
        for protected in protected_paths.iter().filter(is_in_repository) {
            view.protect(protected)?;
        }
        cover_listeners(listeners)?;
        std::env::set_current_dir("/").during("leave its folder")?;
        Ok(view)
    }

    /// Covers `/tmp` with the private folder and `/run` with an empty one, and shows again the
    /// paths below them that belong to the policy.
    fn cover_private(
        &mut self,
        tmp: &OwnedFd,
        shown: &[(OwnedFd, PathBuf)],
    ) -> Result<(), SandboxError> {
        let resolver = Path::new(RESOLVER).canonicalize().ok();
        let resolver = resolver.filter(|path| path.starts_with("/run"));
        let entry = VISIBLE_IN_RUN.into_iter().map(PathBuf::from).chain(resolver);
        let entry: Vec<_> = entry.filter_map(RunEntry::find).collect();
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
        for entry in entry {
            entry.show()?;
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

    /// Lets no program be started or loaded from the writable folders.
    pub(crate) fn refuse_programs(&mut self) -> Result<(), SandboxError> {
        remount(MountFlags::NOEXEC, |at| self.writable.iter().any(|folder| at.starts_with(folder)))
    }

    /// Whether a path is in a folder whose contents belong to the sandbox.
    pub(crate) fn is_private(&self, path: &Path) -> bool {
        self.private.iter().any(|at| path.starts_with(at))
    }

    /// Whether a path is protected, or something that contains it.
    pub(crate) fn protects(&self, path: &Path) -> bool {
        self.protected.iter().any(|protected| path.starts_with(protected))
    }

    /// Makes a path in a writable repository read-only. It exists, if only as a placeholder.
    fn keep(&mut self, path: &Path) -> Result<(), SandboxError> {
        self.covered.push(over_itself(path)?);
        self.protected.push(path.to_owned());
        read_only_below(path)
    }

    fn protect(&mut self, protected: &ProtectedPath) -> Result<(), SandboxError> {
        let path = &protected.path;
        let Some(found) = metadata_of(path) else {
            if protected.root.is_some() || !self.is_private(path) {
                self.absent.push(path.clone());
            }
            return Ok(());
        };
        for pin in protected.pins() {
            if !self.covered.iter().any(|covered| covered == pin) {
                self.covered.push(over_itself(pin)?);
            }
        }
        match protected.guard {
            Guard::ReadOnly => {
                over_itself(path)?;
                read_only_below(path)?;
            }
            Guard::Hidden if found.is_dir() => {
                tmpfs(path, MountFlags::RDONLY, c"size=4k,mode=555")?;
            }
            Guard::Hidden => bind(Path::new(NOTHING), path)?,
        }
        self.covered.push(path.clone());
        self.protected.push(path.clone());
        Ok(())
    }
}

/// Hides the sockets that are still visible.
fn cover_listeners(listeners: &[PathBuf]) -> Result<(), SandboxError> {
    let is_seen =
        |path: &&PathBuf| metadata_of(path).is_some_and(|found| found.file_type().is_socket());
    let seen: Vec<_> = listeners.iter().filter(is_seen).collect();
    if seen.len() > LISTENERS_MAX {
        return Err(SandboxError::Failed {
            step: "hide the sockets of other programs".to_owned(),
            reason: format!("there are {}, more than {LISTENERS_MAX}", seen.len()),
        });
    }
    seen.into_iter().try_for_each(|socket| bind(Path::new(NOTHING), socket))
}

/// A path in `/run` that stays visible.
enum RunEntry {
    Link { at: PathBuf, to: PathBuf },
    Path { at: PathBuf, fd: OwnedFd, folder: bool },
}

impl RunEntry {
    fn find(at: PathBuf) -> Option<Self> {
        let found = metadata_of(&at)?;
        if found.is_symlink() {
            let to = fs::read_link(&at).ok()?;
            return Some(Self::Link { at, to });
        }
        let fd = open_path(&at).ok()?;
        Some(Self::Path { at, fd, folder: found.is_dir() })
    }

    fn show(self) -> Result<(), SandboxError> {
        let (Self::Link { at, .. } | Self::Path { at, .. }) = &self;
        let step = format!("keep `{}`", at.display());
        fs::create_dir_all(at.parent().unwrap_or(at)).during(&step)?;
        match &self {
            Self::Link { at, to } => symlink(to, at).during(&step),
            Self::Path { at, fd, folder } => {
                let made = if *folder { fs::create_dir(at) } else { File::create(at).map(drop) };
                made.during(&step)?;
                bind(&fd_path(fd), at)
            }
        }
    }
}

/// Mounts a read-only `/proc` that shows only this PID namespace.
fn processes() -> Result<(), SandboxError> {
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount("proc", "/proc", "proc", flags, None).map_err(|error| SandboxError::Unavailable {
        what: "a `/proc` of the sandbox's own",
        reason: error.to_string(),
        remedy: NAMESPACES_REMEDY,
    })?;
    // Older kernels have only the limit of processes per user.
    crate::limits::namespace_tasks();
    crate::limits::namespace_shared_memory();
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
    remount(MountFlags::RDONLY, |at| {
        !writable.iter().any(|root| at.starts_with(root)) && !at.starts_with(tmp)
    })
}

fn read_only_below(path: &Path) -> Result<(), SandboxError> {
    remount(MountFlags::RDONLY, |at| at.starts_with(path))
}

fn remount_read_only(path: &Path) -> Result<(), SandboxError> {
    remount(MountFlags::RDONLY, |at| at == path)
}

/// Adds `flag` to the selected mounts.
fn remount(flag: MountFlags, chosen: impl Fn(&Path) -> bool) -> Result<(), SandboxError> {
    let table = fs::read("/proc/self/mountinfo").during("read its mounts")?;
    let table: Vec<_> = mounts(&table).into_iter().filter(|mount| chosen(&mount.at)).collect();
    for mount in &table {
        let same = table.iter().filter(|other| other.at == mount.at);
        let all = same.map(|other| other.flags).fold(MountFlags::empty(), MountFlags::union);
        let set = |flags| mount_remount(&mount.at, MountFlags::BIND | flag | flags, "");
        match set(mount.flags) {
            // Another file system may be mounted here as well, and only the topmost can be changed.
            Err(Errno::PERM) => set(all),
            answer => answer,
        }
        .or_else(ignore_unreachable)
        .during(format!("restrict `{}`", mount.at.display()))?;
    }
    Ok(())
}

/// A mount that this process cannot reach by its path cannot be reached by any process inside.
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

/// Mounts a path over itself, so that it has its own mount flags.
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

pub(crate) fn open_path(path: &Path) -> Result<OwnedFd, SandboxError> {
    open(path, OFlags::PATH | OFlags::CLOEXEC, FileMode::empty())
        .during(format!("open `{}`", path.display()))
}

/// A path to an open descriptor that works even if its original path is covered.
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
