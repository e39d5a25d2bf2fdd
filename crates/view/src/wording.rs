//! Tool calls, dispatches, diffs and costs in words, each on one line of bounded length.

use std::collections::BTreeMap;

use antiphon_core::port::{Clock, SystemClock};
use antiphon_core::{
    Dispatched, Join, OutageWait, PEER_UNAVAILABLE, PeerWait, PriceTable, StatusChanged,
    TokenUsage, ToolCallBlock, Usage, WaitingFor,
};

use crate::display::escaped;
use crate::text;

/// Lines of a diff that are shown.
const DIFF_LINES_MAX: usize = 60;

/// Names of agents that are listed when one call dispatches many.
const TARGETS_MAX: usize = 120;

/// Arguments that describe a call best, the best first.
const DESCRIPTIVE_ARGUMENTS: [&str; 6] = ["command", "path", "pattern", "prompt", "query", "url"];

/// `→ calls 3 agents and waits for all`. `None` for a single agent that is waited for: its own notes
/// say enough.
pub fn dispatch_text(dispatched: &Dispatched) -> Option<String> {
    let count = dispatched.children.len();
    let waits = match dispatched.join {
        Join::Single => return None,
        Join::All if count == 1 => return None,
        Join::All => "waits for all".to_owned(),
        Join::Any => "waits for the first to complete".to_owned(),
        Join::Quorum { n } => format!("waits for {n} to complete"),
        Join::Detached => "does not wait".to_owned(),
    };
    let agents = text::count(count as u64, "agent");
    Some(format!("→ calls {agents} and {waits}"))
}

/// `waits for its model: the provider is overloaded (attempt 3 failed, the next is in 4s)`. The code
/// `storage` is a wait for the journal.
pub fn outage_wait_text(wait: &OutageWait) -> String {
    let OutageWait { code, error, attempt, next_at, .. } = wait;
    let what = match code.as_str() {
        "storage" => "until the journal can be written",
        PEER_UNAVAILABLE => "for its peer",
        _ => "for its model",
    };
    let error = text::cut(&escaped(&text::one_line(error)));
    let left = *next_at - SystemClock.now();
    let next = match left.num_seconds() {
        ..=0 => "at once".to_owned(),
        _ => format!("in {}", text::age(left)),
    };
    format!("waits {what}: {error} (attempt {attempt} failed, the next is {next})")
}

/// Why a task waits from this status on, if it does, for its model or its peer or on its peer.
pub(crate) fn wait_text(change: &StatusChanged) -> Option<String> {
    let away = OutageWait::of(change).map(|wait| outage_wait_text(&wait));
    away.or_else(|| PeerWait::of(change).map(|wait| peer_wait_text(&wait)))
}

/// `waits for an approval on the peer office`.
fn peer_wait_text(wait: &PeerWait) -> String {
    let peer = text::cut(&escaped(&wait.peer));
    if let Some(reason) = &wait.reason {
        return format!("waits on {peer}: {}", text::cut(&escaped(&text::one_line(reason))));
    }
    let what = wait.waiting_for.map_or("for a person", waits_for);
    format!("waits {what} on the peer {peer}")
}

/// `for an approval`.
pub fn waits_for(what: WaitingFor) -> &'static str {
    match what {
        WaitingFor::Approval => "for an approval",
        WaitingFor::Resume => "to be resumed",
        WaitingFor::ToolResult => "for the result of a client's tool",
        WaitingFor::Budget => "for budget",
        WaitingFor::Model => "for its model",
        WaitingFor::Peer => "for its peer",
        WaitingFor::Storage => "until the journal can be written",
    }
}

/// A tool call on one line: the name of the tool and its most descriptive argument.
pub fn tool_call_title(call: &ToolCallBlock) -> String {
    let arguments = call.arguments.object();
    let descriptive = arguments
        .and_then(|json| json.to::<serde_json::Map<String, serde_json::Value>>().ok())
        .and_then(|map| {
            let mut keys = DESCRIPTIVE_ARGUMENTS.iter();
            let one = keys.find_map(|key| map.get(*key)?.as_str().map(str::to_owned));
            one.or_else(|| target_names(map.get("targets")?))
        });
    let argument = descriptive
        .or_else(|| arguments.map(|json| json.as_str().to_owned()).filter(|json| json != "{}"))
        .unwrap_or_default();
    let mut lines = argument.trim_end().lines();
    let first = lines.next().unwrap_or_default();
    let title = text::cut(escaped(&format!("{} {first}", call.name)).trim_end());
    match lines.count() {
        0 => title,
        left => format!("{title} … {}", text::count(left as u64, "more line")),
    }
}

/// The names of the agents that one call dispatches; an ad-hoc agent has none.
fn target_names(targets: &serde_json::Value) -> Option<String> {
    let targets = targets.as_array()?.iter().take(TARGETS_MAX);
    let names = targets.map(|target| target["agent"].as_str().unwrap_or("(unnamed)"));
    Some(names.collect::<Vec<_>>().join(", "))
}

/// The lines of the first diff in a tool's output, from its first `@@` on; none when there is no diff.
pub fn diff_lines(text: &str) -> impl Iterator<Item = &str> {
    let begins = text.lines().position(|line| line.starts_with("@@"));
    let from = begins.unwrap_or(usize::MAX);
    text.lines()
        .skip(from)
        .take_while(|line| line.is_empty() || line.starts_with(['@', '+', '-', ' ', '\\']))
        .take(DIFF_LINES_MAX)
}

/// `31 + 12 tokens, $0.0003`: tokens read and written, and their cost.
pub fn usage_text(spent: &BTreeMap<String, Usage>, prices: &PriceTable) -> String {
    let mut usage = Usage::default();
    for of_model in spent.values() {
        usage += *of_model;
    }
    let tokens = TokenUsage::from(usage);
    let (read, written) = (tokens.prompt_tokens, tokens.completion_tokens);
    format!("{read} + {written} tokens, {}", cost_text(spent, prices))
}

/// The cost of the models in `spent`: `$0.0003`, or `cost unknown` when one of them has no price.
pub fn cost_text(spent: &BTreeMap<String, Usage>, prices: &PriceTable) -> String {
    antiphon_runtime::cost(spent, prices)
        .map_or_else(|_| "cost unknown".to_owned(), |cost| cost.to_string())
}

#[cfg(test)]
mod tests {
    use antiphon_core::{PeerWait, TaskId, WaitingFor};

    use super::wait_text;

    #[test]
    fn a_wait_on_a_peer_says_for_what_and_where() {
        let (peer, task_id) = ("office".to_owned(), TaskId::parse("t1").unwrap());
        let waiting_for = Some(WaitingFor::Approval);
        let wait = PeerWait { peer, task_id, waiting_for, reason: None };
        let text = wait_text(&wait.status()).unwrap();
        assert_eq!(text, "waits for an approval on the peer office");
        let text = wait_text(&PeerWait { waiting_for: None, ..wait }.status()).unwrap();
        assert_eq!(text, "waits for a person on the peer office");
    }
}
