//! Known secrets are removed from what tools return.

use std::sync::{Arc, Mutex};

use antiphon_core::port::{Progress, ToolContext};
use antiphon_core::redaction::Secrets;
use antiphon_core::{
    Cancel, Effect, InputBlock, RawJson, Tool, ToolError, ToolExecutor, ToolResult,
};
use antiphon_toolbox::RedactingTools;
use async_trait::async_trait;
use proptest::prelude::*;

const KEY: &str = "sk-abcabcd-1234";
const LONGER: &str = "sk-abcabcd-1234-and-more";

/// Reports its text piece by piece, then returns the whole.
struct Echo {
    pieces: Vec<String>,
}

#[async_trait]
impl ToolExecutor for Echo {
    fn tools(&self) -> Vec<Arc<Tool>> {
        Vec::new()
    }

    fn effect(&self, _: &str) -> Option<Effect> {
        Some(Effect::ReadOnly)
    }

    async fn execute(
        &self,
        tool: &str,
        _: &RawJson,
        context: ToolContext,
    ) -> Result<ToolResult, ToolError> {
        for piece in &self.pieces {
            context.progress.say(piece);
        }
        let reason = self.pieces.concat();
        match tool {
            "fails" => Ok(ToolResult::failed(reason)),
            "breaks" => Err(ToolError::Unavailable { tool: tool.to_owned(), reason }),
            _ => Ok(ToolResult::text(reason)),
        }
    }
}

fn secrets() -> Secrets {
    Secrets::from_iter([KEY, LONGER, "short", "\n a token of ours \n"].map(Into::into))
}

/// The progress and the result of a call.
async fn call(tool: &str, pieces: &[&str]) -> (String, Result<ToolResult, ToolError>) {
    let pieces = pieces.iter().map(|&piece| piece.to_owned()).collect();
    let tools = RedactingTools::new(Arc::new(Echo { pieces }), secrets());
    let progress_text = Arc::new(Mutex::new(String::new()));
    let sink = Arc::clone(&progress_text);
    let progress = Progress::to(move |text| sink.lock().unwrap().push_str(text));
    let context = ToolContext { progress, ..ToolContext::trial(Cancel::never()) };
    let result = tools.execute(tool, &RawJson::empty_object(), context).await;
    let progress_text = progress_text.lock().unwrap().clone();
    (progress_text, result)
}

fn text(result: &ToolResult) -> String {
    let text = |block: &InputBlock| match block {
        InputBlock::Text(text) => text.text.clone(),
        InputBlock::Image(_) => String::new(),
    };
    result.content.iter().map(text).collect()
}

#[tokio::test]
async fn whole_secrets_are_removed_anywhere_and_nothing_else_is() {
    for (output, expected) in [
        (format!("KEY={KEY}\nOTHER=1"), "KEY=[redacted]\nOTHER=1"),
        (format!("{KEY}{KEY}"), "[redacted][redacted]"),
        (format!("x{LONGER}x"), "x[redacted]x"),
        ("a token of ours".to_owned(), "[redacted]"),
        ("short sk-abc sk-abcabcd-123 é".to_owned(), "short sk-abc sk-abcabcd-123 é"),
        (KEY.to_uppercase(), "SK-ABCABCD-1234"),
        (String::new(), ""),
    ] {
        for tool in ["works", "fails"] {
            let (progress_text, result) = call(tool, &[&output]).await;
            let result = result.unwrap();
            assert_eq!((text(&result).as_str(), result.is_error), (expected, tool == "fails"));
            assert_eq!(progress_text, expected);
        }
        let (_, broken) = call("breaks", &[&output]).await;
        let (tool, reason) = ("breaks".to_owned(), expected.to_owned());
        assert_eq!(broken, Err(ToolError::Unavailable { tool, reason }));
    }
}

#[tokio::test]
async fn a_secret_split_over_pieces_is_removed() {
    let (progress_text, _) =
        call("works", &["now sk-abc", "sk-abcab", "cd-12", "34", " and sk-ab"]).await;
    assert_eq!(progress_text, "now sk-abc[redacted] and sk-ab");
    assert_eq!(format!("{:?}", secrets()), "Secrets(***)");
}

proptest! {
    #[test]
    fn however_text_is_split_secrets_are_removed_and_the_rest_stays(
        words in prop::collection::vec(prop_oneof![
            Just(KEY.to_owned()), Just("sk-abc".to_owned()), Just("sk-".to_owned()), "[a-cé -]{0,6}"
        ], 0..8),
        size in 1usize..9,
    ) {
        let whole = words.concat();
        let letters: Vec<char> = whole.chars().collect();
        let pieces: Vec<String> = letters.chunks(size).map(|piece| piece.iter().collect()).collect();
        let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let (progress_text, result) = runtime.block_on(call("works", &pieces));
        prop_assert!(!progress_text.contains(KEY));
        prop_assert_eq!(text(&result.unwrap()), whole.replace(KEY, "[redacted]"));
        prop_assert_eq!(progress_text, whole.replace(KEY, "[redacted]"));
    }
}
