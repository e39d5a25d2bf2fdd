//! What restricts a process beside its mounts: capabilities, system calls, writing, resources and network.

pub(crate) mod capability;
pub(crate) mod control_group;
pub(crate) mod limits;
pub(crate) mod loopback;
pub(crate) mod syscalls;
pub(crate) mod write_limit;
