//! A control group for the processes of a sandbox, where the system lets this user make one (cgroup
//! v2, delegated). There the kernel itself limits memory and processes, between the checks of the
//! worker too. Without one the other limits remain.

use std::fs;
use std::path::{Path, PathBuf};

use crate::Limits;

/// Where control groups of version 2 are mounted.
const MOUNT: &str = "/sys/fs/cgroup";

/// The kernel stops processes a little above the limit, so that the worker, which can say why, is
/// mostly first.
const MARGIN_PERCENT: u64 = 10;

/// A control group. Removed on drop, when its last process has ended.
#[derive(Debug)]
pub(crate) struct ControlGroup(PathBuf);

impl ControlGroup {
    /// Makes a group beside that of this process. `None` where that is not possible.
    pub(crate) fn create(limits: &Limits) -> Option<Self> {
        let own = fs::read_to_string("/proc/self/cgroup").ok()?;
        Self::create_in(Path::new(MOUNT), &own, limits, std::process::id())
    }

    fn create_in(mount: &Path, own: &str, limits: &Limits, id: u32) -> Option<Self> {
        let own = own.lines().find_map(|line| line.strip_prefix("0::/"))?;
        // A group with processes cannot have groups with limits in it, except for the outermost.
        let beside = Path::new(own).parent().unwrap_or(Path::new(""));
        let folder = mount.join(beside);
        let controllers = fs::read_to_string(folder.join("cgroup.subtree_control")).ok()?;
        let has = |name| controllers.split_whitespace().any(|controller| controller == name);
        if !has("memory") || !has("pids") {
            return None;
        }
        let path = folder.join(format!("antiphon-{id}"));
        fs::create_dir(&path).ok()?;
        let group = Self(path);
        let memory = limits.memory_bytes();
        let memory = memory.saturating_add(memory / 100 * MARGIN_PERCENT);
        // Threads count as well.
        let tasks = limits.processes().saturating_mul(4);
        group.set("memory.max", memory)?;
        group.set("pids.max", tasks)?;
        // Not every kernel counts swapped pages.
        let _ = group.set("memory.swap.max", 0);
        Some(group)
    }

    /// Moves a process that has not started others into the group.
    pub(crate) fn add(&self, process: u32) -> Option<()> {
        self.set("cgroup.procs", process.into())
    }

    fn set(&self, name: &str, value: u64) -> Option<()> {
        fs::write(self.0.join(name), value.to_string()).ok()
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        // Fails if a process is left in it, which ends soon; an empty group costs little.
        let _ = fs::remove_dir(&self.0);
    }
}

/// The file in which the kernel counts what it did for lack of memory in the group of this process. It stays in the group.
#[derive(Debug)]
pub struct MemoryEvents(Option<PathBuf>);

impl MemoryEvents {
    /// Finds the file, if the group is one of Antiphon's.
    pub fn of_own_group() -> Self {
        let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        Self::of(Path::new(MOUNT), &own)
    }

    fn of(mount: &Path, own: &str) -> Self {
        let own = own.lines().find_map(|line| line.strip_prefix("0::/")).map(Path::new);
        let name = |path: &Path| path.file_name()?.to_str()?.strip_prefix("antiphon-").map(drop);
        let own = own.filter(|path| name(path).is_some());
        Self(own.map(|path| mount.join(path).join("memory.events")))
    }

    /// How many processes of the group the kernel has ended for lack of memory. `None` without a group of Antiphon's.
    pub fn ended_for_memory(&self) -> Option<u64> {
        let events = fs::read_to_string(self.0.as_ref()?).ok()?;
        events.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: &str = "1:name=systemd:/x\n0::/user.slice/app.slice/run.scope\n";

    fn limits() -> Limits {
        Limits { memory_bytes_max: Some(1000 << 20), processes_max: Some(100), ..Limits::default() }
    }

    #[test]
    fn a_delegated_group_gets_the_limits_and_the_process() {
        let mount = tempfile::tempdir().unwrap();
        let slice = mount.path().join("user.slice/app.slice");
        fs::create_dir_all(&slice).unwrap();
        fs::write(slice.join("cgroup.subtree_control"), "cpu memory pids\n").unwrap();
        let group = ControlGroup::create_in(mount.path(), OWN, &limits(), 7).unwrap();
        group.add(42).unwrap();
        let at = slice.join("antiphon-7");
        let read = |name: &str| fs::read_to_string(at.join(name)).unwrap();
        assert_eq!(read("memory.max"), (1100_u64 << 20).to_string());
        assert_eq!((read("pids.max"), read("cgroup.procs")), ("400".into(), "42".into()));
        fs::write(at.join("memory.events"), "low 0\noom 3\noom_kill 2\n").unwrap();
        let ended = |own: &str| MemoryEvents::of(mount.path(), own).ended_for_memory();
        assert_eq!(ended("0::/user.slice/app.slice/antiphon-7\n"), Some(2));
        assert_eq!(ended(OWN), None);
    }

    #[test]
    fn without_delegation_there_is_no_group() {
        let mount = tempfile::tempdir().unwrap();
        assert!(ControlGroup::create_in(mount.path(), OWN, &limits(), 7).is_none());
        let slice = mount.path().join("user.slice/app.slice");
        fs::create_dir_all(&slice).unwrap();
        fs::write(slice.join("cgroup.subtree_control"), "cpu\n").unwrap();
        assert!(ControlGroup::create_in(mount.path(), OWN, &limits(), 7).is_none());
        assert!(ControlGroup::create_in(mount.path(), "4:memory:/x\n", &limits(), 7).is_none());
        assert!(!slice.join("antiphon-7").exists());
    }
}
