use std::sync::{Arc, Mutex};

use antiphon_core::{
    AssistantBlock, AssistantMessage, EVENT_VERSION, MessageAppended, Position, PriceTable, Seq,
    StopReason, TaskId, ToolStarted, UserMessage,
};
use chrono::DateTime;
use serde_json::json;

use super::*;
use crate::colors::Colors;

/// A writer whose text the test can read.
#[derive(Clone, Default)]
struct Buffer(Arc<Mutex<Vec<u8>>>);

impl Buffer {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl Write for Buffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A transcript, and the texts of its answers and notes.
fn transcript(
    format: TranscriptFormat,
    note_placement: NotePlacement,
) -> (Transcript, Buffer, Buffer) {
    let (answers, notes) = (Buffer::default(), Buffer::default());
    let options = TranscriptOptions {
        format,
        answers: Box::new(answers.clone()),
        notes: Box::new(notes.clone()),
        note_placement,
        destination: Destination::Terminal,
        status_line: true,
        colors: Colors::Off,
        prices: PriceTable::default(),
    };
    (Transcript::new(options), answers, notes)
}

fn event(body: impl Into<EventBody>) -> Event {
    let at = DateTime::UNIX_EPOCH;
    let task_id = TaskId::parse("t1").unwrap();
    Event { position: Position(1), task_id, seq: Seq(1), at, body: body.into() }
}

fn answer(text: &str) -> Event {
    let answer = AssistantMessage {
        content: vec![AssistantBlock::text(text)],
        stop_reason: StopReason::EndTurn,
        raw_stop_reason: "end_turn".to_owned(),
        usage: Usage::default(),
        model: None,
        timestamp: DateTime::UNIX_EPOCH,
    };
    event(MessageAppended::new(Message::from(answer)))
}

fn tool_result(is_error: bool, text: &str) -> Event {
    let message: Message = serde_json::from_value(json!({
        "type": "tool_result", "tool_call_id": "c1", "tool_name": "edit", "is_error": is_error,
        "content": [{ "type": "text", "text": text }], "timestamp": "2026-01-01T00:00:00Z",
    }))
    .unwrap();
    event(MessageAppended::new(message))
}

#[test]
fn an_answer_with_missed_deltas_is_shown_when_it_is_complete_and_with_control_characters_escaped() {
    let (mut transcript, answers, notes) =
        transcript(TranscriptFormat::Text, NotePlacement::Inline);
    let task_id = TaskId::parse("t1").unwrap();
    transcript.event(&answer("No delta of it was seen.")).unwrap();
    transcript.missed(&task_id, 3).unwrap();
    transcript.event(&answer("All \u{1b}[2Jof it.")).unwrap();
    assert_eq!(answers.text(), "No delta of it was seen.\nAll \\u{1b}[2Jof it.\n");
    assert_eq!(notes.text(), "");
}

#[test]
fn a_tool_result_is_a_note_with_its_diff_and_an_error_with_its_first_line() {
    let (mut transcript, answers, notes) =
        transcript(TranscriptFormat::Text, NotePlacement::Separate);
    let started: ToolStarted = serde_json::from_value(
        json!({ "tool_call_id": "c0", "tool_name": "grep", "effect": "read_only" }),
    )
    .unwrap();
    transcript.event(&event(started)).unwrap();
    transcript.event(&tool_result(false, "changed\n@@ -1 +1 @@\n-a\n+b\nend")).unwrap();
    transcript.event(&tool_result(true, "\nno such file\nat all")).unwrap();
    let expected = "→ grep\n✓ edit, 5 lines\n@@ -1 +1 @@\n-a\n+b\n✗ edit no such file\n";
    assert_eq!(notes.text(), expected);
    assert_eq!(answers.text(), "");
}

#[test]
fn the_status_line_is_cut_at_the_width_and_erased_before_a_note() {
    let (mut transcript, _, notes) = transcript(TranscriptFormat::Text, NotePlacement::Inline);
    transcript.set_waiting(Some("1 of 3 agents done".to_owned()));
    transcript.tick(12);
    transcript.note("a note");
    assert_eq!(notes.text(), "\r\x1b[2K⠙ 1 of 3 age\r\x1b[2Ka note\n");
}

#[test]
fn as_json_every_event_is_one_line_and_missed_deltas_are_counted() {
    let (mut transcript, answers, notes) =
        transcript(TranscriptFormat::Json, NotePlacement::Separate);
    let prompt =
        MessageAppended::new(Message::from(UserMessage::text("Go.", DateTime::UNIX_EPOCH)));
    transcript.event(&event(prompt)).unwrap();
    transcript.missed(&TaskId::parse("t1").unwrap(), 7).unwrap();
    let text = answers.text();
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[0]["type"], "message_appended");
    assert_eq!(
        lines[1],
        json!({ "v": EVENT_VERSION, "task_id": "t1", "type": "deltas_missed", "data": { "count": 7 } })
    );
    assert_eq!((lines.len(), notes.text().as_str()), (2, ""));
}
