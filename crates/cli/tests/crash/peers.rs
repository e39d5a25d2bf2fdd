//! A task on a peer while either server, or both, are killed, with messages and a cancellation in flight.
//!
//! After each run: no command ran twice, every accepted message was read once on both sides, both sides have the same
//! conversation, a canceled task has ended on both sides, and nothing was done after a cancellation that the peer got
//! when it was back.

use std::collections::BTreeSet;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::random::Random;
use crate::two_servers::{Side, TALK, TwoServers, commands, until};

/// Kills of one run, at most: it has to end.
const KILLS_MAX: u64 = 4;

/// Messages of one run.
const MESSAGES: usize = 4;

/// Milliseconds within which a server is killed after a request began.
const IN_FLIGHT_MS: u64 = 40;

/// What one run did.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) kills: u64,
    pub(crate) accepted: usize,
    pub(crate) canceled: bool,
}

/// How the servers speak with each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// The runner `loopback`, over the native API.
    Native,
    /// The runner `a2a`.
    A2a,
}

/// Which server is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Victim {
    Here,
    There,
    Both,
}

/// One run.
pub(crate) struct Peers {
    protocol: Protocol,
    servers: TwoServers,
    task: String,
    /// Keys of the messages that were accepted, and of those that were sent.
    accepted: BTreeSet<usize>,
    sent: BTreeSet<usize>,
    /// A cancellation was sent; it may have got no answer.
    cancel_sent: bool,
    /// What was done there when a cancellation was accepted while the peer was down.
    log_at_cancel: Option<String>,
    counts: Counts,
}

impl Peers {
    /// Starts both servers, and a task here that runs there.
    pub(crate) fn new(protocol: Protocol) -> Self {
        let steps = ["1", "2", "3", "4", "5"].map(|n| format!("echo {n} >> log; sleep 0.25"));
        let steps: Vec<&str> = steps.iter().map(String::as_str).collect();
        let servers = match protocol {
            Protocol::Native => TwoServers::start(&commands(&steps), TALK),
            Protocol::A2a => TwoServers::start_a2a(&commands(&steps), TALK),
        };
        let task = servers.here.task("remote", "go");
        Self {
            protocol,
            servers,
            task,
            accepted: BTreeSet::new(),
            sent: BTreeSet::new(),
            cancel_sent: false,
            log_at_cancel: None,
            counts: Counts::default(),
        }
    }

    /// Disturbs the run until it has ended, and checks it.
    pub(crate) fn run(mut self, random: &mut Random, context: &str) -> Counts {
        let cancels = random.below(2) == 0;
        let end = Instant::now() + Duration::from_secs(120);
        while !self.has_ended() {
            assert!(Instant::now() < end, "{context}: the task does not end");
            if self.counts.kills < KILLS_MAX && random.below(3) > 0 {
                let victim = match random.below(3) {
                    0 => Victim::Here,
                    1 => Victim::There,
                    _ => Victim::Both,
                };
                let cancel = cancels && !self.counts.canceled && random.below(3) == 0;
                self.disturb(victim, cancel, random);
            }
            std::thread::sleep(Duration::from_millis(random.below(250)));
        }
        self.check(context)
    }

    fn has_ended(&self) -> bool {
        let path = format!("/v1/tasks/{}", self.task);
        let answer = self.servers.here.try_ask("GET", &path, None, "");
        let status = answer.map(|(_, body)| body["status"].clone()).unwrap_or_default();
        ["completed", "failed", "canceled"].iter().any(|end| status == *end)
    }

    /// Kills servers while a request is in flight, and starts them again.
    fn disturb(&mut self, victim: Victim, cancel: bool, random: &mut Random) {
        let after = Duration::from_millis(random.below(IN_FLIGHT_MS));
        let down_first = random.below(2) == 0;
        if down_first {
            self.kill(victim);
        }
        let processes = if down_first { Vec::new() } else { self.processes(victim) };
        std::thread::scope(|scope| {
            scope.spawn(move || {
                std::thread::sleep(after);
                for process in processes {
                    // It may have ended: then the next check finds that.
                    let _ = Command::new("kill").args(["-KILL", &process.to_string()]).status();
                }
            });
            if cancel {
                self.cancel(down_first && victim == Victim::There);
            } else {
                self.send();
            }
        });
        self.kill(victim);
        self.counts.kills += if victim == Victim::Both { 2 } else { 1 };
        std::thread::sleep(Duration::from_millis(random.below(300)));
        let servers = &mut self.servers;
        if random.below(2) == 0 {
            servers.here.start();
            servers.there.start();
        } else {
            servers.there.start();
            servers.here.start();
        }
    }

    fn processes(&self, victim: Victim) -> Vec<u32> {
        let Self { servers, .. } = self;
        let (here, there) = (servers.here.process_id(), servers.there.process_id());
        match victim {
            Victim::Here => vec![here],
            Victim::There => vec![there],
            Victim::Both => vec![there, here],
        }
    }

    fn kill(&mut self, victim: Victim) {
        if victim != Victim::There {
            self.servers.here.kill();
        }
        if victim != Victim::Here {
            self.servers.there.kill();
        }
    }

    /// Sends the next message, or one again that got no answer.
    fn send(&mut self) {
        let open = (0..MESSAGES).find(|number| !self.accepted.contains(number));
        let Some(number) = open else { return };
        self.sent.insert(number);
        let path = format!("/v1/tasks/{}/messages", self.task);
        let body = json!({ "text": text(number), "mode": "steer" }).to_string();
        let answer = self.servers.here.try_ask("POST", &path, Some(&format!("m{number}")), &body);
        if answer.is_some_and(|(status, _)| status == 202) {
            self.accepted.insert(number);
        }
    }

    fn cancel(&mut self, peer_is_down: bool) {
        self.cancel_sent = true;
        let path = format!("/v1/tasks/{}/cancel", self.task);
        let began = Instant::now();
        let answer = self.servers.here.try_ask("POST", &path, None, "");
        if answer.is_some_and(|(status, _)| status == 200) {
            assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
            self.counts.canceled = true;
            // A task that came over A2A goes on when its server is back, until the cancellation arrives.
            if peer_is_down && self.protocol == Protocol::Native {
                self.log_at_cancel = Some(self.servers.there.text("log"));
            }
        }
    }

    fn check(mut self, context: &str) -> Counts {
        self.servers.here.start();
        self.servers.there.start();
        let (here, there) = (&self.servers.here, &self.servers.there);
        let status = here.status(&self.task);
        let is_canceled = status == "canceled";
        assert!(is_canceled || status == "completed", "{context}: {status}");
        assert!(is_canceled || !self.counts.canceled, "{context}: the cancellation was lost");
        assert!(!is_canceled || self.cancel_sent, "{context}: it was not canceled");
        for order in here.tops("orders") {
            here.until_status(&order, "completed");
        }
        let remote = until("the task there has ended", || ended_remote(there));
        let log = there.text("log");
        let done: Vec<&str> = log.lines().collect();
        let once: BTreeSet<&str> = done.iter().copied().collect();
        assert_eq!(done.len(), once.len(), "{context}: a command ran twice: {log}");
        if let Some(before) = &self.log_at_cancel {
            assert_eq!(&log, before, "{context}: done after it was canceled");
        }
        let (here, there) = (conversation(here, &self.task), conversation(there, &remote));
        for number in 0..MESSAGES {
            let read =
                |said: &[String]| said.iter().filter(|it| it.contains(&text(number))).count();
            let (local, remote) = (read(&here), read(&there));
            assert!(local <= 1 && remote <= 1, "{context}: message {number} was read twice");
            if self.accepted.contains(&number) && status == "completed" {
                assert_eq!((local, remote), (1, 1), "{context}: message {number} was lost");
            }
            if !self.sent.contains(&number) {
                assert_eq!((local, remote), (0, 0), "{context}");
            }
        }
        // Over A2A, the calls and their results stay there.
        match self.protocol {
            Protocol::Native if status == "completed" => assert_eq!(here, there, "{context}"),
            Protocol::A2a if status == "completed" => {
                let said =
                    |said: &[String]| said.last().is_some_and(|it| it.contains("That was all."));
                assert!(said(&here) && said(&there), "{context}: {here:?} {there:?}");
            }
            Protocol::Native | Protocol::A2a => {}
        }
        self.counts.accepted = self.accepted.len();
        self.counts
    }
}

fn text(number: usize) -> String {
    format!("This is message {number}.")
}

/// The task of the agent there, once it has ended. A cancellation that came before it leaves an order.
fn ended_remote(there: &Side) -> Option<String> {
    let list = there.get("/v1/tasks?tops=true&all=true");
    let tasks = list["tasks"].as_array().unwrap();
    assert_eq!(tasks.len(), 1, "one task there: {list}");
    tasks[0]["ended_at"].is_string().then(|| tasks[0]["task_id"].as_str().unwrap().to_owned())
}

/// The messages of a task, without their times.
fn conversation(side: &Side, task: &str) -> Vec<String> {
    let events = side.events(task);
    let numbers: Vec<u64> = events.iter().map(|event| event["seq"].as_u64().unwrap()).collect();
    let expected: Vec<u64> = (1..=events.len() as u64).collect();
    assert_eq!(numbers, expected, "an event is lost, doubled or out of order");
    let said = events.iter().filter(|event| event["type"] == "message_appended");
    said.map(|event| {
        let mut message: Value = event["data"]["message"].clone();
        message.as_object_mut().unwrap().remove("timestamp");
        message.to_string()
    })
    .collect()
}
