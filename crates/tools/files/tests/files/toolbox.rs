//! Many tools as one executor.

use std::sync::{Arc, Mutex};

use antiphon_core::port::ToolContext;
use antiphon_core::{
    Cancel, Effect, ImageBlock, InputBlock, RawJson, TaskId, Tool, ToolError, ToolExecutor,
    ToolResult,
};
use antiphon_file_tools::{OutputStore, RESULT_BYTES_MAX, Secrets, Toolbox, ToolboxError};
use async_trait::async_trait;
use serde_json::{Value, json};

use crate::read::huge_text;
use crate::world::{World, context, text_of};

/// Says what it is told to, and remembers who was released.
#[derive(Default)]
struct Parrot {
    name: &'static str,
    says: Vec<InputBlock>,
    released: Mutex<Vec<TaskId>>,
}

#[async_trait]
impl ToolExecutor for Parrot {
    fn tools(&self) -> Vec<Tool> {
        let description = "Says something.".to_owned();
        vec![Tool { name: self.name.to_owned(), description, parameters: RawJson::empty_object() }]
    }

    fn effect(&self, tool: &str) -> Option<Effect> {
        (tool == self.name).then_some(Effect::SideEffect)
    }

    async fn execute(&self, _: &str, _: &RawJson, _: ToolContext) -> Result<ToolResult, ToolError> {
        Ok(ToolResult { content: self.says.clone(), is_error: true })
    }

    async fn release(&self, task_id: &TaskId) {
        self.released.lock().unwrap().push(task_id.clone());
    }
}

fn with(executors: Vec<Arc<dyn ToolExecutor>>) -> Result<Toolbox, ToolboxError> {
    let folder = tempfile::tempdir().unwrap();
    let aside = Arc::new(OutputStore::open(folder.path()).unwrap());
    Toolbox::new(Vec::new(), executors, aside)
}

fn parrot(name: &'static str, says: Vec<InputBlock>) -> Arc<Parrot> {
    Arc::new(Parrot { name, says, released: Mutex::default() })
}

#[test]
fn two_tools_of_one_name_are_refused() {
    let twice =
        with(vec![parrot("a", Vec::new()), parrot("b", Vec::new()), parrot("a", Vec::new())]);
    assert_eq!(twice.unwrap_err(), ToolboxError::Duplicate { name: "a".to_owned() });
    let taken = with(vec![parrot("read_result", Vec::new())]);
    assert_eq!(taken.unwrap_err(), ToolboxError::Duplicate { name: "read_result".to_owned() });
}

#[test]
fn arguments_are_described_plainly() {
    let tools = World::new().toolbox.tools();
    let parameters = |name: &str| -> Value {
        tools.iter().find(|tool| tool.name == name).unwrap().parameters.to().unwrap()
    };
    let count =
        |description: &str| json!({ "description": description, "type": "integer", "minimum": 1 });
    assert_eq!(
        parameters("read"),
        json!({
            "type": "object",
            "properties": {
                "path": {
                    "description": "The file: relative to the working folder, or absolute.",
                    "type": "string",
                },
                "offset": count("The first line to show, counted from 1. Default: 1."),
                "limit": count("How many lines to show at most. Default: 2000."),
            },
            "additionalProperties": false,
            "required": ["path"],
        })
    );
    let edits = &parameters("edit")["properties"]["edits"];
    assert_eq!(edits["items"]["required"], json!(["old", "new"]));
    assert_eq!((&edits["minItems"], &edits["maxItems"]), (&json!(1), &json!(1_000)));
}

#[tokio::test]
async fn tools_of_other_executors_stand_behind_and_are_run() {
    let (one, other) = (parrot("z", vec![InputBlock::text("hi")]), parrot("b", Vec::new()));
    let toolbox = with(vec![one.clone(), other.clone()]).unwrap();
    let names: Vec<String> = toolbox.tools().into_iter().map(|tool| tool.name).collect();
    assert_eq!(names, ["read_result", "z", "b"]);
    assert_eq!(toolbox.effect("z"), Some(Effect::SideEffect));
    assert_eq!(toolbox.effect("read_result"), Some(Effect::ReadOnly));
    assert_eq!(toolbox.effect("y"), None);
    let empty = RawJson::empty_object();
    let said = toolbox.execute("z", &empty, context("t", "c")).await.unwrap();
    assert_eq!(said, ToolResult::failed("hi"));
    let unknown = toolbox.execute("y", &empty, context("t", "c")).await;
    assert_eq!(unknown, Err(ToolError::Unknown { name: "y".to_owned() }));
    let task = TaskId::parse("t").unwrap();
    toolbox.release(&task).await;
    for released in [&one.released, &other.released] {
        assert_eq!(released.lock().unwrap().as_slice(), std::slice::from_ref(&task));
    }
}

#[tokio::test]
async fn what_hides_in_a_result_is_shown_whoever_it_comes_from() {
    let toolbox = with(vec![parrot("z", vec![InputBlock::text("a\u{e0041}")])]).unwrap();
    let result = toolbox.execute("z", &RawJson::empty_object(), context("t", "c")).await.unwrap();
    assert_eq!(text_of(&result), r"a\u{e0041}");
}

#[tokio::test]
async fn a_long_result_is_previewed_and_its_pictures_stay() {
    let folder = tempfile::tempdir().unwrap();
    let aside = Arc::new(OutputStore::open(folder.path()).unwrap());
    let long: Vec<String> = (0..5_000).map(|i| format!("line {i}\n")).collect();
    let long = long.concat();
    let image = InputBlock::Image(ImageBlock::new("image/png", vec![1]).unwrap());
    let says = vec![InputBlock::text(&long), image.clone(), InputBlock::text("the end")];
    let toolbox = Toolbox::new(Vec::new(), vec![parrot("z", says)], aside).unwrap();
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
async fn a_secret_is_kept_neither_in_the_preview_nor_aside() {
    const KEY: &str = "sk-abcabcd-1234";
    let folder = tempfile::tempdir().unwrap();
    let aside = Arc::new(OutputStore::open(folder.path()).unwrap());
    let long = format!("{KEY} and\n").repeat(RESULT_BYTES_MAX / 10);
    let toolbox = Toolbox::new(Vec::new(), vec![parrot("z", vec![InputBlock::text(long)])], aside);
    let toolbox = toolbox.unwrap().without(Secrets::from_iter([KEY.into()]));
    let result = toolbox.execute("z", &RawJson::empty_object(), context("t", "c")).await.unwrap();
    assert!(text_of(&result).starts_with("[redacted] and\n[redacted] and\n"));
    assert!(!text_of(&result).contains(KEY));
    let files = texts_in(folder.path());
    assert!(!files.is_empty(), "it was kept aside");
    for text in files {
        assert!(text.starts_with("[redacted] and\n") && !text.contains(KEY));
    }
}

/// What is in the files beneath a folder.
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
async fn a_result_that_just_fits_is_left_as_it_is() {
    let text = "x".repeat(RESULT_BYTES_MAX);
    let toolbox = with(vec![parrot("z", vec![InputBlock::text(&text)])]).unwrap();
    let result = toolbox.execute("z", &RawJson::empty_object(), context("t", "c")).await.unwrap();
    assert_eq!(text_of(&result), text);
}

#[test]
fn a_canceled_call_stops_reading() {
    let world = World::new();
    huge_text(&world, "huge.txt", 1 << 30);
    let arguments = RawJson::of(&json!({ "path": "huge.txt", "offset": 1_000_000_000 })).unwrap();
    world.block_on(async {
        let (fire, fired) = tokio::sync::oneshot::channel::<()>();
        let cancel = Cancel::when(async { drop(fired.await) });
        let context = ToolContext { cancel, ..context("task", "call") };
        let reading = world.toolbox.execute("read", &arguments, context);
        let firing = async {
            // Once the call has begun: both are polled in this order.
            tokio::task::yield_now().await;
            drop(fire);
        };
        let (result, ()) = tokio::join!(reading, firing);
        assert_eq!(result, Err(ToolError::Canceled));
    });
}

#[test]
fn a_call_that_is_dropped_leaves_a_whole_file() {
    let world = World::new();
    let content = "x".repeat(1_000_000);
    let arguments = RawJson::of(&json!({ "path": "f", "content": content })).unwrap();
    world.block_on(async {
        let mut call = Box::pin(world.toolbox.execute("write", &arguments, context("t", "c")));
        assert!(futures_poll(&mut call).await.is_none());
        drop(call);
    });
    // The runtime waits for its threads when it goes: here it is asked for something else.
    world.read("a.txt").said();
    match std::fs::read(world.path("f")) {
        Ok(found) => assert_eq!(found, content.as_bytes()),
        Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::NotFound),
    }
}

/// Polls once.
async fn futures_poll<T>(future: &mut (impl Future<Output = T> + Unpin)) -> Option<T> {
    std::future::poll_fn(|cx| {
        let polled = std::pin::Pin::new(&mut *future).poll(cx);
        std::task::Poll::Ready(match polled {
            std::task::Poll::Ready(value) => Some(value),
            std::task::Poll::Pending => None,
        })
    })
    .await
}
