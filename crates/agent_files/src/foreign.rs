//! Agents in the format of another program, read where they are.
//!
//! The folder says how its files are read. What a file says and an agent here cannot have is dropped, and named.

use std::fmt;
use std::sync::Arc;

use antiphon_core::AgentDefinition;

use crate::problem::AgentFileError;

/// Reads a file of another program: the stem of its name, and its bytes.
type ReadForeign = dyn Fn(&str, &[u8]) -> Result<ForeignAgent, AgentFileError> + Send + Sync;

/// The format of another program.
#[derive(Clone)]
pub struct ForeignFormat {
    /// Name of the program, such as `claude`.
    pub name: &'static str,
    read: Arc<ReadForeign>,
}

/// An agent that was written for another program.
#[derive(Debug, Clone, PartialEq)]
pub struct ForeignAgent {
    /// What it is here.
    pub definition: AgentDefinition,
    /// What its file says and is not used, and why, one line each.
    pub dropped: Vec<String>,
}

/// Where an agent comes from that was written for another program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Imported {
    /// Name of the program, such as `claude`.
    pub format: &'static str,
    /// What its file says and is not used, and why, one line each.
    pub dropped: Vec<String>,
}

impl ForeignFormat {
    /// The format of the program `name`, whose files `read` reads.
    pub fn new(
        name: &'static str,
        read: impl Fn(&str, &[u8]) -> Result<ForeignAgent, AgentFileError> + Send + Sync + 'static,
    ) -> Self {
        Self { name, read: Arc::new(read) }
    }

    /// Reads one file.
    pub fn read(&self, stem: &str, bytes: &[u8]) -> Result<ForeignAgent, AgentFileError> {
        (self.read)(stem, bytes).map_err(AgentFileError::of_foreign_file)
    }
}

/// A format is known by its name.
impl PartialEq for ForeignFormat {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for ForeignFormat {}

impl fmt::Debug for ForeignFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ForeignFormat").field("name", &self.name).finish_non_exhaustive()
    }
}
