//! A task on the screen: what the model says on standard output, everything else on standard
//! error. On a terminal a line at the bottom tells what is going on.
//!
//! Of the tasks below it only notes are shown, never their text. When pieces of an answer were
//! missed, the rest of it is shown whole once the journal has it.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::{IsTerminal, Write};
use std::time::Instant;

use antiphon_core::{
    AgentState, AssistantMessage, EVENT_VERSION, Event, EventBody, InputBlock, Message, PriceTable,
    StreamEvent, TaskId, TokenUsage, ToolCallId, ToolResultMessage, Usage, UsageRecorded,
    UserMessage, visible,
};
use antiphon_runtime::{Delta, DeltaEvent, ToolDelta};
use serde::Serialize;

use crate::failure::Failure;
use crate::ink::Ink;
use crate::terminal;
use crate::watch::{Note, Tone};

mod wording;

pub(crate) use wording::{cut, diff, dispatch, elapsed, lines, title};

/// How a task is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Its text, as it comes.
    Text,
    /// Its text on standard error; only the result is for standard output.
    Result,
    /// Everything that happens, one JSON object per line.
    Json,
}

const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

/// Pieces of an answer that are kept until what came before them has been shown.
const EARLY_MAX: usize = 4096;

/// How the model's answers are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answers {
    AsTheyCome,
    /// When they are whole: pieces were missed.
    Whole,
}

/// Where notes go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Notes {
    /// Where the answers go: each on a line of its own.
    Between,
    /// Elsewhere.
    Beside,
}

impl Notes {
    fn of(form: Form) -> Self {
        let one_screen = std::io::stdout().is_terminal() && std::io::stderr().is_terminal();
        if form == Form::Result || one_screen { Self::Between } else { Self::Beside }
    }
}

/// Which answer is being shown. Pieces come faster than the journal is read: those of an answer
/// whose beginning has not been read yet wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Showing {
    /// None: the last one is whole.
    None,
    /// The one whose pieces come next.
    Next,
    /// The one behind so many whole ones.
    Turn(u32),
}

impl Showing {
    /// Whether a piece of that answer is shown now.
    fn takes(&mut self, turn: u32) -> bool {
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

/// Where a task is shown.
pub(crate) struct Screen {
    form: Form,
    ink: Ink,
    /// The line at the bottom can be drawn.
    live: bool,
    /// It is there.
    drawn: bool,
    /// The last thing printed was text without a line break behind it.
    in_text: bool,
    began: Instant,
    ticks: usize,
    /// What is going on.
    doing: String,
    /// For whom the task waits, if it does.
    waiting: Option<String>,
    /// Bytes of the answer that is being written which have been shown.
    said_bytes: usize,
    notes: Notes,
    /// Which answer is being shown.
    showing: Showing,
    /// Pieces of the next one, which came before the journal was read up to its beginning.
    early: Vec<Delta>,
    answers: Answers,
    /// Calls of the last answer, as they are shown, and when they started.
    calls: HashMap<ToolCallId, (String, Option<Instant>)>,
    spent: std::collections::BTreeMap<String, Usage>,
    prices: PriceTable,
}

impl Screen {
    pub(crate) fn new(form: Form, prices: PriceTable) -> Self {
        Self {
            form,
            ink: Ink::for_stderr(),
            live: form != Form::Json && std::io::stderr().is_terminal(),
            drawn: false,
            in_text: false,
            began: Instant::now(),
            ticks: 0,
            doing: "starting".to_owned(),
            waiting: None,
            said_bytes: 0,
            notes: Notes::of(form),
            showing: Showing::None,
            early: Vec::new(),
            answers: Answers::AsTheyCome,
            calls: HashMap::new(),
            spent: std::collections::BTreeMap::new(),
            prices,
        }
    }

    /// Whether [`tick`](Self::tick) does anything.
    pub(crate) fn is_live(&self) -> bool {
        self.live
    }

    /// Whether everything is printed as JSON.
    pub(crate) fn is_json(&self) -> bool {
        self.form == Form::Json
    }

    /// What the line at the bottom says while the task waits for others.
    pub(crate) fn waiting(&mut self, waiting: Option<String>) {
        self.waiting = waiting;
    }

    /// Adds what a model took to what the line at the bottom tells.
    pub(crate) fn spend(&mut self, recorded: &UsageRecorded) {
        *self.spent.entry(recorded.model.clone()).or_default() += recorded.usage;
    }

    /// Draws the line at the bottom, unless the model is writing there.
    pub(crate) fn tick(&mut self) {
        if !self.live || self.in_text {
            return;
        }
        self.ticks += 1;
        let spinner = SPINNER[self.ticks % SPINNER.len()];
        let doing = self.waiting.as_ref().unwrap_or(&self.doing);
        let line = format!("{spinner} {doing} {}", self.account());
        let width = terminal_width().saturating_sub(1);
        let line: String = line.chars().take(width).collect();
        terminal::note(&format!("\r\x1b[2K{}", self.ink.dim(&line)));
        self.drawn = true;
    }

    /// `3.2 s · 1204 tokens · $0.0123`.
    fn account(&self) -> String {
        let mut total = Usage::default();
        for usage in self.spent.values() {
            total += *usage;
        }
        let tokens = TokenUsage::from(total).total_tokens;
        let mut text = elapsed(self.began.elapsed());
        if tokens > 0 {
            text.extend([" · ", &tokens.to_string(), " tokens"]);
        }
        if let Ok(cost) = antiphon_runtime::cost(&self.spent, &self.prices)
            && cost.nano_usd > 0
        {
            text.extend([" · ", &cost.to_string()]);
        }
        text
    }

    pub(crate) fn delta(&mut self, delta: &Delta) -> Result<(), Failure> {
        if self.form == Form::Json {
            return line(delta);
        }
        if matches!(&delta.event, DeltaEvent::Answer(_)) && !self.showing.takes(delta.turn) {
            return self.keep_early(delta);
        }
        match &delta.event {
            DeltaEvent::Answer(StreamEvent::TextDelta { .. }) if self.answers == Answers::Whole => {
                Ok(())
            }
            DeltaEvent::Answer(StreamEvent::TextDelta { delta }) => {
                self.said_bytes = self.said_bytes.saturating_add(delta.len());
                self.say(delta)
            }
            DeltaEvent::Answer(StreamEvent::ThinkingDelta { .. }) => {
                "thinking".clone_into(&mut self.doing);
                Ok(())
            }
            DeltaEvent::Answer(StreamEvent::ToolCallBegin { name, .. }) => {
                self.doing = format!("writing a call of {}", visible(name));
                Ok(())
            }
            DeltaEvent::Answer(
                StreamEvent::ToolCallDelta { .. } | StreamEvent::ToolCallEnd { .. },
            ) => Ok(()),
            DeltaEvent::Tool(ToolDelta::ToolOutput { tool_call_id, delta }) => {
                if let Some(last) = delta.lines().rev().find(|line| !line.trim().is_empty()) {
                    let name = self.calls.get(tool_call_id).map_or("", |(title, _)| title);
                    self.doing = cut(&format!("{name} │ {}", visible(last.trim())));
                }
                Ok(())
            }
        }
    }

    fn keep_early(&mut self, delta: &Delta) -> Result<(), Failure> {
        if self.early.len() < EARLY_MAX {
            self.early.push(delta.clone());
            return Ok(());
        }
        self.early.clear();
        self.missed(&delta.task_id, EARLY_MAX as u64)
    }

    pub(crate) fn missed(&mut self, task_id: &TaskId, count: u64) -> Result<(), Failure> {
        match self.form {
            Form::Json => line(&serde_json::json!({
                "v": EVENT_VERSION, "task_id": task_id, "type": "deltas_missed",
                "data": { "count": count },
            })),
            Form::Text | Form::Result => {
                self.answers = Answers::Whole;
                Ok(())
            }
        }
    }

    /// The next answer begins: everything before it has been shown.
    fn begin_answer(&mut self) -> Result<(), Failure> {
        self.showing = Showing::Next;
        for early in std::mem::take(&mut self.early) {
            self.delta(&early)?;
        }
        Ok(())
    }

    /// An answer is whole: what of it was not shown is shown now.
    fn answered(&mut self, answer: &AssistantMessage) -> Result<(), Failure> {
        self.calls = answer.tool_calls().map(|c| (c.id.clone(), (title(c), None))).collect();
        self.showing = Showing::None;
        let said_bytes = std::mem::take(&mut self.said_bytes);
        if self.answers == Answers::Whole {
            let text = answer.text();
            self.say(text.get(said_bytes..).unwrap_or(&text))?;
            self.end();
        }
        Ok(())
    }

    pub(crate) fn event(&mut self, event: &Event) -> Result<(), Failure> {
        if self.form == Form::Json {
            return line(event);
        }
        match &event.body {
            EventBody::UsageRecorded(recorded) => {
                self.spend(recorded);
                // A lap is over: what comes next begins on a line of its own.
                self.end();
            }
            EventBody::StateChanged(change) => {
                self.doing = change.to.to_string();
                if change.to == AgentState::Thinking {
                    self.begin_answer()?;
                }
            }
            EventBody::MessageAppended(appended) => match &*appended.message {
                Message::Assistant(answer) => self.answered(answer)?,
                Message::ToolResult(result) => self.result(result),
                Message::User(user) if appended.queued.is_some() => {
                    let heard = heard(user);
                    self.note(&heard);
                }
                Message::User(_) => {}
            },
            EventBody::ToolStarted(started) => {
                self.started(&started.tool_call_id, &started.tool_name);
            }
            EventBody::ToolRequested(requested) => {
                self.started(&requested.tool_call_id, &requested.tool_name);
            }
            EventBody::Dispatched(dispatched) => {
                if let Some(calls) = dispatch(dispatched) {
                    self.note(&calls);
                }
            }
            EventBody::HandedOver(over) => {
                self.note(&format!("→ hands over to {}", cut(&visible(&over.agent))));
            }
            EventBody::Compacted(_) => self.note("the conversation was summed up"),
            EventBody::OutputRejected(rejected) => {
                self.note(&format!("the result does not fit: {}", cut(&visible(&rejected.reason))));
            }
            EventBody::ToolRefused(_)
            | EventBody::Awaited(_)
            | EventBody::RequestSent(_)
            | EventBody::Replied(_)
            | EventBody::BudgetRaised(_)
            | EventBody::Relayed(_)
            | EventBody::TaskCreated(_)
            | EventBody::StatusChanged(_)
            | EventBody::MessageQueued(_)
            | EventBody::ApprovalRequested(_)
            | EventBody::ApprovalDecided(_) => {}
        }
        Ok(())
    }

    /// A call begins; only its tool is known when the answer that made it was not seen.
    fn started(&mut self, call: &ToolCallId, tool: &str) {
        let unknown = || (cut(&visible(tool)), None);
        let (title, at) = self.calls.entry(call.clone()).or_insert_with(unknown);
        *at = Some(Instant::now());
        self.doing.clone_from(title);
        let text = format!("→ {title}");
        self.note(&text);
    }

    fn result(&mut self, result: &ToolResultMessage) {
        let (title, started) = self
            .calls
            .get(&result.tool_call_id)
            .cloned()
            .unwrap_or_else(|| (visible(&result.tool_name), None));
        let took = started.map_or(String::new(), |at| format!(" {}", elapsed(at.elapsed())));
        let text: String = result
            .content
            .iter()
            .map(|block| match block {
                InputBlock::Text(text) => text.text.as_str(),
                InputBlock::Image(_) => "[an image]\n",
            })
            .collect();
        let name = title.split_whitespace().next().unwrap_or_default().to_owned();
        if result.is_error {
            let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
            let line = format!("✗ {name}{took} {}", cut(&visible(first)));
            self.note(&self.ink.red(&line));
        } else {
            let line = format!("✓ {name}{took}, {}", lines(&text));
            self.note(&self.ink.green(&line));
        }
        for line in diff(&text) {
            let line = visible(line);
            self.note(&self.ink.diff_line(&line));
        }
    }

    /// Something about a task below, on a line of its own.
    pub(crate) fn note_below(&mut self, note: &Note) {
        let line = match note.tone {
            Tone::Plain => note.text.clone(),
            Tone::Good => self.ink.green(&note.text),
            Tone::Bad => self.ink.red(&note.text),
            Tone::Faint => self.ink.dim(&note.text),
        };
        self.note(&line);
    }

    /// Something about the task, on a line of its own.
    pub(crate) fn note(&mut self, text: &str) {
        // Elsewhere than on the same screen, notes and answers do not meet.
        if self.notes == Notes::Between {
            self.end();
        }
        self.clear();
        terminal::note(&format!("{text}\n"));
    }

    /// Takes the line at the bottom away.
    pub(crate) fn clear(&mut self) {
        if std::mem::take(&mut self.drawn) {
            terminal::note("\r\x1b[2K");
        }
    }

    fn say(&mut self, text: &str) -> Result<(), Failure> {
        self.clear();
        self.in_text = !text.ends_with('\n');
        // What a model writes must not drive the terminal.
        let print = |out: &mut dyn Write, terminal: bool| {
            let text = if terminal { Cow::Owned(visible(text)) } else { Cow::Borrowed(text) };
            out.write_all(text.as_bytes()).and_then(|()| out.flush())
        };
        let printed = if self.form == Form::Result {
            print(&mut std::io::stderr().lock(), std::io::stderr().is_terminal())
        } else {
            print(&mut std::io::stdout().lock(), std::io::stdout().is_terminal())
        };
        printed.map_err(|error| Failure::unwritable(&error))
    }

    /// Ends the line the model was writing, if it was.
    pub(crate) fn end(&mut self) {
        if std::mem::take(&mut self.in_text) {
            if self.form == Form::Result {
                terminal::note("\n");
            } else {
                // A reader that is gone is noticed with the next word.
                let _ = std::io::stdout().lock().write_all(b"\n");
            }
        }
    }
}

/// Whose words have been heard: somebody's, or the report of an agent.
fn heard(user: &UserMessage) -> String {
    let text = match user.content.first() {
        Some(InputBlock::Text(text)) => text.text.as_str(),
        Some(InputBlock::Image(_)) | None => "",
    };
    let report = text.strip_prefix("[RESPONSE to ").and_then(|rest| rest.split_once(" from "));
    let report = report.and_then(|(_, rest)| rest.split_once(']'));
    match report {
        Some((who, _)) => format!("heard from {}", cut(&visible(who))),
        None => "heard what you said".to_owned(),
    }
}

/// One JSON object on a line of standard output.
fn line(value: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string(value).map_err(|error| Failure::failed(error.to_string()))?;
    let printed = writeln!(std::io::stdout().lock(), "{text}");
    printed.map_err(|error| Failure::unwritable(&error))
}

pub(crate) fn terminal_width() -> usize {
    crossterm::terminal::size().map_or(80, |(columns, _)| usize::from(columns)).max(20)
}
