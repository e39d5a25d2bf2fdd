//! The file tools, together in a toolbox, keep the contract of tools.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use antiphon_conformance::tool::{self, Example, ToolFixture};
use antiphon_core::port::ToolContext;
use antiphon_core::redaction::Secrets;
use antiphon_core::{Effect, RawJson, Tool, ToolError, ToolExecutor, ToolResult};
use antiphon_file_tools::{
    EditTool, Mode, ReadTool, ReadTracker, Workspace, WorkspaceConfig, WriteTool,
};
use antiphon_toolbox::{OutputStore, RedactingTools, ToolHandler, Toolbox, arguments, definition};
use async_trait::async_trait;

/// Goes on until it is canceled, as a tool of another executor can.
struct Sleeper;

#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct Nothing {}

#[async_trait]
impl ToolExecutor for Sleeper {
    fn tools(&self) -> Vec<Arc<Tool>> {
        vec![definition::<Nothing>("sleep", "Sleeps.").into()]
    }

    fn effect(&self, tool: &str) -> Option<Effect> {
        (tool == "sleep").then_some(Effect::ReadOnly)
    }

    async fn execute(
        &self,
        tool: &str,
        json: &RawJson,
        context: ToolContext,
    ) -> Result<ToolResult, ToolError> {
        arguments::<Nothing>(tool, json)?;
        context.cancel.await;
        Err(ToolError::Canceled)
    }
}

fn toolbox(folder: &std::path::Path) -> Toolbox {
    let workspace = Workspace::open(WorkspaceConfig::of(folder, Mode::Workspace)).unwrap();
    let (workspace, reads) = (Arc::new(workspace), Arc::new(ReadTracker::new()));
    let handlers: Vec<Box<dyn ToolHandler>> = vec![
        Box::new(ReadTool::new(workspace.clone(), reads.clone())),
        Box::new(WriteTool::new(workspace.clone(), reads.clone())),
        Box::new(EditTool::new(workspace, reads)),
    ];
    let aside = Arc::new(OutputStore::open(&folder.join(".antiphon/results")).unwrap());
    Toolbox::new(handlers, vec![Arc::new(Sleeper)], aside).unwrap()
}

/// Examples of every tool of the toolbox, which `tools` has.
fn bench(folder: &std::path::Path, tools: impl ToolExecutor + 'static) -> ToolFixture {
    std::fs::write(folder.join("a.txt"), "alpha\nalpha\n").unwrap();
    // What the nil task of a trial has left aside, for `read_result`.
    let kept = folder.join(".antiphon/results/00000000-0000-0000-0000-000000000000");
    std::fs::create_dir_all(&kept).unwrap();
    std::fs::write(kept.join("one"), "text\n").unwrap();
    ToolFixture::new(tools)
        .example(
            Example::of("read")
                .good(r#"{"path":"a.txt"}"#)
                .bad(r#"{"file":"a.txt"}"#)
                .failing(r#"{"path":"none.txt"}"#),
        )
        .example(
            Example::of("write")
                .good(r#"{"path":"new/b.txt","content":"b"}"#)
                .bad(r#"{"path":"b.txt"}"#)
                .failing(r#"{"path":"a.txt","content":"unread"}"#),
        )
        .example(
            Example::of("edit")
                .good(r#"{"path":"a.txt","edits":[{"old":"a","new":"aa","all":true}]}"#)
                .bad(r#"{"path":"a.txt","edits":[{"old":"","new":"x"}]}"#)
                .failing(r#"{"path":"a.txt","edits":[{"old":"nowhere","new":"x"}]}"#),
        )
        .example(
            Example::of("read_result")
                .good(r#"{"id":"one"}"#)
                .bad(r#"{"id":7}"#)
                .failing(r#"{"id":"two"}"#),
        )
        .example(Example::of("sleep").slow("{}"))
}

#[tokio::test]
async fn the_toolbox_keeps_the_contract_of_tools() {
    let folder = tempfile::tempdir().unwrap();
    let bench = async || bench(folder.path(), toolbox(folder.path()));
    let passed = tool::check(bench).await.unwrap();
    assert_eq!(passed.checks, tool::checks());
}

#[tokio::test]
async fn tools_without_secrets_keep_it_too() {
    let folder = tempfile::tempdir().unwrap();
    let bench = async || {
        let tools = Arc::new(toolbox(folder.path()));
        let secrets = Secrets::from_iter(["a secret of ours".into()]);
        bench(folder.path(), RedactingTools::new(tools, secrets))
    };
    let passed = tool::check(bench).await.unwrap();
    assert_eq!(passed.checks, tool::checks());
}
