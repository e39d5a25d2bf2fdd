//! The watched task as lines: finished ones for the scrollback, and those that still change.

pub(crate) mod answer;
pub(crate) mod call_output;
pub(crate) mod document;
pub(crate) mod thinking;
pub(crate) mod todo_list;

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use antiphon_core::{
    AssistantMessage, Event, EventBody, Message, ModelRef, PriceTable, Seq, StreamEvent, TaskId,
    TodoItem, ToolResultMessage, UsageRecorded,
};
use antiphon_project::settings::ContextWindows;
use antiphon_runtime::{AnswerDelta, Delta, DeltaEvent, ToolDelta};
use antiphon_view::display::Destination;
use antiphon_view::{
    Colors, Descendants, NotePlacement, Transcript, TranscriptFormat, TranscriptOptions,
};
use ratatui_core::style::{Color, Modifier, Style};
use ratatui_core::text::{Line, Span};

use crate::answer::Answer;
use crate::call_output::CallOutput;
use crate::markdown::expand_tabs;
use crate::sgr;
use crate::thinking::Thinking;
use crate::wrap::wrap;

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
    thinking: Thinking,
    /// The thinking of the current answer was folded.
    has_folded: bool,
    /// The last answer was cut off.
    is_cut: bool,
    /// The model of the last call, and the tokens of the conversation after it.
    context: Option<(ModelRef, u64)>,
    /// The last lines of output of each call that runs.
    output: CallOutput,
    /// What the agent has to do.
    todo: Vec<TodoItem>,
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
            thinking: Thinking::default(),
            has_folded: false,
            is_cut: false,
            context: None,
            output: CallOutput::default(),
            todo: Vec::new(),
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
            self.before_event(&event.body);
            self.transcript.event(event)?;
            self.descendants.apply_to_top(&event.body);
            self.take_pieces();
            if let EventBody::MessageAppended(appended) = &event.body
                && let Message::ToolResult(result) = &*appended.message
            {
                self.output.end(&result.tool_call_id);
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
        if let DeltaEvent::Tool(ToolDelta::ToolOutput { tool_call_id, delta }) = &delta.event {
            self.output.add(tool_call_id, delta);
        }
        match &delta.event {
            DeltaEvent::Answer(StreamEvent::ThinkingDelta { delta: text }) => {
                self.thinking.push(delta.turn, text);
            }
            DeltaEvent::State(AnswerDelta::AnswerSuperseded { .. }) => {
                self.thinking = Thinking::default();
            }
            DeltaEvent::Answer(_) | DeltaEvent::Tool(_) => {}
        }
        self.transcript.delta(delta)?;
        self.take_pieces();
        Ok(())
    }

    /// What an event of the task says before its own lines.
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "a new event changes only the readers that show it"
    )]
    fn before_event(&mut self, body: &EventBody) {
        match body {
            EventBody::MessageAppended(appended) => {
                if let Message::Assistant(answer) = &*appended.message
                    && !appended.superseded
                {
                    self.is_cut = !answer.is_complete();
                    self.fold_complete(answer);
                    self.output.begin(answer);
                }
            }
            EventBody::TodoChanged(changed) => self.todo.clone_from(&changed.items),
            EventBody::UsageRecorded(recorded) => self.count_context(recorded),
            _ => {}
        }
    }

    /// An answer is complete: its thinking is folded, unless that was done when its text began.
    fn fold_complete(&mut self, answer: &AssistantMessage) {
        if !std::mem::take(&mut self.has_folded) {
            self.thinking.complete(answer);
            self.fold_thinking();
        }
        self.has_folded = false;
    }

    fn fold_thinking(&mut self) {
        if let Some(line) = self.thinking.fold() {
            self.finished.extend(self.answer.finish(self.width));
            self.finished.extend(wrap(&line, self.width, 2));
            self.has_folded = true;
        }
    }

    fn count_context(&mut self, recorded: &UsageRecorded) {
        let usage = recorded.usage;
        let read = usage.input_tokens
            + usage.cache_read_tokens.unwrap_or(0)
            + usage.cache_write_tokens.unwrap_or(0);
        // A call with a purpose of its own, such as a summary, is another conversation.
        if recorded.purpose.is_none()
            && read > 0
            && let Ok(model) = ModelRef::parse(&recorded.model)
        {
            self.context = Some((model, read + usage.output_tokens));
        }
    }

    /// Percent of the model's context window that are free.
    pub(crate) fn context_left(&self, windows: &ContextWindows) -> Option<u64> {
        let (model, used) = self.context.as_ref()?;
        let window = windows.of(model).filter(|window| *window > 0)?;
        Some(window.saturating_sub(*used).saturating_mul(100) / window)
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

    /// The task is suspended. An answer that this cut off ends here: the next one begins anew.
    pub(crate) fn suspend(&mut self) {
        let is_unrecorded = self.transcript.cut_answer();
        self.take_pieces();
        self.finished.extend(self.answer.finish(self.width));
        if is_unrecorded {
            (self.thinking, self.has_folded) = (Thinking::default(), false);
        }
        if std::mem::take(&mut self.is_cut) || is_unrecorded {
            let dim = Style::new().add_modifier(Modifier::DIM);
            self.finished.push(Line::styled("⏸ interrupted", dim));
        }
    }

    /// The lines that still change.
    pub(crate) fn live_lines(&mut self) -> Vec<Line<'static>> {
        let mut lines = self.thinking.live_lines(self.width);
        if self.answer.is_live() {
            lines.extend(self.answer.live_lines(self.width));
        }
        lines.extend(self.output.lines(self.width));
        lines
    }

    /// The agent has this to do.
    pub(crate) fn set_todo(&mut self, items: Vec<TodoItem>) {
        self.todo = items;
    }

    /// What the agent has to do: what it does now, what comes next, and what is done.
    pub(crate) fn todo_lines(&self, rows_max: usize) -> Vec<Line<'static>> {
        todo_list::lines(&self.todo, self.width, rows_max)
    }

    fn take_pieces(&mut self) {
        let mut pieces = self.pieces.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = std::mem::take(&mut *pieces);
        drop(pieces);
        for piece in taken {
            match piece {
                Piece::Answer(text) => {
                    self.fold_thinking();
                    self.finished.extend(self.answer.push(&text, self.width));
                }
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
        let text = antiphon_view::result_text(result);
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
