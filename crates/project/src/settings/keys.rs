//! Every key of the user's settings file, with what it is. `docs/config.md` is made of it.

use std::fmt::Write as _;

/// A key of the settings file. A part in capitals stands for any name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct SettingKey {
    /// The names of the tables and of the setting, joined by dots.
    pub key: &'static str,
    /// What it takes.
    pub takes: &'static str,
    /// What it does.
    pub about: &'static str,
}

const fn key(key: &'static str, takes: &'static str, about: &'static str) -> SettingKey {
    SettingKey { key, takes, about }
}

/// Every key.
pub const KEYS: &[SettingKey] = &[
    key("version", "number", "Version of the file's format: 1. A greater one is refused."),
    key(
        "model",
        "PROVIDER/MODEL",
        "Model of a task that names none. Absent: the default model of the provider whose key is set.",
    ),
    key(
        "providers.NAME.kind",
        "openai | openai-responses | anthropic | gemini",
        "The API that the provider speaks. Absent: that of the built-in provider of this name.",
    ),
    key(
        "providers.NAME.base_url",
        "address",
        "Address that the paths of the API are appended to. Absent: that of the built-in provider.",
    ),
    key("providers.NAME.api_key_env", "variable", "Environment variable that holds its key."),
    key("providers.NAME.api_key", "text, secret", "Its key."),
    key(
        "providers.NAME.reasons",
        "true | false",
        "Its models reason, and it accepts the fields for reasoning.",
    ),
    key("providers.NAME.limits.concurrency", "number", "Requests at a time. Absent: unlimited."),
    key(
        "providers.NAME.limits.requests_per_minute",
        "number",
        "Requests per minute. Absent: unlimited.",
    ),
    key(
        "providers.NAME.limits.first_byte_s",
        "seconds",
        "Time to wait for the first byte of an answer.",
    ),
    key("providers.NAME.limits.stall_s", "seconds", "Time to wait for each following byte."),
    key(
        "providers.NAME.limits.retries",
        "number",
        "Attempts after the first; then the task waits.",
    ),
    key("models.MODEL.text_tool_calls", "true | false", "The model writes tool calls as text."),
    key(
        "models.MODEL.fallbacks",
        "list of PROVIDER/MODEL",
        "Models to ask, in order, when this one cannot answer.",
    ),
    key(
        "models.MODEL.price",
        "{ input, output, cache_read, cache_write }",
        "Its price in US dollars per million tokens. Absent: the built-in one.",
    ),
    key(
        "models.MODEL.context_tokens",
        "number",
        "Most tokens of a request and its answer together. Absent: the built-in size.",
    ),
    key(
        "aliases.NAME",
        "agent or PROVIDER/MODEL",
        "What answers to a name of a model that clients send. A final `*` in the name stands for any text.",
    ),
    key(
        "permissions.mode",
        "read-only | workspace | full",
        "What happens to calls that no rule matches.",
    ),
    key("permissions.allow", "list of rules", "Calls that run without an approval."),
    key("permissions.ask", "list of rules", "Calls that need an approval."),
    key("permissions.deny", "list of rules", "Calls that never run."),
    key("sandbox.network", "true | false", "Commands may use the network."),
    key(
        "sandbox.env",
        "list of variables",
        "Variables that commands get in addition to the usual ones.",
    ),
    key(
        "sandbox.readable",
        "list of folders",
        "Folders beneath `/tmp` or `/run` that commands may read.",
    ),
    key(
        "sandbox.hidden",
        "list of paths",
        "Files and folders that commands and file tools may not read, in addition to the usual ones.",
    ),
    key("sandbox.unix_sockets", "true | false", "Commands may open Unix sockets."),
    key(
        "sandbox.memory_mib",
        "MiB",
        "Most memory of the commands of a task. Absent: three quarters of the machine's.",
    ),
    key(
        "sandbox.processes",
        "number",
        "Most processes of the commands of a task at a time. Absent: 512.",
    ),
    key(
        "sandbox.disk_mib",
        "MiB",
        "Most by which the commands of a task may fill a disk. Absent: 32 GiB.",
    ),
    key("mcp.NAME.command", "program", "Program of an MCP server on this machine."),
    key("mcp.NAME.args", "list of texts", "Arguments of the program."),
    key("mcp.NAME.env", "table of texts, secret", "Variables that are set for the program."),
    key(
        "mcp.NAME.inherit_env",
        "list of variables",
        "Further variables of your environment that the program gets.",
    ),
    key("mcp.NAME.cwd", "folder", "Working folder of the program."),
    key("mcp.NAME.url", "address", "Address of an MCP server over HTTP, in place of `command`."),
    key("mcp.NAME.headers", "table of texts, secret", "Headers that are sent with every request."),
    key(
        "mcp.NAME.bearer_token_env",
        "variable",
        "Environment variable that holds the bearer token.",
    ),
    key(
        "mcp.NAME.oauth.client_id",
        "text",
        "Id of this client at an authorization server that does not register clients itself.",
    ),
    key(
        "mcp.NAME.oauth.scopes",
        "list of texts",
        "Scopes to ask for. Absent: those that the server names.",
    ),
    key("mcp.NAME.allow", "list of patterns", "Tools to use. Absent: all."),
    key("mcp.NAME.deny", "list of patterns", "Tools not to use."),
    key("mcp.NAME.read_only", "list of patterns", "Tools that you declare free of effects."),
    key("mcp.NAME.trusted", "true | false", "Believe the effects that the server declares."),
    key(
        "mcp.NAME.timeout_s",
        "seconds",
        "Time limit of a call between progress messages. Absent: 60.",
    ),
    key(
        "mcp.NAME.timeout_max_s",
        "seconds",
        "Time limit of a call with progress messages. Absent: ten times `timeout_s`.",
    ),
    key("mcp.NAME.start_timeout_s", "seconds", "Time limit of a start. Absent: 20."),
    key(
        "mcp_json_env",
        "list of variables",
        "Variables whose values the servers of a trusted `.mcp.json` may have.",
    ),
    key("peers.NAME.url", "address", "Address of another Antiphon that runs tasks."),
    key("peers.NAME.token_env", "variable", "Environment variable that holds its token."),
    key("peers.NAME.token_file", "path", "File that holds its token."),
    key(
        "terminals.NAME.command",
        "list of texts",
        "Program that agents may run in a terminal, and its arguments.",
    ),
    key(
        "terminals.NAME.context_args",
        "list of texts",
        "Arguments that pass the agent's context: `{text}`, `{quoted}` or `{file}`.",
    ),
    key(
        "terminals.NAME.context_file",
        "path",
        "File in the working folder that the program reads its context from.",
    ),
    key("terminals.NAME.env", "table of texts, secret", "Variables that are set for the program."),
    key("terminals.NAME.submit", "text", "Keys that submit a message."),
    key("terminals.NAME.restart", "see docs/terminals.md", "What happens when the program fails."),
    key("terminals.NAME.ready", "pattern", "The prompt at which the program waits for input."),
    key(
        "terminals.NAME.ready_lines",
        "number",
        "Lines up to the cursor that `ready` and `busy` describe.",
    ),
    key(
        "terminals.NAME.busy",
        "pattern",
        "What the program shows when it does not wait for input although `ready` matches.",
    ),
    key(
        "terminals.NAME.quiet_ms",
        "milliseconds",
        "How long the screen is still before a message is typed.",
    ),
    key("schedules.NAME.agent", "agent", "The agent that gets the event."),
    key("schedules.NAME.every", "period such as `5m`", "The event comes again after this time."),
    key("schedules.NAME.from", "time", "Time of the first event of `every`."),
    key("schedules.NAME.cron", "five fields", "Times of the event, such as `0 9 * * mon-fri`."),
    key("schedules.NAME.zone", "time zone", "Time zone of `cron`."),
    key("schedules.NAME.at", "time", "The only time of the event."),
    key("schedules.NAME.body", "text", "Text of the event."),
    key(
        "schedules.NAME.salience",
        "background | normal | important | urgent",
        "How urgent the event is.",
    ),
    key(
        "schedules.NAME.wake",
        "true | false",
        "Whether the event starts a turn of an idle agent. Absent: true.",
    ),
    key(
        "scripts.NAME",
        "path",
        "Script of the model `scripted/NAME`, as seen from the folder of this file.",
    ),
    key("telemetry.otlp_endpoint", "address", "OpenTelemetry collector that traces are sent to."),
    key(
        "telemetry.otlp_headers_env",
        "variable",
        "Environment variable that holds its headers: `name=value,name=value`.",
    ),
    key("webhooks.SOURCE.agent", "agent", "The agent that reads the events of the source."),
    key("webhooks.SOURCE.secret_env", "variable", "Environment variable that holds its secret."),
    key("webhooks.SOURCE.scheme", "standard | github", "How its requests are signed."),
    key("webhooks.SOURCE.wake", "true | false", "Whether an event starts a turn of an idle agent."),
    key(
        "webhooks.SOURCE.mode",
        "queue | steer",
        "How an event is delivered to an agent that works.",
    ),
    key(
        "webhooks.SOURCE.salience",
        "background | normal | important | urgent",
        "How urgent an event is.",
    ),
    key(
        "webhooks.SOURCE.include_payload",
        "true | false",
        "The agent reads the payload in place of the rendered body.",
    ),
    key("webhooks.SOURCE.body_bytes_max", "bytes", "Largest body. Absent: the server's own limit."),
    key("webhooks.SOURCE.rate_per_minute", "number", "Requests per minute. Absent: unlimited."),
    key(
        "a2a.agents",
        "list of agents",
        "Agents that A2A clients see. Absent: all, for clients on this machine alone.",
    ),
    key("a2a.url", "address", "Address of the server in agent cards."),
    key(
        "a2a.push_hosts",
        "list of hosts",
        "Hosts that push notifications may go to beside public ones.",
    ),
    key("a2a.remote.NAME.card", "address", "Address of a remote agent's card."),
    key(
        "a2a.remote.NAME.description",
        "text",
        "What the agent is good for; agents that may call it read this.",
    ),
    key("a2a.remote.NAME.token_env", "variable", "Environment variable that holds its token."),
    key("a2a.remote.NAME.token_file", "path", "File that holds its token."),
    key(
        "a2a.remote.NAME.card_keys",
        "path",
        "File with public keys, one of which has to have signed its card.",
    ),
    key(
        "a2a.remote.NAME.header",
        "text",
        "Name of the header that has the token. Absent: `Authorization: Bearer`.",
    ),
    key(
        "a2a.remote.NAME.hosts",
        "list of hosts",
        "Hosts that it may be at beside the public host of its card.",
    ),
    key(
        "mcp_server.agents",
        "list of agents",
        "Agents that MCP clients see. Absent: all, for clients on this machine alone.",
    ),
    key(
        "chat.agents",
        "list of agents",
        "Agents that clients of chat completions, responses, messages and the list of models see. Absent: all, for clients on this machine alone.",
    ),
    key(
        "ad_hoc_agents",
        "true | false",
        "A task that can call no defined agent is told that it can make agents. Absent: false.",
    ),
    key(
        "tui.theme",
        "terminal | light | dark | mono",
        "Colors of the terminal program. Absent: those of the terminal.",
    ),
    key("tui.vi", "true | false", "The prompt of the terminal program has the keys of vi."),
    key(
        "tui.keys.ACTION",
        "key or list of keys",
        "Keys of an action of the terminal program; `/keys` lists the actions.",
    ),
    key(
        "notify.when",
        "list of question, done",
        "What you are told: an agent waits for an answer, a task of yours has ended. Absent: both.",
    ),
    key("notify.after_s", "seconds", "The end of a task that took less is not told. Absent: 10."),
    key("notify.desktop", "true | false", "`notify-send` shows it on the desktop."),
    key(
        "notify.command",
        "list of texts",
        "A program and its arguments; it gets `ANTIPHON_NOTIFY_TITLE` and `ANTIPHON_NOTIFY_TEXT`.",
    ),
    key("notify.url", "address, secret", "Address that gets it with POST, as ntfy takes it."),
    key(
        "notify.token_env",
        "variable",
        "Environment variable that holds the token for the address.",
    ),
    key(
        "notify.terminal",
        "auto | osc9 | osc777 | bell | off",
        "How the terminal notifies you: in the terminal program while the terminal does not have the focus (absent: auto), and in `antiphon run`, which does not know the focus (absent: off).",
    ),
    key("budget.daily_usd", "US dollars", "Most that is spent in a UTC day."),
    key("budget.monthly_usd", "US dollars", "Most that is spent in a UTC month."),
];

/// How alike a name has to be to be suggested.
const ALIKE: f64 = 0.8;

/// The documentation of a key of the file.
pub fn documented(path: &[&str]) -> Option<&'static SettingKey> {
    KEYS.iter().find(|known| fits(known.key, path))
}

/// The documented key that is most like this one.
pub fn suggested_key(key: &str) -> Option<&'static str> {
    let score = |known: &&SettingKey| strsim::jaro_winkler(key, known.key);
    let best = KEYS.iter().max_by(|one, other| score(one).total_cmp(&score(other)))?;
    (score(&best) > ALIKE).then_some(best.key)
}

/// Whether a key is documented, or is a table or a part of a documented key.
pub fn is_known(path: &[&str]) -> bool {
    KEYS.iter().any(|known| {
        let parts: Vec<&str> = known.key.split('.').collect();
        parts.iter().zip(path).all(|(part, name)| is_any_name(part) || part == name)
    })
}

fn fits(known: &str, path: &[&str]) -> bool {
    let parts: Vec<&str> = known.split('.').collect();
    parts.len() == path.len()
        && parts.iter().zip(path).all(|(part, name)| is_any_name(part) || part == name)
}

fn is_any_name(part: &str) -> bool {
    part.bytes().all(|byte| byte.is_ascii_uppercase())
}

/// Whether the value of this key is shown as `***`.
pub(super) fn is_secret(path: &[&str]) -> bool {
    let is_table_of_secrets = |name: &str| matches!(name, "env" | "headers");
    let in_secrets =
        matches!(path, ["mcp" | "terminals", _, name, ..] if is_table_of_secrets(name));
    in_secrets
        || path == ["notify", "url"]
        || path.last().is_some_and(|name| matches!(*name, "api_key" | "token" | "secret"))
}

/// The text of `docs/config.md`.
pub fn page() -> String {
    let mut page = PAGE_HEAD.to_owned();
    let mut section = "";
    for known in KEYS {
        let name = known.key.split_once('.').map_or("At the top", |(table, _)| table);
        if name != section {
            let title = if name == "At the top" { name.to_owned() } else { format!("[{name}]") };
            let _ = writeln!(page, "\n## {title}\n\n| key | takes | what it does |\n|---|---|---|");
            section = name;
        }
        let takes = known.takes.replace('|', "\\|");
        let _ = writeln!(page, "| `{}` | {takes} | {} |", known.key, known.about);
    }
    page
}

const PAGE_HEAD: &str = "\
# Settings

Your settings are in `~/.config/antiphon/config.toml` (or in `XDG_CONFIG_HOME`, or the file that `ANTIPHON_CONFIG` names).
The file need not exist. `antiphon config` reads and changes it; it keeps your comments, checks the whole file before it
writes, and never prints a key:

```console
$ antiphon config path                        # where the file is
$ antiphon config show                        # what you have set
$ antiphon config show --all                  # every key, with what it does
$ antiphon config set model anthropic/claude-sonnet-5-5
$ antiphon config get sandbox.network
$ antiphon config unset model
$ antiphon config edit                        # in $VISUAL or $EDITOR; a file that is not valid is not taken over
```

An unknown field, a wrong value or a file of a newer version is an error that names the line and the column. A part in capitals
stands for a name that you choose; a name with a dot or a slash is quoted, as in `models.\"openai/gpt-4.1\".context_tokens`.

This page is made from the program: a test compares them.
";

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::path::Path;

    use super::*;
    use crate::environment::Environment;
    use crate::settings::UserSettings;

    /// The fields that the program reads in the table at `path`, from its error about an unknown one.
    fn read_fields(path: &[&str]) -> BTreeSet<String> {
        let named = |part: &&str| match *part {
            "MODEL" => "\"a/x\"".to_owned(),
            part if is_any_name(part) => "x".to_owned(),
            part => part.to_owned(),
        };
        let header: Vec<String> = path.iter().map(named).collect();
        let header =
            if header.is_empty() { String::new() } else { format!("[{}]\n", header.join(".")) };
        let text = format!("{header}zzz = 1\n");
        let read =
            UserSettings::of(Path::new("c").into(), Some(&text), None, &Environment::default());
        let error = read.unwrap_err().to_string();
        let (_, expected) =
            error.split_once("unknown field `zzz`").unwrap_or_else(|| panic!("{error}"));
        expected.split('`').skip(1).step_by(2).map(str::to_owned).collect()
    }

    #[test]
    fn every_field_that_is_read_is_documented_and_nothing_else() {
        let mut tables: BTreeMap<Vec<&str>, BTreeSet<String>> = BTreeMap::new();
        for known in KEYS {
            let parts: Vec<&str> = known.key.split('.').collect();
            for (depth, part) in parts.iter().enumerate() {
                tables.entry(parts[..depth].to_vec()).or_default().insert((*part).to_owned());
            }
        }
        for (path, documented) in tables {
            // The names in it are the user's own.
            if !documented.iter().any(|name| is_any_name(name)) {
                assert_eq!(documented, read_fields(&path), "[{}]", path.join("."));
            }
        }
    }

    #[test]
    fn the_page_of_settings_is_that_of_the_program() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/config.md");
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(&path, page()).unwrap();
        }
        let found = std::fs::read_to_string(path).unwrap();
        assert!(found == page(), "docs/config.md differs: write it with UPDATE=1");
    }
}
