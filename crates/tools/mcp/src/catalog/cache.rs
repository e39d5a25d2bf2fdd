//! Tool lists on disk: a server with a cached list starts at its first call.
//!
//! A cached list is valid for one configuration. A file that cannot be read counts as empty, and a
//! failed write is logged; both cost only time.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read as _};
use std::path::Path;

use antiphon_private_file::{Durability, parent_of, write_atomic};
use serde::{Deserialize, Serialize};

use crate::catalog::listed_tool::ListedTool;
use crate::catalog::name::hash_text;
use crate::config::{Secrets, ServerConfig, ServerName};
use crate::connection::Handshake;

/// Largest file that is read, in bytes.
const FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// A file of another version counts as empty.
const VERSION: u32 = 1;

/// Cached tool lists of all servers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct ToolCache {
    version: u32,
    servers: BTreeMap<ServerName, CachedServer>,
}

/// Cached tool list of one server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct CachedServer {
    /// Hash of the configuration that the list belongs to.
    config: String,
    /// Handshake that succeeded.
    #[serde(rename = "greeting")]
    handshake: Handshake,
    tools: Vec<ListedTool>,
}

impl ToolCache {
    /// Reads a file. Blocks.
    pub(crate) fn load(path: &Path) -> Self {
        let read = || -> io::Result<Self> {
            let mut text = String::new();
            fs::File::open(path)?.take(FILE_BYTES_MAX).read_to_string(&mut text)?;
            Ok(serde_json::from_str(&text)?)
        };
        match read() {
            Ok(known) if known.version == VERSION => known,
            Ok(_) => Self::default(),
            Err(error) => {
                if error.kind() != io::ErrorKind::NotFound {
                    tracing::warn!("the list of MCP tools cannot be read: {error}");
                }
                Self::default()
            }
        }
    }

    /// Replaces the file atomically. Blocks.
    pub(crate) fn save(&self, path: &Path) {
        let write = || -> io::Result<()> {
            fs::create_dir_all(parent_of(path))?;
            let text = serde_json::to_vec(&Self { version: VERSION, ..self.clone() })?;
            write_atomic(path, &text, Durability::Buffered)
        };
        if let Err(error) = write() {
            tracing::warn!("the list of MCP tools cannot be kept: {error}");
        }
    }

    /// Handshake and tools of a server, if they are cached for this configuration.
    pub(crate) fn of(
        &self,
        server: &ServerName,
        config: &ServerConfig,
    ) -> Option<(Handshake, &[ListedTool])> {
        let known = self.servers.get(server)?;
        (known.config == key(config)).then_some((known.handshake, known.tools.as_slice()))
    }

    /// Stores the tools of a server. Returns whether anything changed.
    pub(crate) fn store(
        &mut self,
        server: &ServerName,
        config: &ServerConfig,
        handshake: Handshake,
        tools: &[ListedTool],
    ) -> bool {
        let known = CachedServer { config: key(config), handshake, tools: tools.to_vec() };
        let before = self.servers.insert(server.clone(), known.clone());
        before.as_ref() != Some(&known)
    }

    /// Removes the servers for which `wanted` returns false.
    pub(crate) fn keep_only(&mut self, permitted: impl Fn(&ServerName) -> bool) {
        self.servers.retain(|server, _| permitted(server));
    }
}

fn key(config: &ServerConfig) -> String {
    hash_text(&config.identity(Secrets::Excluded))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(text: &str) -> ServerConfig {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn what_is_remembered_is_found_again_for_the_same_configuration_only() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/er/tools.json");
        let server: ServerName = "s".parse().unwrap();
        let one = config(r#"{"command":"one","env":{"KEY":"hunter2"}}"#);
        let tool: ListedTool =
            serde_json::from_str(r#"{"name":"t","description":"d","schema":{}}"#).unwrap();
        let mut known = ToolCache::load(&path);
        assert_eq!(known.of(&server, &one), None);
        assert!(known.store(&server, &one, Handshake::Initialize, std::slice::from_ref(&tool)));
        assert!(!known.store(&server, &one, Handshake::Initialize, std::slice::from_ref(&tool)));
        known.save(&path);

        assert!(!fs::read_to_string(&path).unwrap().contains("hunter2"));
        let again = ToolCache::load(&path);
        assert_eq!(again.of(&server, &one), Some((Handshake::Initialize, [tool].as_slice())));
        for other in [r#"{"command":"two"}"#, r#"{"command":"one","allow":["x"]}"#] {
            assert_eq!(again.of(&server, &config(other)), None);
        }
    }

    #[test]
    fn a_file_that_makes_no_sense_is_as_good_as_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tools.json");
        for text in ["", "{", r#"{"version":99,"servers":{}}"#, r#"{"version":1,"servers":7}"#] {
            fs::write(&path, text).unwrap();
            assert_eq!(ToolCache::load(&path), ToolCache::default());
        }
        ToolCache::default().save(Path::new("/proc/no/such/place"));
    }
}
