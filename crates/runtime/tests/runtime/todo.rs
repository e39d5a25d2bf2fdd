//! The list of things to do that an agent keeps.

use std::sync::Arc;

use antiphon_conformance::reference::MemoryJournal;
use antiphon_core::{EventBody, Message, TaskStatus, TodoItem, TodoStatus};

use crate::world::{Counting, Death, Mortal, events, new_task, orchestrator};

const KEEPS: &str = r#"
name = "test"
[[reply]]
when = { turn = 0 }
step = [{ call = { name = "todo", arguments_json = '''{"items": [
  {"text": "look", "status": "in_progress"}, {"text": "act", "status": "pending"}]}''' } }]
[[reply]]
when = { turn = 1 }
step = [{ call = { name = "todo", arguments_json = '''{"items": [{"text": " ", "status": "done"}]}''' } }]
[[reply]]
when = { turn = 2 }
step = [{ call = { name = "todo", arguments_json = '''{"items": [
  {"text": "look", "status": "done"}, {"text": "act", "status": "in_progress"}]}''' } }]
[[reply]]
step = [{ text = "Done." }]
"#;

fn kept() -> Vec<TodoItem> {
    let item = |text: &str, status| TodoItem { text: text.to_owned(), status };
    vec![item("look", TodoStatus::Done), item("act", TodoStatus::InProgress)]
}

#[tokio::test]
async fn each_list_replaces_the_one_before_and_a_wrong_one_changes_nothing() {
    let (journal, tools) = (Arc::new(MemoryJournal::new()), Arc::new(Counting::default()));
    let orchestrator = orchestrator(journal.clone(), &tools, KEEPS);
    let task_id = orchestrator.invoke(new_task("go")).await.expect("accepted").task_id;
    let state = orchestrator.wait(&task_id).await.expect("an end");
    assert_eq!((state.status, state.todo), (TaskStatus::Completed, kept()));
    let changes = events(&*journal).await;
    let changes = changes.iter().filter(|event| matches!(event.body, EventBody::TodoChanged(_)));
    assert_eq!(changes.count(), 2);
    let messages = orchestrator.task(&task_id).await.expect("a task");
    let results = messages.messages().iter().filter_map(|message| match &**message {
        Message::ToolResult(result) => Some((format!("{:?}", result.content), result.is_error)),
        Message::User(_) | Message::Assistant(_) => None,
    });
    let results: Vec<_> = results.collect();
    assert!(results[0].0.contains("0 of 2 done") && !results[0].1, "{results:?}");
    assert!(results[1].0.contains("the text of item 1 is empty") && results[1].1, "{results:?}");
    assert!(results[2].0.contains("1 of 2 done") && !results[2].1, "{results:?}");
}

#[test]
fn a_list_is_bounded() {
    let item = |text: String| TodoItem { text, status: TodoStatus::Pending };
    assert!(TodoItem::check(&vec![item("x".to_owned()); 50]).is_ok());
    assert!(TodoItem::check(&vec![item("x".to_owned()); 51]).is_err());
    assert!(TodoItem::check(&[item("x".repeat(400))]).is_ok());
    assert!(TodoItem::check(&[item("x".repeat(401))]).is_err());
}

#[tokio::test]
async fn the_list_survives_death_at_every_write() {
    let mut recovered = 0;
    for last in 0..10 {
        for death in [Death::Before, Death::After] {
            let (journal, tools) = (Arc::new(MemoryJournal::new()), Arc::new(Counting::default()));
            let first = orchestrator(Arc::new(Mortal::new(&journal, last, death)), &tools, KEEPS);
            if let Ok(accepted) = first.invoke(new_task("go")).await {
                // It ends, or it dies.
                let _ = first.wait(&accepted.task_id).await;
            }
            let second = orchestrator(journal, &tools, KEEPS);
            let begun = second.recover().await.expect("a list").begun;
            let Some(task_id) = begun.first() else { continue };
            recovered += 1;
            let state = second.wait(task_id).await.expect("an end");
            let place = format!("{death:?} write {last}");
            assert_eq!((state.status, state.todo), (TaskStatus::Completed, kept()), "{place}");
        }
    }
    assert!(recovered >= 6, "{recovered} of the deaths left something to recover");
}
