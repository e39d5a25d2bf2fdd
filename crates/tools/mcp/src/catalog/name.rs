//! Names of server tools for the model: `mcp__SERVER__TOOL`. No built-in tool begins with `mcp__`.
//!
//! The name depends on the server and the tool alone, not on other listed tools. A tool name that
//! does not fit (other characters, too long) is shortened and gets a hash as suffix.

use std::fmt::Write as _;

use crate::config::ServerName;

/// Longest name that every provider accepts, in bytes.
const NAME_BYTES_MAX: usize = 64;

/// Name for the model of `tool` on `server`.
pub(crate) fn tool_name(server: &ServerName, tool: &str) -> String {
    let mut name = format!("mcp__{server}__");
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !tool.is_empty() && tool.chars().all(plain) && name.len() + tool.len() <= NAME_BYTES_MAX {
        name.push_str(tool);
        return name;
    }
    let hash = format!("_{:08x}", hash(tool.as_bytes()) >> 32);
    let room = NAME_BYTES_MAX - name.len() - hash.len();
    name.extend(tool.chars().map(|c| if plain(c) { c } else { '_' }).take(room));
    name.push_str(&hash);
    name
}

/// FNV-1a: short, the same on every machine and in every version.
pub(crate) fn hash(bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

/// A hash as text.
pub(crate) fn hash_text(text: &str) -> String {
    let mut shown = String::with_capacity(16);
    // Writing to a string does not fail.
    let _ = write!(shown, "{:016x}", hash(text.as_bytes()));
    shown
}

#[cfg(test)]
mod tests {
    use super::{NAME_BYTES_MAX, tool_name};
    use crate::config::ServerName;

    fn name(server: &str, tool: &str) -> String {
        tool_name(&server.parse::<ServerName>().unwrap(), tool)
    }

    #[test]
    fn a_plain_name_stays_readable() {
        assert_eq!(name("time", "get_current-time"), "mcp__time__get_current-time");
    }

    #[test]
    fn names_that_do_not_fit_are_made_distinct_and_fit() {
        let long = "x".repeat(200);
        let other = format!("{}y", "x".repeat(199));
        let odd = ["a.b", "a/b", "a b", "a_b", "ä", "", "\u{200b}", &long, &other];
        let names: std::collections::HashSet<String> =
            odd.iter().map(|tool| name("s", tool)).collect();
        assert_eq!(names.len(), odd.len());
        for name in names {
            assert!(name.len() <= NAME_BYTES_MAX && name.starts_with("mcp__s__"), "{name}");
            assert!(name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-'));
        }
    }

    #[test]
    fn the_longest_server_name_leaves_room() {
        let server = "s".repeat(crate::SERVER_NAME_BYTES_MAX);
        assert_eq!(name(&server, &"t".repeat(300)).len(), NAME_BYTES_MAX);
    }
}
