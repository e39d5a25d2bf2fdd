//! Where a program finds its agent's context.

use antiphon_core::TaskStatus;
use antiphon_core::port::RunnerError;
use antiphon_terminal::TerminalProfile;

use crate::world::{World, script};

const CONTEXT: &str = "You are careful.\nSay \"yes\".";

fn reported(args: &[&str], text: &str) -> TerminalProfile {
    let mut command: Vec<String> = ["bash", "-c", text, "name"].map(str::to_owned).into();
    command.push("own".to_owned());
    let context_args = args.iter().map(|word| (*word).to_owned()).collect();
    TerminalProfile { command, context_args, ..script("") }
}

async fn end_of(world: &World, context: &str) -> String {
    let task_id = world.task(context, None).await;
    world.start(&task_id).ended().await.unwrap();
    let end = world.end(&task_id).await;
    assert_eq!(end.status, TaskStatus::Completed, "{:?}", end.detail);
    end.detail.unwrap().as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_context_goes_where_the_profile_says() {
    let print = "printf '<%s>' \"$@\"";
    let world = World::new(reported(&["--append", "{text}"], print));
    assert_eq!(end_of(&world, CONTEXT).await, "<own><--append><You are careful.\nSay \"yes\".>");
    let world = World::new(reported(&["-c", "it={quoted}"], print));
    assert_eq!(end_of(&world, CONTEXT).await, r#"<own><-c><it="You are careful.\nSay \"yes\".">"#);
    let world =
        World::new(reported(&["--file={file}"], "cat ${2#--file=}; cmp ${2#*=} $ANTIPHON_CONTEXT"));
    assert_eq!(end_of(&world, CONTEXT).await, CONTEXT);
    let world = World::new(reported(&["{text}"], "echo $# ${ANTIPHON_CONTEXT-none}"));
    assert_eq!(end_of(&world, " \n").await, "1 none");
}

#[tokio::test]
async fn a_context_does_not_fill_in_itself() {
    let world = World::new(reported(&["{text}"], "printf '<%s>' \"$@\""));
    assert_eq!(end_of(&world, "{file} {text} {quoted}").await, "<own><{file} {text} {quoted}>");
}

#[tokio::test]
async fn a_context_file_is_there_while_the_program_runs() {
    let profile = TerminalProfile {
        context_file: Some("AGENTS.md".to_owned()),
        ..script("tail -n +2 AGENTS.md")
    };
    let world = World::new(profile);
    assert_eq!(end_of(&world, CONTEXT).await, CONTEXT);
    assert!(!world.root().join("AGENTS.md").exists());
}

#[tokio::test]
async fn an_existing_context_file_is_never_overwritten() {
    let profile = TerminalProfile { context_file: Some("AGENTS.md".to_owned()), ..script("true") };
    let world = World::new(profile);
    let file = world.root().join("AGENTS.md");
    std::fs::write(&file, "mine").unwrap();
    let task_id = world.task(CONTEXT, None).await;
    let error = world.start(&task_id).ended().await.unwrap_err();
    assert!(matches!(&error, RunnerError::Refused { reason } if reason.contains("another file")));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine");
    // A file that an earlier, killed task left behind is replaced.
    std::fs::write(&file, "<!-- antiphon: the context of task gone; taken away -->\nold").unwrap();
    end_of(&world, CONTEXT).await;
    assert!(!file.exists());
}

#[tokio::test]
async fn a_context_that_is_too_long_is_refused() {
    let world = World::new(reported(&["{text}"], "true"));
    let task_id = world.task(&"x".repeat(100_001), None).await;
    let error = world.start(&task_id).ended().await.unwrap_err();
    assert!(matches!(&error, RunnerError::Refused { reason } if reason.contains("100000 bytes")));
}
