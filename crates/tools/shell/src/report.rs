//! The texts about a command that the model reads.

use std::fmt::Write;
use std::time::Duration;

use antiphon_core::{InputBlock, ToolResult};
use nix::sys::signal::Signal;
use uuid::Uuid;

use crate::access::Access;
use crate::call_record::RecordedCall;
use crate::message::{CALL_UUID_VARIABLE, CallId, Exceeded, Exit};
use crate::network::report::lines as network_lines;
use crate::process::{End, Output, Process, Status};
use crate::task_shell::BACKGROUND_MAX;
use crate::transcript::Excerpt;

/// Longest result, in bytes. Results stay well below it.
pub const RESULT_BYTES_MAX: usize = 30_000;

/// The signal for a file that is too large: `SIGXFSZ`.
const FILE_TOO_LARGE: i32 = Signal::SIGXFSZ as i32;

/// The result of a command that has ended.
pub(crate) fn ended(process: &Process, status: &Status, excerpt: &Excerpt) -> ToolResult {
    let mut text = render(excerpt);
    let is_error = push_end_line(&mut text, process, status);
    push_refusal(&mut text, process, is_error, excerpt);
    result(text, is_error)
}

/// Adds why the sandbox made a command fail, if it did.
fn push_refusal(text: &mut String, process: &Process, is_error: bool, excerpt: &Excerpt) {
    let refusal = || process.bounds.refusal(&excerpt.tail);
    let refusal = refusal().or_else(|| process.bounds.refusal(&excerpt.head));
    if let Some(refusal) = refusal.filter(|_| is_error) {
        push_line(text, &format!("[{refusal}]"));
    }
}

/// Adds a line with the state of a command. Returns whether the command failed.
fn push_end_line(text: &mut String, process: &Process, status: &Status) -> bool {
    let elapsed = seconds(process.elapsed());
    push_network_lines(text, process);
    let (line, is_error) = end_line(process, status.end.as_ref(), &elapsed);
    push_line(text, &line);
    let continues = process.bounds.access != Access::Repository;
    let is_open = status.end.is_some() && status.output == Output::HeldOpen;
    if is_open && !status.stopped && continues {
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
    let why = format!(
        "it could not continue in the background, where {BACKGROUND_MAX} commands run already. End one of them \
         with `bash_kill`"
    );
    cut_short(process, after, excerpt, &why)
}

/// The result of a git command that did not end in time: it may write to the repository only as long
/// as its call waits for it.
pub(crate) fn ended_in_repository(
    process: &Process,
    after: Duration,
    excerpt: &Excerpt,
) -> ToolResult {
    let why = "a git command that may write to the repository does not continue in the background. Call it again \
               with a larger `timeout_s`";
    cut_short(process, after, excerpt, why)
}

fn cut_short(process: &Process, after: Duration, excerpt: &Excerpt, why: &str) -> ToolResult {
    let mut text = render(excerpt);
    push_network_lines(&mut text, process);
    push_line(&mut text, &format!("[ended after {}: {why}]", seconds(after)));
    result(text, true)
}

/// Adds why git could not write to the repository, if it could not.
pub(crate) fn with_closed_repository(mut result: ToolResult, reason: Option<&str>) -> ToolResult {
    if let Some(reason) = reason {
        let note = format!("[git could only read the repository: {reason}]");
        result.content.push(InputBlock::text(note));
    }
    result
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

/// The command asked to run without the sandbox, and cannot.
pub(crate) fn no_way_out() -> ToolResult {
    ToolResult::failed(
        "this task runs in a sandbox as a whole, and no approval lifts it: do without, or tell the \
         user that the task needs another runner",
    )
}

/// The new output of a command in the background.
pub(crate) fn new_output(process: &Process, status: &Status, excerpt: &Excerpt) -> ToolResult {
    let mut text = if excerpt.is_empty() { "(nothing new)".to_owned() } else { render(excerpt) };
    let is_error = push_end_line(&mut text, process, status);
    push_refusal(&mut text, process, is_error, excerpt);
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

/// What is known about a call that was cut off before it had a result.
pub(crate) fn cut_off(call_uuid: Uuid, recorded: Option<&RecordedCall>) -> String {
    let mut text =
        format!("[Id of the call, which its commands saw as {CALL_UUID_VARIABLE}: {call_uuid}]");
    let Some(RecordedCall { elapsed, output, .. }) = recorded else {
        push_line(&mut text, "[Nothing was kept of its output]");
        return text;
    };
    push_line(&mut text, &format!("[It ran for {} at least]", seconds(*elapsed)));
    match output.trim_end() {
        "" => push_line(&mut text, "[It had no output until then]"),
        output => push_line(&mut text, &format!("[Output so far:]\n{output}")),
    }
    text
}

/// The last line of a result, and whether the command failed.
fn end_line(process: &Process, end: Option<&End>, elapsed: &str) -> (String, bool) {
    if process.is_flooded() {
        let line = "[ended: it wrote more than 64 MB. Send its output to a file, or through \
                    `head`, `tail` or `grep`]";
        return (line.to_owned(), true);
    }
    match end {
        Some(End::Exit(Exit::Code(code))) if *code == 128 + FILE_TOO_LARGE => {
            (format!("[exit code {code}, {elapsed}: {}]", too_large(process)), true)
        }
        Some(End::Exit(Exit::Code(code))) => (format!("[exit code {code}, {elapsed}]"), *code != 0),
        Some(End::Exit(Exit::Signal(FILE_TOO_LARGE))) => {
            (format!("[{}]", too_large(process)), true)
        }
        Some(End::Exit(Exit::Signal(signal))) => {
            let name = Signal::try_from(*signal).map_or("unknown", Signal::as_str);
            (format!("[killed by signal {signal} ({name}), {elapsed}]"), true)
        }
        Some(End::Exit(Exit::Stopped(exceeded))) => (format!("[{}]", stopped(*exceeded)), true),
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

fn stopped(exceeded: Exceeded) -> String {
    let raise = |key: &str| format!("or ask the user to raise `{key}` under `[sandbox]`");
    match exceeded {
        Exceeded::Processes(most) => format!(
            "stopped: it had more than {most} processes at a time. Run fewer at once, {}",
            raise("processes")
        ),
        Exceeded::Memory(most) => format!(
            "stopped: it used more than {} of memory, all its processes together. Use fewer \
             parallel jobs or smaller pieces, {}",
            size(most),
            raise("memory_mib")
        ),
        Exceeded::Disk(most) => format!(
            "stopped: it filled the disk by more than {}, or nearly to its end. Remove what it \
             wrote and write less, {}",
            size(most),
            raise("disk_mib")
        ),
    }
}

fn too_large(process: &Process) -> String {
    format!(
        "stopped: a file became larger than {}. Write less, or ask the user to raise `disk_mib` \
         under `[sandbox]`",
        size(process.bounds.disk_bytes_max)
    )
}

/// A size in the largest unit that shows it in a few digits.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [(&str, u64); 3] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    let (unit, one) = UNITS.into_iter().find(|(_, one)| bytes >= *one).unwrap_or(("bytes", 1));
    let tenths = bytes.saturating_mul(10) / one;
    match tenths % 10 {
        0 => format!("{} {unit}", tenths / 10),
        rest => format!("{}.{rest} {unit}", tenths / 10),
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
