//! Which tasks of a long list.

use antiphon_core::port::TaskFilter;
use antiphon_core::*;

use crate::ten;

fn task() -> TaskSummary {
    let created = TaskCreated::new("dev", SessionId::parse("s1").unwrap());
    TaskSummary::created(TaskId::parse("t1").unwrap(), &created, ten())
}

#[test]
fn every_condition_holds_and_what_is_absent_is_none() {
    let any = TaskFilter::default();
    let session = |name| SessionId::parse(name).ok();
    let cases = [
        (any.clone(), true),
        (TaskFilter { statuses: vec![TaskStatus::Pending], ..any.clone() }, true),
        (TaskFilter { statuses: TaskStatus::ALL.to_vec(), ..any.clone() }, true),
        (TaskFilter { statuses: vec![TaskStatus::Failed], ..any.clone() }, false),
        (TaskFilter { agent: Some("dev".to_owned()), ..any.clone() }, true),
        (TaskFilter { agent: Some("de".to_owned()), ..any.clone() }, false),
        (TaskFilter { session: session("s1"), ..any.clone() }, true),
        (TaskFilter { session: session("s"), ..any.clone() }, false),
        (TaskFilter { roots: true, without_records: true, ..any.clone() }, true),
        (
            TaskFilter {
                statuses: vec![TaskStatus::Pending],
                agent: Some("lead".to_owned()),
                ..any.clone()
            },
            false,
        ),
    ];
    for (filter, fits) in cases {
        assert_eq!(filter.matches(&task()), fits, "{filter:?}");
    }
    let below = TaskSummary { parent: TaskId::parse("t0").ok(), ..task() };
    assert!(any.matches(&below) && !TaskFilter { roots: true, ..any }.matches(&below));
}

#[test]
fn what_is_kept_of_an_order_is_a_record_and_a_task_of_an_agent_of_that_name_is_none() {
    let order = TaskSummary { agent: ORDERS.to_owned(), status: TaskStatus::Completed, ..task() };
    let without = TaskFilter { without_records: true, ..TaskFilter::default() };
    assert!(order.is_record() && !without.matches(&order));
    let others = [
        TaskSummary { agent: "dev".to_owned(), ..order.clone() },
        TaskSummary { parent: TaskId::parse("t0").ok(), ..order.clone() },
        TaskSummary { model: ModelRef::parse("p/m").ok(), ..order.clone() },
        TaskSummary { status: TaskStatus::Failed, ..order.clone() },
        TaskSummary { turns: 1, ..order },
    ];
    for task in others {
        assert!(!task.is_record() && without.matches(&task), "{task:?}");
    }
}
