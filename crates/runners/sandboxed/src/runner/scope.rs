//! The rights of a worker to read, append and request. A worker that tries anything else is not the program
//! that was started, and is ended.

use std::collections::{BTreeSet, HashMap};
use std::fmt;

use antiphon_core::port::Append;
use antiphon_core::{
    Event, EventBody, HandedOver, HistoryRef, ModelRef, Request, Seq, TaskCreated, TaskId,
};

/// Most tasks of one conversation.
const HISTORY_TASKS_MAX: usize = 10_000;

/// A forbidden request of a worker.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Violation(pub(super) String);

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a worker may do. It grows with the events that the worker reads: its task names its history
/// and its models.
#[derive(Debug)]
pub(super) struct Scope {
    task_id: TaskId,
    root: TaskId,
    /// The readable tasks, each up to an event. Of the tasks above only the first event is
    /// readable: it has their limits.
    readable: HashMap<TaskId, Seq>,
    /// The models that may be called.
    models: BTreeSet<String>,
}

impl Scope {
    pub(super) fn new(task_id: TaskId) -> Self {
        let readable = HashMap::from([(task_id.clone(), Seq(u64::MAX))]);
        Self { root: task_id.clone(), task_id, readable, models: BTreeSet::new() }
    }

    /// The task that is worked on.
    pub(super) fn task_id(&self) -> &TaskId {
        &self.task_id
    }

    /// The task at the top of its tree.
    pub(super) fn root(&self) -> &TaskId {
        &self.root
    }

    /// Checks the events of an append.
    pub(super) fn may_append(&self, append: &Append) -> Result<(), Violation> {
        if append.task_id != self.task_id {
            return Err(Violation(format!("it wrote to another task, {}", append.task_id)));
        }
        match append.events.iter().find(|body| !body.is_written_by_loop()) {
            Some(body) => Err(Violation(format!("it wrote a `{}`", body.event_type()))),
            None => Ok(()),
        }
    }

    /// The last event of a task that may be read.
    pub(super) fn may_read(&self, task_id: &TaskId) -> Result<Seq, Violation> {
        let until = self.readable.get(task_id).copied();
        until.ok_or_else(|| Violation(format!("it read another task, {task_id}")))
    }

    /// Checks that a conversation up to an event is that of the task, or what it continues.
    pub(super) fn may_read_history(&self, until: &HistoryRef) -> Result<(), Violation> {
        // Of the tasks above, only the first event may be read.
        let covered = |last: &&Seq| **last > Seq(1) && until.seq <= **last;
        match self.readable.get(&until.task_id).filter(covered) {
            Some(_) => Ok(()),
            None => Err(Violation(format!("it read another conversation, of {}", until.task_id))),
        }
    }

    /// Checks a request to the model.
    pub(super) fn may_ask(&self, request: &Request) -> Result<(), Violation> {
        if self.models.contains(&request.model) {
            return Ok(());
        }
        Err(Violation(format!("it asked another model, `{}`", request.model)))
    }

    /// Extends the scope by the events that the worker is about to read.
    pub(super) fn note(&mut self, events: &[Event]) {
        for event in events {
            let own = event.task_id == self.task_id;
            if let EventBody::TaskCreated(created) = &event.body {
                self.note_created(&event.task_id, created);
            } else if let EventBody::HandedOver(HandedOver { model, fallbacks, .. }) = &event.body
                && own
            {
                self.note_models(model.iter().chain(fallbacks));
            }
        }
    }

    fn note_created(&mut self, task_id: &TaskId, created: &TaskCreated) {
        let whole = self.readable.get(task_id).is_some_and(|until| *until > Seq(1));
        if let Some(before) = created.history.as_ref().filter(|_| whole) {
            self.let_read(&before.task_id, before.seq);
        }
        if let Some(above) = &created.parent {
            self.let_read(above, Seq(1));
        }
        if *task_id == self.task_id {
            self.note_models(created.model.iter().chain(&created.fallbacks));
            if let Some(root) = &created.root {
                self.root = root.clone();
            }
        }
    }

    fn let_read(&mut self, task_id: &TaskId, until: Seq) {
        if self.readable.len() < HISTORY_TASKS_MAX || self.readable.contains_key(task_id) {
            let known = self.readable.entry(task_id.clone()).or_default();
            *known = until.max(*known);
        }
    }

    fn note_models<'a>(&mut self, models: impl Iterator<Item = &'a ModelRef>) {
        self.models.extend(models.map(|model| model.model().to_owned()));
    }
}

#[cfg(test)]
mod tests {
    use antiphon_core::{Position, SessionId};

    use super::*;

    fn id(text: &str) -> TaskId {
        TaskId::parse(text).unwrap()
    }

    fn created(task: &str, change: impl FnOnce(&mut TaskCreated)) -> Event {
        let mut created = TaskCreated::new("tester", SessionId::parse("session").unwrap());
        change(&mut created);
        Event {
            position: Position(1),
            task_id: id(task),
            seq: Seq(1),
            at: chrono::DateTime::UNIX_EPOCH,
            body: created.into(),
        }
    }

    #[test]
    fn what_was_said_before_can_be_read_once_it_is_known_and_no_further() {
        let mut scope = Scope::new(id("own"));
        assert_eq!(scope.may_read(&id("own")), Ok(Seq(u64::MAX)));
        assert!(scope.may_read(&id("before")).is_err());
        scope.note(&[created("own", |own| {
            own.history = Some(HistoryRef { task_id: id("before"), seq: Seq(7) });
        })]);
        assert_eq!(scope.may_read(&id("before")), Ok(Seq(7)));
        assert!(scope.may_read(&id("neighbor")).is_err());
        let until = |task: &str, seq: u64| HistoryRef { task_id: id(task), seq: Seq(seq) };
        assert_eq!(scope.may_read_history(&until("before", 7)), Ok(()));
        assert_eq!(scope.may_read_history(&until("own", 99)), Ok(()));
        assert!(scope.may_read_history(&until("before", 8)).is_err());
        assert!(scope.may_read_history(&until("neighbor", 1)).is_err());
    }

    #[test]
    fn the_beginnings_of_the_tasks_above_can_be_read_and_not_what_they_go_on_with() {
        let mut scope = Scope::new(id("own"));
        scope.note(&[created("own", |own| {
            own.parent = Some(id("above"));
            own.root = Some(id("top"));
        })]);
        assert_eq!(scope.root(), &id("top"));
        assert_eq!(scope.may_read(&id("above")), Ok(Seq(1)));
        let above = HistoryRef { task_id: id("above"), seq: Seq(1) };
        assert!(scope.may_read_history(&above).is_err());
        assert!(scope.may_read(&id("top")).is_err());
        scope.note(&[created("above", |above| {
            above.parent = Some(id("top"));
            above.history = Some(HistoryRef { task_id: id("before"), seq: Seq(7) });
        })]);
        assert_eq!(scope.may_read(&id("top")), Ok(Seq(1)));
        assert!(scope.may_read(&id("before")).is_err());
    }

    #[test]
    fn only_the_models_of_the_task_are_asked() {
        let mut scope = Scope::new(id("own"));
        let request = |model: &str| Request { model: model.to_owned(), ..Request::default() };
        assert!(scope.may_ask(&request("cheap")).is_err());
        let model = |text: &str| ModelRef::parse(text).unwrap();
        scope.note(&[
            created("own", |own| {
                own.model = Some(model("p/cheap"));
                own.fallbacks = vec![model("p/other")];
            }),
            created("before", |before| before.model = Some(model("p/dear"))),
        ]);
        assert_eq!(scope.may_ask(&request("cheap")), Ok(()));
        assert_eq!(scope.may_ask(&request("other")), Ok(()));
        assert!(scope.may_ask(&request("dear")).is_err());
    }
}
