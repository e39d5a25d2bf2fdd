//! The mark in the journal up to which a remote task is copied.

use antiphon_core::{EventBody, Relayed};

/// Puts the mark behind the events that it is about; before the last one if that ends the task, since no event may
/// follow it. Returns whether the task ends.
pub fn add_mark(events: &mut Vec<EventBody>, mark: Option<Relayed>) -> bool {
    let ends = events.last().is_some_and(EventBody::ends_task);
    let at = events.len() - usize::from(ends);
    events.splice(at..at, mark.map(EventBody::from));
    ends
}

#[cfg(test)]
mod tests {
    use antiphon_core::{Seq, StatusChanged, TaskId, TaskStatus};

    use super::*;

    #[test]
    fn the_mark_precedes_the_end_of_the_task() {
        let task_id = TaskId::parse("t1").unwrap();
        let mark = Relayed { task_id, seq: Seq(7), tasks: Vec::new() };
        let event = |status| EventBody::from(StatusChanged::new(status));
        let (running, completed) = (event(TaskStatus::Running), event(TaskStatus::Completed));
        let relayed = EventBody::from(mark.clone());
        let mut open = vec![running.clone()];
        assert!(!add_mark(&mut open, Some(mark.clone())));
        assert_eq!(open, [running.clone(), relayed.clone()]);
        let mut ended = vec![running.clone(), completed.clone()];
        assert!(add_mark(&mut ended, Some(mark)));
        assert_eq!(ended, [running, relayed, completed]);
    }
}
