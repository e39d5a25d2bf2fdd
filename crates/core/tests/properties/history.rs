//! For any journal, the sent conversation is one that a model accepts.

use std::collections::HashSet;
use std::sync::Arc;

use antiphon_core::{
    AssistantBlock, AssistantMessage, IdRule, InputBlock, Message, ModelRef, StopReason,
    ToolCallId, UserMessage, for_model, sendable,
};
use proptest::prelude::*;

use crate::any_conversation::{conversation, model};
use crate::config;

/// Every call has one result, directly behind its answer and in the order of the calls; no
/// result stands alone; nothing is empty or broken off.
fn is_accepted(messages: &[Arc<Message>]) -> Result<(), TestCaseError> {
    let mut rest = messages.iter();
    while let Some(message) = rest.next() {
        match &**message {
            Message::User(user) => prop_assert!(!user.content.is_empty()),
            Message::ToolResult(result) => {
                prop_assert!(false, "{} stands alone", result.tool_call_id);
            }
            Message::Assistant(answer) => {
                prop_assert!(!answer.content.is_empty());
                prop_assert!(!matches!(
                    answer.stop_reason,
                    StopReason::Error | StopReason::Aborted
                ));
                let calls: Vec<&ToolCallId> = answer.tool_calls().map(|call| &call.id).collect();
                prop_assert_eq!(calls.iter().collect::<HashSet<_>>().len(), calls.len());
                let results: Vec<&ToolCallId> =
                    rest.by_ref().take(calls.len()).filter_map(result_id).collect();
                prop_assert_eq!(results, calls);
            }
        }
    }
    Ok(())
}

fn result_id(message: &Arc<Message>) -> Option<&ToolCallId> {
    match &**message {
        Message::ToolResult(result) => Some(&result.tool_call_id),
        Message::User(_) | Message::Assistant(_) => None,
    }
}

fn answers(messages: &[Arc<Message>]) -> impl Iterator<Item = &AssistantMessage> {
    messages.iter().filter_map(|message| match &**message {
        Message::Assistant(answer) => Some(answer),
        Message::User(_) | Message::ToolResult(_) => None,
    })
}

/// The messages of the user that say something.
fn questions(messages: &[Arc<Message>]) -> Vec<&InputBlock> {
    let said = |block: &&InputBlock| match block {
        InputBlock::Text(text) => {
            // The note about an interrupted answer is ours.
            !text.text.trim().is_empty() && !text.text.starts_with("[Your answer above was")
        }
        InputBlock::Image(_) => true,
    };
    let mut questions = Vec::new();
    for message in messages {
        if let Message::User(UserMessage { content, .. }) = &**message {
            questions.extend(content.iter().filter(said));
        }
    }
    questions
}

/// Whether only its own model understands the block.
fn is_private(block: &AssistantBlock) -> bool {
    match block {
        AssistantBlock::Thinking(_) | AssistantBlock::Opaque(_) => true,
        AssistantBlock::ToolCall(call) => call.signature.is_some(),
        AssistantBlock::Text(_) => false,
    }
}

/// Whether nothing was copied.
fn are_shared(one: &[Arc<Message>], other: &[Arc<Message>]) -> bool {
    std::iter::zip(one, other).all(|(one, other)| Arc::ptr_eq(one, other))
}

fn rule() -> impl Strategy<Value = IdRule> {
    prop_oneof![
        Just(IdRule::Any),
        (9_usize..64).prop_map(|bytes_max| IdRule::Plain { bytes_max }),
        (8_usize..64).prop_map(|bytes| IdRule::Exactly { bytes }),
    ]
}

fn fits(rule: IdRule, id: &ToolCallId) -> bool {
    match rule {
        IdRule::Any => true,
        IdRule::Plain { bytes_max } => {
            let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
            id.as_str().len() <= bytes_max && id.as_str().chars().all(plain)
        }
        IdRule::Exactly { bytes } => {
            let id = id.as_str();
            id.len() == bytes && id.chars().all(|c| c.is_ascii_alphanumeric())
        }
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn what_is_sendable_is_accepted_and_stays_as_it_is(history in conversation()) {
        let sent = sendable(&history);
        is_accepted(&sent)?;
        prop_assert_eq!(&sendable(&sent), &sent);
        prop_assert!(are_shared(&sendable(&sent), &sent));
    }

    #[test]
    fn nothing_is_made_up_and_nothing_the_user_said_is_lost(history in conversation()) {
        let sent = sendable(&history);
        prop_assert_eq!(questions(&sent), questions(&history));
        let results = |messages: &[Arc<Message>]| -> HashSet<ToolCallId> {
            messages.iter().filter_map(result_id).cloned().collect()
        };
        prop_assert!(results(&sent).is_subset(&results(&history)));
        let blocks: Vec<_> = answers(&history).flat_map(|answer| &answer.content).collect();
        prop_assert!(answers(&sent).flat_map(|a| &a.content).all(|block| blocks.contains(&block)));
    }

    #[test]
    fn any_model_accepts_what_it_is_handed(
        history in conversation(), model in model(), rule in rule(),
    ) {
        let handed = for_model(&history, &model, rule);
        is_accepted(&handed)?;
        let ids: Vec<_> = answers(&handed).flat_map(AssistantMessage::tool_calls).collect();
        let unique: HashSet<&ToolCallId> = ids.iter().map(|call| &call.id).collect();
        prop_assert_eq!(unique.len(), ids.len());
        prop_assert!(unique.into_iter().all(|id| fits(rule, id)));
        prop_assert_eq!(&for_model(&handed, &model, rule), &handed);
        prop_assert!(are_shared(&for_model(&handed, &model, rule), &handed));
    }

    #[test]
    fn a_model_is_handed_nothing_that_only_another_understands(history in conversation()) {
        let stranger = ModelRef::parse("nobody/else").unwrap();
        let handed = for_model(&history, &stranger, IdRule::Any);
        prop_assert!(answers(&handed).flat_map(|answer| &answer.content).all(|b| !is_private(b)));
    }
}
