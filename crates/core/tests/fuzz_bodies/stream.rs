//! Bytes into a wire: they are decoded into pieces and other events of an answer,
//! and the answer is read to its end. See [`Decoder`] for the code.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;

use antiphon_core::port::StopSignal;
use antiphon_core::{
    AssistantMessage, Cancel, InputBlock, Message, MessageStream, ModelRef, NotStarted, Piece,
    ProviderError, RawJson, StopReason, StreamError, StreamEvent, ToolArguments, ToolCallBlock,
    ToolCallId, ToolResultMessage, Usage, sendable,
};
use chrono::DateTime;
use futures_executor::block_on;
use futures_util::StreamExt;
use futures_util::stream::poll_fn;

pub(crate) fn stream(data: &[u8]) {
    let Some((close_after, wire)) = data.split_first() else { return };
    let mut reader = Reader::new(Decoder { rest: wire }.steps());
    // From 200 on the stream is not closed: most answers are read to their end.
    let close_after = usize::from(*close_after);
    let ends = reader.read(if close_after < 200 { close_after } else { usize::MAX });
    reader.check(&ends);
}

/// Something that happens on the wire.
enum Step {
    Piece(Piece),
    Fail,
    Cancel,
}

/// An answer, and what was seen of it.
struct Reader {
    answer: MessageStream,
    text: String,
    thinking: String,
    begun: HashMap<ToolCallId, (String, String)>,
    ended: Vec<ToolCallBlock>,
}

impl Reader {
    fn new(steps: Vec<Step>) -> Self {
        let canceled = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&canceled);
        let cancel = Cancel::when(std::future::poll_fn(move |_| {
            if seen.load(Ordering::SeqCst) { Poll::Ready(()) } else { Poll::Pending }
        }));
        let mut steps = steps.into_iter();
        let wire = poll_fn(move |cx| match steps.next() {
            Some(Step::Piece(piece)) => Poll::Ready(Some(Ok(piece))),
            Some(Step::Fail) => {
                Poll::Ready(Some(Err(ProviderError::Connection { message: String::new() })))
            }
            Some(Step::Cancel) => {
                canceled.store(true, Ordering::SeqCst);
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            None => Poll::Ready(None),
        });
        let answer = MessageStream::new(wire.boxed(), cancel, DateTime::UNIX_EPOCH);
        assert_eq!(answer.message(), Err(NotStarted));
        Self {
            answer,
            text: String::new(),
            thinking: String::new(),
            begun: HashMap::new(),
            ended: Vec::new(),
        }
    }

    /// Reads events to the end, or closes after so many.
    fn read(&mut self, close_after: usize) -> Result<(), StreamError> {
        for _ in 0..close_after {
            match block_on(self.answer.next())? {
                Some(event) => self.take(event),
                None => return Ok(()),
            }
            self.message();
        }
        self.answer.close();
        block_on(self.answer.next()).map(|event| assert_eq!(event, None))
    }

    fn take(&mut self, event: StreamEvent) {
        match event {
            StreamEvent::TextDelta { delta } => self.text.push_str(&delta),
            StreamEvent::ThinkingDelta { delta } => self.thinking.push_str(&delta),
            StreamEvent::ToolCallBegin { id, name } => {
                let before = self.begun.insert(id, (name, String::new()));
                assert_eq!(before, None, "one id, two calls");
            }
            StreamEvent::ToolCallDelta { id, delta } => {
                self.begun.get_mut(&id).expect("a call begins first").1.push_str(&delta);
            }
            StreamEvent::ToolCallEnd { call } => {
                let (name, arguments) = self.begun[&call.id].clone();
                assert_eq!(call.name, name);
                assert_eq!(call.arguments, ToolArguments::from_model(arguments));
                self.ended.push(call);
            }
        }
    }

    /// The message so far, which holds no call whose end is not on its way to the reader.
    fn message(&self) -> AssistantMessage {
        let message = self.answer.message().expect("it was read");
        assert!(message.tool_calls().all(|call| self.begun.contains_key(&call.id)));
        message
    }

    fn check(&mut self, ends: &Result<(), StreamError>) {
        let message = self.message();
        let again = block_on(self.answer.next());
        assert_eq!(again, ends.clone().map(|()| None), "the end is always the same");
        assert_eq!(self.answer.message().as_ref(), Ok(&message));
        match ends {
            Ok(()) => {
                let mut calls: Vec<_> = message.tool_calls().cloned().collect();
                let mut ended = self.ended.clone();
                for list in [&mut calls, &mut ended] {
                    list.sort_by(|a, b| a.id.cmp(&b.id));
                }
                assert_eq!(calls, ended);
                assert_eq!(message.text().len(), self.text.len());
            }
            Err(StreamError::Closed) => {
                assert_eq!(message.stop_reason, StopReason::Aborted);
            }
            Err(StreamError::Canceled) => {
                assert_eq!(message.stop_reason, StopReason::Aborted);
                assert!(message.tool_calls().all(|call| self.ended.contains(call)));
            }
            Err(StreamError::Provider(_)) => {
                assert_eq!(message.stop_reason, StopReason::Error);
                assert!(message.tool_calls().all(|call| self.ended.contains(call)));
            }
        }
        can_be_sent(message);
    }
}

/// With a result for each call, all of an answer that did not break off can be sent; and it can
/// be written down and read back.
fn can_be_sent(message: AssistantMessage) {
    let calls = message.tool_calls().count();
    let broken = matches!(message.stop_reason, StopReason::Error | StopReason::Aborted);
    let empty = message.content.is_empty();
    let results = message.tool_calls().map(|call| {
        Arc::<Message>::from(ToolResultMessage {
            tool_call_id: call.id.clone(),
            tool_name: call.name.clone(),
            content: vec![InputBlock::text("ok")],
            is_error: false,
            timestamp: message.timestamp,
        })
    });
    let mut history: Vec<Arc<Message>> = results.collect();
    history.insert(0, message.into());
    let sent = sendable(&history);
    assert_eq!(sent.len(), if broken || empty { 0 } else { 1 + calls });
    assert_eq!(sendable(&sent), sent);
    let json = serde_json::to_string(&history).expect("a history can be written");
    let read: Vec<Arc<Message>> = serde_json::from_str(&json).expect("and read");
    assert_eq!(read, history);
}

/// One byte says what happens, its high bits on which block; a text is a length and its bytes.
///
/// | low bits | step      | then                        |
/// |----------|-----------|-----------------------------|
/// | 0        | text      | text                        |
/// | 1        | thinking  | text                        |
/// | 2        | signature | text                        |
/// | 3        | tool call | id, name, arguments         |
/// | 4        | opaque    | text, its value if it is JSON |
/// | 5        | block end |                             |
/// | 6        | usage, stop, model, alive, failure or cancellation by the high bits | |
/// | 7        | done      |                             |
struct Decoder<'a> {
    rest: &'a [u8],
}

impl Decoder<'_> {
    fn steps(mut self) -> Vec<Step> {
        let mut steps = Vec::new();
        while let Some(byte) = self.byte() {
            steps.push(self.step(byte & 7, u32::from(byte >> 3)));
        }
        steps
    }

    fn step(&mut self, what: u8, block: u32) -> Step {
        Step::Piece(match what {
            0 => Piece::Text { block, delta: self.text() },
            1 => Piece::Thinking { block, delta: self.text() },
            2 => Piece::Signature { block, delta: self.text() },
            3 => Piece::ToolCall {
                block,
                id: Some(self.text()).filter(|text| text != "-"),
                name: Some(self.text()).filter(|text| text != "-"),
                arguments: self.text(),
            },
            4 => {
                let value =
                    RawJson::parse(&self.text()).unwrap_or_else(|_| RawJson::empty_object());
                Piece::Opaque { block, kind: "sealed".to_owned(), value }
            }
            5 => Piece::BlockEnd { block },
            6 => return self.aside(block),
            _ => Piece::Done,
        })
    }

    fn aside(&mut self, which: u32) -> Step {
        const REASONS: [StopReason; 4] =
            [StopReason::EndTurn, StopReason::Length, StopReason::ToolUse, StopReason::Unknown];
        Step::Piece(match which % 8 {
            0..4 => Piece::Stop(StopSignal {
                reason: REASONS[which as usize % REASONS.len()],
                raw: String::new(),
            }),
            4 => Piece::Usage(Usage { input_tokens: u64::from(which), ..Usage::default() }),
            5 => match ModelRef::parse(&self.text()) {
                Ok(model) => Piece::Model(model),
                Err(_) => Piece::Alive,
            },
            6 => return Step::Fail,
            _ => return Step::Cancel,
        })
    }

    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    fn text(&mut self) -> String {
        let length = self.byte().map_or(0, usize::from).min(self.rest.len());
        let (text, rest) = self.rest.split_at(length);
        self.rest = rest;
        String::from_utf8_lossy(text).into_owned()
    }
}
