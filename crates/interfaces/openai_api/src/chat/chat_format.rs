//! Writes the answer to a chat request.

use std::collections::VecDeque;

use antiphon_interface_transport::answer::{
    AnswerEnd, AnswerError, AnswerFormat, AnswerPart, StreamLine,
};
use serde_json::{Value, json};

use crate::chat::canonical_messages;
use crate::chat::completion_json::{CompletionHeader, call_delta};
use crate::openai_error::{self, Shape};

/// Writes the answer to a chat request.
pub(crate) struct ChatFormat {
    pub(crate) shape: Shape,
    pub(crate) header: CompletionHeader,
    pub(crate) include_usage: bool,
    /// Text so far.
    pub(crate) text: String,
}

impl AnswerFormat for ChatFormat {
    fn begin(&mut self, lines: &mut VecDeque<StreamLine>) {
        if self.shape == Shape::OpenAi {
            let role = json!({ "role": "assistant", "content": "" });
            lines.push_back(line(self.header.chunk(&role, None)));
        }
    }

    fn collect(&mut self, part: &AnswerPart) {
        match part {
            AnswerPart::Text(text) => self.text.push_str(text),
            AnswerPart::Away(away) => {
                let kept = self.text.len().saturating_sub(away.superseded_bytes);
                self.text.truncate(kept);
            }
            AnswerPart::Thinking(_)
            | AnswerPart::Step(_)
            | AnswerPart::Approval(_)
            | AnswerPart::End(_) => {}
        }
    }

    fn shows(&self, part: &AnswerPart) -> bool {
        matches!(part, AnswerPart::Text(_) | AnswerPart::End(_))
    }

    fn stream(&mut self, part: AnswerPart, lines: &mut VecDeque<StreamLine>) {
        match (part, self.shape) {
            (AnswerPart::Text(text), Shape::OpenAi) => {
                lines.push_back(line(self.header.chunk(&json!({ "content": text }), None)));
            }
            (AnswerPart::Text(text), Shape::Canonical) => {
                lines.push_back(line(json!({ "delta": text })));
                self.text.push_str(&text);
            }
            (AnswerPart::End(end), Shape::OpenAi) => {
                for (index, call) in end.calls.iter().enumerate() {
                    lines.push_back(line(self.header.chunk(&call_delta(index, call), None)));
                }
                lines.push_back(line(self.header.chunk(&json!({}), Some(end.reason))));
                if self.include_usage {
                    lines.push_back(line(self.header.usage_chunk(end.usage)));
                }
                lines.push_back(done());
            }
            (AnswerPart::End(end), Shape::Canonical) => {
                lines.push_back(line(self.whole(&end)));
                lines.push_back(done());
            }
            (
                AnswerPart::Thinking(_)
                | AnswerPart::Step(_)
                | AnswerPart::Away(_)
                | AnswerPart::Approval(_),
                _,
            ) => {}
        }
    }

    fn whole(&mut self, end: &AnswerEnd) -> Value {
        match self.shape {
            Shape::OpenAi => self.header.whole(&self.text, end),
            Shape::Canonical => json!(canonical_messages::response(&self.header, &self.text, end)),
        }
    }

    /// The error is the last line, without `[DONE]`.
    fn stream_error(&mut self, error: &AnswerError, lines: &mut VecDeque<StreamLine>) {
        lines.push_back(line(self.error_body(error)));
    }

    fn error_body(&self, error: &AnswerError) -> Value {
        openai_error::body(error, self.shape)
    }
}

fn line(data: Value) -> StreamLine {
    StreamLine { event: None, data: data.to_string() }
}

fn done() -> StreamLine {
    StreamLine { event: None, data: "[DONE]".to_owned() }
}
