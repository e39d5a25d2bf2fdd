//! One worker from its start to its end: serves it, and sees to it that it stops when it should.

use std::time::Duration;

use antiphon_core::port::{Run, RunnerError};
use tokio::io::AsyncWriteExt;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use super::clerk::Message;
use super::desk::{Desk, Word};
use super::last_words::LastWords;
use super::process::{Launched, Process};
use crate::setup::Exit;
use crate::wire::{FrameError, VERSION, encode, receive};

/// How long a worker may take to be ready.
const START_MAX: Duration = Duration::from_secs(20);

/// How long a worker may take to stop by itself once it is asked to.
const GRACE: Duration = Duration::from_secs(5);

/// Frames that wait to be written to a worker. Who has another one waits.
const OUTGOING_MAX: usize = 64;

/// How a worker was left.
pub(super) enum Left {
    /// It said how it stopped.
    Done(Result<(), RunnerError>),
    /// It was asked to stop, and has, or was made to.
    Asked,
    /// It could not be restricted.
    NoSandbox(String),
    /// It did what it may not.
    Violated(String),
    /// It took longer than it may.
    OutOfTime,
    /// It never began.
    NotReady,
    /// A fault of ours.
    Fault(String),
    /// It ended without a word, in this way if that is known.
    Gone(Option<Exit>, LastWords),
}

/// Looks after one worker.
pub(super) struct Attendance {
    process: Process,
    desk: Desk,
    frames: mpsc::Receiver<Result<Vec<u8>, FrameError>>,
    outgoing: mpsc::Sender<Vec<u8>>,
    last_words: LastWords,
    /// Those who read and write.
    keepers: JoinSet<()>,
}

impl Attendance {
    pub(super) fn new(launched: Launched, run: &Run) -> Self {
        let Launched { process, socket, stderr } = launched;
        let (reader, writer) = socket.into_split();
        let (frame, frames) = mpsc::channel(1);
        let (outgoing, messages) = mpsc::channel(OUTGOING_MAX);
        let mut keepers = JoinSet::new();
        keepers.spawn(read(reader, frame));
        keepers.spawn(write(writer, messages));
        let last_words = LastWords::default();
        if let Some(stderr) = stderr {
            keepers.spawn(last_words.clone().listen(run.task_id.clone(), stderr));
        }
        let desk = Desk::new(run, outgoing.clone());
        Self { process, desk, frames, outgoing, last_words, keepers }
    }

    /// Serves the worker until it has stopped or has to, and then until it is gone.
    pub(super) async fn attend(
        mut self,
        run: &mut Run,
        settings: &serde_json::Value,
        until: Option<Instant>,
    ) -> Left {
        let (task_id, settings) = (run.task_id.clone(), settings.clone());
        self.say(&Message::Hello { version: VERSION, task_id, settings });
        let left = self.serve(run, until).await;
        let exit = self.process.close().await;
        self.desk.finish().await;
        // Its last words are read to their end: all who could write are gone.
        drop((self.frames, self.outgoing));
        let _ = tokio::time::timeout(GRACE, async {
            while self.keepers.join_next().await.is_some() {}
        })
        .await;
        match left {
            Left::Gone(..) => Left::Gone(exit, self.last_words),
            Left::Done(_)
            | Left::Asked
            | Left::NoSandbox(_)
            | Left::Violated(_)
            | Left::OutOfTime
            | Left::NotReady
            | Left::Fault(_) => left,
        }
    }

    async fn serve(&mut self, run: &mut Run, until: Option<Instant>) -> Left {
        let mut ready_until = Some(Instant::now() + START_MAX);
        let mut asked_until = None;
        loop {
            tokio::select! {
                frame = self.frames.recv() => {
                    let taken = match frame {
                        Some(Ok(body)) => self.desk.take(&body),
                        Some(Err(error @ (FrameError::TooLong { .. } | FrameError::Malformed { .. }))) => {
                            return Left::Violated(error.to_string());
                        }
                        Some(Err(FrameError::Broken(_))) | None if asked_until.is_some() => return Left::Asked,
                        Some(Err(FrameError::Broken(_))) | None => {
                            return Left::Gone(None, self.last_words.clone());
                        }
                    };
                    match taken {
                        Ok(None) => {}
                        Ok(Some(Word::Ready)) => ready_until = None,
                        Ok(Some(Word::Refused { reason })) => return Left::NoSandbox(reason),
                        Ok(Some(Word::Done(_))) if asked_until.is_some() => return Left::Asked,
                        Ok(Some(Word::Done(outcome))) => return Left::Done(outcome.into()),
                        Err(violation) => return Left::Violated(violation.to_string()),
                    }
                }
                settled = self.desk.settle() => {
                    if let Err(reason) = settled {
                        return Left::Fault(reason);
                    }
                }
                () = &mut run.cancel, if asked_until.is_none() => {
                    asked_until = Some(self.ask_to_stop(&Message::Cancel {}));
                }
                () = &mut run.shutdown, if asked_until.is_none() => {
                    asked_until = Some(self.ask_to_stop(&Message::Rest {}));
                }
                () = at(asked_until) => return Left::Asked,
                () = at(ready_until) => return Left::NotReady,
                () = at(until) => return Left::OutOfTime,
            }
        }
    }

    fn ask_to_stop(&self, message: &Message) -> Instant {
        self.say(message);
        Instant::now() + GRACE
    }

    /// Says something without waiting. A worker that does not listen is ended when its time is over.
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
                // Nothing behind it can be understood.
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
