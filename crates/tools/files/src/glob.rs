//! `glob`: files by name, the newest first.

mod newest;

use std::ffi::CStr;
use std::io;
use std::sync::Arc;

use antiphon_core::port::ToolContext;
use antiphon_core::{Effect, RawJson, Tool, ToolError, ToolResult};
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;

use self::newest::NewestFiles;
use crate::search::{
    Deadline, Folder, Globs, NOTES_BYTES_MAX, Names, Notes, OUTPUT_BYTES_MAX, SearchStart,
    StartKind, Visitor, Walk, grouped, within,
};
use crate::workspace::Workspace;
use antiphon_toolbox::{StopFlag, Stopped, ToolHandler, blocking};
use antiphon_toolbox::{arguments, count, definition};

/// How many files are listed unless a call says otherwise.
pub const GLOB_LIMIT: u64 = 200;

/// Most files that a call can ask for.
pub const GLOB_LIMIT_MAX: u64 = 2000;

const NAME: &str = "glob";

const DESCRIPTION: &str = "\
Lists files by name in a folder and all below it, the last changed first. Skips hidden files, \
.git, and what .gitignore or .ignore leave out; a `path` that you name is listed even if it is \
ignored.";

/// The tool `glob`.
#[derive(Debug, Clone)]
pub struct GlobTool {
    workspace: Arc<Workspace>,
}

impl GlobTool {
    /// Lists files of a workspace.
    pub fn new(workspace: Arc<Workspace>) -> Self {
        Self { workspace }
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// Like `*.rs` (in any folder), `src/**/*.{ts,tsx}` (a path from `path`), `**` (every file).
    pattern: String,
    /// Default: the working folder.
    #[serde(default)]
    #[schemars(with = "String")]
    path: Option<String>,
    /// Default: 200.
    #[serde(default, deserialize_with = "count")]
    #[schemars(with = "u64", range(min = 1, max = 2000))]
    limit: Option<u64>,
    /// Hidden files too.
    #[serde(default)]
    hidden: bool,
}

#[async_trait]
impl ToolHandler for GlobTool {
    fn definition(&self) -> Tool {
        definition::<Arguments>(NAME, DESCRIPTION)
    }

    fn effect(&self) -> Effect {
        Effect::ReadOnly
    }

    async fn call(&self, json: &RawJson, context: ToolContext) -> Result<ToolResult, ToolError> {
        let arguments: Arguments = arguments(NAME, json)?;
        let workspace = Arc::clone(&self.workspace);
        let work = move |stop: &_| run(&workspace, &arguments, stop);
        blocking(NAME, context.cancel, work).await?
    }

    fn result_bytes_max(&self) -> usize {
        OUTPUT_BYTES_MAX + NOTES_BYTES_MAX
    }
}

fn run(
    workspace: &Workspace,
    given: &Arguments,
    stop: &StopFlag,
) -> Result<Result<ToolResult, ToolError>, Stopped> {
    let limit = match within(NAME, "limit", given.limit, GLOB_LIMIT, 1..=GLOB_LIMIT_MAX) {
        Ok(limit) => limit,
        Err(error) => return Ok(Err(error)),
    };
    let globs = match Globs::parse(std::slice::from_ref(&given.pattern)) {
        Ok(globs) => globs,
        Err(reason) => {
            let tool = NAME.to_owned();
            return Ok(Err(ToolError::InvalidArguments { tool, reason }));
        }
    };
    let failed = |reason| Ok(Ok(ToolResult::failed(reason)));
    let place = match SearchStart::find(workspace, given.path.as_deref()) {
        Ok(place) => place,
        Err(reason) => return failed(reason),
    };
    let StartKind::Folder(folder) = &place.what else {
        let reason = "`path` is a file: give a folder, or `read` the file".to_owned();
        return failed(reason);
    };
    let deadline = Deadline::new(stop);
    let search = Search { globs, newest: NewestFiles::new(limit), notes: Notes::default() };
    let walk = Walk::new(folder, &place, given.hidden, &deadline);
    walk.run(|| &search);
    stop.check()?;
    let notes = deadline.remarks().into_iter().chain(walk.remarks()).collect();
    Ok(Ok(ToolResult::text(search.text(&place, notes))))
}

/// State shared by the threads of a search.
struct Search {
    globs: Globs,
    newest: NewestFiles,
    notes: Notes,
}

impl Search {
    fn text(self, place: &SearchStart, notes: Vec<String>) -> String {
        let mut names = Names::new(place);
        let (files, total) = self.newest.into_files();
        let mut text = String::new();
        let mut shown = 0;
        for path in &files {
            let name = names.show(&path.0);
            if text.len() + name.len() + 1 > OUTPUT_BYTES_MAX {
                break;
            }
            text.push_str(&name);
            text.push('\n');
            shown += 1;
        }
        let all = grouped(total);
        let ending = match (shown, total) {
            (_, 0) => format!(
                "No files match in `{}`. Ignored and hidden files are left out: name an ignored \
                 folder itself as `path`, or pass `hidden: true`.",
                names.show(b"")
            ),
            (1, 1) => "\n[1 file]".to_owned(),
            (shown, total) if shown == total => format!("\n[{all} files, the newest first]"),
            (shown, _) => format!(
                "\n[the first {} of {all} files, the newest first: narrow `pattern` or `path`]",
                grouped(shown)
            ),
        };
        text.push_str(&ending);
        let notes = notes.into_iter().chain(self.notes.remarks(place, None)).chain(names.remarks());
        for note in notes {
            text.push('\n');
            text.push_str(&note);
        }
        text
    }
}

impl Visitor for &Search {
    fn enters(&mut self, folder: &[u8]) -> bool {
        self.globs.enter(folder)
    }

    fn wants(&mut self, path: &[u8]) -> bool {
        self.globs.keep(path)
    }

    fn visit(&mut self, folder: &Folder, name: &CStr, path: &[u8]) {
        match folder.modified(name) {
            Ok(Some(modified)) => self.newest.add(modified, path),
            Ok(None) => {}
            Err(error) => self.notes.add_error(path, &error),
        }
    }

    fn fails(&mut self, folder: &[u8], error: &io::Error) {
        self.notes.add_error(folder, error);
    }
}
