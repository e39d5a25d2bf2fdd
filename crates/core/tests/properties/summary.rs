//! For any events, a summary counts them and stays short.

use antiphon_core::{EventBody, SessionId, TaskCreated, TaskId, TaskSummary, visible};
use chrono::DateTime;
use proptest::collection::vec;
use proptest::prelude::*;

use crate::any_event::event;
use crate::config;

proptest! {
    #![proptest_config(config())]

    #[test]
    fn any_events_are_summed_up(events in vec(event(), 0..12)) {
        let created = TaskCreated::new("dev", SessionId::parse("s1").unwrap());
        let task_id = TaskId::parse("t1").unwrap();
        let mut summary = TaskSummary::created(task_id, &created, DateTime::UNIX_EPOCH);
        for (count, event) in (2..).zip(&events) {
            summary.apply(&event.body, event.at);
            prop_assert_eq!((summary.seq.0, summary.last_event_at), (count, event.at));
            prop_assert_eq!(summary.ended_at.is_some(), summary.status.is_terminal());
        }
        for line in [Some(&summary.title), summary.preview.as_ref()].into_iter().flatten() {
            prop_assert!(line.chars().count() <= 200 && !line.contains('\n'));
            prop_assert_eq!(&visible(line), line);
        }
        let said = |event: &&antiphon_core::Event| matches!(event.body, EventBody::MessageAppended(_));
        prop_assert_eq!(summary.messages, events.iter().filter(said).count() as u64);
        let json = serde_json::to_string(&summary).unwrap();
        prop_assert_eq!(serde_json::from_str::<TaskSummary>(&json).unwrap(), summary);
    }
}
