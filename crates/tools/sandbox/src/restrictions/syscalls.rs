//! Seccomp: forbidden system calls. Everything else is allowed; the list has the calls that serve
//! to leave the sandbox or to reach other processes, and little else.

use std::collections::BTreeMap;

use nix::libc;
use rustix::process::geteuid;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, apply_filter, sock_filter,
};

use crate::policy::Runs;
use crate::sandbox_error::Step;
use crate::{SandboxError, limits};

/// Refused with `EPERM`.
const REFUSED: &[i64] = &[
    // Other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    // Mounts and namespaces.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_setns,
    libc::SYS_open_by_handle_at,
    libc::SYS_fanotify_init,
    libc::SYS_quotactl,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    // Parts of the kernel with a history of exploits.
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_kexec_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_reboot,
    libc::SYS_acct,
    libc::SYS_syslog,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_vhangup,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_kexec_file_load,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_modify_ldt,
];

/// Flags of `clone` and `unshare` that create a namespace. The flag of the time namespace shares
/// its bit with the signal argument of `clone`, so `clone` cannot request it.
const NAMESPACES: [i32; 7] = [
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWCGROUP,
];

/// Socket families that may be opened.
const FAMILIES: [i32; 4] = [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];

/// The bits of a socket's type that are not flags.
const SOCKET_KIND: u64 = 0xf;

/// The kinds of sockets that send to the other end of their pair only.
const CONNECTED: [i32; 2] = [libc::SOCK_STREAM, libc::SOCK_SEQPACKET];

/// `TIOCSTI` and `TIOCLINUX`: requests to a terminal that type for its user.
const TYPING: [u64; 2] = [0x5412, 0x541c];

/// The bit for a file that runs with the rights of its owner.
const RUNS_AS_OWNER: u64 = 0o4000;

/// The bit for a file that runs with the rights of its group. On a folder it means that new files get its group.
const RUNS_AS_GROUP: u64 = 0o2000;

/// Calls that set the mode of a file, with the argument that has it.
const MODES: &[(i64, u8)] = &[
    (libc::SYS_fchmod, 1),
    (libc::SYS_fchmodat, 2),
    (libc::SYS_mknodat, 2),
    (FCHMODAT2, 2),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_chmod, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_creat, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mknod, 1),
];

/// `fchmodat2`, which has the same number on every processor.
const FCHMODAT2: i64 = 452;

/// Calls that may make a file, with the argument that has the flags. The mode follows it.
const OPENS: &[(i64, u8)] = &[
    (libc::SYS_openat, 2),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_open, 1),
];

/// `O_CREAT` and the bit of `O_TMPFILE`.
const MAKING: [u64; 2] = [0o100, 0o20_000_000];

/// Requests of `fallocate` that give space back.
const FALLOC_FL_PUNCH_HOLE: u64 = 2;
const FALLOC_FL_COLLAPSE_RANGE: u64 = 8;

/// Most bytes of one segment where their sum cannot be limited; there can be 4096 of them.
const SEGMENT_BYTES_MAX: u64 = 64 << 10;

/// Which Unix sockets may be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UnixFamily {
    /// Every one.
    Open,
    /// Only connected pairs of streams. A pair of datagram sockets can send to any address.
    PairsOnly,
}

/// Restricts this process and every process it starts, irrevocably.
pub(crate) fn restrict(unix: UnixFamily, runs: Runs) -> Result<(), SandboxError> {
    let step = "restrict system calls with seccomp";
    // `clone3` hides its flags from filters. A caller that gets `ENOSYS` falls back to `clone`.
    let mut unknown = BTreeMap::from([(libc::SYS_clone3, Vec::new())]);
    let mut refused = refused(unix).during(step)?;
    if !limits::shared_memory_is_limited() {
        refused.insert(libc::SYS_shmget, vec![large_segment().during(step)?]);
    }
    // Ordinary users share folders by the bit for the group, and a filter cannot tell folders from files.
    let privileged: &[u64] =
        if geteuid().is_root() { &[RUNS_AS_OWNER, RUNS_AS_GROUP] } else { &[RUNS_AS_OWNER] };
    refused.extend(privileged_files(privileged).during(step)?);
    match runs {
        // It hides the mode of a new file.
        Runs::Commands => drop(unknown.insert(libc::SYS_openat2, Vec::new())),
        Runs::TaskWorker => {}
    }
    let unsupported = unwritten_space().during(step)?;
    for (rules, errno) in
        [(unknown, libc::ENOSYS), (refused, libc::EPERM), (unsupported, libc::EOPNOTSUPP)]
    {
        apply_filter(&filter(rules, errno).during(step)?).during(step)?;
    }
    Ok(())
}

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

fn refused(unix: UnixFamily) -> Result<Rules, seccompiler::BackendError> {
    let mut rules: Rules = REFUSED.iter().map(|number| (*number, Vec::new())).collect();
    let namespace = |bit: &i32| {
        let bit = u64::from(bit.cast_unsigned());
        SeccompRule::new(vec![condition(0, SeccompCmpOp::MaskedEq(bit), bit)?])
    };
    let namespaces = NAMESPACES.iter().map(namespace).collect::<Result<Vec<_>, _>>()?;
    rules.insert(libc::SYS_clone, namespaces.clone());
    let time = u64::from(libc::CLONE_NEWTIME.cast_unsigned());
    let time = SeccompRule::new(vec![condition(0, SeccompCmpOp::MaskedEq(time), time)?])?;
    rules.insert(libc::SYS_unshare, namespaces.into_iter().chain([time]).collect());
    let typing = |request: &u64| SeccompRule::new(vec![condition(1, SeccompCmpOp::Eq, *request)?]);
    rules.insert(libc::SYS_ioctl, TYPING.iter().map(typing).collect::<Result<_, _>>()?);
    let mut families = sockets()?;
    let number = |value: i32| u64::from(value.cast_unsigned());
    match unix {
        UnixFamily::Open => {}
        UnixFamily::PairsOnly => {
            let is_unix = condition(0, SeccompCmpOp::Eq, number(libc::AF_UNIX))?;
            families.push(SeccompRule::new(vec![is_unix.clone()])?);
            let is_other = condition(0, SeccompCmpOp::Ne, number(libc::AF_UNIX))?;
            let mut pairs = vec![SeccompRule::new(vec![is_other])?];
            // The kernel makes datagram sockets of other kinds, too.
            let connected = CONNECTED.map(number);
            for kind in (0..=SOCKET_KIND).filter(|kind| !connected.contains(kind)) {
                let is_kind = condition(1, SeccompCmpOp::MaskedEq(SOCKET_KIND), kind)?;
                pairs.push(SeccompRule::new(vec![is_unix.clone(), is_kind])?);
            }
            rules.insert(libc::SYS_socketpair, pairs);
        }
    }
    rules.insert(libc::SYS_socket, families);
    Ok(rules)
}

/// Files with one of these bits: every user of the machine could run them with the rights of this one.
fn privileged_files(bits: &[u64]) -> Result<Rules, seccompiler::BackendError> {
    let has = |argument, bits| condition(argument, SeccompCmpOp::MaskedEq(bits), bits);
    let mut rules = Rules::new();
    for (number, mode) in MODES {
        let rule = |bit: &u64| SeccompRule::new(vec![has(*mode, *bit)?]);
        rules.insert(*number, bits.iter().map(rule).collect::<Result<_, _>>()?);
    }
    for (number, flags) in OPENS {
        let making = MAKING.iter().flat_map(|making| bits.iter().map(|bit| (*making, *bit)));
        // Without these flags the mode is not set.
        let rule =
            |(making, bit)| SeccompRule::new(vec![has(*flags, making)?, has(flags + 1, bit)?]);
        rules.insert(*number, making.map(rule).collect::<Result<_, _>>()?);
    }
    Ok(rules)
}

/// A large segment of shared memory of System V. As many small ones as a namespace can have are as much
/// as it may have.
fn large_segment() -> Result<SeccompRule, seccompiler::BackendError> {
    let large = SeccompCmpOp::Gt;
    let size = SeccompCondition::new(1, SeccompCmpArgLen::Qword, large, SEGMENT_BYTES_MAX)?;
    SeccompRule::new(vec![size])
}

/// Space that is taken without being written is counted nowhere. Programs write instead, or do
/// without.
fn unwritten_space() -> Result<Rules, seccompiler::BackendError> {
    let gives_back = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_COLLAPSE_RANGE;
    let takes = condition(1, SeccompCmpOp::MaskedEq(gives_back), 0)?;
    Ok(Rules::from([(libc::SYS_fallocate, vec![SeccompRule::new(vec![takes])?])]))
}

/// Refuses every other family, and every netlink protocol except the one for interfaces and
/// addresses.
fn sockets() -> Result<Vec<SeccompRule>, seccompiler::BackendError> {
    let number = |value: i32| u64::from(value.cast_unsigned());
    let others = FAMILIES.map(|family| condition(0, SeccompCmpOp::Ne, number(family)));
    let others = others.into_iter().collect::<Result<Vec<_>, _>>()?;
    let netlink = vec![
        condition(0, SeccompCmpOp::Eq, number(libc::AF_NETLINK))?,
        condition(2, SeccompCmpOp::Ne, number(libc::NETLINK_ROUTE))?,
    ];
    Ok(vec![SeccompRule::new(others)?, SeccompRule::new(netlink)?])
}

/// The kernel reads only the lower half of these arguments, so only that half is compared.
fn condition(
    argument: u8,
    operation: SeccompCmpOp,
    value: u64,
) -> Result<SeccompCondition, seccompiler::BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operation, value)
}

fn filter(rules: Rules, errno: i32) -> Result<BpfProgram, seccompiler::BackendError> {
    let filter = SeccompFilter::new(
        rules,
        SeccompAction::Allow,
        SeccompAction::Errno(errno.cast_unsigned()),
        std::env::consts::ARCH.try_into()?,
    )?;
    let filter: BpfProgram = filter.try_into()?;
    Ok(no_second_table().into_iter().chain(filter).collect())
}

/// On x86-64 every call has a second number, with bit 30 set: without this filter a list of numbers
/// forbids nothing. Other processors have no calls there.
fn no_second_table() -> [sock_filter; 3] {
    const LOAD_NUMBER: u16 = 0x20;
    const JUMP_IF_NOT_LESS: u16 = 0x35;
    const RETURN: u16 = 0x06;
    let step = |code, jf, k| sock_filter { code, jt: 0, jf, k };
    [
        step(LOAD_NUMBER, 0, 0),
        step(JUMP_IF_NOT_LESS, 1, 0x4000_0000),
        step(RETURN, 0, libc::SECCOMP_RET_ERRNO | libc::ENOSYS.cast_unsigned()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_filters_compile() {
        let rules = refused(UnixFamily::PairsOnly).unwrap();
        let privileged = privileged_files(&[RUNS_AS_OWNER, RUNS_AS_GROUP]).unwrap();
        let rules = rules.into_iter().chain(privileged).collect();
        let filter = filter(rules, libc::EPERM).unwrap();
        // The kernel takes 4096 instructions at most.
        assert!(filter.len() < 1000, "{}", filter.len());
    }
}
