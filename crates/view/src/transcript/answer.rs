//! The text of the model in a transcript: as it arrives, or when it is complete, because deltas were missed.

use std::io;

use antiphon_core::{AssistantMessage, EVENT_VERSION, OutageWait, Seq, StreamEvent, TaskId};
use antiphon_runtime::{Delta, DeltaEvent, ToolDelta};

use super::{Transcript, TranscriptFormat};
use crate::display::{TextFilter, escaped};
use crate::text::{cut, one_line};
use crate::wording::{outage_wait_text, tool_call_title};

/// Line behind a part of an answer that was superseded.
const SUPERSEDED: &str = "[The answer broke off here. It begins again.]\n";

/// Deltas of the next answer that are kept until the journal has been read up to its beginning. One more
/// drops all of them, and the answer is shown when it is complete.
const EARLY_MAX: usize = 4096;

/// When the answers of the model are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answers {
    AsTheyArrive,
    /// When they are complete, because deltas were missed.
    WhenComplete,
    /// The current one when it is complete, because its beginning was missed; later ones as they arrive.
    ThisWhenComplete,
}

/// Which answer is being shown. Deltas arrive before the journal is read: those of an answer whose
/// beginning has not been read wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Showing {
    /// None: the last one is complete.
    None,
    /// The one whose deltas arrive next.
    Next,
    /// The one behind this many complete answers.
    Turn(u32),
}

impl Showing {
    /// Whether a delta of that answer is shown now.
    fn accepts(&mut self, turn: u32) -> bool {
        match *self {
            Self::None => false,
            Self::Next => {
                *self = Self::Turn(turn);
                true
            }
            Self::Turn(shown) => turn <= shown,
        }
    }
}

impl Transcript {
    /// Shows a delta of the task.
    pub fn delta(&mut self, delta: &Delta) -> io::Result<()> {
        if self.is_json() {
            return self.json_line(delta);
        }
        if matches!(&delta.event, DeltaEvent::Answer(_)) {
            if delta.after < self.superseded_at {
                return Ok(());
            }
            // After a resume, the events before are not shown.
            let is_early = self.seq > Seq(0) && delta.after > self.seq;
            if is_early || !self.showing.accepts(delta.turn) {
                return self.keep_early(delta);
            }
        }
        match &delta.event {
            DeltaEvent::Answer(StreamEvent::TextDelta { .. })
                if self.answers != Answers::AsTheyArrive =>
            {
                Ok(())
            }
            DeltaEvent::Answer(StreamEvent::TextDelta { delta: text }) => {
                if delta.text_at > self.shown_bytes {
                    self.answers = Answers::ThisWhenComplete;
                    return Ok(());
                }
                // What was shown before the stream was opened again is not shown twice.
                match text.get(self.shown_bytes.saturating_sub(delta.text_at)..) {
                    None | Some("") => Ok(()),
                    Some(more) => {
                        self.shown_bytes = self.shown_bytes.saturating_add(more.len());
                        self.write_answer(more)
                    }
                }
            }
            DeltaEvent::Answer(StreamEvent::ThinkingDelta { .. }) => {
                "thinking".clone_into(&mut self.activity);
                Ok(())
            }
            DeltaEvent::Answer(StreamEvent::ToolCallBegin { name, .. }) => {
                self.activity = format!("writing a call of {}", escaped(name));
                Ok(())
            }
            // The journal says the same of a superseded answer.
            DeltaEvent::State(_)
            | DeltaEvent::Answer(
                StreamEvent::ToolCallDelta { .. } | StreamEvent::ToolCallEnd { .. },
            ) => Ok(()),
            DeltaEvent::Tool(ToolDelta::ToolOutput { tool_call_id, delta }) => {
                if let Some(last) = delta.lines().rev().find(|line| !line.trim().is_empty()) {
                    let name = self.calls.get(tool_call_id).map_or("", |(title, _)| title);
                    self.activity = cut(&format!("{name} │ {}", one_line(last)));
                }
                Ok(())
            }
        }
    }

    fn keep_early(&mut self, delta: &Delta) -> io::Result<()> {
        if self.early.len() < EARLY_MAX {
            self.early.push(delta.clone());
            return Ok(());
        }
        self.early.clear();
        self.missed(&delta.task_id, EARLY_MAX as u64)
    }

    /// Notes that this many deltas were missed: the answer is shown when it is complete.
    pub fn missed(&mut self, task_id: &TaskId, count: u64) -> io::Result<()> {
        match self.options.format {
            TranscriptFormat::Json => self.json_line(&serde_json::json!({
                "v": EVENT_VERSION, "task_id": task_id, "type": "deltas_missed",
                "data": { "count": count },
            })),
            TranscriptFormat::Text | TranscriptFormat::Result => {
                self.answers = Answers::WhenComplete;
                Ok(())
            }
        }
    }

    /// The next answer begins, and everything before it has been shown.
    pub(super) fn begin_answer(&mut self) -> io::Result<()> {
        if self.shown_bytes > 0 {
            // The process that received it has ended before it was complete.
            self.supersede()?;
        }
        self.showing = Showing::Next;
        self.filter = TextFilter::new(self.options.destination);
        for early in std::mem::take(&mut self.early) {
            self.delta(&early)?;
        }
        Ok(())
    }

    /// An answer is complete: shows the rest of it.
    pub(super) fn complete_answer(&mut self, answer: &AssistantMessage) -> io::Result<()> {
        self.calls =
            answer.tool_calls().map(|c| (c.id.clone(), (tool_call_title(c), None))).collect();
        self.showing = Showing::None;
        let shown_bytes = std::mem::take(&mut self.shown_bytes);
        let text = answer.text();
        let rest = text.get(shown_bytes..).unwrap_or(&text);
        // Also when the stream was opened after its last delta.
        if self.answers != Answers::AsTheyArrive || !rest.is_empty() {
            self.write_answer(rest)?;
            self.end_line();
        }
        if self.answers == Answers::ThisWhenComplete {
            self.answers = Answers::AsTheyArrive;
        }
        Ok(())
    }

    /// What was shown of the answer does not count: it begins again.
    fn supersede(&mut self) -> io::Result<()> {
        let shown = std::mem::take(&mut self.shown_bytes) > 0;
        if shown && self.options.format == TranscriptFormat::Text {
            self.end_line();
            self.write_answer(SUPERSEDED)?;
        }
        if self.answers == Answers::ThisWhenComplete {
            self.answers = Answers::AsTheyArrive;
        }
        self.filter = TextFilter::new(self.options.destination);
        Ok(())
    }

    /// The task is suspended: what is shown of an answer that is not complete does not count, and nothing more of it is
    /// shown. Whether there was such an answer.
    pub fn cut_answer(&mut self) -> bool {
        if std::mem::take(&mut self.shown_bytes) == 0 {
            return false;
        }
        self.end_line();
        (self.superseded_at, self.showing) = (self.seq, Showing::None);
        if self.answers == Answers::ThisWhenComplete {
            self.answers = Answers::AsTheyArrive;
        }
        self.filter = TextFilter::new(self.options.destination);
        true
    }

    /// The model does not answer: the task waits. What was shown of the answer is superseded.
    pub(super) fn model_wait(&mut self, wait: &OutageWait) -> io::Result<()> {
        if wait.superseded {
            self.superseded_at = self.seq;
            self.supersede()?;
            self.showing = Showing::Next;
        }
        let text = outage_wait_text(wait);
        self.note(&text);
        self.activity = text;
        Ok(())
    }

    /// The task continues. A task that waited for its model goes on with the answer.
    pub(super) fn continue_task(&mut self) {
        "running".clone_into(&mut self.activity);
        if self.showing == Showing::None {
            self.showing = Showing::Next;
        }
    }
}
