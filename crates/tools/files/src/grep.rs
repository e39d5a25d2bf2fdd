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

const DESCRIPTION: &str = "\
Searches the contents of files in a folder and all below it. Shows matching lines with their \
numbers, by file. Skips binary and hidden files, .git, and what .gitignore or .ignore leave out; \
a `path` that you name is searched even if it is ignored.";

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
    /// `pattern` is plain text.
    #[serde(default)]
    literal: bool,
    /// File or folder; default: the working folder.
    #[serde(default)]
    #[schemars(with = "String")]
    path: Option<String>,
    /// Only files like `*.rs` (in any folder) or `src/**/*.{ts,tsx}` (from `path`); with `!`, none like it.
    #[serde(default)]
    #[schemars(with = "OneOrMore")]
    glob: Option<OneOrMore>,
    /// Only files of a type: `rust`, `py`, `ts`, `md`, …
    #[serde(default, rename = "type")]
    #[schemars(with = "String")]
    file_type: Option<String>,
    /// `smart`: case matters if `pattern` has a capital.
    #[serde(default)]
    case: Case,
    /// Lines around each match.
    #[serde(default, deserialize_with = "count")]
    #[schemars(with = "u64", range(max = 20))]
    context: Option<u64>,
    /// Matches may span lines; with `(?s)`, `.` matches line ends too.
    #[serde(default)]
    multiline: bool,
    /// Matching `lines`, names of `files`, or the `count` in each.
    #[serde(default)]
    mode: Mode,
    /// Most matches, or files; default 100.
    #[serde(default, deserialize_with = "count")]
    #[schemars(with = "u64", range(min = 1, max = 1000))]
    limit: Option<u64>,
    /// Hidden files too.
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
