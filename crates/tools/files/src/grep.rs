//! `grep`: lines that match, in the files of a folder.

mod hits;
mod matches;
mod pattern;
mod report;
mod search;

use std::sync::Arc;

use antiphon_core::port::ToolContext;
use antiphon_core::{Effect, RawJson, Tool, ToolError, ToolResult};
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::search::{NOTES_BYTES_MAX, OUTPUT_BYTES_MAX};
use crate::workspace::Workspace;
use antiphon_toolbox::{ToolHandler, blocking};
use antiphon_toolbox::{arguments, count, definition};

/// How many matches are shown unless a call says otherwise.
pub const GREP_LIMIT: u64 = 100;

/// Most matches that a call can ask for.
pub const GREP_LIMIT_MAX: u64 = 1000;

/// Most lines around a match that a call can ask for.
pub const GREP_CONTEXT_MAX: u64 = 20;

const NAME: &str = "grep";

const DESCRIPTION: &str = "Searches the contents of files, in a folder and all below it, and shows \
the matching lines with their numbers, by file. Files that .gitignore or .ignore leave out, hidden \
files, binary files and .git are not searched; a folder given as `path` is searched even if it is \
ignored itself.";

/// The tool `grep`.
#[derive(Debug, Clone)]
pub struct GrepTool {
    workspace: Arc<Workspace>,
}

impl GrepTool {
    /// Searches in a workspace.
    pub fn new(workspace: Arc<Workspace>) -> Self {
        Self { workspace }
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Arguments {
    /// A regular expression in Rust's syntax: no look-around, no backreferences.
    pattern: String,
    /// Take `pattern` as plain text instead.
    #[serde(default)]
    literal: bool,
    /// The file or folder to search; default: the working folder.
    #[serde(default)]
    #[schemars(with = "String")]
    path: Option<String>,
    /// Only files like `*.rs`, `src/**/*.{ts,tsx}`, or, with `!`, none like `!*.md`; or a list of
    /// these. Without `/` a name in any folder is meant, otherwise a path from `path`.
    #[serde(default)]
    #[schemars(with = "OneOrMore")]
    glob: Option<OneOrMore>,
    /// Only files of this type: `rust`, `py`, `ts`, `md`, ...
    #[serde(default, rename = "type")]
    #[schemars(with = "String")]
    file_type: Option<String>,
    /// `smart` ignores case unless the pattern has a capital letter.
    #[serde(default)]
    case: Case,
    /// Lines to show before and after each match.
    #[serde(default, deserialize_with = "count")]
    #[schemars(with = "u64", range(max = 20))]
    context: Option<u64>,
    /// Let matches go over several lines; `(?s)` lets `.` match the end of a line, too.
    #[serde(default)]
    multiline: bool,
    /// `lines` that match, only the names of `files` with a match, or the `count` of matches in
    /// each.
    #[serde(default)]
    mode: Mode,
    /// Most matches to show (or files, if `mode` is not `lines`); default 100.
    #[serde(default, deserialize_with = "count")]
    #[schemars(with = "u64", range(min = 1, max = 1000))]
    limit: Option<u64>,
    /// Search hidden files, too.
    #[serde(default)]
    hidden: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Case {
    #[default]
    Smart,
    Sensitive,
    Insensitive,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Mode {
    #[default]
    Lines,
    Files,
    Count,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected a pattern or a list of patterns")]
enum OneOrMore {
    One(String),
    More(Vec<String>),
}

impl OneOrMore {
    fn into_list(self) -> Vec<String> {
        match self {
            Self::One(one) => vec![one],
            Self::More(more) => more,
        }
    }
}

#[async_trait]
impl ToolHandler for GrepTool {
    fn definition(&self) -> Tool {
        definition::<Arguments>(NAME, DESCRIPTION)
    }

    fn effect(&self) -> Effect {
        Effect::ReadOnly
    }

    async fn call(&self, json: &RawJson, context: ToolContext) -> Result<ToolResult, ToolError> {
        let arguments: Arguments = arguments(NAME, json)?;
        let workspace = Arc::clone(&self.workspace);
        let work = move |stop: &_| search::run(&workspace, arguments, stop);
        blocking(NAME, context.cancel, work).await?
    }

    fn result_bytes_max(&self) -> usize {
        OUTPUT_BYTES_MAX + NOTES_BYTES_MAX
    }
}
