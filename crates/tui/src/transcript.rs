//! The watched task as lines: finished ones for the scrollback, and those that still change.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use antiphon_core::{
    Event, EventBody, InputBlock, Message, PriceTable, Seq, TaskId, ToolResultMessage,
};
use antiphon_runtime::{Delta, DeltaEvent, ToolDelta};
use antiphon_view::display::Destination;
use antiphon_view::{
    Colors, Descendants, NotePlacement, Transcript, TranscriptFormat, TranscriptOptions,
};
use ratatui_core::style::{Color, Modifier, Style};
use ratatui_core::text::{Line, Span};

use crate::answer::Answer;
use crate::markdown::expand_tabs;
use crate::sgr;
use crate::wrap::wrap;

/// Lines of a running command's output that are shown.
const OUTPUT_LINES: usize = 4;

/// Lines of a result that stay in the transcript.
const RESULT_LINES: usize = 4;

/// Text in the order in which the transcript wrote it.
enum Piece {
    Answer(String),
    Note(String),
}

/// A writer of the transcript.
struct PieceWriter {
    pieces: Arc<Mutex<VecDeque<Piece>>>,
    kind: fn(String) -> Piece,
}

impl Write for PieceWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes).into_owned();
        let mut pieces = self.pieces.lock().unwrap_or_else(PoisonError::into_inner);
        pieces.push_back((self.kind)(text));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A task that is watched.
pub(crate) struct TaskTranscript {
    pub(crate) task_id: TaskId,
    /// The last event of it that was shown.
    pub(crate) seen: Seq,
    transcript: Transcript,
    pieces: Arc<Mutex<VecDeque<Piece>>>,
    descendants: Descendants,
    answer: Answer,
    /// The last lines of output of the call that runs.
    output: VecDeque<String>,
    finished: Vec<Line<'static>>,
    width: usize,
}

impl TaskTranscript {
    pub(crate) fn new(task_id: TaskId, prices: PriceTable, width: usize) -> Self {
        let pieces = Arc::new(Mutex::new(VecDeque::new()));
        let writer = |kind: fn(String) -> Piece| -> Box<dyn Write + Send> {
            Box::new(PieceWriter { pieces: Arc::clone(&pieces), kind })
        };
        let transcript = Transcript::new(TranscriptOptions {
            format: TranscriptFormat::Text,
            answers: writer(Piece::Answer),
            notes: writer(Piece::Note),
            note_placement: NotePlacement::Inline,
            destination: Destination::Terminal,
            status_line: false,
            colors: Colors::On,
            prices,
        });
        Self {
            descendants: Descendants::new(task_id.clone()),
            task_id,
            seen: Seq(0),
            transcript,
            pieces,
            answer: Answer::default(),
            output: VecDeque::new(),
            finished: Vec::new(),
            width,
        }
    }

    pub(crate) fn resize(&mut self, width: usize) {
        self.width = width;
    }

    /// Whether an event is of the task or of one below it.
    pub(crate) fn concerns(&self, event: &Event) -> bool {
        event.task_id == self.task_id || self.descendants.concerns(event)
    }

    /// Whether a task is below it.
    pub(crate) fn has_below(&self, task_id: &TaskId) -> bool {
        self.descendants.contains(task_id)
    }

    pub(crate) fn event(&mut self, event: &Event) -> io::Result<()> {
        if event.task_id == self.task_id {
            self.seen = event.seq;
            self.transcript.event(event)?;
            self.descendants.apply_to_top(&event.body);
            self.take_pieces();
            if let EventBody::MessageAppended(appended) = &event.body
                && let Message::ToolResult(result) = &*appended.message
            {
                self.output.clear();
                self.result_lines(result);
            }
        } else {
            for note in self.descendants.apply(event) {
                self.transcript.note_about_descendant(&note);
            }
            if let EventBody::UsageRecorded(recorded) = &event.body {
                self.transcript.add_usage(recorded);
            }
            self.take_pieces();
        }
        self.transcript.set_waiting(self.descendants.waiting_text());
        Ok(())
    }

    pub(crate) fn delta(&mut self, delta: &Delta) -> io::Result<()> {
        if delta.task_id != self.task_id {
            return Ok(());
        }
        if let DeltaEvent::Tool(ToolDelta::ToolOutput { delta, .. }) = &delta.event {
            for line in delta.lines().filter(|line| !line.trim().is_empty()) {
                self.output.push_back(Destination::Terminal.text(line).into_owned());
            }
            while self.output.len() > OUTPUT_LINES {
                self.output.pop_front();
            }
        }
        self.transcript.delta(delta)?;
        self.take_pieces();
        Ok(())
    }

    pub(crate) fn missed(&mut self, count: u64) -> io::Result<()> {
        self.transcript.missed(&self.task_id, count)
    }

    /// What the task does now, how long it has taken and what it has spent.
    pub(crate) fn activity(&mut self) -> String {
        self.transcript.activity_line()
    }

    /// What the task has spent.
    pub(crate) fn spent(&self) -> String {
        self.transcript.spent_text()
    }

    /// The lines that are finished since the last call.
    pub(crate) fn take_finished(&mut self) -> Vec<Line<'static>> {
        std::mem::take(&mut self.finished)
    }

    /// Nothing follows: everything that is live is finished.
    pub(crate) fn finish(&mut self) {
        let lines = self.answer.finish(self.width);
        self.finished.extend(lines);
        self.output.clear();
    }

    /// The lines that still change.
    pub(crate) fn live_lines(&self) -> Vec<Line<'static>> {
        let mut lines =
            if self.answer.is_live() { self.answer.live_lines(self.width) } else { Vec::new() };
        let dim = Style::new().add_modifier(Modifier::DIM);
        for line in &self.output {
            let line = Line::styled(format!("  │ {}", expand_tabs(line)), dim);
            lines.extend(wrap(&line, self.width, 4).into_iter().take(1));
        }
        lines
    }

    fn take_pieces(&mut self) {
        let mut pieces = self.pieces.lock().unwrap_or_else(PoisonError::into_inner);
        for piece in std::mem::take(&mut *pieces) {
            match piece {
                Piece::Answer(text) => self.finished.extend(self.answer.push(&text, self.width)),
                Piece::Note(text) => {
                    self.finished.extend(self.answer.finish(self.width));
                    for line in text.lines() {
                        self.finished.extend(wrap(&sgr::decode(&expand_tabs(line)), self.width, 2));
                    }
                }
            }
        }
    }

    /// The first lines of a result, unless it is an edit, whose difference is shown.
    fn result_lines(&mut self, result: &ToolResultMessage) {
        let texts = result.content.iter().filter_map(|block| match block {
            InputBlock::Text(text) => Some(text.text.as_str()),
            InputBlock::Image(_) => None,
        });
        let text: String = texts.collect();
        if antiphon_view::diff_lines(&text).next().is_some() {
            return;
        }
        let style = if result.is_error {
            Style::new().fg(Color::Red)
        } else {
            Style::new().add_modifier(Modifier::DIM)
        };
        let mut lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        if result.is_error && !lines.is_empty() {
            // The line before says the first one.
            lines.remove(0);
        }
        for line in lines.iter().take(RESULT_LINES) {
            let line = expand_tabs(&Destination::Terminal.text(line));
            let line = Line::from(vec![Span::styled(format!("  │ {line}"), style)]);
            self.finished.extend(wrap(&line, self.width, 4).into_iter().take(2));
        }
        if let Some(more) = lines.len().checked_sub(RESULT_LINES).filter(|more| *more > 0) {
            self.finished.push(Line::styled(format!("  │ … {more} more lines"), style));
        }
    }
}
