//! `antiphon send AGENT -`: an interaction for every line of standard input that is not blank, in order.
//!
//! While the inbox is full, a line is sent again after a growing pause, for a while; the
//! program that writes the lines is blocked meanwhile. A rejected line is reported and the next one is
//! sent. When the server stops answering, the command ends and names the line.

use std::io::BufRead;

use antiphon_core::InteractionContent;
use antiphon_process::{InboxTarget, ReceiptKind, RejectedInteraction, SendOutcome};
use antiphon_project::error::ProjectError;
use antiphon_runtime::INTERACTION_BYTES_MAX;
use serde_json::json;
use tokio::sync::mpsc;

use super::Send;
use super::receipt::rejection;
use crate::failure::{Exit, Failure};
use crate::terminal;

/// Lines that were read and not sent. At this number, reading standard input pauses.
const LINES_MAX: usize = 16;

/// A line of input.
enum Line {
    Text(String),
    /// It has too many bytes, or is no text.
    Bad(String),
}

#[derive(Default)]
struct Tally {
    accepted: u64,
    before: u64,
    rejected: u64,
    worst: Option<Exit>,
}

/// Sends every line.
pub(super) async fn send(send: &Send, target: InboxTarget<'_>) -> Result<(), Failure> {
    terminal::check_readable("the text")?;
    let mut lines = read();
    let mut tally = Tally::default();
    let mut number: u64 = 0;
    while let Some(line) = lines.recv().await {
        number += 1;
        let text = match line {
            Line::Text(text) if text.trim().is_empty() => continue,
            Line::Text(text) => text,
            Line::Bad(reason) => {
                let reason_word = "invalid".to_owned();
                let error = ProjectError::InvalidInput(reason);
                tally.reject(send, number, &RejectedInteraction { reason: reason_word, error });
                continue;
            }
        };
        let outcome = deliver(send, target, number, text).await.map_err(|failure| {
            let message = format!("line {number}: {failure}; {} before it", tally.words());
            Failure { message, ..failure }
        })?;
        match outcome {
            SendOutcome::Rejected(rejected) => tally.reject(send, number, &rejected),
            SendOutcome::Accepted(accepted) => {
                match accepted.receipt {
                    ReceiptKind::Accepted => tally.accepted += 1,
                    ReceiptKind::Deduplicated => tally.before += 1,
                }
                if send.json {
                    let record = json!({ "line": number, "receipt": accepted.receipt, "id": accepted.id,
                        "task_id": accepted.task_id });
                    terminal::print(&format!("{record}\n"));
                } else {
                    terminal::print(&format!("{}\n", accepted.id));
                }
            }
        }
    }
    terminal::note(&format!("{}; {}\n", tally.words(), send.reading(target)));
    match tally.worst {
        None => Ok(()),
        Some(exit) => {
            let message = format!("not every line was accepted: {}", tally.words());
            Err(Failure { exit, message })
        }
    }
}

impl Tally {
    fn words(&self) -> String {
        let before = match self.before {
            0 => String::new(),
            before => format!(", {before} duplicate"),
        };
        let rejected = match self.rejected {
            0 => String::new(),
            rejected => format!(", {rejected} rejected"),
        };
        format!("{} accepted{before}{rejected}", terminal::count(self.accepted, "line"))
    }

    fn reject(&mut self, send: &Send, number: u64, rejected: &RejectedInteraction) {
        self.rejected += 1;
        if send.json {
            let mut record = rejection(rejected);
            record["line"] = number.into();
            terminal::print(&format!("{record}\n"));
        }
        terminal::note(&format!("line {number}: {}\n", rejected.error));
        let exit = Failure::from(rejected.error.clone()).exit;
        // A full inbox is worse than an invalid line: the remaining lines may be lost as well.
        self.worst = match self.worst {
            Some(Exit::Unavailable) => Some(Exit::Unavailable),
            Some(_) | None => Some(exit),
        };
    }
}

/// Sends a line, again and again while there is no room for it.
async fn deliver(
    send: &Send,
    target: InboxTarget<'_>,
    number: u64,
    text: String,
) -> Result<SendOutcome, Failure> {
    let content = InteractionContent::Message { body: text, blocks: None };
    let key = send.key.as_ref().map(|key| format!("{key}:{number}"));
    let outgoing = send.outgoing(content, key, None);
    let waits = || terminal::note(&format!("line {number}: the inbox is full, waiting\n"));
    Ok(target.send_when_room(&outgoing, waits).await?)
}

/// Reads lines on a thread of its own, which the end of the program does not wait for.
fn read() -> mpsc::Receiver<Line> {
    let (sender, lines) = mpsc::channel(LINES_MAX);
    let thread = std::thread::Builder::new().name("lines".to_owned());
    let reading = thread.spawn(move || {
        let mut input = std::io::stdin().lock();
        while let Some(line) = next(&mut input) {
            if sender.blocking_send(line).is_err() {
                return;
            }
        }
    });
    if let Err(error) = reading {
        tracing::error!(%error, "standard input is not read");
    }
    lines
}

/// The next line, up to the size of an interaction; the rest of a longer line is skipped.
fn next(input: &mut impl BufRead) -> Option<Line> {
    let mut line = Vec::new();
    let mut bytes = 0;
    loop {
        let there = match input.fill_buf() {
            Ok(there) => there,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => return Some(Line::Bad(format!("cannot read the line: {error}"))),
        };
        if there.is_empty() {
            if bytes == 0 {
                return None;
            }
            break;
        }
        let end = there.iter().position(|byte| *byte == b'\n');
        let part = &there[..end.unwrap_or(there.len())];
        let room = INTERACTION_BYTES_MAX.saturating_sub(line.len());
        line.extend_from_slice(&part[..part.len().min(room)]);
        bytes += part.len();
        let taken = part.len() + usize::from(end.is_some());
        // An empty line is a line.
        bytes += usize::from(end.is_some() && bytes == 0);
        input.consume(taken);
        if end.is_some() {
            break;
        }
    }
    if bytes > INTERACTION_BYTES_MAX {
        return Some(Line::Bad(format!(
            "a line may have {INTERACTION_BYTES_MAX} bytes, this one has {bytes}"
        )));
    }
    Some(match String::from_utf8(line) {
        Ok(text) => Line::Text(text.trim_end_matches('\r').to_owned()),
        Err(_) => Line::Bad("the line is not UTF-8".to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(mut input: &[u8]) -> Vec<Result<String, String>> {
        let mut lines = Vec::new();
        while let Some(line) = next(&mut input) {
            lines.push(match line {
                Line::Text(text) => Ok(text),
                Line::Bad(reason) => Err(reason),
            });
        }
        lines
    }

    #[test]
    fn lines_are_read_one_by_one_and_the_last_needs_no_break() {
        let text = |text: &str| Ok(text.to_owned());
        assert_eq!(lines(b""), []);
        assert_eq!(lines(b"\n"), [text("")]);
        assert_eq!(lines(b"a\r\n\nb"), [text("a"), text(""), text("b")]);
        let bad = Err("the line is not UTF-8".to_owned());
        assert_eq!(lines(b"\xff\nb\n"), [bad, text("b")]);
    }

    #[test]
    fn a_line_that_is_too_long_is_skipped_whole() {
        let mut input = vec![b'x'; INTERACTION_BYTES_MAX];
        input.push(b'\n');
        input.extend(vec![b'y'; INTERACTION_BYTES_MAX + 7]);
        input.extend(b"\nz");
        let message = format!(
            "a line may have {INTERACTION_BYTES_MAX} bytes, this one has {}",
            INTERACTION_BYTES_MAX + 7
        );
        let expected = [Ok("x".repeat(INTERACTION_BYTES_MAX)), Err(message), Ok("z".to_owned())];
        assert_eq!(lines(&input), expected);
    }
}
