//! One attempt to follow a remote task: as long as the remote agent answers.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use a2a::{SendMessageResponse, StreamResponse, Task};
use antiphon_core::TaskId;

use super::{EVENTS_MAX, Follower, POLL_AFTER, POLL_AFTER_MAX, SILENCE_MAX, Stop, is_ready};
use crate::connection::{self, Connection};
use crate::event_stream::EventStream;
use crate::failure::Failure;
use crate::request;

/// How the attempt learns of changes.
struct Watch {
    stream: Option<EventStream>,
    /// Until the task is read again.
    pause: Duration,
    /// Whether streams of this task are worth a try.
    streams: bool,
}

impl Watch {
    fn new(stream: Option<EventStream>, streams: bool) -> Self {
        Self { stream, pause: POLL_AFTER, streams }
    }

    /// The next event of the stream; pends forever without one.
    async fn next(&mut self) -> Result<Option<StreamResponse>, Failure> {
        match &mut self.stream {
            Some(stream) => stream.next().await,
            None => std::future::pending().await,
        }
    }

    fn read_after(&self) -> Duration {
        if self.stream.is_some() { SILENCE_MAX } else { self.pause }
    }

    /// Something happened: the next change may be near.
    fn hurry(&mut self) {
        self.pause = POLL_AFTER;
    }

    fn slow_down(&mut self) {
        self.pause = (self.pause * 2).min(POLL_AFTER_MAX);
    }
}

impl Follower {
    /// Follows as long as the remote agent answers.
    pub(super) async fn attempt(&mut self) -> Result<Infallible, Stop> {
        if self.local.relayed.is_none() && self.local.ended {
            return Err(Stop::Done);
        }
        self.check_commands()?;
        let connection = connection::connect(&self.agent).await?;
        let mut watch = if self.local.relayed.is_some() {
            Watch::new(None, connection.endpoint.streams)
        } else {
            self.start(&connection).await?
        };
        let Some(relayed) = &self.local.relayed else { return Err(Stop::Done) };
        let task_id = relayed.task_id.clone();
        if self.local.ended {
            connection.cancel(task_id.as_str()).await?;
            return Err(Stop::Done);
        }
        if watch.stream.is_none() {
            self.read(&connection, &task_id).await?;
            self.subscribe(&connection, &task_id, &mut watch).await?;
        }
        loop {
            let read_after = watch.read_after();
            tokio::select! {
                () = &mut self.cancel, if !self.canceled => {
                    connection.cancel(task_id.as_str()).await?;
                    self.canceled = true;
                    self.read(&connection, &task_id).await?;
                    watch.hurry();
                }
                () = &mut self.interrupt => {
                    self.record_interrupt().await?;
                    return Err(Stop::Done);
                }
                () = self.updates.next() => {
                    self.catch_up().await?;
                    if self.local.ended {
                        connection.cancel(task_id.as_str()).await?;
                        return Err(Stop::Done);
                    }
                    watch.hurry();
                }
                event = watch.next() => match event {
                    Ok(Some(event)) => self.take(&connection, &task_id, event).await?,
                    Err(failure @ (Failure::Refused(_) | Failure::Error { .. })) => {
                        return Err(failure.into());
                    }
                    Ok(None) | Err(Failure::Unreachable(_)) => {
                        watch.stream = None;
                        watch.hurry();
                        self.read(&connection, &task_id).await?;
                    }
                },
                () = tokio::time::sleep(read_after) => {
                    self.read(&connection, &task_id).await?;
                    watch.slow_down();
                    if watch.stream.is_none() {
                        self.subscribe(&connection, &task_id, &mut watch).await?;
                    }
                }
            }
        }
    }

    /// Sends the message of the task, and records the task that answers it. Nothing is watched when the remote agent
    /// answers at once.
    async fn start(&mut self, connection: &Arc<Connection>) -> Result<Watch, Stop> {
        let message = request::of_task(&self.local, &*self.journal, &self.agent.name).await?;
        let streams = connection.endpoint.streams;
        // A canceled task is only found, to be canceled.
        if !streams || is_ready(&mut self.cancel) {
            match connection.send(&message).await? {
                SendMessageResponse::Task(task) => self.begin(task).await?,
                SendMessageResponse::Message(message) => self.record_answer(&message).await?,
            }
            return Ok(Watch::new(None, streams));
        }
        let mut stream = connection.stream(&message).await?;
        match stream.next().await? {
            None => {
                let reason = "its stream ended before it told the task".to_owned();
                return Err(Failure::Unreachable(reason).into());
            }
            Some(StreamResponse::Message(message)) => {
                self.record_answer(&message).await?;
                return Ok(Watch::new(None, streams));
            }
            Some(StreamResponse::Task(task)) => self.begin(task).await?,
            Some(StreamResponse::StatusUpdate(update)) => {
                self.record_begin(&update.task_id, &update.context_id).await?;
                let task_id = remote_task_id(&update.task_id)?;
                self.take(connection, &task_id, StreamResponse::StatusUpdate(update)).await?;
            }
            Some(StreamResponse::ArtifactUpdate(update)) => {
                self.record_begin(&update.task_id, &update.context_id).await?;
                let task_id = remote_task_id(&update.task_id)?;
                self.take(connection, &task_id, StreamResponse::ArtifactUpdate(update)).await?;
            }
        }
        Ok(Watch::new(Some(stream), streams))
    }

    async fn begin(&mut self, task: Task) -> Result<(), Stop> {
        self.record_begin(&task.id, &task.context_id).await?;
        self.record_task(task).await
    }

    /// Reads the task, and records what is new.
    async fn read(&mut self, connection: &Connection, task_id: &TaskId) -> Result<(), Stop> {
        let task = connection.task(task_id.as_str()).await?;
        // It answers.
        self.waits = self.retry.waits();
        self.record_contact().await?;
        self.record_task(task).await
    }

    /// Opens a stream, if there may be one. A remote agent that refuses is asked for the task again and again.
    async fn subscribe(
        &mut self,
        connection: &Connection,
        task_id: &TaskId,
        watch: &mut Watch,
    ) -> Result<(), Stop> {
        if !watch.streams || self.note.question.is_some() {
            return Ok(());
        }
        match connection.subscribe(task_id.as_str()).await {
            Ok(stream) => watch.stream = Some(stream),
            Err(Failure::Error { .. }) => watch.streams = false,
            // It answers to reads: the stream is tried again after the pause.
            Err(Failure::Unreachable(_)) => {}
            Err(failure @ Failure::Refused(_)) => return Err(failure.into()),
        }
        Ok(())
    }

    /// Records what an event of the stream says.
    async fn take(
        &mut self,
        connection: &Connection,
        task_id: &TaskId,
        event: StreamResponse,
    ) -> Result<(), Stop> {
        let about = match &event {
            StreamResponse::Task(task) => Some(&task.id),
            StreamResponse::StatusUpdate(update) => Some(&update.task_id),
            StreamResponse::ArtifactUpdate(update) => Some(&update.task_id),
            StreamResponse::Message(message) => message.task_id.as_ref(),
        };
        if about.is_some_and(|about| about != task_id.as_str()) {
            return Err(Failure::Refused("it sent an event of another task".to_owned()).into());
        }
        self.events += 1;
        if self.events > EVENTS_MAX {
            let reason = format!("it sent more than {EVENTS_MAX} events");
            return Err(Failure::Refused(reason).into());
        }
        match event {
            StreamResponse::Task(task) if task.status.state.is_terminal() => {
                self.read(connection, task_id).await
            }
            StreamResponse::Task(task) => self.record_task(task).await,
            // An end counts as the task says it, with all artifacts.
            StreamResponse::StatusUpdate(update) if update.status.state.is_terminal() => {
                self.read(connection, task_id).await
            }
            StreamResponse::StatusUpdate(update) => self.record_status(&update.status).await,
            StreamResponse::ArtifactUpdate(update) => {
                let change = self.work.update(update)?;
                self.show(change);
                Ok(())
            }
            StreamResponse::Message(message) => self.record_message(&message).await,
        }
    }

    /// What a person did to the task here: a paused task is not followed.
    pub(super) fn check_commands(&mut self) -> Result<(), Stop> {
        self.local.commands.clear();
        if self.local.waits_for_resume() && !is_ready(&mut self.cancel) {
            return Err(Stop::Done);
        }
        Ok(())
    }
}

fn remote_task_id(text: &str) -> Result<TaskId, Failure> {
    TaskId::parse(text).map_err(|error| Failure::Refused(format!("the id of its task: {error}")))
}
