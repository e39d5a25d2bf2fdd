//! What is under way between us and one server.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use antiphon_core::port::Progress;
use antiphon_core::visible;
use rmcp::model::{
    ClientJsonRpcMessage, GetExtensions, GetMeta, JsonRpcMessage, ProgressNotificationParam,
    ProgressToken, RequestId, ServerJsonRpcMessage, ServerNotification,
};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use crate::config::ServerName;
use crate::guard::REQUESTS_MAX;

/// Longest message about progress that is passed on, in characters.
const PROGRESS_CHARS_MAX: usize = 500;

/// A call that waits for its answer.
pub(crate) struct InFlight {
    /// Where it says how it is doing.
    pub(crate) progress: Progress,
    /// It said something.
    pub(crate) moved: Notify,
}

/// Shared by the connection, its guard and its calls.
pub(crate) struct Traffic {
    server: ServerName,
    calls: Mutex<HashMap<ProgressToken, Weak<InFlight>>>,
    heard: AtomicU64,
    /// Places for requests of the server that are not answered yet.
    places: Arc<Semaphore>,
    unanswered: Mutex<HashMap<RequestId, OwnedSemaphorePermit>>,
    /// The server's tools are others now.
    pub(crate) tools_changed: Notify,
    /// The server can no longer be heard.
    pub(crate) gone: CancellationToken,
}

impl Traffic {
    pub(crate) fn new(server: ServerName) -> Self {
        Self {
            server,
            calls: Mutex::default(),
            heard: AtomicU64::new(0),
            places: Arc::new(Semaphore::new(REQUESTS_MAX)),
            unanswered: Mutex::default(),
            tools_changed: Notify::new(),
            gone: CancellationToken::new(),
        }
    }

    /// How many messages have come so far.
    pub(crate) fn heard(&self) -> u64 {
        self.heard.load(Ordering::Relaxed)
    }

    /// Takes note of a message on its way out. What it returns is kept until it is out.
    pub(crate) fn leaving(&self, message: &ClientJsonRpcMessage) -> Option<OwnedSemaphorePermit> {
        match message {
            JsonRpcMessage::Request(request) => {
                let call = request.request.extensions().get::<Arc<InFlight>>();
                let token = request.request.get_meta().get_progress_token();
                if let (Some(call), Some(token)) = (call, token) {
                    let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
                    calls.retain(|_, call| call.strong_count() > 0);
                    calls.insert(token, Arc::downgrade(call));
                }
                None
            }
            JsonRpcMessage::Response(response) => self.answered(&response.id),
            JsonRpcMessage::Error(error) => error.id.as_ref().and_then(|id| self.answered(id)),
            JsonRpcMessage::Notification(_) => None,
        }
    }

    /// Takes note of a message that came in, and passes on what somebody else has to see.
    pub(crate) fn arrived(&self, message: ServerJsonRpcMessage) -> Option<ServerJsonRpcMessage> {
        self.heard.fetch_add(1, Ordering::Relaxed);
        match message {
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => Some(message),
            JsonRpcMessage::Request(ref request) => {
                let Ok(place) = Arc::clone(&self.places).try_acquire_owned() else {
                    tracing::debug!(mcp.server = %self.server, "too many requests: one is ignored");
                    return None;
                };
                let mut unanswered = self.unanswered.lock().unwrap_or_else(PoisonError::into_inner);
                unanswered.insert(request.id.clone(), place);
                Some(message)
            }
            JsonRpcMessage::Notification(ref notification) => {
                self.noted(&notification.notification).then_some(message)
            }
        }
    }

    fn answered(&self, id: &RequestId) -> Option<OwnedSemaphorePermit> {
        self.unanswered.lock().unwrap_or_else(PoisonError::into_inner).remove(id)
    }

    /// Deals with a notification; whether it has to be passed on. Resources and prompts are not used,
    /// and what is unknown is nobody's.
    fn noted(&self, notification: &ServerNotification) -> bool {
        if let ServerNotification::ProgressNotification(progress) = notification {
            self.progressed(&progress.params);
        }
        if let ServerNotification::ToolListChangedNotification(_) = notification {
            self.tools_changed.notify_one();
        }
        if let ServerNotification::LoggingMessageNotification(log) = notification {
            // What a server logs may repeat what it was told: only that it did is told.
            #[expect(deprecated, reason = "servers still log this way")]
            let level = log.params.level;
            tracing::debug!(mcp.server = %self.server, ?level, "the server logged something");
        }
        matches!(
            notification,
            ServerNotification::CancelledNotification(_)
                | ServerNotification::SubscriptionsAcknowledgedNotification(_)
        )
    }

    fn progressed(&self, progress: &ProgressNotificationParam) {
        let call = {
            let calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
            calls.get(&progress.progress_token).and_then(Weak::upgrade)
        };
        let Some(call) = call else {
            return;
        };
        call.moved.notify_one();
        call.progress.say(&progress_text(progress));
    }
}

/// One line.
fn progress_text(progress: &ProgressNotificationParam) -> String {
    let count = match progress.total {
        Some(total) => format!("{}/{total}", progress.progress),
        None => progress.progress.to_string(),
    };
    let message: String = visible(progress.message.as_deref().unwrap_or_default())
        .chars()
        .map(|c| if c.is_whitespace() { ' ' } else { c })
        .take(PROGRESS_CHARS_MAX)
        .collect();
    match message.trim() {
        "" => format!("{count}\n"),
        message => format!("{count} {message}\n"),
    }
}
