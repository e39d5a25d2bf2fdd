//! Where a program finds its agent's context.

use antiphon_core::TaskStatus;
use antiphon_core::port::RunnerError;
use antiphon_terminal::TerminalProfile;

use crate::bench::{Bench, script};

const CONTEXT: &str = "You are careful.\nSay \"yes\".";

fn reported(args: &[&str], text: &str) -> TerminalProfile {
    let mut command: Vec<String> = ["bash", "-c", text, "name"].map(str::to_owned).into();
    command.push("own".to_owned());
    let context_args = args.iter().map(|word| (*word).to_owned()).collect();
    TerminalProfile { command, context_args, ..script("") }
}

async fn end_of(bench: &Bench, context: &str) -> String {
    let task_id = bench.task(context, None).await;
    bench.start(&task_id).ended().await.unwrap();
    let end = bench.end(&task_id).await;
    assert_eq!(end.status, TaskStatus::Completed, "{:?}", end.detail);
    end.detail.unwrap().as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_context_goes_where_the_profile_says() {
    let print = "printf '<%s>' \"$@\"";
    let bench = Bench::new(reported(&["--append", "{text}"], print));
    assert_eq!(end_of(&bench, CONTEXT).await, "<own><--append><You are careful.\nSay \"yes\".>");
    let bench = Bench::new(reported(&["-c", "it={quoted}"], print));
    assert_eq!(end_of(&bench, CONTEXT).await, r#"<own><-c><it="You are careful.\nSay \"yes\".">"#);
    let bench =
        Bench::new(reported(&["--file={file}"], "cat ${2#--file=}; cmp ${2#*=} $ANTIPHON_CONTEXT"));
    assert_eq!(end_of(&bench, CONTEXT).await, CONTEXT);
    let bench = Bench::new(reported(&["{text}"], "echo $# ${ANTIPHON_CONTEXT-none}"));
    assert_eq!(end_of(&bench, " \n").await, "1 none");
}

#[tokio::test]
async fn a_context_does_not_fill_in_itself() {
    let bench = Bench::new(reported(&["{text}"], "printf '<%s>' \"$@\""));
    assert_eq!(end_of(&bench, "{file} {text} {quoted}").await, "<own><{file} {text} {quoted}>");
}

#[tokio::test]
async fn a_context_file_is_there_while_the_program_runs() {
    let profile = TerminalProfile {
        context_file: Some("AGENTS.md".to_owned()),
        ..script("tail -n +2 AGENTS.md")
    };
    let bench = Bench::new(profile);
    assert_eq!(end_of(&bench, CONTEXT).await, CONTEXT);
    assert!(!bench.root().join("AGENTS.md").exists());
}

#[tokio::test]
async fn an_existing_context_file_is_never_overwritten() {
    let profile = TerminalProfile { context_file: Some("AGENTS.md".to_owned()), ..script("true") };
    let bench = Bench::new(profile);
    let file = bench.root().join("AGENTS.md");
    std::fs::write(&file, "mine").unwrap();
    let task_id = bench.task(CONTEXT, None).await;
    let error = bench.start(&task_id).ended().await.unwrap_err();
    assert!(matches!(&error, RunnerError::Refused { reason } if reason.contains("another file")));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine");
    // A file that an earlier, killed task left behind is replaced.
    std::fs::write(&file, "<!-- antiphon: the context of task gone; taken away -->\nold").unwrap();
    end_of(&bench, CONTEXT).await;
    assert!(!file.exists());
}

#[tokio::test]
async fn a_context_that_is_too_long_is_refused() {
    let bench = Bench::new(reported(&["{text}"], "true"));
    let task_id = bench.task(&"x".repeat(100_001), None).await;
    let error = bench.start(&task_id).ended().await.unwrap_err();
    assert!(matches!(&error, RunnerError::Refused { reason } if reason.contains("100000 bytes")));
}
