//! The interaction that the arguments describe.

use std::num::NonZeroU32;
use std::path::Path;

use antiphon_core::{
    HandlingMode, InputBlock, InteractionContent, Provenance, RawJson, RenderMetadata, Salience,
    Sender, Wake,
};
use antiphon_process::OutgoingInteraction;
use antiphon_project::{read_image, render_class};
use antiphon_runtime::{Arrival, REQUEST_TIMEOUT_S_MAX, SENDER_KEY_BYTES_MAX};
use antiphon_view::display::escaped_path;
use clap::ValueEnum;
use serde_json::Value;

use super::Send;
use crate::failure::Failure;

/// Longest key: leaves space for a line number.
const KEY_CHARS_MAX: usize = SENDER_KEY_BYTES_MAX - 21;

/// How urgent an interaction is.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum Level {
    Background,
    Normal,
    Important,
    Urgent,
}

impl From<Level> for Salience {
    fn from(level: Level) -> Self {
        match level {
            Level::Background => Self::Background,
            Level::Normal => Self::Normal,
            Level::Important => Self::Important,
            Level::Urgent => Self::Urgent,
        }
    }
}

impl Send {
    /// Checks that the argument parser cannot express.
    pub(super) fn check(&self) -> Result<(), Failure> {
        if self.request.is_none() && (self.wait || self.params.is_some() || self.timeout.is_some())
        {
            return Err(Failure::usage(
                "only a request is answered: --wait, --params and --timeout go with --request INTENT",
            ));
        }
        let fits = |key: &String| {
            (1..=KEY_CHARS_MAX).contains(&key.len()) && key.chars().all(|c| c.is_ascii_graphic())
        };
        if !self.key.as_ref().is_none_or(fits) {
            let message =
                format!("--key: 1 to {KEY_CHARS_MAX} characters of ASCII, without blanks");
            return Err(Failure::usage(message));
        }
        if self.text == ["-"] && !self.image.is_empty() {
            return Err(Failure::usage(
                "--image goes with a text, not with lines of standard input",
            ));
        }
        Ok(())
    }

    pub(super) fn content(&self) -> Result<InteractionContent, Failure> {
        Ok(match &self.request {
            Some(intent) => {
                let params = self.params()?;
                InteractionContent::Request { intent: intent.clone(), params }
            }
            None => {
                let images = self.image.iter().map(|file| image(file));
                let images = images.collect::<Result<Vec<_>, _>>()?;
                let blocks = Some(images).filter(|images| !images.is_empty());
                InteractionContent::Message { body: self.text.join(" "), blocks }
            }
        })
    }

    pub(super) fn outgoing(
        &self,
        content: InteractionContent,
        key: Option<String>,
        timeout_s: Option<u32>,
    ) -> OutgoingInteraction {
        let from = self.from.clone().map_or(Sender::User, Sender::External);
        let class = render_class(&from, &content);
        let shown = |level: Level| RenderMetadata { class, salience: level.into() };
        let arrival = Arrival {
            to: self.agent.clone(),
            from,
            content,
            mode: if self.steer { HandlingMode::Steer } else { HandlingMode::Queue },
            render_metadata: if self.progress {
                Some(RenderMetadata::PROGRESS)
            } else {
                self.salience.map(shown)
            },
            wake: if self.no_wake || self.progress { Wake::No } else { Wake::Yes },
            until: None,
            key,
            payload: None,
            provenance: Provenance::Owner,
        };
        OutgoingInteraction { arrival, timeout_s }
    }

    fn params(&self) -> Result<Value, Failure> {
        let Some(text) = &self.params else { return Ok(Value::Null) };
        let wrong = |reason: String| Failure::usage(format!("--params: {reason}"));
        RawJson::parse(text).map_err(|error| wrong(error.to_string()))?;
        serde_json::from_str(text).map_err(|error| wrong(error.to_string()))
    }

    pub(super) fn timeout_s(&self) -> Result<Option<u32>, Failure> {
        let Some(timeout) = self.timeout else { return Ok(None) };
        let whole = u32::try_from(timeout.as_secs()).ok().filter(|s| *s <= REQUEST_TIMEOUT_S_MAX);
        let timeout_s = whole.and_then(NonZeroU32::new).map(NonZeroU32::get);
        timeout_s.map(Some).ok_or_else(|| {
            let days = REQUEST_TIMEOUT_S_MAX / 86_400;
            Failure::usage(format!("--timeout: from 1s to {days}d"))
        })
    }
}

fn image(file: &Path) -> Result<InputBlock, Failure> {
    let refuse = |why: &str| Failure::usage(format!("--image {}: {why}", escaped_path(file)));
    match read_image(file) {
        Ok(Some(image)) => Ok(InputBlock::Image(image)),
        Ok(None) => Err(refuse("it is no image file in PNG, JPEG, GIF or WebP format")),
        Err(why) => Err(refuse(&why)),
    }
}
