//! What the model reads of a command.

use std::fmt::Write;
use std::time::Duration;

use antiphon_core::ToolResult;
use nix::sys::signal::Signal;

use crate::message::{CallId, Exit};
use crate::process::{End, Output, Process, Status};
use crate::task_shell::BACKGROUND_MAX;
use crate::transcript::Excerpt;
use crate::worker::PROCESSES_MAX;

/// Longest result, in bytes; it is made to stay well below.
pub const RESULT_BYTES_MAX: usize = 30_000;

/// The end of a command that was waited for.
pub(crate) fn ended(process: &Process, status: &Status, said: &Excerpt) -> ToolResult {
    let mut text = shown(said);
    let is_error = conclude(&mut text, process, status);
    result(text, is_error)
}

/// Adds how a command stands, and says whether it failed.
fn conclude(text: &mut String, process: &Process, status: &Status) -> bool {
    let took = seconds(process.took());
    let (line, is_error) = fate(process, status.end.as_ref(), &took);
    push_line(text, &line);
    if status.end.is_some() && status.output == Output::Held && !status.stopped {
        let id = &process.id;
        push_line(
            text,
            &format!(
                "[something it started is still running: `bash_output` with the id `{id}` shows \
                 what it says, `bash_kill` ends it]"
            ),
        );
    }
    is_error
}

/// A command that did not end in time.
pub(crate) fn goes_on(process: &Process, after: Duration, said: &Excerpt) -> ToolResult {
    let mut text = shown(said);
    let (id, after) = (&process.id, seconds(after));
    push_line(
        &mut text,
        &format!(
            "[still running after {after}: it goes on in the background as `{id}`. `bash_output` \
             waits for it and shows what is new, `bash_kill` ends it]"
        ),
    );
    result(text, false)
}

/// A command that did not end in time and could not go on.
pub(crate) fn out_of_time(after: Duration, said: &Excerpt) -> ToolResult {
    let mut text = shown(said);
    let after = seconds(after);
    push_line(
        &mut text,
        &format!(
            "[ended after {after}: it could not go on in the background, where {BACKGROUND_MAX} \
             commands run already. End one of them with `bash_kill`]"
        ),
    );
    result(text, true)
}

/// A command that was started in the background and still runs.
pub(crate) fn in_background(process: &Process, said: &Excerpt) -> ToolResult {
    let mut text = if said.is_empty() { String::new() } else { shown(said) };
    let id = &process.id;
    push_line(
        &mut text,
        &format!(
            "[runs in the background as `{id}`. `bash_output` shows what it says, `bash_kill` ends \
             it; it ends with the task]"
        ),
    );
    result(text, false)
}

/// There are too many in the background.
pub(crate) fn too_many(running: &[CallId]) -> ToolResult {
    let ids = running.iter().map(CallId::to_string).collect::<Vec<_>>().join("`, `");
    ToolResult::failed(format!(
        "{BACKGROUND_MAX} commands run in the background already: `{ids}`. End one with \
         `bash_kill`, or wait for one with `bash_output`"
    ))
}

/// What is new of a command in the background.
pub(crate) fn news(process: &Process, status: &Status, said: &Excerpt) -> ToolResult {
    let mut text = if said.is_empty() { "(nothing new)".to_owned() } else { shown(said) };
    let is_error = conclude(&mut text, process, status);
    result(text, is_error)
}

/// An id that nobody knows.
pub(crate) fn unknown(id: &str, known: &[CallId]) -> ToolResult {
    let known = if known.is_empty() {
        "There is none in the background".to_owned()
    } else {
        let ids = known.iter().map(CallId::to_string).collect::<Vec<_>>().join("`, `");
        format!("In the background are `{ids}`")
    };
    ToolResult::failed(format!(
        "no command has the id `{id}`: if it was started before a restart, it ended with it. {known}"
    ))
}

/// A command that was ended on request.
pub(crate) fn killed(process: &Process, before: &Status, said: &Excerpt) -> ToolResult {
    let mut text = if said.is_empty() { String::new() } else { shown(said) };
    let id = &process.id;
    let line = match before.end {
        None => format!("[`{id}` was ended, and everything it had started]"),
        Some(_) => format!("[`{id}` had ended before; nothing of it is left]"),
    };
    push_line(&mut text, &line);
    result(text, false)
}

/// The last line of a command, and whether it failed.
fn fate(process: &Process, end: Option<&End>, took: &str) -> (String, bool) {
    if process.is_flooded() {
        let line = "[ended: it wrote more than 64 MB. Send its output to a file, or through \
                    `head`, `tail` or `grep`]";
        return (line.to_owned(), true);
    }
    match end {
        Some(End::Exit(Exit::Code(code))) => (format!("[exit code {code}, {took}]"), *code != 0),
        Some(End::Exit(Exit::Signal(signal))) => {
            let name = Signal::try_from(*signal).map_or("unknown", Signal::as_str);
            (format!("[killed by signal {signal} ({name}), {took}]"), true)
        }
        Some(End::Exit(Exit::TooManyProcesses)) => {
            let line = format!(
                "[ended: it had more than {PROCESSES_MAX} processes at a time. Run fewer at once]"
            );
            (line, true)
        }
        Some(End::Failed(reason)) => (format!("[could not be started: {reason}]"), true),
        Some(End::Stale(path)) => {
            let path = path.display();
            (format!("[not started: `{path}` was replaced meanwhile. Try again]"), true)
        }
        Some(End::Lost) => {
            let line = "[the process that ran it was killed, and everything it had started is \
                        gone; what it came to is unknown. The next command gets a new one]";
            (line.to_owned(), true)
        }
        None => (format!("[still running, for {took}]"), false),
    }
}

fn shown(said: &Excerpt) -> String {
    if said.is_empty() {
        return "(no output)".to_owned();
    }
    let mut text = said.head.clone();
    if let Some(gap) = &said.gap {
        let (lines, kb) = (gap.lines, gap.bytes / 1000);
        let whole = match &gap.whole {
            Ok(name) => format!("the whole is in result `{name}`: read it with `read_result`"),
            Err(reason) => format!("they could not be kept: {reason}"),
        };
        push_line(&mut text, &format!("… {lines} lines ({kb} kB) left out; {whole} …"));
        text.push('\n');
        text.push_str(&said.tail);
    }
    text
}

fn push_line(text: &mut String, line: &str) {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(line);
}

fn result(text: String, is_error: bool) -> ToolResult {
    if is_error { ToolResult::failed(text) } else { ToolResult::text(text) }
}

fn seconds(duration: Duration) -> String {
    let mut text = String::new();
    let seconds = duration.as_secs_f64();
    // Writing to a string does not fail.
    let _ = if seconds < 10.0 {
        write!(text, "{seconds:.2} s")
    } else {
        write!(text, "{seconds:.0} s")
    };
    text
}
