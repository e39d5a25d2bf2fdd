//! Progress notifications of a call, for a client that sent a token for them.

use antiphon_core::{Event, EventBody, Message};
use rmcp::RoleServer;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::{Peer, RequestContext};

use crate::task_view::word;

/// Longest text of a notification, in characters.
const TEXT_CHARS_MAX: usize = 200;

/// Reports the progress of a call.
pub(crate) struct Progress {
    peer: Peer<RoleServer>,
    /// Absent: the client wants no reports.
    token: Option<ProgressToken>,
    count: u32,
}

impl Progress {
    pub(crate) fn of(context: &RequestContext<RoleServer>) -> Self {
        let token = context.meta.get_progress_token();
        Self { peer: context.peer.clone(), token, count: 0 }
    }

    /// Reports a text.
    pub(crate) async fn report(&mut self, text: &str) {
        let Some(token) = &self.token else { return };
        self.count += 1;
        let text: String = text.chars().take(TEXT_CHARS_MAX).collect();
        let progress = ProgressNotificationParam::new(token.clone(), f64::from(self.count));
        // A client that is gone ends the call in another way.
        let _ = self.peer.notify_progress(progress.with_message(text)).await;
    }

    /// Reports an event of the task, if it is a step forward.
    pub(crate) async fn event(&mut self, event: &Event) {
        if let Some(text) = step(event) {
            self.report(&text).await;
        }
    }
}

fn step(event: &Event) -> Option<String> {
    if let EventBody::StatusChanged(change) = &event.body {
        return Some(match &change.waiting_for {
            Some(cause) => format!("{}: waits for {}", change.status.as_str(), word(cause)),
            None => change.status.as_str().to_owned(),
        });
    }
    let EventBody::MessageAppended(appended) = &event.body else { return None };
    let Message::Assistant(answer) = &*appended.message else { return None };
    let text = answer.text();
    let first = text.lines().map(str::trim).find(|line| !line.is_empty());
    let calls: Vec<&str> = answer.tool_calls().map(|call| call.name.as_str()).collect();
    match (first, calls.as_slice()) {
        (Some(line), _) => Some(line.to_owned()),
        (None, []) => None,
        (None, calls) => Some(format!("calls {}", calls.join(", "))),
    }
}
