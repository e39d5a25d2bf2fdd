//! A `/dev` with the devices that programs expect and none that leads to hardware.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::Path;

use rustix::mount::{MountFlags, mount, mount_remount};

use crate::SandboxError;
use crate::mounts::{bind, fd_path, open_path, tmpfs};
use crate::sandbox_error::Step;

const DEVICES: [&str; 6] = ["full", "null", "random", "tty", "urandom", "zero"];

const LINKS: [(&str, &str); 5] = [
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
    ("ptmx", "pts/ptmx"),
];

/// An empty read-only file, mounted over hidden files.
pub(crate) const NOTHING: &str = "/dev/.nothing";

/// Mounts a small `/dev` over the one of the machine.
pub(crate) fn devices() -> Result<(), SandboxError> {
    let dev = Path::new("/dev");
    let step = "make a `/dev` of its own";
    // Opened before they are covered.
    let devices: Vec<_> =
        DEVICES.iter().filter_map(|name| Some((name, open_path(&dev.join(name)).ok()?))).collect();
    tmpfs(dev, MountFlags::NOEXEC, c"size=1m,mode=755")?;
    for (name, fd) in devices {
        File::create(dev.join(name)).during(step)?;
        bind(&fd_path(&fd), &dev.join(name))?;
    }
    for (name, target) in LINKS {
        symlink(target, dev.join(name)).during(step)?;
    }
    File::create(NOTHING).during(step)?;
    fs::create_dir(dev.join("shm")).during(step)?;
    tmpfs(&dev.join("shm"), MountFlags::empty(), c"size=512m,mode=1777")?;
    fs::create_dir(dev.join("pts")).during(step)?;
    let flags = MountFlags::NOSUID | MountFlags::NOEXEC;
    // If it fails there are no terminals inside, which few commands need.
    let _ = mount("devpts", "/dev/pts", "devpts", flags, c"newinstance,ptmxmode=0666,mode=620");
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount_remount(dev, MountFlags::BIND | MountFlags::RDONLY | flags, "").during(step)
}
