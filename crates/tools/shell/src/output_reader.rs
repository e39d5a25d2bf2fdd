//! Reads the output of a command until the pipe is closed by every writer.
//!
//! A command that has ended may leave processes that hold its output open. Output written before
//! the end is read before the end is reported. Later output is still read, so that no process
//! blocks on a full pipe or is killed by a closed one.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::net::unix::pipe::Receiver;
use tokio::task::spawn_blocking;
use tokio::time::sleep_until;

use crate::process::{Output, Process};
use crate::worker_link::WorkerLink;

/// Most output of a command, in bytes. Beyond it every process of the call is ended.
pub(crate) const OUTPUT_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Most bytes that a pipe buffers: output written before the end of a command is among them.
const PIPE_BYTES_MAX: u64 = 1024 * 1024;

/// How long after the end of a command its output may stay open before it is reported as held open.
/// A process that starts at that moment has a copy of the pipe until it calls exec.
const OPEN_AFTER: Duration = Duration::from_millis(25);

/// How often it is recorded that a command still runs.
const HEARTBEAT: Duration = Duration::from_secs(1);

/// Bytes read at once.
const CHUNK_BYTES: usize = 64 * 1024;

/// Reads `pipe`, which is non-blocking, for `process`, which runs in the worker behind `link`.
pub(crate) async fn read_output(process: Arc<Process>, pipe: OwnedFd, link: Arc<WorkerLink>) {
    if let Ok(pipe) = Receiver::from_owned_fd(pipe) {
        OutputReader {
            process: &process,
            pipe,
            link: &link,
            buffer: vec![0; CHUNK_BYTES],
            bytes: 0,
        }
        .run()
        .await;
    }
    let mut transcript = process.transcript();
    process.progress_writer().add(transcript.finish());
    process.progress_writer().finish();
    drop(transcript);
    process.set_output(Output::Closed);
}

struct OutputReader<'a> {
    process: &'a Arc<Process>,
    pipe: Receiver,
    link: &'a WorkerLink,
    buffer: Vec<u8>,
    bytes: u64,
}

/// The outcome of one read.
enum Read {
    Some(usize),
    Nothing,
    End,
}

enum Event {
    Ended,
    StillOpen,
    Readable,
    ReportDue,
    HeartbeatDue,
}

impl OutputReader<'_> {
    async fn run(&mut self) {
        let mut status = self.process.watch();
        let mut ended = false;
        let mut still_open_at = None;
        let mut heartbeat_at = Instant::now() + HEARTBEAT;
        loop {
            let report_at = self.report_progress();
            let event = tokio::select! {
                // The end first: a process that keeps writing must not delay the report of the end.
                biased;
                _ = status.wait_for(|status| status.end.is_some()), if !ended => Event::Ended,
                () = wait(still_open_at) => Event::StillOpen,
                ready = self.pipe.readable() => match ready {
                    Ok(()) => Event::Readable,
                    Err(_) => return,
                },
                () = wait(report_at) => Event::ReportDue,
                () = wait(Some(heartbeat_at)), if !ended => Event::HeartbeatDue,
            };
            let read = match event {
                Event::Ended => {
                    ended = true;
                    still_open_at = Some(Instant::now() + OPEN_AFTER);
                    self.settle().await
                }
                Event::StillOpen => {
                    still_open_at = None;
                    self.process.set_output(Output::HeldOpen);
                    continue;
                }
                Event::Readable => self.read_once().await,
                Event::ReportDue => continue,
                Event::HeartbeatDue => {
                    heartbeat_at = Instant::now() + HEARTBEAT;
                    self.process.record.heartbeat().await;
                    continue;
                }
            };
            match read {
                Read::End => return,
                Read::Some(_) | Read::Nothing => {}
            }
        }
    }

    async fn read_once(&mut self) -> Read {
        let read = outcome(self.pipe.try_read(&mut self.buffer));
        if let Read::Some(bytes) = read {
            self.take(bytes).await;
        }
        read
    }

    /// Reads the bytes that are in the pipe now, without waiting for readiness.
    async fn settle(&mut self) -> Read {
        let enough = self.bytes + PIPE_BYTES_MAX;
        while self.bytes < enough {
            match outcome(read(&self.pipe, &mut self.buffer)) {
                Read::Some(bytes) => self.take(bytes).await,
                Read::Nothing => return Read::Nothing,
                Read::End => return Read::End,
            }
        }
        Read::Nothing
    }

    async fn take(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
        if self.bytes > OUTPUT_BYTES_MAX {
            // The rest is read and dropped, so that the writer can end.
            if !self.process.is_flooded() {
                self.process.set_flooded();
                self.link.stop_soon(&self.process.id);
            }
            return;
        }
        self.process.record.add(self.buffer.get(..bytes).unwrap_or_default()).await;
        let full = {
            let mut transcript = self.process.transcript();
            let lines = transcript.take(self.buffer.get(..bytes).unwrap_or_default());
            self.process.progress_writer().add(lines);
            transcript.is_full()
        };
        if full {
            let process = Arc::clone(self.process);
            // Fails only on a panic, and then the text stays in memory.
            let _ = spawn_blocking(move || process.transcript().file()).await;
        }
    }

    fn report_progress(&self) -> Option<Instant> {
        let transcript = self.process.transcript();
        self.process.progress_writer().report(transcript.pending())
    }
}

async fn wait(until: Option<Instant>) {
    match until {
        Some(until) => sleep_until(until.into()).await,
        None => std::future::pending().await,
    }
}

fn read(pipe: &Receiver, buffer: &mut [u8]) -> io::Result<usize> {
    Ok(rustix::io::read(pipe, buffer)?)
}

fn outcome(read: io::Result<usize>) -> Read {
    const LATER: [io::ErrorKind; 2] = [io::ErrorKind::WouldBlock, io::ErrorKind::Interrupted];
    match read {
        Ok(0) => Read::End,
        Ok(bytes) => Read::Some(bytes),
        Err(error) if LATER.contains(&error.kind()) => Read::Nothing,
        Err(_) => Read::End,
    }
}
