//! What tools say, without the secrets we know.

use std::sync::{Arc, Mutex};

use antiphon_core::port::{Progress, ToolContext};
use antiphon_core::{
    Cancel, Effect, InputBlock, RawJson, Tool, ToolError, ToolExecutor, ToolResult,
};
use antiphon_file_tools::{Redacting, Secrets};
use async_trait::async_trait;
use proptest::prelude::*;

const KEY: &str = "sk-abcabcd-1234";
const LONGER: &str = "sk-abcabcd-1234-and-more";

/// Says what it was given: piece by piece, then as a whole.
struct Parrot {
    pieces: Vec<String>,
}

#[async_trait]
impl ToolExecutor for Parrot {
    fn tools(&self) -> Vec<Tool> {
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

/// What is said meanwhile, and what comes of it.
async fn said(tool: &str, pieces: &[&str]) -> (String, Result<ToolResult, ToolError>) {
    let pieces = pieces.iter().map(|&piece| piece.to_owned()).collect();
    let tools = Redacting::new(Arc::new(Parrot { pieces }), secrets());
    let heard = Arc::new(Mutex::new(String::new()));
    let hearing = Arc::clone(&heard);
    let progress = Progress::to(move |text| hearing.lock().unwrap().push_str(text));
    let context = ToolContext { progress, ..ToolContext::trial(Cancel::never()) };
    let result = tools.execute(tool, &RawJson::empty_object(), context).await;
    let heard = heard.lock().unwrap().clone();
    (heard, result)
}

fn text(result: &ToolResult) -> String {
    let text = |block: &InputBlock| match block {
        InputBlock::Text(text) => text.text.clone(),
        InputBlock::Image(_) => String::new(),
    };
    result.content.iter().map(text).collect()
}

#[tokio::test]
async fn whole_secrets_are_taken_out_wherever_they_stand_and_nothing_else_is() {
    for (said_by_tool, kept) in [
        (format!("KEY={KEY}\nOTHER=1"), "KEY=[redacted]\nOTHER=1"),
        (format!("{KEY}{KEY}"), "[redacted][redacted]"),
        (format!("x{LONGER}x"), "x[redacted]x"),
        ("a token of ours".to_owned(), "[redacted]"),
        ("short sk-abc sk-abcabcd-123 é".to_owned(), "short sk-abc sk-abcabcd-123 é"),
        (KEY.to_uppercase(), "SK-ABCABCD-1234"),
        (String::new(), ""),
    ] {
        for tool in ["works", "fails"] {
            let (heard, result) = said(tool, &[&said_by_tool]).await;
            let result = result.unwrap();
            assert_eq!((text(&result).as_str(), result.is_error), (kept, tool == "fails"));
            assert_eq!(heard, kept);
        }
        let (_, broken) = said("breaks", &[&said_by_tool]).await;
        let (tool, reason) = ("breaks".to_owned(), kept.to_owned());
        assert_eq!(broken, Err(ToolError::Unavailable { tool, reason }));
    }
}

#[tokio::test]
async fn a_secret_in_pieces_is_one() {
    let (heard, _) = said("works", &["now sk-abc", "sk-abcab", "cd-12", "34", " and sk-ab"]).await;
    assert_eq!(heard, "now sk-abc[redacted] and sk-ab");
    assert_eq!(format!("{:?}", secrets()), "Secrets(***)");
}

proptest! {
    #[test]
    fn however_it_is_cut_nobody_hears_a_secret_and_everybody_hears_the_rest(
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
        let (heard, result) = runtime.block_on(said("works", &pieces));
        prop_assert!(!heard.contains(KEY));
        prop_assert_eq!(text(&result.unwrap()), whole.replace(KEY, "[redacted]"));
        prop_assert_eq!(heard, whole.replace(KEY, "[redacted]"));
    }
}
