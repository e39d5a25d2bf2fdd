//! How an interaction for an inbox is rendered, and how long a request waits for its answer.

use std::num::NonZeroU32;

use antiphon_core::{ErrorResponse, InteractionContent, RenderClass, Sender};
use antiphon_runtime::{REQUEST_TIMEOUT_S_DEFAULT, REQUEST_TIMEOUT_S_MAX};
use chrono::{DateTime, TimeDelta, Utc};

use crate::request::request_error::invalid_request;

/// The class in which the model reads an interaction.
pub fn render_class(from: &Sender, content: &InteractionContent) -> RenderClass {
    match (from, content) {
        (Sender::External(_), _) => RenderClass::ExternalEvent,
        (Sender::User | Sender::Peer(_), InteractionContent::Request { .. }) => {
            RenderClass::PeerRequest
        }
        (Sender::User | Sender::Peer(_), InteractionContent::Response { .. }) => {
            RenderClass::PeerResponse
        }
        (Sender::Peer(_), _) => RenderClass::PeerMessage,
        (Sender::User, _) => RenderClass::UserPrompt,
    }
}

/// When a request expires: [`REQUEST_TIMEOUT_S_DEFAULT`] seconds after `now` unless `timeout_s` is given.
/// `None` for an interaction that gets no answer, which must not have a timeout.
pub fn request_deadline(
    from: &Sender,
    content: &InteractionContent,
    timeout_s: Option<NonZeroU32>,
    now: DateTime<Utc>,
) -> Result<Option<DateTime<Utc>>, ErrorResponse> {
    let is_request = matches!(content, InteractionContent::Request { .. });
    if !is_request || matches!(from, Sender::External(_)) {
        return match timeout_s {
            Some(_) => Err(invalid_request("`timeout_s`: only a request is answered; omit it")),
            None => Ok(None),
        };
    }
    let timeout_s = timeout_s.map_or(REQUEST_TIMEOUT_S_DEFAULT, NonZeroU32::get);
    if timeout_s > REQUEST_TIMEOUT_S_MAX {
        return Err(invalid_request(format!("`timeout_s`: 1 to {REQUEST_TIMEOUT_S_MAX}")));
    }
    Ok(Some(now + TimeDelta::seconds(timeout_s.into())))
}
