//! Sockets in the file system that programs outside listen on. A socket gives access to the program
//! behind it, such as a container engine or a key agent, past all other limits of the sandbox.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// Parses the paths in the text of `/proc/net/unix`.
pub(crate) fn listeners(table: &[u8]) -> Vec<PathBuf> {
    let lines = table.split(|byte| *byte == b'\n');
    let path = |line: &[u8]| {
        // Everything before the path is hexadecimal or decimal.
        let start = line.iter().position(|byte| *byte == b'/')?;
        Some(PathBuf::from(OsStr::from_bytes(line.get(start..)?)))
    };
    let mut paths: Vec<PathBuf> = lines.filter_map(path).collect();
    paths.sort();
    paths.dedup();
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_found_and_abstract_names_are_not() {
        let table = b"Num       RefCount Protocol Flags    Type St Inode Path\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 123 /var/lib/a b.sock\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 124 /run/user/1000/bus\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 124 /var/lib/a b.sock\n\
            0000000000000000: 00000003 00000000 00000000 0001 03 125\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 126 @abstract\n";
        let expected = ["/run/user/1000/bus", "/var/lib/a b.sock"].map(PathBuf::from);
        assert_eq!(listeners(table), expected);
    }
}
