//! What a look finds is treated like a result: no secrets, no hidden text, not too long.

use std::sync::Arc;

use antiphon_core::port::{CutOffCall, CutOffOutcome, ToolContext};
use antiphon_core::redaction::Secrets;
use antiphon_core::{Effect, RawJson, TaskId, Tool, ToolError, ToolExecutor, ToolResult};
use antiphon_toolbox::{OutputStore, RESULT_BYTES_MAX, RedactingTools, Toolbox};
use async_trait::async_trait;
use uuid::Uuid;

use crate::world::text_of;

const KEY: &str = "sk-abcabcd-1234";

/// Its tool is called `happened` or `unknown`.
struct Found(String);

#[async_trait]
impl ToolExecutor for Found {
    fn tools(&self) -> Vec<Arc<Tool>> {
        Vec::new()
    }

    fn effect(&self, tool: &str) -> Option<Effect> {
        ["happened", "unknown"].contains(&tool).then_some(Effect::SideEffect)
    }

    async fn execute(&self, _: &str, _: &RawJson, _: ToolContext) -> Result<ToolResult, ToolError> {
        Err(ToolError::Canceled)
    }

    async fn inspect_cut_off(&self, tool: &str, _: &RawJson, _: &CutOffCall) -> CutOffOutcome {
        match tool {
            "happened" => CutOffOutcome::Happened(ToolResult::text(&self.0)),
            _ => CutOffOutcome::Unknown { known: self.0.clone() },
        }
    }
}

async fn inspect_cut_off(tools: &dyn ToolExecutor, tool: &str) -> String {
    let task_id = TaskId::parse("task").unwrap();
    let call = CutOffCall { task_id, call_uuid: Uuid::nil(), note: None };
    match tools.inspect_cut_off(tool, &RawJson::empty_object(), &call).await {
        CutOffOutcome::Happened(result) => text_of(&result),
        CutOffOutcome::Unknown { known } => known,
        CutOffOutcome::MayRun => "it may run".to_owned(),
    }
}

#[tokio::test]
async fn a_look_shows_no_secret_and_no_hidden_text_and_is_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let outputs = Arc::new(OutputStore::open(folder.path()).unwrap());
    let text = format!("the key is {KEY}\u{202e}\n{}", "a line\n".repeat(100_000));
    let secrets: Secrets = [KEY.into()].into_iter().collect();
    let found: Arc<dyn ToolExecutor> = Arc::new(Found(text));
    let toolbox = Toolbox::new(Vec::new(), vec![Arc::clone(&found)], outputs).unwrap();
    let toolbox = toolbox.redacting(secrets.clone());
    for tool in ["happened", "unknown"] {
        let shown = inspect_cut_off(&toolbox, tool).await;
        assert!(shown.contains("[redacted]") && !shown.contains(KEY), "{tool}");
        assert!(!shown.contains('\u{202e}') && shown.len() <= RESULT_BYTES_MAX, "{tool}");
        assert!(shown.contains("read it with read_result"), "{tool}");
        let redacting = RedactingTools::new(Arc::clone(&found), secrets.clone());
        assert!(!inspect_cut_off(&redacting, tool).await.contains(KEY), "{tool}");
    }
    assert_eq!(inspect_cut_off(&toolbox, "missing").await, "");
}
