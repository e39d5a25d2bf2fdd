//! A tick of a schedule.

use std::sync::Arc;

use antiphon_core::{
    HandlingMode, Interaction, InteractionContent, InteractionId, RenderClass, RenderMetadata,
    Sender,
};
use antiphon_project::schedules::Schedule;
use chrono::{DateTime, SecondsFormat, Utc};

/// A time at which a schedule is due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tick {
    /// The schedule that is due.
    pub schedule: Arc<Schedule>,
    /// When it was due, however late it is delivered.
    pub at: DateTime<Utc>,
    /// Idempotency key `schedule:NAME:AT`: the same tick always has the same key. A name contains
    /// no colon, so two ticks never share a key.
    pub key: String,
}

impl Tick {
    /// The tick of `schedule` at `at`.
    pub fn new(schedule: Arc<Schedule>, at: DateTime<Utc>) -> Self {
        let time = at.to_rfc3339_opts(SecondsFormat::AutoSi, true);
        let key = format!("schedule:{}:{time}", schedule.name);
        Self { schedule, at, key }
    }

    /// The interaction for the inbox: an external event, without trust.
    pub fn interaction(&self, id: InteractionId) -> Interaction {
        let class = RenderClass::ExternalEvent;
        Interaction {
            id,
            from: Sender::External(self.schedule.name.clone()),
            content: InteractionContent::Message { body: self.schedule.body.clone(), blocks: None },
            handling_mode: HandlingMode::Queue,
            render_metadata: self
                .schedule
                .salience
                .map(|salience| RenderMetadata { class, salience }),
        }
    }
}
