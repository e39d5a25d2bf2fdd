//! Pending calls and requests of one connection.

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
use crate::connection::limited_transport::REQUESTS_MAX;

/// Longest progress message that is reported, in characters.
const PROGRESS_CHARS_MAX: usize = 500;

/// A call without an answer yet.
pub(crate) struct InFlight {
    /// Receives the progress of the call.
    pub(crate) progress: Progress,
    /// Notified at each progress message.
    pub(crate) progress_received: Notify,
}

/// State shared by the connection, its guard and its calls.
pub(crate) struct Traffic {
    server: ServerName,
    calls: Mutex<HashMap<ProgressToken, Weak<InFlight>>>,
    messages_received: AtomicU64,
    /// Permits for unanswered requests of the server.
    request_slots: Arc<Semaphore>,
    unanswered: Mutex<HashMap<RequestId, OwnedSemaphorePermit>>,
    /// Notified when the server's tools have changed.
    pub(crate) tools_changed: Notify,
    /// Canceled when no more messages can arrive.
    pub(crate) closed: CancellationToken,
}

impl Traffic {
    pub(crate) fn new(server: ServerName) -> Self {
        Self {
            server,
            calls: Mutex::default(),
            messages_received: AtomicU64::new(0),
            request_slots: Arc::new(Semaphore::new(REQUESTS_MAX)),
            unanswered: Mutex::default(),
            tools_changed: Notify::new(),
            closed: CancellationToken::new(),
        }
    }

    /// Number of messages received so far.
    pub(crate) fn messages_received(&self) -> u64 {
        self.messages_received.load(Ordering::Relaxed)
    }

    /// Registers an outgoing message. The caller holds the returned permit until it is sent.
    pub(crate) fn on_send(&self, message: &ClientJsonRpcMessage) -> Option<OwnedSemaphorePermit> {
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
            JsonRpcMessage::Response(response) => self.on_answer(&response.id),
            JsonRpcMessage::Error(error) => error.id.as_ref().and_then(|id| self.on_answer(id)),
            JsonRpcMessage::Notification(_) => None,
        }
    }

    /// Registers an incoming message. Returns it if `rmcp` has to handle it.
    pub(crate) fn on_receive(&self, message: ServerJsonRpcMessage) -> Option<ServerJsonRpcMessage> {
        self.messages_received.fetch_add(1, Ordering::Relaxed);
        match message {
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => Some(message),
            JsonRpcMessage::Request(ref request) => {
                let Ok(slot) = Arc::clone(&self.request_slots).try_acquire_owned() else {
                    tracing::debug!(mcp.server = %self.server, "too many requests: one is ignored");
                    return None;
                };
                let mut unanswered = self.unanswered.lock().unwrap_or_else(PoisonError::into_inner);
                unanswered.insert(request.id.clone(), slot);
                Some(message)
            }
            JsonRpcMessage::Notification(ref notification) => {
                self.on_notification(&notification.notification).then_some(message)
            }
        }
    }

    fn on_answer(&self, id: &RequestId) -> Option<OwnedSemaphorePermit> {
        self.unanswered.lock().unwrap_or_else(PoisonError::into_inner).remove(id)
    }

    /// Handles a notification. Returns whether `rmcp` has to see it. Ignores resources, prompts and
    /// unknown notifications.
    fn on_notification(&self, notification: &ServerNotification) -> bool {
        if let ServerNotification::ProgressNotification(progress) = notification {
            self.on_progress(&progress.params);
        }
        if let ServerNotification::ToolListChangedNotification(_) = notification {
            self.tools_changed.notify_one();
        }
        if let ServerNotification::LoggingMessageNotification(log) = notification {
            // The text may repeat secrets from the arguments, so only the level is logged.
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

    fn on_progress(&self, progress: &ProgressNotificationParam) {
        let call = {
            let calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
            calls.get(&progress.progress_token).and_then(Weak::upgrade)
        };
        let Some(call) = call else {
            return;
        };
        call.progress_received.notify_one();
        call.progress.say(&progress_text(progress));
    }
}

/// The progress as one line.
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
