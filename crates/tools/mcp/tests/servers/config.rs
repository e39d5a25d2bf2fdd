//! What may stand in the configuration.

use std::time::Duration;

use antiphon_mcp::{Launch, McpConfig, ServerConfig};

fn read(text: &str) -> Result<McpConfig, String> {
    toml::from_str(text).map_err(|error| error.to_string())
}

#[test]
fn servers_are_read_with_their_defaults() {
    let config = read(
        r#"
        [time]
        command = "uvx"
        args = ["mcp-server-time"]
        env = { TZ = "UTC" }

        [docs]
        url = "https://example.com/mcp"
        bearer_token_env = "DOCS_TOKEN"
        headers = { X-Team = "blue" }
        allow = ["search_*"]
        timeout_s = 5
        "#,
    )
    .unwrap();
    let names: Vec<&str> = config.0.keys().map(antiphon_mcp::ServerName::as_str).collect();
    assert_eq!(names, ["docs", "time"]);
    let [docs, time]: [&ServerConfig; 2] =
        config.0.values().collect::<Vec<_>>().try_into().unwrap();
    assert!(matches!(&time.launch, Launch::Stdio(stdio) if stdio.command == "uvx"));
    assert_eq!(
        (time.timeout, time.timeout_max, time.start_timeout),
        (Duration::from_secs(60), Duration::from_secs(600), Duration::from_secs(20))
    );
    assert!(
        matches!(&docs.launch, Launch::Http(http) if http.url.as_str() == "https://example.com/mcp")
    );
    assert_eq!((docs.timeout, docs.timeout_max), (Duration::from_secs(5), Duration::from_secs(50)));
    assert!(docs.allow.matches("search_all") && !docs.trusted);
}

#[test]
fn mistakes_are_named() {
    for (text, expected) in [
        ("[s]\n", "either a `command` or a `url`"),
        ("[s]\ncommand='x'\nurl='http://localhost/'", "either a `command` or a `url`"),
        ("[s]\ncommand=' '", "either a `command` or a `url`"),
        (
            "[s]\ncommand='x'\nheaders={}",
            "`headers` does not belong to an MCP server with a `command`",
        ),
        (
            "[s]\nurl='http://localhost/'\nargs=[]",
            "`args` does not belong to an MCP server with a `url`",
        ),
        ("[s]\ncommand='x'\ncolor='blue'", "unknown field `color`"),
        ("['a b']\ncommand='x'", "`a b` cannot name an MCP server"),
        ("[a__b]\ncommand='x'", "`a__b` cannot name an MCP server"),
        ("[_a]\ncommand='x'", "`_a` cannot name an MCP server"),
        ("[abcdefghijklmnopqrstuvwxyz]\ncommand='x'", "cannot name an MCP server"),
        ("[s]\nurl='ftp://example.com/'", "not an http or https address"),
        ("[s]\nurl='https://me:secret@example.com/'", "must not hold a user name"),
        ("[s]\nurl='http://example.com/'\nbearer_token_env='T'", "use https"),
        ("[s]\nurl='https://example.com/'\nheaders={Origin='x'}", "is set by Antiphon"),
        ("[s]\nurl='https://example.com/'\nheaders={'a b'='x'}", "not the name of a header"),
        ("[s]\nurl='https://example.com/'\nheaders={A=\"x\\ny\"}", "cannot be sent"),
        ("[s]\ncommand='x'\nenv={'A=B'='x'}", "cannot name a variable"),
        ("[s]\ncommand='x'\ntimeout_s=0", "`timeout_s` must be at least 1"),
        ("[s]\ncommand='x'\ntimeout_s=100000", "which is a day"),
        ("[s]\ncommand='x'\ntimeout_s=5\ntimeout_max_s=4", "must not be less than `timeout_s`"),
        ("[s]\ncommand='x'\nallow=['[']", "is not a pattern for tools"),
    ] {
        let error = read(text).unwrap_err();
        assert!(error.contains(expected), "{text}: {error}");
        assert!(!error.contains("secret"), "{error}");
    }
}

#[test]
fn a_key_may_go_to_this_machine_without_encryption() {
    for host in ["localhost", "127.0.0.1:8080", "[::1]:8080"] {
        let text = format!("[s]\nurl='http://{host}/mcp'\nbearer_token_env='T'");
        assert!(read(&text).is_ok(), "{host}");
    }
}

#[test]
fn secrets_are_not_printed() {
    let text =
        "[a]\ncommand='x'\nenv={KEY='hunter2'}\n[b]\nurl='https://b/'\nheaders={K='hunter2'}";
    assert!(!format!("{:?}", read(text).unwrap()).contains("hunter2"));
}

#[test]
fn there_is_a_limit_to_servers() {
    let many: Vec<String> = (0..65).map(|i| format!("[s{i}]\ncommand='x'")).collect();
    assert!(read(&many.join("\n")).unwrap_err().contains("at most 64"));
}
