//! A long body is sent in parts, which the server cannot tell from one piece.

use std::sync::Arc;

use antiphon_core::{
    AssistantBlock, AssistantMessage, IdRule, Message, ModelRef, Piece, StopReason, Usage,
    UserMessage,
};
use antiphon_model_server::Reply;
use antiphon_model_transport::{Endpoint, History, HistoryCache, Post, write_items};
use chrono::DateTime;
use serde_json::json;

use crate::world::{Echo, read, server, transport};

fn turn(number: usize) -> [Arc<Message>; 2] {
    let text = format!("{number}: {}", "\"Go on.\"\n".repeat(1_000));
    let answer = AssistantMessage {
        content: vec![AssistantBlock::text(&*text)],
        stop_reason: StopReason::EndTurn,
        raw_stop_reason: String::new(),
        usage: Usage::default(),
        model: None,
        timestamp: DateTime::UNIX_EPOCH,
    };
    [UserMessage::text(text, DateTime::UNIX_EPOCH).into(), answer.into()]
}

#[tokio::test]
async fn a_long_conversation_arrives_whole_and_with_its_length() {
    let server = server(Reply::events("data: done\n\n")).await;
    let (transport, histories) = (transport(), HistoryCache::default());
    let model = ModelRef::parse("wire/m").unwrap();
    let mut messages: Vec<Arc<Message>> = Vec::new();
    for number in 0..60 {
        messages.extend(turn(number));
        if number % 7 > 0 {
            continue;
        }
        let history = History { messages: &messages, model: &model, ids: IdRule::Any };
        let body = histories.body(&json!({ "a": 1 }), "items", b"0", history, |part, _, items| {
            write_items(part, items)
        });
        let body = body.unwrap();
        let whole = format!(
            r#"{{"a":1,"items":[0,{}]}}"#,
            serde_json::to_string(&messages).unwrap().trim_matches(['[', ']'])
        );
        assert_eq!((body.len(), body.to_vec() == whole.as_bytes()), (whole.len(), true));
        let post = Post::json(Endpoint::parse(&server.url()).unwrap(), body);
        assert_eq!(read(transport.stream(post, Echo)).await, [Ok(Piece::Done)]);
        let received = server.requests().pop().unwrap();
        assert_eq!(received.header("content-length"), Some(whole.len().to_string().as_str()));
        assert_eq!(received.header("transfer-encoding"), None);
        assert!(received.body == whole.as_bytes(), "{number}");
    }
    assert_eq!(server.connections(), 1, "all over one connection");
}
