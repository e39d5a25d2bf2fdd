//! Reads what a command writes, until nobody can write any more.
//!
//! A command that has ended may have left somebody who holds its output. What was written before
//! the end is read before the end is told; what comes later is still read, so that nobody is
//! stopped by a pipe that is full or closed.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::net::unix::pipe::Receiver;
use tokio::task::spawn_blocking;
use tokio::time::sleep_until;

use crate::link::Link;
use crate::process::{Output, Process};

/// Most that a command may write, in bytes. Beyond it everything the call started is ended.
pub(crate) const OUTPUT_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Most that a pipe holds. What was written before a command ended is no further away.
const PIPE_BYTES_MAX: u64 = 1024 * 1024;

/// How long after the end of a command its output may stay open before somebody is said to hold
/// it: whatever else this process starts at that moment has a copy until it has begun.
const HELD_AFTER: Duration = Duration::from_millis(25);

/// How much is read at a time.
const CHUNK_BYTES: usize = 64 * 1024;

/// Reads `pipe`, which does not block, for `process`, which `link` runs.
pub(crate) async fn pump(process: Arc<Process>, pipe: OwnedFd, link: Arc<Link>) {
    if let Ok(pipe) = Receiver::from_owned_fd(pipe) {
        Pump { process: &process, pipe, link: &link, buffer: vec![0; CHUNK_BYTES], bytes: 0 }
            .run()
            .await;
    }
    let mut transcript = process.transcript();
    process.live().add(transcript.finish());
    process.live().finish();
    drop(transcript);
    process.set_output(Output::Closed);
}

struct Pump<'a> {
    process: &'a Arc<Process>,
    pipe: Receiver,
    link: &'a Link,
    buffer: Vec<u8>,
    bytes: u64,
}

/// What reading came to.
enum Read {
    Some(usize),
    Nothing,
    End,
}

enum Event {
    Ended,
    StillHeld,
    Readable,
    MaySay,
}

impl Pump<'_> {
    async fn run(&mut self) {
        let mut status = self.process.watch();
        let mut ended = false;
        let mut held_at = None;
        loop {
            let say_at = self.say();
            let event = tokio::select! {
                // The end first: whoever goes on writing must not keep it from being told.
                biased;
                _ = status.wait_for(|status| status.end.is_some()), if !ended => Event::Ended,
                () = wait(held_at) => Event::StillHeld,
                ready = self.pipe.readable() => match ready {
                    Ok(()) => Event::Readable,
                    Err(_) => return,
                },
                () = wait(say_at) => Event::MaySay,
            };
            let read = match event {
                Event::Ended => {
                    ended = true;
                    held_at = Some(Instant::now() + HELD_AFTER);
                    self.settle().await
                }
                Event::StillHeld => {
                    held_at = None;
                    self.process.set_output(Output::Held);
                    continue;
                }
                Event::Readable => self.read_once().await,
                Event::MaySay => continue,
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

    /// Reads what is there, asking the kernel and not waiting to be told.
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
            // The rest is read, so that whoever writes can end, and dropped.
            if !self.process.is_flooded() {
                self.process.set_flooded();
                self.link.stop_soon(&self.process.id);
            }
            return;
        }
        let full = {
            let mut transcript = self.process.transcript();
            let lines = transcript.take(self.buffer.get(..bytes).unwrap_or_default());
            self.process.live().add(lines);
            transcript.is_full()
        };
        if full {
            let process = Arc::clone(self.process);
            // Only a panic could fail it, and then the text stays in memory.
            let _ = spawn_blocking(move || process.transcript().file()).await;
        }
    }

    fn say(&self) -> Option<Instant> {
        let transcript = self.process.transcript();
        self.process.live().say(transcript.pending())
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
