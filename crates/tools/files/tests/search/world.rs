//! A folder to search in, with one beside it that must not be reached.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use antiphon_core::port::ToolContext;
use antiphon_core::{Cancel, InputBlock, RawJson, ToolError};
use antiphon_file_tools::{GlobTool, GrepTool, Mode, Workspace, WorkspaceConfig};
use antiphon_toolbox::ToolHandler;
use rustix::fs::{CWD, FileType, mknodat};
use serde_json::Value;
use tempfile::TempDir;

/// No call here takes longer, even on a busy machine.
const CALL_SECONDS_MAX: u64 = 15;

pub(crate) struct Tree {
    folder: TempDir,
}

/// What came of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    Shows(String),
    Fails(String),
    Refuses(String),
    Canceled,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Tool {
    Grep,
    Glob,
}

impl Tree {
    pub(crate) fn new() -> Self {
        let tree = Self { folder: tempfile::tempdir().unwrap() };
        fs::create_dir(tree.root()).unwrap();
        fs::create_dir(tree.outside()).unwrap();
        fs::write(tree.outside().join("secret.txt"), "needle outside\n").unwrap();
        tree
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.folder.path().join("root")
    }

    pub(crate) fn outside(&self) -> PathBuf {
        self.folder.path().join("outside")
    }

    pub(crate) fn file(&self, path: &str, contents: impl AsRef<[u8]>) -> &Self {
        self.file_named(path.as_bytes(), contents)
    }

    pub(crate) fn file_named(&self, path: &[u8], contents: impl AsRef<[u8]>) -> &Self {
        let path = self.root().join(OsStr::from_bytes(path));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, contents).unwrap();
        self
    }

    /// A file that was written so many seconds after 1970.
    pub(crate) fn file_of(&self, path: &str, seconds: u64) -> &Self {
        self.file(path, "");
        let file = File::options().write(true).open(self.root().join(path)).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)).unwrap();
        self
    }

    pub(crate) fn link(&self, path: &str, to: impl AsRef<Path>) -> &Self {
        let path = self.root().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(to, path).unwrap();
        self
    }

    pub(crate) fn pipe(&self, path: &str) -> &Self {
        mknodat(CWD, self.root().join(path), FileType::Fifo, 0o600.into(), 0).unwrap();
        self
    }

    pub(crate) fn call(&self, tool: Tool, arguments: &Value) -> Outcome {
        self.call_until(tool, arguments, Cancel::never())
    }

    pub(crate) fn call_until(&self, tool: Tool, arguments: &Value, cancel: Cancel) -> Outcome {
        call_in(&self.root(), tool, arguments, cancel)
    }

    /// The text that a call shows.
    pub(crate) fn shown(&self, tool: Tool, arguments: &Value) -> String {
        match self.call(tool, arguments) {
            Outcome::Shows(text) => text,
            other @ (Outcome::Fails(_) | Outcome::Refuses(_) | Outcome::Canceled) => {
                panic!("{other:?}")
            }
        }
    }
}

/// Calls a tool in a workspace of one root.
pub(crate) fn call_in(root: &Path, tool: Tool, arguments: &Value, cancel: Cancel) -> Outcome {
    call_with(WorkspaceConfig::of(root, Mode::Workspace), tool, arguments, cancel)
}

/// Calls a tool in a workspace.
pub(crate) fn call_with(
    config: WorkspaceConfig,
    tool: Tool,
    arguments: &Value,
    cancel: Cancel,
) -> Outcome {
    let workspace = Arc::new(Workspace::open(config).unwrap());
    let tool: Box<dyn ToolHandler> = match tool {
        Tool::Grep => Box::new(GrepTool::new(workspace)),
        Tool::Glob => Box::new(GlobTool::new(workspace)),
    };
    let arguments = RawJson::of(arguments).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let called = runtime.block_on(async {
        let call = tool.call(&arguments, ToolContext::trial(cancel));
        tokio::time::timeout(Duration::from_secs(CALL_SECONDS_MAX), call).await
    });
    runtime.shutdown_background();
    match called.unwrap() {
        Ok(result) => {
            let [InputBlock::Text(block)] = &*result.content else {
                panic!("not one text: {result:?}");
            };
            let bytes_max = tool.result_bytes_max();
            assert!(block.text.len() <= bytes_max, "{} bytes", block.text.len());
            let text = block.text.clone();
            if result.is_error { Outcome::Fails(text) } else { Outcome::Shows(text) }
        }
        Err(ToolError::InvalidArguments { reason, .. }) => Outcome::Refuses(reason),
        Err(ToolError::Canceled) => Outcome::Canceled,
        Err(error @ (ToolError::Unknown { .. } | ToolError::Unavailable { .. })) => {
            panic!("{error}");
        }
    }
}
