//! Lists of tools, kept on disk: a server whose list is known is started when it is first called.
//!
//! The list belongs to a configuration: with another one, it is as if there were none. A file that
//! cannot be read or written is as good as none; nothing but time is lost.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read as _};
use std::path::Path;

use antiphon_private_file::{Durability, parent_of, write_atomic};
use serde::{Deserialize, Serialize};

use crate::config::{Secrets, ServerConfig, ServerName};
use crate::connection::Greeting;
use crate::name::hash_text;
use crate::offer::Offer;

/// Largest file that is read, in bytes.
const FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Of another version, a file is not read.
const VERSION: u32 = 1;

/// What is known of the servers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Known {
    version: u32,
    servers: BTreeMap<ServerName, KnownServer>,
}

/// What is known of one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct KnownServer {
    /// Of the configuration the list was made with.
    config: String,
    /// What it understood.
    greeting: Greeting,
    tools: Vec<Offer>,
}

impl Known {
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

    /// Writes a file, whole or not at all. Blocks.
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

    /// How to greet a server and which tools it has, if that is known for this configuration.
    pub(crate) fn of(
        &self,
        server: &ServerName,
        config: &ServerConfig,
    ) -> Option<(Greeting, &[Offer])> {
        let known = self.servers.get(server)?;
        (known.config == key(config)).then_some((known.greeting, known.tools.as_slice()))
    }

    /// Remembers this of a server. Whether it is news.
    pub(crate) fn remember(
        &mut self,
        server: &ServerName,
        config: &ServerConfig,
        greeting: Greeting,
        tools: &[Offer],
    ) -> bool {
        let known = KnownServer { config: key(config), greeting, tools: tools.to_vec() };
        let before = self.servers.insert(server.clone(), known.clone());
        before.as_ref() != Some(&known)
    }

    /// Forgets the servers that are not among these.
    pub(crate) fn keep_only(&mut self, wanted: impl Fn(&ServerName) -> bool) {
        self.servers.retain(|server, _| wanted(server));
    }
}

fn key(config: &ServerConfig) -> String {
    hash_text(&config.identity(Secrets::LeftOut))
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
        let tool: Offer =
            serde_json::from_str(r#"{"name":"t","description":"d","schema":{}}"#).unwrap();
        let mut known = Known::load(&path);
        assert_eq!(known.of(&server, &one), None);
        assert!(known.remember(&server, &one, Greeting::Initialize, std::slice::from_ref(&tool)));
        assert!(!known.remember(&server, &one, Greeting::Initialize, std::slice::from_ref(&tool)));
        known.save(&path);

        assert!(!fs::read_to_string(&path).unwrap().contains("hunter2"));
        let again = Known::load(&path);
        assert_eq!(again.of(&server, &one), Some((Greeting::Initialize, [tool].as_slice())));
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
            assert_eq!(Known::load(&path), Known::default());
        }
        Known::default().save(Path::new("/proc/no/such/place"));
    }
}
