//! Messages of clients, as an agent reads them. Nothing that a message refers to is fetched.

use a2a::{Message, Part, PartContent, Role};
use antiphon_core::port::{Clock, SystemClock};
use antiphon_core::{ImageBlock, InputBlock, UserMessage};
use antiphon_interface_transport::KEY_BYTES_MAX;

use crate::error::A2aError;

/// Media types that an agent reads.
pub(crate) const INPUT_MODES: [&str; 6] =
    ["text/plain", "application/json", "image/png", "image/jpeg", "image/gif", "image/webp"];

/// Checks the fields of a message that a client sends.
pub(crate) fn check(message: &Message) -> Result<(), A2aError> {
    if message.role != Role::User {
        return Err(A2aError::param("message.role", "a client sends `ROLE_USER`"));
    }
    let id = message.message_id.as_str();
    if id.is_empty() || id.len() > KEY_BYTES_MAX || id.chars().any(char::is_control) {
        let reason = format!("expected 1 to {KEY_BYTES_MAX} bytes without control characters");
        return Err(A2aError::param("message.messageId", reason));
    }
    Ok(())
}

/// The message as an agent reads it.
pub(crate) fn user_message(message: &Message) -> Result<UserMessage, A2aError> {
    let content = message.parts.iter().enumerate().map(|(index, part)| block(index, part));
    let content: Vec<InputBlock> = content.collect::<Result<_, _>>()?;
    let blank = |block: &InputBlock| match block {
        InputBlock::Text(text) => text.text.trim().is_empty(),
        InputBlock::Image(_) => false,
    };
    if content.iter().all(blank) {
        return Err(A2aError::param("message.parts", "the message is empty: send a text"));
    }
    Ok(UserMessage { content, timestamp: SystemClock.now() })
}

fn block(index: usize, part: &Part) -> Result<InputBlock, A2aError> {
    let media_type = part.media_type.as_deref().unwrap_or_default();
    let media_type = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let is_text = media_type.starts_with("text/") || media_type == "application/json";
    if !media_type.is_empty() && !is_text && !INPUT_MODES.contains(&media_type.as_str()) {
        let known = INPUT_MODES.join(", ");
        let message = format!("`{media_type}` is not supported, only text/*, {known}");
        return Err(A2aError::content_type(message));
    }
    let name = part.filename.as_deref().unwrap_or_default();
    let titled = |text: &str| match name {
        "" => InputBlock::text(text),
        name => InputBlock::text(format!("{name}:\n{text}")),
    };
    match &part.content {
        PartContent::Text(text) => Ok(titled(text)),
        PartContent::Data(data) => Ok(titled(&data.to_string())),
        // It is only a reference: the agent decides whether its own tools may read it.
        PartContent::Url(url) => Ok(titled(&format!("File: {url}"))),
        PartContent::Raw(bytes) if media_type.starts_with("image/") => {
            let image = ImageBlock::new(media_type, bytes.clone());
            let wrong = |error| A2aError::param(format!("message.parts[{index}].raw"), error);
            image.map(InputBlock::Image).map_err(wrong)
        }
        PartContent::Raw(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) if is_text => Ok(titled(text)),
            Ok(_) | Err(_) => {
                let message = "`raw` needs the `mediaType` of a text or an image";
                Err(A2aError::content_type(message))
            }
        },
    }
}
