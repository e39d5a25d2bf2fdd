//! Many tools as one executor.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use antiphon_core::port::ToolContext;
use antiphon_core::redaction::Secrets;
use antiphon_core::{
    Effect, ImageBlock, InputBlock, RawJson, TaskId, Tool, ToolError, ToolExecutor, ToolResult,
};
use antiphon_toolbox::{OutputStore, RESULT_BYTES_MAX, Toolbox, ToolboxError};
use async_trait::async_trait;
use serde_json::json;

use crate::world::{context, text_of};

/// Returns a fixed content and records released tasks.
#[derive(Default)]
struct FixedTool {
    name: &'static str,
    content: Vec<InputBlock>,
    released: Mutex<Vec<TaskId>>,
    /// How often it lists its tool.
    times: AtomicUsize,
}

#[async_trait]
impl ToolExecutor for FixedTool {
    fn tools(&self) -> Vec<Arc<Tool>> {
        let description = "Returns something.".to_owned();
        let tool = Arc::new(Tool {
            name: self.name.to_owned(),
            description,
            parameters: RawJson::empty_object(),
        });
        vec![tool; self.times.load(Ordering::Relaxed)]
    }

    fn effect(&self, tool: &str) -> Option<Effect> {
        (tool == self.name).then_some(Effect::SideEffect)
    }

    async fn execute(&self, _: &str, _: &RawJson, _: ToolContext) -> Result<ToolResult, ToolError> {
        Ok(ToolResult { content: self.content.clone(), is_error: true })
    }

    async fn release(&self, task_id: &TaskId) {
        self.released.lock().unwrap().push(task_id.clone());
    }
}

fn with(executors: Vec<Arc<dyn ToolExecutor>>) -> Result<Toolbox, ToolboxError> {
    let folder = tempfile::tempdir().unwrap();
    let outputs = Arc::new(OutputStore::open(folder.path()).unwrap());
    Toolbox::new(Vec::new(), executors, outputs)
}

fn fixed_tool(name: &'static str, content: Vec<InputBlock>) -> Arc<FixedTool> {
    Arc::new(FixedTool { name, content, released: Mutex::default(), times: AtomicUsize::new(1) })
}

#[test]
fn two_tools_of_one_name_are_refused() {
    let twice = with(vec![
        fixed_tool("a", Vec::new()),
        fixed_tool("b", Vec::new()),
        fixed_tool("a", Vec::new()),
    ]);
    assert_eq!(twice.unwrap_err(), ToolboxError::Duplicate { name: "a".to_owned() });
    let taken = with(vec![fixed_tool("read_result", Vec::new())]);
    assert_eq!(taken.unwrap_err(), ToolboxError::Duplicate { name: "read_result".to_owned() });
}

#[tokio::test]
async fn tools_of_other_executors_come_last_and_are_run() {
    let (one, other) = (fixed_tool("z", vec![InputBlock::text("hi")]), fixed_tool("b", Vec::new()));
    let toolbox = with(vec![one.clone(), other.clone()]).unwrap();
    let names: Vec<String> = toolbox.tools().iter().map(|tool| tool.name.clone()).collect();
    assert_eq!(names, ["read_result", "z", "b"]);
    // A list that changes may have a name twice, as of two servers whose names and tools make the same one.
    one.times.store(2, Ordering::Relaxed);
    assert_eq!(toolbox.tools().len(), 3);
    assert_eq!(toolbox.effect("z"), Some(Effect::SideEffect));
    assert_eq!(toolbox.effect("read_result"), Some(Effect::ReadOnly));
    assert_eq!(toolbox.effect("y"), None);
    let empty = RawJson::empty_object();
    let output = toolbox.execute("z", &empty, context("t", "c")).await.unwrap();
    assert_eq!(output, ToolResult::failed("hi"));
    let unknown = toolbox.execute("y", &empty, context("t", "c")).await;
    assert_eq!(unknown, Err(ToolError::Unknown { name: "y".to_owned() }));
    let task = TaskId::parse("t").unwrap();
    toolbox.release(&task).await;
    for released in [&one.released, &other.released] {
        assert_eq!(released.lock().unwrap().as_slice(), std::slice::from_ref(&task));
    }
}

#[tokio::test]
async fn hidden_text_is_escaped_whichever_tool_returned_it() {
    let toolbox = with(vec![fixed_tool("z", vec![InputBlock::text("a\u{e0041}")])]).unwrap();
    let result = toolbox.execute("z", &RawJson::empty_object(), context("t", "c")).await.unwrap();
    assert_eq!(text_of(&result), r"a\u{e0041}");
}

#[tokio::test]
async fn a_long_result_is_previewed_and_its_images_stay() {
    let folder = tempfile::tempdir().unwrap();
    let outputs = Arc::new(OutputStore::open(folder.path()).unwrap());
    let long: Vec<String> = (0..5_000).map(|i| format!("line {i}\n")).collect();
    let long = long.concat();
    let image = InputBlock::Image(ImageBlock::new("image/png", vec![1]).unwrap());
    let content = vec![InputBlock::text(&long), image.clone(), InputBlock::text("the end")];
    let toolbox = Toolbox::new(Vec::new(), vec![fixed_tool("z", content)], outputs).unwrap();
    let result = toolbox.execute("z", &RawJson::empty_object(), context("t", "c")).await.unwrap();
    assert!(result.is_error, "it is still a failure");
    assert_eq!(result.content.len(), 2);
    assert_eq!(result.content[1], image);
    let text = text_of(&result);
    assert!(text.len() < RESULT_BYTES_MAX / 2, "{}", text.len());
    assert!(text.starts_with("line 0\nline 1\n"));
    assert!(text.contains("The whole is in result `c` (48898 bytes, 5002 lines)"), "{text}");
    let id = RawJson::of(&json!({ "id": "c", "offset": 5_001 })).unwrap();
    let rest = toolbox.execute("read_result", &id, context("t", "d")).await.unwrap();
    assert_eq!(text_of(&rest), "  5001\t\n  5002\tthe end\n[lines 5001-5002 of 5002]\n");
}

#[tokio::test]
async fn a_secret_is_neither_in_the_preview_nor_in_the_stored_result() {
    const KEY: &str = "sk-abcabcd-1234";
    let folder = tempfile::tempdir().unwrap();
    let outputs = Arc::new(OutputStore::open(folder.path()).unwrap());
    let long = format!("{KEY} and\n").repeat(RESULT_BYTES_MAX / 10);
    let toolbox =
        Toolbox::new(Vec::new(), vec![fixed_tool("z", vec![InputBlock::text(long)])], outputs);
    let toolbox = toolbox.unwrap().redacting(Secrets::from_iter([KEY.into()]));
    let result = toolbox.execute("z", &RawJson::empty_object(), context("t", "c")).await.unwrap();
    assert!(text_of(&result).starts_with("[redacted] and\n[redacted] and\n"));
    assert!(!text_of(&result).contains(KEY));
    let files = texts_in(folder.path());
    assert!(!files.is_empty(), "the result was stored");
    for text in files {
        assert!(text.starts_with("[redacted] and\n") && !text.contains(KEY));
    }
}

/// Contents of all files below a folder.
fn texts_in(folder: &std::path::Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let texts = |path: std::path::PathBuf| {
        if path.is_dir() {
            return texts_in(&path);
        }
        vec![std::fs::read_to_string(&path).unwrap()]
    };
    entries.flat_map(texts).collect()
}

#[tokio::test]
async fn a_result_that_just_fits_is_unchanged() {
    let text = "x".repeat(RESULT_BYTES_MAX);
    let toolbox = with(vec![fixed_tool("z", vec![InputBlock::text(&text)])]).unwrap();
    let result = toolbox.execute("z", &RawJson::empty_object(), context("t", "c")).await.unwrap();
    assert_eq!(text_of(&result), text);
}
