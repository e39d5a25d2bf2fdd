//! One worker from its start to its end: serves its requests, and stops it.

use std::time::Duration;

use antiphon_core::port::{RunnerError, RunnerTask};
use tokio::io::AsyncWriteExt;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use super::process::{LaunchedWorker, Process};
use super::query_executor::Message;
use super::request_server::{RequestServer, WorkerMessage};
use super::stderr_tail::StderrTail;
use crate::setup::Exit;
use crate::wire::{FrameError, VERSION, encode, receive};

/// How long a worker may take to start.
const START_MAX: Duration = Duration::from_secs(20);

/// How long a worker may take to stop after a request.
const GRACE: Duration = Duration::from_secs(5);

/// Most frames that wait to be written to a worker. Further senders wait.
const OUTGOING_MAX: usize = 64;

/// How a worker ended.
pub(super) enum WorkerEnd {
    /// It reported its outcome.
    Done(Result<(), RunnerError>),
    /// It stopped, or was ended, after a request to stop.
    Stopped,
    /// It could not be restricted.
    NoSandbox(String),
    /// It broke the protocol.
    Violated(String),
    /// It exceeded its time limit.
    OutOfTime,
    /// It did not start in time.
    NotReady,
    /// An internal error of the runner.
    Fault(String),
    /// It ended without a report, with this exit if that is known.
    Gone(Option<Exit>, StderrTail),
}

/// Runs one worker.
pub(super) struct WorkerRun {
    process: Process,
    server: RequestServer,
    frames: mpsc::Receiver<Result<Vec<u8>, FrameError>>,
    outgoing: mpsc::Sender<Vec<u8>>,
    stderr_tail: StderrTail,
    /// The reading and writing futures.
    keepers: JoinSet<()>,
}

impl WorkerRun {
    pub(super) fn new(launched: LaunchedWorker, run: &RunnerTask) -> Self {
        let LaunchedWorker { process, socket, stderr } = launched;
        let (reader, writer) = socket.into_split();
        let (frame, frames) = mpsc::channel(1);
        let (outgoing, messages) = mpsc::channel(OUTGOING_MAX);
        let mut keepers = JoinSet::new();
        keepers.spawn(read(reader, frame));
        keepers.spawn(write(writer, messages));
        let stderr_tail = StderrTail::default();
        if let Some(stderr) = stderr {
            keepers.spawn(stderr_tail.clone().listen(run.task_id.clone(), stderr));
        }
        let server = RequestServer::new(run, outgoing.clone());
        Self { process, server, frames, outgoing, stderr_tail, keepers }
    }

    /// Serves the worker until it has stopped, and waits until it is gone.
    pub(super) async fn run(
        mut self,
        run: &mut RunnerTask,
        settings: &serde_json::Value,
        until: Option<Instant>,
    ) -> WorkerEnd {
        let (task_id, settings) = (run.task_id.clone(), settings.clone());
        self.say(&Message::Hello { version: VERSION, task_id, settings });
        let end = self.serve(run, until).await;
        let exit = self.process.close().await;
        self.server.finish().await;
        // Its standard error is read to the end: every writer is gone.
        drop((self.frames, self.outgoing));
        let _ = tokio::time::timeout(GRACE, async {
            while self.keepers.join_next().await.is_some() {}
        })
        .await;
        match end {
            WorkerEnd::Gone(..) => WorkerEnd::Gone(exit, self.stderr_tail),
            WorkerEnd::Done(_)
            | WorkerEnd::Stopped
            | WorkerEnd::NoSandbox(_)
            | WorkerEnd::Violated(_)
            | WorkerEnd::OutOfTime
            | WorkerEnd::NotReady
            | WorkerEnd::Fault(_) => end,
        }
    }

    async fn serve(&mut self, run: &mut RunnerTask, until: Option<Instant>) -> WorkerEnd {
        let mut ready_until = Some(Instant::now() + START_MAX);
        let mut stop_until = None;
        loop {
            tokio::select! {
                frame = self.frames.recv() => {
                    let taken = match frame {
                        Some(Ok(body)) => self.server.take(&body),
                        Some(Err(error @ (FrameError::TooLong { .. } | FrameError::Malformed { .. }))) => {
                            return WorkerEnd::Violated(error.to_string());
                        }
                        Some(Err(FrameError::Broken(_))) | None if stop_until.is_some() => return WorkerEnd::Stopped,
                        Some(Err(FrameError::Broken(_))) | None => {
                            return WorkerEnd::Gone(None, self.stderr_tail.clone());
                        }
                    };
                    match taken {
                        Ok(None) => {}
                        Ok(Some(WorkerMessage::Ready)) => ready_until = None,
                        Ok(Some(WorkerMessage::Refused { reason })) => return WorkerEnd::NoSandbox(reason),
                        Ok(Some(WorkerMessage::Done(_))) if stop_until.is_some() => return WorkerEnd::Stopped,
                        Ok(Some(WorkerMessage::Done(outcome))) => return WorkerEnd::Done(outcome.into()),
                        Err(violation) => return WorkerEnd::Violated(violation.to_string()),
                    }
                }
                settled = self.server.settle() => {
                    if let Err(reason) = settled {
                        return WorkerEnd::Fault(reason);
                    }
                }
                () = &mut run.cancel, if stop_until.is_none() => {
                    stop_until = Some(self.ask_to_stop(&Message::Cancel {}));
                }
                () = &mut run.interrupt, if stop_until.is_none() => {
                    stop_until = Some(self.ask_to_stop(&Message::Interrupt {}));
                }
                () = &mut run.shutdown, if stop_until.is_none() => {
                    stop_until = Some(self.ask_to_stop(&Message::Rest {}));
                }
                () = at(stop_until) => return WorkerEnd::Stopped,
                () = at(ready_until) => return WorkerEnd::NotReady,
                () = at(until) => return WorkerEnd::OutOfTime,
            }
        }
    }

    fn ask_to_stop(&self, message: &Message) -> Instant {
        self.say(message);
        Instant::now() + GRACE
    }

    /// Sends a message without waiting. A worker that does not read is ended at its deadline.
    fn say(&self, message: &Message) {
        if let Ok(frame) = encode(message) {
            let _ = self.outgoing.try_send(frame);
        }
    }
}

async fn at(moment: Option<Instant>) {
    match moment {
        Some(moment) => sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

async fn read(mut reader: OwnedReadHalf, frame: mpsc::Sender<Result<Vec<u8>, FrameError>>) {
    loop {
        match receive(&mut reader).await {
            Ok(None) => return,
            Ok(Some(body)) => {
                if frame.send(Ok(body)).await.is_err() {
                    return;
                }
            }
            Err(error) => {
                // Nothing after an invalid frame can be parsed.
                let _ = frame.send(Err(error)).await;
                return;
            }
        }
    }
}

async fn write(mut writer: OwnedWriteHalf, mut messages: mpsc::Receiver<Vec<u8>>) {
    while let Some(frame) = messages.recv().await {
        if writer.write_all(&frame).await.is_err() {
            return;
        }
    }
}
