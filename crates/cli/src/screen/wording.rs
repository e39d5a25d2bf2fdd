//! How calls, results and times are put into words, each on one line of bounded length.

use std::time::Duration;

use antiphon_core::{Dispatched, Join, visible};

use crate::terminal;

/// Lines of a diff that are shown.
const DIFF_LINES_MAX: usize = 60;

/// Characters of a call's arguments, or of a line of output, that are shown.
const LINE_CHARS_MAX: usize = 120;

/// Agents that are called, where it is not one that is waited for: that one tells of itself.
pub(crate) fn dispatch(dispatched: &Dispatched) -> Option<String> {
    let count = dispatched.children.len();
    let waits = match dispatched.join {
        Join::Single => return None,
        Join::All if count == 1 => return None,
        Join::All => "waits for all".to_owned(),
        Join::Any => "waits for the first that is done".to_owned(),
        Join::Quorum { n } => format!("waits for {n} that are done"),
        Join::Detached => "does not wait".to_owned(),
    };
    let agents = terminal::count(count as u64, "agent");
    Some(format!("→ calls {agents} and {waits}"))
}

/// A call as it is shown: its tool, and the argument that says most.
pub(crate) fn title(call: &antiphon_core::ToolCallBlock) -> String {
    let arguments = call.arguments.object();
    let telling = arguments
        .and_then(|json| json.to::<serde_json::Map<String, serde_json::Value>>().ok())
        .and_then(|map| {
            let telling = ["command", "path", "pattern", "prompt", "query", "url"];
            let one = telling.iter().find_map(|key| map.get(*key)?.as_str().map(str::to_owned));
            one.or_else(|| targets(map.get("targets")?))
        });
    let said = telling
        .or_else(|| arguments.map(|json| json.as_str().to_owned()).filter(|json| json != "{}"))
        .unwrap_or_default();
    let first = said.lines().next().unwrap_or_default();
    cut(visible(&format!("{} {first}", call.name)).trim_end())
}

/// The agents that are called side by side, as far as they have names.
fn targets(targets: &serde_json::Value) -> Option<String> {
    let targets = targets.as_array()?.iter().take(LINE_CHARS_MAX);
    let names = targets.map(|target| target["agent"].as_str().unwrap_or("somebody"));
    Some(names.collect::<Vec<_>>().join(", "))
}

pub(crate) fn cut(text: &str) -> String {
    let mut chars = text.chars();
    let mut cut: String = chars.by_ref().take(LINE_CHARS_MAX).collect();
    if chars.next().is_some() {
        cut.push('…');
    }
    cut
}

pub(crate) fn lines(text: &str) -> String {
    match text.lines().count() {
        1 => "1 line".to_owned(),
        count => format!("{count} lines"),
    }
}

/// The diff in a result, if there is one.
pub(crate) fn diff(text: &str) -> impl Iterator<Item = &str> {
    let changed = |line: &&str| line.starts_with("@@");
    let begins = text.lines().position(|line| changed(&line));
    let from = begins.unwrap_or(usize::MAX);
    text.lines()
        .skip(from)
        .take_while(|line| line.is_empty() || line.starts_with(['@', '+', '-', ' ', '\\']))
        .take(DIFF_LINES_MAX)
}

/// `0.4 s`, `12 s`, `3 min 20 s`.
pub(crate) fn elapsed(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..10 => format!("{:.1} s", time.as_secs_f64()),
        10..120 => format!("{seconds} s"),
        _ => format!("{} min {} s", seconds / 60, seconds % 60),
    }
}
