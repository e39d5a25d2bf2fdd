//! Calls of the file tools: their definitions, cancellation, a dropped call.

use antiphon_core::port::ToolContext;
use antiphon_core::{Cancel, RawJson, ToolError, ToolExecutor};
use serde_json::{Value, json};

use crate::read::huge_text;
use crate::world::{World, context};

#[test]
fn arguments_are_described_plainly() {
    let tools = World::new().toolbox.tools();
    let parameters = |name: &str| -> Value {
        tools.iter().find(|tool| tool.name == name).unwrap().parameters.to().unwrap()
    };
    let count = |description: &str| json!({ "description": description, "type": "integer" });
    assert_eq!(
        parameters("read"),
        json!({
            "type": "object",
            "properties": {
                "path": { "description": "Relative or absolute.", "type": "string" },
                "offset": count("The first line to show, from 1."),
                "limit": count("Most lines to show."),
            },
            "required": ["path"],
        })
    );
    let edits = &parameters("edit")["properties"]["edits"];
    assert_eq!(edits["items"]["required"], json!(["old", "new"]));
    assert_eq!((&edits["minItems"], &edits["maxItems"]), (&json!(1), &json!(1_000)));
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
    world.read("a.txt").tool_output();
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
