//! The environment of commands.

use std::collections::BTreeSet;

use crate::bench::Bench;

async fn names(bench: &Bench) -> BTreeSet<String> {
    bench
        .works("env -0 | tr '\\0' '\\n' | sed 's/=.*//'")
        .await
        .lines()
        .map(str::to_owned)
        .collect()
}

#[tokio::test]
async fn keys_and_variables_that_load_code_are_removed() {
    for bench in [Bench::new(), Bench::full()] {
        let names = names(&bench).await;
        for name in ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "LD_PRELOAD", "BASH_ENV", "ENV"] {
            assert!(!names.contains(name), "{name}");
        }
        assert!(!names.contains("ANTIPHON_WORKER"));
        let ours = names.iter().filter(|name| name.starts_with("ANTIPHON_"));
        assert_eq!(ours.collect::<Vec<_>>(), ["ANTIPHON_CALL", "ANTIPHON_CALL_ID"]);
        for name in ["CARGO", "CARGO_MANIFEST_DIR", "NEXTEST"] {
            assert!(!names.contains(name), "{name}");
        }
    }
}

#[tokio::test]
async fn no_program_waits_for_a_person() {
    let bench = Bench::new();
    let shown = bench.works("echo $TERM $PAGER $GIT_TERMINAL_PROMPT $NO_COLOR $SHELL").await;
    assert_eq!(shown, "dumb cat 0 1 /bin/bash\n");
    let folders = "echo $TMPDIR $XDG_CACHE_HOME $npm_config_cache";
    assert_eq!(bench.works(folders).await, "/tmp /tmp/.cache /tmp/.cache/npm\n");
}

#[tokio::test]
async fn the_worker_itself_has_no_keys() {
    let bench = Bench::full();
    let tool_output = bench.works("tr '\\0' '\\n' < /proc/$PPID/environ").await;
    assert!(
        !tool_output.contains("must not be seen") && tool_output.contains("TERM=dumb"),
        "{tool_output}"
    );
}

#[tokio::test]
async fn there_is_no_terminal() {
    for bench in [Bench::new(), Bench::full()] {
        let tool_output = bench.run("tty; echo x > /dev/tty").await;
        assert!(
            tool_output.is_error && tool_output.text.contains("not a tty"),
            "{}",
            tool_output.text
        );
    }
}
