//! The texts about a command that the model reads.

use std::fmt::Write;
use std::time::Duration;

use antiphon_core::ToolResult;
use nix::sys::signal::Signal;

use crate::message::{CallId, Exit};
use crate::network::report::lines as network_lines;
use crate::process::{End, Output, Process, Status};
use crate::task_shell::BACKGROUND_MAX;
use crate::transcript::Excerpt;
use crate::worker::PROCESSES_MAX;

/// Longest result, in bytes. Results stay well below it.
pub const RESULT_BYTES_MAX: usize = 30_000;

/// The result of a command that has ended.
pub(crate) fn ended(process: &Process, status: &Status, excerpt: &Excerpt) -> ToolResult {
    let mut text = render(excerpt);
    let is_error = push_end_line(&mut text, process, status);
    result(text, is_error)
}

/// Adds a line with the state of a command. Returns whether the command failed.
fn push_end_line(text: &mut String, process: &Process, status: &Status) -> bool {
    let elapsed = seconds(process.elapsed());
    push_network_lines(text, process);
    let (line, is_error) = end_line(process, status.end.as_ref(), &elapsed);
    push_line(text, &line);
    if status.end.is_some() && status.output == Output::HeldOpen && !status.stopped {
        let id = &process.id;
        push_line(
            text,
            &format!(
                "[something it started is still running: `bash_output` with the id `{id}` shows \
                 its output, `bash_kill` ends it]"
            ),
        );
    }
    is_error
}

/// The result of a command that did not end in time and continues in the background.
pub(crate) fn continues(process: &Process, after: Duration, excerpt: &Excerpt) -> ToolResult {
    let mut text = render(excerpt);
    push_network_lines(&mut text, process);
    let (id, after) = (&process.id, seconds(after));
    push_line(
        &mut text,
        &format!(
            "[still running after {after}: it continues in the background as `{id}`. `bash_output` \
             waits for it and shows what is new, `bash_kill` ends it]"
        ),
    );
    result(text, false)
}

/// The result of a command that did not end in time and could not continue in the background.
pub(crate) fn ended_at_timeout(
    process: &Process,
    after: Duration,
    excerpt: &Excerpt,
) -> ToolResult {
    let mut text = render(excerpt);
    push_network_lines(&mut text, process);
    let after = seconds(after);
    push_line(
        &mut text,
        &format!(
            "[ended after {after}: it could not continue in the background, where {BACKGROUND_MAX} \
             commands run already. End one of them with `bash_kill`]"
        ),
    );
    result(text, true)
}

/// The result of a command that was started in the background and still runs.
pub(crate) fn in_background(process: &Process, excerpt: &Excerpt) -> ToolResult {
    let mut text = if excerpt.is_empty() { String::new() } else { render(excerpt) };
    push_network_lines(&mut text, process);
    let id = &process.id;
    push_line(
        &mut text,
        &format!(
            "[runs in the background as `{id}`. `bash_output` shows its output, `bash_kill` ends \
             it; it ends with the task]"
        ),
    );
    result(text, false)
}

/// Too many commands run in the background.
pub(crate) fn too_many(running: &[CallId]) -> ToolResult {
    let ids = running.iter().map(CallId::to_string).collect::<Vec<_>>().join("`, `");
    ToolResult::failed(format!(
        "{BACKGROUND_MAX} commands run in the background already: `{ids}`. End one with \
         `bash_kill`, or wait for one with `bash_output`"
    ))
}

/// The new output of a command in the background.
pub(crate) fn new_output(process: &Process, status: &Status, excerpt: &Excerpt) -> ToolResult {
    let mut text = if excerpt.is_empty() { "(nothing new)".to_owned() } else { render(excerpt) };
    let is_error = push_end_line(&mut text, process, status);
    result(text, is_error)
}

/// No command has this id.
pub(crate) fn unknown(id: &str, known: &[CallId]) -> ToolResult {
    let known = if known.is_empty() {
        "No command runs in the background".to_owned()
    } else {
        let ids = known.iter().map(CallId::to_string).collect::<Vec<_>>().join("`, `");
        format!("In the background are `{ids}`")
    };
    ToolResult::failed(format!(
        "no command has the id `{id}`: if it was started before a restart, it ended with it. {known}"
    ))
}

/// The result of a command that `bash_kill` ended.
pub(crate) fn killed(process: &Process, before: &Status, excerpt: &Excerpt) -> ToolResult {
    let mut text = if excerpt.is_empty() { String::new() } else { render(excerpt) };
    push_network_lines(&mut text, process);
    let id = &process.id;
    let line = match before.end {
        None => format!("[`{id}` was ended, with everything it had started]"),
        Some(_) => format!("[`{id}` had ended before; nothing of it is left]"),
    };
    push_line(&mut text, &line);
    result(text, false)
}

/// The last line of a result, and whether the command failed.
fn end_line(process: &Process, end: Option<&End>, elapsed: &str) -> (String, bool) {
    if process.is_flooded() {
        let line = "[ended: it wrote more than 64 MB. Send its output to a file, or through \
                    `head`, `tail` or `grep`]";
        return (line.to_owned(), true);
    }
    match end {
        Some(End::Exit(Exit::Code(code))) => (format!("[exit code {code}, {elapsed}]"), *code != 0),
        Some(End::Exit(Exit::Signal(signal))) => {
            let name = Signal::try_from(*signal).map_or("unknown", Signal::as_str);
            (format!("[killed by signal {signal} ({name}), {elapsed}]"), true)
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
                        gone; its outcome is unknown. The next command gets a new one]";
            (line.to_owned(), true)
        }
        None => (format!("[still running, for {elapsed}]"), false),
    }
}

fn render(excerpt: &Excerpt) -> String {
    if excerpt.is_empty() {
        return "(no output)".to_owned();
    }
    let mut text = excerpt.head.clone();
    if let Some(gap) = &excerpt.gap {
        let (lines, kb) = (gap.lines, gap.bytes / 1000);
        let whole = match &gap.whole {
            Ok(name) => format!("the whole is in result `{name}`: read it with `read_result`"),
            Err(reason) => format!("the rest could not be stored: {reason}"),
        };
        push_line(&mut text, &format!("… {lines} lines ({kb} kB) left out; {whole} …"));
        text.push('\n');
        text.push_str(&excerpt.tail);
    }
    text
}

/// Adds what the command did in the network since the last result.
fn push_network_lines(text: &mut String, process: &Process) {
    if let Some(network) = &process.network {
        for line in network_lines(&network.take_report()) {
            push_line(text, &line);
        }
    }
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
