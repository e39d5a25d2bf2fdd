//! Mounts, as the kernel lists them.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use rustix::mount::MountFlags;

/// One mount.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Mount {
    pub(crate) at: PathBuf,
    /// Flags that a remount must repeat: in a user namespace none of them can be removed.
    pub(crate) flags: MountFlags,
}

/// Parses the text of `/proc/self/mountinfo`. Skips lines that it cannot parse.
pub(crate) fn mounts(table: &[u8]) -> Vec<Mount> {
    table.split(|byte| *byte == b'\n').filter_map(mount).collect()
}

fn mount(line: &[u8]) -> Option<Mount> {
    let mut fields = line.split(|byte| *byte == b' ');
    let at = fields.nth(4)?;
    let options = std::str::from_utf8(fields.next()?).ok()?;
    let flags = options.split(',').map(flag).fold(MountFlags::empty(), MountFlags::union);
    Some(Mount { at: PathBuf::from(OsString::from_vec(unescaped(at))), flags })
}

fn flag(option: &str) -> MountFlags {
    match option {
        "ro" => MountFlags::RDONLY,
        "nosuid" => MountFlags::NOSUID,
        "nodev" => MountFlags::NODEV,
        "noexec" => MountFlags::NOEXEC,
        "nosymfollow" => MountFlags::NOSYMFOLLOW,
        // A remount that does not name access-time flags keeps them.
        _ => MountFlags::empty(),
    }
}

/// Spaces, tabs, line breaks and backslashes are written as `\` and three octal digits.
fn unescaped(field: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&first, after)) = rest.split_first() {
        let octal = (first == b'\\').then(|| after.get(..3)).flatten();
        let value =
            octal.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        match value {
            Some(value) => {
                bytes.push(value);
                rest = after.get(3..).unwrap_or_default();
            }
            None => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_kernel_are_read() {
        let table = b"23 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw\n\
            40 23 0:35 / /a\\040b\\134c ro,nosuid,nodev,noexec - tmpfs x rw\n\
            nonsense\n";
        let expected = vec![
            Mount { at: "/".into(), flags: MountFlags::empty() },
            Mount {
                at: "/a b\\c".into(),
                flags: MountFlags::RDONLY
                    | MountFlags::NOSUID
                    | MountFlags::NODEV
                    | MountFlags::NOEXEC,
            },
        ];
        assert_eq!(mounts(table), expected);
    }

    #[test]
    fn the_table_of_this_process_has_a_root() {
        let table = std::fs::read("/proc/self/mountinfo").unwrap();
        assert!(mounts(&table).iter().any(|mount| mount.at == std::path::Path::new("/")));
    }
}
