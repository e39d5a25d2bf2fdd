//! Live agents as a person at a shell meets them: `send`, `inbox`, `agents start` and `stop`.

use std::fs;

use serde_json::{Value, json};

use crate::project::{Project, Seen};
use crate::project_folder::{state, trust};

fn user(text: &str) -> (String, String) {
    ("user".to_owned(), text.to_owned())
}

fn answer(text: &str) -> (String, String) {
    ("assistant".to_owned(), format!("Heard: {text}"))
}

#[test]
fn what_is_sent_wakes_an_idle_agent_and_it_answers_in_one_conversation() {
    let project = Project::new();
    let server = project.serve();
    assert!(server.said.contains("0 live agents, 0 schedules"), "{}", server.said);
    let sent = project.antiphon(&["send", "echo", "good", "morning"]);
    assert_eq!(sent.code, 0, "{sent:?}");
    assert!(sent.out.starts_with("accepted: ") && sent.out.ends_with("; `echo` will read it\n"));
    project.until("it answers", |project| (project.said("echo").len() == 2).then_some(()));
    let event = project.antiphon(&["send", "echo", "--from", "ci", "--json", "main is red"]);
    assert_eq!((event.code, &event.json()["receipt"]), (0, &json!("accepted")), "{event:?}");
    project.until("it answers", |project| (project.said("echo").len() == 4).then_some(()));
    let expected = [
        user("good morning"),
        answer("good morning"),
        user("[EVENT via ci] main is red"),
        answer("[EVENT via ci] main is red"),
    ];
    assert_eq!(project.said("echo"), expected);
    let status = project.antiphon(&["agents", "status", "--json"]).json();
    assert_eq!((&status[0]["agent"], &status[0]["resident"]), (&json!("echo"), &json!(true)));
    server.end();
}

#[test]
fn a_message_sent_without_a_server_is_read_once_by_the_next_server() {
    let project = Project::new();
    let sent = project.antiphon(&["send", "echo", "--key", "k", "hello"]);
    assert_eq!(sent.code, 0, "{sent:?}");
    assert!(sent.out.contains("`echo` reads it when `antiphon serve` runs"), "{sent:?}");
    let again = project.antiphon(&["send", "echo", "--key", "k", "hello", "--json"]).json();
    assert_eq!(again["receipt"], "deduplicated");
    assert!(sent.out.contains(again["id"].as_str().unwrap()), "{sent:?} {again}");
    let server = project.serve();
    assert!(server.said.contains("1 live agent, "), "{}", server.said);
    let third = project.antiphon(&["send", "echo", "--key", "k", "hello"]);
    assert!(third.out.starts_with("duplicate: "), "{third:?}");
    project.caught_up("echo");
    let said = project.said("echo");
    assert_eq!(said[..2], [user("hello"), answer("hello")]);
    assert_eq!(said.len(), 4, "{said:?}");
    server.end();
}

#[test]
fn a_request_is_answered_to_who_waits() {
    let project = Project::new();
    let alone = project.antiphon(&["send", "echo", "--request", "review", "--wait"]);
    assert_eq!((alone.code, alone.out.as_str()), (4, ""), "{alone:?}");
    assert!(alone.err.contains("start `antiphon serve`"), "{alone:?}");
    assert!(
        !state(&project.path()).join("journal.db").exists() || {
            project.antiphon(&["inbox", "list"]).out == "no queued interactions\n"
        }
    );
    let server = project.serve();
    let requested =
        ["send", "echo", "--request", "review", "--params", r#"{"branch":"b"}"#, "--wait"];
    let answered = project.antiphon(&requested);
    assert_eq!(answered.code, 0, "{answered:?}");
    assert!(answered.out.starts_with("Heard: [REQUEST "), "{answered:?}");
    assert!(answered.out.ends_with(" from user: review] {\"branch\":\"b\"}\n"), "{answered:?}");
    let reported = project.antiphon(&[&requested[..], &["--json"]].concat()).json();
    assert_eq!(reported["status"], "completed");
    project.define("my scribe", "");
    project.until("its file is read", |project| {
        let seen = project.antiphon(&["send", "my scribe", "--request", "x", "--wait"]);
        (seen.code == 0).then_some(())
    });
    let shown =
        project.antiphon(&["inbox", "show", reported["id"].as_str().unwrap(), "--json"]).json();
    assert_eq!((&shown["state"], &shown["result"]), (&json!("completed"), &reported["result"]));
    server.end();
}

#[test]
fn a_request_whose_agent_is_stopped_fails_and_who_waits_is_told() {
    let project = Project::new();
    let server = project.serve();
    let waiting = project.spawn(&["send", "echo", "--request", "stall", "--wait", "--json"]);
    project.until("it is at work", |project| {
        let status = project.antiphon(&["agents", "status", "--json"]).json();
        (status[0]["state"] == "thinking").then_some(())
    });
    let stopped = project.antiphon(&["agents", "stop", "echo"]);
    assert_eq!(stopped.code, 0, "{stopped:?}");
    let seen = Seen::of(waiting.wait_with_output().unwrap());
    assert_eq!((seen.code, &seen.json()["status"]), (1, &json!("failed")), "{seen:?}");
    assert!(seen.err.contains("the agent has stopped"), "{seen:?}");
    server.end();
}

#[test]
fn who_waits_when_the_server_is_killed_and_none_follows_is_told_where_to_look() {
    let project = Project::new();
    let server = project.serve();
    let asks = ["send", "echo", "--request", "stall", "--wait", "--timeout", "5s"];
    let waiting = project.spawn(&asks);
    let id = project.until("it is at work", |project| {
        let waiting = project.antiphon(&["agents", "status", "--json"]).json();
        let thinks = waiting[0]["state"] == "thinking";
        let said = if thinks { project.said("echo") } else { Vec::new() };
        said.first().map(|(_, text)| text.split(' ').nth(1).unwrap().to_owned())
    });
    drop(server);
    let seen = Seen::of(waiting.wait_with_output().unwrap());
    assert_eq!((seen.code, seen.out.as_str()), (4, ""), "{seen:?}");
    assert!(seen.err.contains(&format!("see `antiphon inbox show {id}`")), "{seen:?}");
    let shown = project.antiphon(&["inbox", "show", &id, "--json"]).json();
    assert_eq!(shown["state"], "taken");
}

#[test]
fn who_waits_when_the_server_is_killed_hears_from_the_next_one() {
    let project = Project::new();
    let server = project.serve();
    let waiting = project.spawn(&["send", "echo", "--request", "stall", "--wait"]);
    project.until("it is at work", |project| {
        let waiting = project.antiphon(&["agents", "status", "--json"]).json();
        (waiting[0]["state"] == "thinking").then_some(())
    });
    drop(server);
    let server = project.serve();
    // A stop answers the open request.
    assert_eq!(project.antiphon(&["agents", "stop", "echo"]).code, 0);
    let seen = Seen::of(waiting.wait_with_output().unwrap());
    assert_eq!(seen.code, 1, "{seen:?}");
    assert!(!seen.err.contains("inbox show"), "an answer came: {seen:?}");
    server.end();
}

#[test]
fn an_image_is_sent_with_a_text_or_without() {
    let project = Project::new();
    let server = project.serve();
    let folder = project.path();
    fs::write(folder.join("a.png"), b"\x89PNG\r\n\x1a\nrest").unwrap();
    fs::write(folder.join("b.png"), b"no image").unwrap();
    for text in [&["look at this"][..], &[]] {
        let arguments = [&["send", "echo", "--image", "a.png"], text].concat();
        assert_eq!(project.antiphon(&arguments).code, 0, "{text:?}");
    }
    project.until("the second image", |project| {
        let sessions = project.antiphon(&["tasks", "show", "echo", "--json"]).out;
        (sessions.matches("image/png").count() >= 2).then_some(())
    });
    let wrong = project.antiphon(&["send", "echo", "--image", "b.png", "x"]);
    assert_eq!(wrong.code, 2, "{wrong:?}");
    assert!(wrong.err.contains("--image b.png"), "{wrong:?}");
    server.end();
}

#[test]
fn a_request_that_is_not_answered_in_time_is_told() {
    let project = Project::new();
    let server = project.serve();
    let late = ["send", "echo", "--request", "stall", "--wait", "--timeout", "1s"];
    let seen = project.antiphon(&late);
    assert_eq!((seen.code, seen.out.as_str()), (1, ""), "{seen:?}");
    assert!(seen.err.contains("in time"), "{seen:?}");
    assert_eq!(project.antiphon(&["agents", "stop", "echo"]).code, 0);
    server.end();
}

#[test]
fn lines_are_sent_one_by_one_in_order_and_each_has_its_receipt() {
    let project = Project::new();
    let server = project.serve();
    let input = b"one\n\n  \ntwo\r\n\xff\nthree";
    let lines = ["send", "echo", "--from", "log", "--key", "l", "--json", "-"];
    let seen = project.fed(&lines, input);
    assert_eq!(seen.code, 2, "a line was no text: {seen:?}");
    let receipts: Vec<Value> =
        seen.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let reported: Vec<(u64, &str)> = receipts
        .iter()
        .map(|reported| (reported["line"].as_u64().unwrap(), reported["receipt"].as_str().unwrap()))
        .collect();
    let expected = [(1, "accepted"), (4, "accepted"), (5, "rejected"), (6, "accepted")];
    assert_eq!(reported, expected);
    assert!(seen.err.contains("line 5: the line is not UTF-8"), "{seen:?}");
    assert!(seen.err.contains("3 lines accepted, 1 rejected"), "{seen:?}");
    // The same again is nothing new.
    let again = project.fed(&["send", "echo", "--from", "log", "--key", "l", "-"], b"one\n");
    assert_eq!((again.code, again.out.trim()), (0, receipts[0]["id"].as_str().unwrap()));
    assert!(again.err.contains("0 lines accepted, 1 duplicate"), "{again:?}");
    project.caught_up("echo");
    let received = |(by, text): &(String, String)| by == "user" && text.contains("via log");
    let received: Vec<String> =
        project.said("echo").into_iter().filter(received).map(|(_, text)| text).collect();
    let expected = ["one", "two", "three"].map(|line| format!("[EVENT via log] {line}"));
    assert_eq!(received, expected);
    let none = project.fed(&["send", "nobody", "-"], b"a\nb\n");
    assert_eq!((none.code, none.out.as_str()), (2, ""), "{none:?}");
    assert!(none.err.contains("line 2: there is no agent `nobody`"), "{none:?}");
    server.end();
}

#[test]
fn an_inbox_that_is_full_is_told_and_nothing_is_left_out_when_there_is_room_again() {
    let project = Project::new();
    let lines: Vec<String> = (1..=1025).map(|number: u32| number.to_string()).collect();
    let lines = lines.join("\n");
    let keyed = ["send", "echo", "--key", "k", "--json", "-"];
    let full = project.fed(&keyed, lines.as_bytes());
    assert_eq!(full.code, 4, "{}", full.err);
    assert!(full.err.contains("1024 lines accepted, 1 rejected"), "{}", full.err);
    let last: Value = serde_json::from_str(full.out.lines().last().unwrap()).unwrap();
    let reported = (&last["line"], &last["receipt"], &last["reason"]);
    assert_eq!(reported, (&json!(1025), &json!("rejected"), &json!("sender_full")));
    // Another sender has room, and the same lines again are those that are there and the one more.
    assert_eq!(project.antiphon(&["send", "echo", "--from", "ci", "red"]).code, 0);
    let server = project.serve();
    let again = project.fed(&keyed, lines.as_bytes());
    assert_eq!(again.code, 0, "{}", again.err);
    assert!(again.err.contains("1 line accepted, 1024 duplicate"), "{}", again.err);
    project.caught_up("echo");
    let received = project.said("echo").into_iter().filter(|(by, _)| by == "user");
    let received: Vec<u32> = received.filter_map(|(_, text)| text.parse().ok()).collect();
    assert_eq!(received, (1..=1025).collect::<Vec<u32>>());
    server.end();
}

#[test]
fn what_is_refused_is_refused_with_the_same_words_and_code_alone_and_through_a_server() {
    let refusals = |project: &Project| {
        assert_eq!(project.antiphon(&["agents", "start", "quiet"]).code, 0);
        assert_eq!(project.antiphon(&["agents", "stop", "quiet"]).code, 0);
        let long = "x".repeat(300 * 1024);
        fs::write(project.path().join("long"), &long).unwrap();
        let orders: [&[&str]; 15] = [
            &["send", "nobody", "hi"],
            &["send", "quiet", "hi"],
            &["send", "echo", " "],
            &["send", "echo", "--key", "", "hi"],
            &["send", "echo", "--request", " "],
            &["send", "echo", "--request", "mob.peer_added"],
            &["send", "echo", "--request", "x", "--params", "{"],
            &["send", "echo", "--request", "x", "--timeout", "0s"],
            &["send", "echo", "--request", "x", "--timeout", "8d"],
            &["send", "[x]", "hi"],
            &["agents", "start", "nobody"],
            &["agents", "start", "mute"],
            &["agents", "stop", "nobody"],
            &["inbox", "list", "nobody"],
            &["inbox", "show", "0000"],
        ];
        let mut seen: Vec<(String, i32, String, String)> = orders
            .iter()
            .map(|order| {
                let seen = project.antiphon(order);
                (order.join(" "), seen.code, seen.err, seen.out)
            })
            .collect();
        let fed = project.fed(&["send", "echo", "-"], format!("{long}\n").as_bytes());
        seen.push(("long".to_owned(), fed.code, String::new(), fed.out));
        assert!(seen.iter().all(|(_, code, ..)| *code == 2), "{seen:#?}");
        assert!(seen.iter().all(|(_, _, _, out)| out.is_empty()), "{seen:#?}");
        seen
    };
    let made = || {
        let project = Project::new();
        fs::write(project.agents().join("mute.md"), "---\ndescription: d\n---\nx\n").unwrap();
        trust(&project.path());
        project
    };
    let alone = refusals(&made());
    let project = made();
    let server = project.serve();
    assert_eq!(refusals(&project), alone);
    server.end();
}

#[test]
fn usage_that_makes_no_sense_is_told_before_anything_happens() {
    let project = Project::new();
    for bad in [
        &["send"][..],
        &["send", "echo"],
        &["send", "echo", "--wait", "hi"],
        &["send", "echo", "--params", "{}", "hi"],
        &["send", "echo", "--request", "x", "hi"],
        &["send", "echo", "--request", "x", "--from", "ci"],
        &["send", "echo", "--request", "x", "--wait", "--no-wake"],
        &["send", "echo", "--salience", "loud", "hi"],
        &["send", "echo", "--timeout", "5m", "hi"],
        &["send", "echo", "--key", "two words", "hi"],
        &["send", "echo", "--key", "ä", "hi"],
        &["send", "echo", "--from", "a/b", "hi"],
        &["inbox"],
        &["inbox", "show"],
        &["inbox", "list", "--limit", "0"],
        &["request"],
        &["request", "nowhere.json"],
    ] {
        let seen = project.antiphon(bad);
        assert_eq!((seen.code, seen.out.as_str()), (2, ""), "{bad:?}: {seen:?}");
    }
    assert!(!state(&project.path()).join("journal.db").exists(), "nothing was begun");
}

#[test]
fn what_waits_is_listed_and_shown_also_for_a_stopped_agent_and_hides_nothing() {
    let project = Project::new();
    let hidden = "look\u{e0041}\u{202e} here";
    let first = ["send", "echo", "--from", "ci", "--salience", "urgent", "--steer", hidden];
    assert_eq!(project.antiphon(&first).code, 0);
    let requested = ["send", "echo", "--request", "review", "--json", "--timeout", "2h"];
    let id = project.antiphon(&requested).json()["id"].as_str().unwrap().to_owned();
    assert_eq!(project.antiphon(&["send", "echo", "--no-wake", "by the way"]).code, 0);
    let listed = project.antiphon(&["inbox", "list"]).out;
    let lines: Vec<&str> = listed.lines().collect();
    assert_eq!(lines.len(), 4, "{listed}");
    for (line, words) in lines.iter().zip([
        ["AGENT", "FROM", "SALIENCE", "MODE"],
        ["event:ci", "plain_event", "urgent", "steer"],
        ["user", "actionable_request", "normal", "[REQUEST "],
        ["user", "actionable_message", "queue, quiet", "by the way"],
    ]) {
        assert!(words.iter().all(|word| line.contains(word)), "{words:?}: {line}");
    }
    assert!(lines[1].ends_with("[EVENT via ci] look here"), "{listed}");
    let shown = project.antiphon(&["inbox", "show", &id]).out;
    for part in ["state        waiting", "answer by", "\"intent\": \"review\"", "from user: review"]
    {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let few = project.antiphon(&["inbox", "list", "echo", "--json", "--limit", "1"]);
    assert_eq!(few.json().as_array().unwrap().len(), 1);
    assert!(few.err.contains("1 of 3; see more with --limit or --cursor"), "{few:?}");
    assert_eq!(project.antiphon(&["inbox", "list", "quiet"]).out, "no queued interactions\n");
    // Stopped, its request has failed and the rest waits.
    assert_eq!(project.antiphon(&["agents", "stop", "echo"]).code, 0);
    let left = project.antiphon(&["inbox", "list", "--json"]).json();
    let left: Vec<&Value> = left.as_array().unwrap().iter().map(|row| &row["content"]).collect();
    assert_eq!(left.len(), 2, "{left:?}");
    assert!(project.antiphon(&["inbox", "list"]).out.contains("echo (stopped)"));
    let failed = project.antiphon(&["inbox", "show", &id, "--json"]).json();
    assert_eq!(
        (&failed["state"], &failed["result"]["code"]),
        (&json!("failed"), &json!("stopped"))
    );
    // Started again, it has them.
    assert_eq!(project.antiphon(&["agents", "start", "echo"]).code, 0);
    let again = project.antiphon(&["inbox", "list", "--json"]).json();
    let contents: Vec<&Value> =
        again.as_array().unwrap().iter().map(|row| &row["content"]).collect();
    assert_eq!(contents, left);
}

#[test]
fn an_agent_is_started_and_stopped_alone_and_through_a_server() {
    let project = Project::new();
    let started = project.antiphon(&["agents", "start", "echo"]);
    assert_eq!(started.code, 0, "{started:?}");
    assert!(started.out.starts_with("`echo` is started: task "), "{started:?}");
    assert!(started.out.contains("`antiphon serve` runs it"), "{started:?}");
    let server = project.serve();
    let again = project.antiphon(&["agents", "start", "echo", "--json"]).json();
    assert_eq!(again, json!({"agent": "echo", "task_id": project.task("echo"), "already": true}));
    let stopped = project.antiphon(&["agents", "stop", "echo", "--json"]).json();
    assert_eq!(stopped, json!({"agent": "echo", "task_id": again["task_id"]}));
    let not_there = project.antiphon(&["agents", "stop", "echo"]);
    assert_eq!((not_there.code, not_there.out.as_str()), (0, "`echo` was not started\n"));
    let refused = project.antiphon(&["send", "echo", "hi"]);
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(refused.err.contains("was stopped: start it again"), "{refused:?}");
    assert_eq!(project.antiphon(&["agents", "start", "echo"]).code, 0);
    assert_ne!(project.task("echo"), again["task_id"].as_str().unwrap());
    server.end();
}

#[test]
fn a_live_agent_reads_as_one_in_the_lists_of_tasks() {
    let project = Project::new();
    let ran = project.antiphon(&["run", "--model", "scripted/hello", "hi"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let ran = project.antiphon(&["tasks", "list", "--json"]).json()[0]["task_id"].clone();
    assert_eq!(project.antiphon(&["send", "echo", "good morning"]).code, 0);
    let task = project.task("echo");
    let listed = project.antiphon(&["tasks", "list"]).out;
    let line = listed.lines().find(|line| line.starts_with(&task[24..32])).unwrap();
    assert!(line.contains(" resident ") && line.ends_with("agent echo"), "{listed}");
    // `last` is a task that a user created, not a live agent.
    let last = project.antiphon(&["tasks", "show", "last", "--json"]).json();
    assert_eq!(last["task_id"], ran);
    // Resumed without a server, it reads what there is and is at rest.
    let resumed = project.antiphon(&["tasks", "resume"]);
    assert_eq!((resumed.code, resumed.out), (0, format!("{task} idle\n")), "{}", resumed.err);
    assert_eq!(project.said("echo"), [user("good morning"), answer("good morning")]);
    let tree = project.antiphon(&["tasks", "tree", &task]).out;
    assert!(tree.starts_with("echo  ◦ idle "), "{tree}");
    assert!(tree.contains("1 task (1 idle)"), "{tree}");
    let server = project.serve();
    let resumed = project.antiphon(&["tasks", "resume", &task]);
    assert_eq!((resumed.code, resumed.out), (0, format!("{task} idle\n")), "{}", resumed.err);
    let canceled = project.antiphon(&["tasks", "cancel", &task]);
    assert_eq!((canceled.code, canceled.out), (0, format!("canceled {task}: agent echo\n")));
    let refused = project.antiphon(&["send", "echo", "hi"]);
    assert!(refused.err.contains("was stopped"), "{refused:?}");
    server.end();
}

#[test]
fn killed_between_accepted_and_handled_everything_is_handled_once() {
    let project = Project::new();
    let server = project.serve();
    let sent: Vec<String> = (0..6).map(|number| format!("slow {number}")).collect();
    for text in &sent {
        let key = text.replace(' ', "-");
        let seen = project.antiphon(&["send", "echo", "--key", &key, text]);
        assert_eq!(seen.code, 0, "{seen:?}");
    }
    let requested = ["send", "echo", "--request", "slow", "--key", "asked", "--json"];
    let id = project.antiphon(&requested).json()["id"].as_str().unwrap().to_owned();
    // It is in the middle of the first, and has not read the rest.
    drop(server);
    let waits = project.antiphon(&["inbox", "list", "--json"]).json();
    assert!(!waits.as_array().unwrap().is_empty(), "it was quick: {waits}");
    let server = project.serve();
    // Who was cut off sends it again, which changes nothing.
    for text in &sent {
        let seen = project.antiphon(&["send", "echo", "--key", &text.replace(' ', "-"), text]);
        assert!(seen.out.starts_with("duplicate"), "{seen:?}");
    }
    let shown = project.until("it answers", |project| {
        let shown = project.antiphon(&["inbox", "show", &id, "--json"]).json();
        (shown["state"] == "completed").then_some(shown)
    });
    assert!(shown["result"].as_str().unwrap().starts_with("Slowly: [REQUEST "), "{shown}");
    let said = project.said("echo");
    for text in &sent {
        let received =
            said.iter().filter(|(by, received)| by == "user" && received == text).count();
        assert_eq!(received, 1, "{text}: {said:?}");
    }
    let request = |(by, text): &&(String, String)| by == "user" && text.contains(&id);
    assert_eq!(said.iter().filter(request).count(), 1, "{said:?}");
    server.end();
}
