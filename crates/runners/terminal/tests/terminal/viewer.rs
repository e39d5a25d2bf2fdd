//! A viewer: attaches its own terminal to a program's.

use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use antiphon_core::TaskId;
use antiphon_terminal::{
    AttachError, Attachment, DetachKey, DetachReason, Size, Watching, attach, socket_path,
};
use rustix::io::ioctl_fionbio;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};
use tokio::net::unix::pipe::Receiver;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use crate::world::{LONG, World};

/// A viewer.
pub(crate) struct Viewer {
    tty: OwnedFd,
    shown: Receiver,
    path: PathBuf,
    /// Kept open: a terminal that no process has open is gone.
    seat: OwnedFd,
    screen: vt100::Parser,
    /// Everything that was written to the viewer's terminal.
    pub(crate) written: Vec<u8>,
    attached: JoinHandle<Result<DetachReason, AttachError>>,
}

impl Viewer {
    pub(crate) async fn attach_to(
        world: &World,
        task_id: &TaskId,
        watching: Watching,
        (rows, columns): (u16, u16),
    ) -> Self {
        let socket = socket_path(&world.folder(), task_id).unwrap();
        let there = async {
            while !socket.exists() {
                sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(LONG, there).await.expect("there is no terminal");
        let tty = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&tty).unwrap();
        unlockpt(&tty).unwrap();
        let name = ptsname(&tty, Vec::new()).unwrap();
        let path = PathBuf::from(std::ffi::OsStr::from_bytes(name.as_bytes()));
        let flags = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::NOCTTY;
        let seat = rustix::fs::open(&path, flags, rustix::fs::Mode::empty()).unwrap();
        tcsetwinsize(&tty, window(rows, columns)).unwrap();
        ioctl_fionbio(&tty, true).unwrap();
        let attachment =
            Attachment { socket, tty: path.clone(), watching, detach: DetachKey::default() };
        #[expect(clippy::disallowed_methods, reason = "it is joined in the end")]
        let attached = tokio::spawn(attach(attachment));
        let size = Size::new(rows, columns);
        let number = |it| std::num::NonZeroU16::new(it).unwrap();
        Self {
            shown: Receiver::from_owned_fd_unchecked(tty.try_clone().unwrap()).unwrap(),
            tty,
            path,
            seat,
            screen: vt100::Parser::new(number(size.rows()), number(size.columns()), 0),
            written: Vec::new(),
            attached,
        }
    }

    pub(crate) fn press(&self, keys: &str) {
        rustix::io::write(&self.tty, keys.as_bytes()).unwrap();
    }

    /// Its terminal.
    pub(crate) fn tty(&self) -> &Path {
        &self.path
    }

    /// Whether every key goes to the program.
    pub(crate) fn is_raw(&self) -> bool {
        !tcgetattr(&self.seat).unwrap().local_modes.contains(LocalModes::ECHO)
    }

    pub(crate) fn text(&self) -> String {
        self.screen.screen().contents()
    }

    /// Looks until this is on the screen.
    pub(crate) async fn sees(&mut self, text: &str) {
        let found = timeout(LONG, async {
            while !self.text().contains(text) {
                self.look().await;
            }
        });
        let found = found.await;
        assert!(found.is_ok(), "`{text}` is not there:\n{}", self.text());
    }

    /// Looks until nothing has changed for this long.
    pub(crate) async fn watches_for(&mut self, time: Duration) {
        while timeout(time, self.look()).await.is_ok() {}
    }

    async fn look(&mut self) {
        let mut buffer = [0; 4096];
        self.shown.readable().await.unwrap();
        if let Ok(taken) = self.shown.try_read(&mut buffer) {
            self.screen.process(&buffer[..taken]);
            self.written.extend_from_slice(&buffer[..taken]);
        }
    }

    /// Presses the key to leave.
    pub(crate) async fn detach(mut self) -> String {
        let shown = self.text();
        self.press("\x1c");
        assert_eq!(self.leaves().await.unwrap(), DetachReason::Detached);
        shown
    }

    /// How they left; their terminal is as it was.
    pub(crate) async fn leaves(&mut self) -> Result<DetachReason, AttachError> {
        let left = timeout(LONG, async {
            loop {
                if self.attached.is_finished() {
                    break (&mut self.attached).await.unwrap();
                }
                let _ = timeout(Duration::from_millis(5), self.look()).await;
            }
        });
        let left = left.await.expect("they do not leave");
        assert!(!self.is_raw());
        self.watches_for(Duration::from_millis(50)).await;
        left
    }
}

fn window(rows: u16, columns: u16) -> Winsize {
    Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }
}
