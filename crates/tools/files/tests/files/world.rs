//! A project to work in, with something beside it that must not be touched.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use antiphon_core::port::ToolContext;
use antiphon_core::{
    Cancel, InputBlock, RawJson, TaskId, ToolCallId, ToolError, ToolExecutor, ToolResult,
};
use antiphon_file_tools::{
    EditTool, Mode, ReadTool, ReadTracker, Workspace, WorkspaceConfig, WriteTool,
};
use antiphon_toolbox::{OutputStore, ToolHandler, Toolbox};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Content of a file that no tool may read.
pub(crate) const SECRET: &str = "TOP SECRET";

pub(crate) struct World {
    _dir: TempDir,
    pub(crate) root: PathBuf,
    pub(crate) outside: PathBuf,
    pub(crate) toolbox: Toolbox,
    runtime: tokio::runtime::Runtime,
    before: BTreeMap<PathBuf, String>,
}

/// What came of a call.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Outcome {
    Said(String),
    Failed(String),
    Invalid(String),
    Other(ToolError),
}

impl World {
    pub(crate) fn new() -> Self {
        Self::of(Mode::Workspace)
    }

    pub(crate) fn of(mode: Mode) -> Self {
        Self::with(mode, |_, _| {})
    }

    pub(crate) fn with(mode: Mode, change: fn(&mut WorkspaceConfig, &Path)) -> Self {
        let dir = tempfile::tempdir().unwrap();
        // The real path: a temp folder may be behind a symlink.
        let base = dir.path().canonicalize().unwrap();
        let (root, outside) = (base.join("project"), base.join("outside"));
        for folder in [&root.join(".git/hooks"), &root.join(".antiphon"), &root.join(".ideai")] {
            fs::create_dir_all(folder).unwrap();
        }
        fs::create_dir_all(outside.join("folder")).unwrap();
        fs::write(root.join("a.txt"), "alpha\nbeta\n").unwrap();
        fs::write(root.join(".git/config"), "[core]\n").unwrap();
        fs::write(root.join(".antiphon/journal.db"), SECRET).unwrap();
        fs::write(root.join(".ideai/request.json"), "{}\n").unwrap();
        fs::write(outside.join("secret.txt"), SECRET).unwrap();
        let mut config = WorkspaceConfig::of(&root, mode);
        change(&mut config, &base);
        let workspace = Arc::new(Workspace::open(config).unwrap());
        let reads = Arc::new(ReadTracker::new());
        let handlers: Vec<Box<dyn ToolHandler>> = vec![
            Box::new(ReadTool::new(workspace.clone(), reads.clone())),
            Box::new(WriteTool::new(workspace.clone(), reads.clone())),
            Box::new(EditTool::new(workspace, reads)),
        ];
        let aside = Arc::new(OutputStore::open(&base.join("results")).unwrap());
        let toolbox = Toolbox::new(handlers, Vec::new(), aside).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let mut world =
            Self { _dir: dir, root, outside, toolbox, runtime, before: BTreeMap::new() };
        world.settle();
        world
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    pub(crate) fn put(&self, name: &str, contents: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, contents).unwrap();
    }

    pub(crate) fn link(&self, name: &str, target: impl AsRef<Path>) {
        std::os::unix::fs::symlink(target, self.path(name)).unwrap();
    }

    pub(crate) fn bytes(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap()
    }

    pub(crate) fn mode_of(&self, name: &str) -> u32 {
        fs::metadata(self.path(name)).unwrap().permissions().mode() & 0o7777
    }

    pub(crate) fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.runtime.block_on(future)
    }

    /// A call for a task, without progress reports.
    pub(crate) fn call_as(
        &self,
        task: &str,
        tool: &str,
        arguments: &Value,
    ) -> Result<ToolResult, ToolError> {
        let context = context(task, "call");
        let arguments = RawJson::of(arguments).unwrap();
        self.block_on(self.toolbox.execute(tool, &arguments, context))
    }

    pub(crate) fn call(&self, tool: &str, arguments: &Value) -> Outcome {
        Outcome::of(self.call_as("task", tool, arguments))
    }

    pub(crate) fn read(&self, path: &str) -> Outcome {
        self.call("read", &json!({ "path": path }))
    }

    pub(crate) fn write(&self, path: &str, content: &str) -> Outcome {
        self.call("write", &json!({ "path": path, "content": content }))
    }

    pub(crate) fn edit(&self, path: &str, old: &str, new: &str) -> Outcome {
        self.call("edit", &json!({ "path": path, "edits": [{ "old": old, "new": new }] }))
    }

    /// What is there now is what must not change.
    pub(crate) fn settle(&mut self) {
        self.before = self.untouchable();
    }

    /// Nothing outside changed, nothing protected changed, no draft was left.
    pub(crate) fn is_unharmed(&self) {
        assert_eq!(self.untouchable(), self.before);
        let drafts: Vec<_> = walk(&self.root)
            .into_iter()
            .filter(|path| path.to_string_lossy().contains(".draft"))
            .collect();
        assert_eq!(drafts, Vec::<PathBuf>::new());
    }

    fn untouchable(&self) -> BTreeMap<PathBuf, String> {
        let names = [".git", ".antiphon", ".ideai", "../outside"];
        let paths = names.iter().flat_map(|name| walk(&self.path(name)));
        paths.map(|path| (path.clone(), fs::read_to_string(&path).unwrap_or_default())).collect()
    }
}

impl Outcome {
    pub(crate) fn of(result: Result<ToolResult, ToolError>) -> Self {
        match result {
            Ok(result) if result.is_error => Self::Failed(text_of(&result)),
            Ok(result) => Self::Said(text_of(&result)),
            Err(ToolError::InvalidArguments { reason, .. }) => Self::Invalid(reason),
            Err(error) => Self::Other(error),
        }
    }

    #[track_caller]
    pub(crate) fn tool_output(self) -> String {
        let Self::Said(text) = self else { panic!("{self:?}") };
        text
    }

    #[track_caller]
    pub(crate) fn failed(self) -> String {
        let Self::Failed(text) = self else { panic!("{self:?}") };
        text
    }
}

pub(crate) fn context(task: &str, call: &str) -> ToolContext {
    ToolContext {
        task_id: TaskId::parse(task).unwrap(),
        tool_call_id: ToolCallId::parse(call).unwrap(),
        ..ToolContext::trial(Cancel::never())
    }
}

pub(crate) fn text_of(result: &ToolResult) -> String {
    let text = |block: &InputBlock| match block {
        InputBlock::Text(block) => block.text.clone(),
        InputBlock::Image(image) => {
            format!("<{} of {} bytes>", image.mime_type(), image.data().len())
        }
    };
    result.content.iter().map(text).collect::<Vec<_>>().join("\n")
}

pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Every entry at a path and beneath it: files, links and others.
fn walk(path: &Path) -> Vec<PathBuf> {
    if !path.is_dir() {
        return vec![path.to_owned()];
    }
    let mut found = Vec::new();
    let mut folders = vec![path.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path());
            }
            found.push(entry.path());
        }
    }
    found
}
