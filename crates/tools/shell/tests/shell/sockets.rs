//! Attempts on sockets of the file system that were not there when the sandbox was made.

use std::os::unix::net::{UnixDatagram, UnixListener};
use std::process::{Child, Command, Stdio};

use antiphon_sandbox::{Network, SandboxMode};

use crate::bench::{Bench, eventually};

const CONNECT: &str = "python3 -c \"import socket, sys; s = socket.socket(socket.AF_UNIX); \
                       s.connect(sys.argv[1]); print('ESCAPED')\"";

const SEND: &str = "python3 -c \"import socket, sys; \
                    a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM); \
                    a.sendto(b'x', sys.argv[1]); print('ESCAPED')\"";

/// The kernel makes a pair of datagram sockets of it.
const SEND_RAW: &str = "python3 -c \"import socket, sys; \
                    a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_RAW); \
                    a.sendto(b'x', sys.argv[1]); print('ESCAPED')\"";

/// A program that listens on a socket by a relative name.
struct Server(Child);

impl Server {
    fn start(bench: &Bench) -> Self {
        let listen = "import socket, time; s = socket.socket(socket.AF_UNIX); s.bind('relative'); \
                      s.listen(); time.sleep(60)";
        let mut command = Command::new("python3");
        command.args(["-c", listen]).current_dir(bench.outside("")).stderr(Stdio::null());
        Self(command.spawn().unwrap())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

async fn attempt(mode: SandboxMode, network: Network) -> Vec<String> {
    let bench = Bench::with(|settings| {
        settings.policy.mode = mode;
        settings.policy.network = network;
    });
    let server = Server::start(&bench);
    eventually("a socket", || bench.outside("relative").exists()).await;
    bench.works("true").await;
    let late = UnixListener::bind(bench.outside("late")).unwrap();
    let within = UnixListener::bind(bench.root.join("within")).unwrap();
    let datagrams = UnixDatagram::bind(bench.outside("datagrams")).unwrap();
    let mut said = Vec::new();
    for (how, socket) in [
        (CONNECT, bench.outside("relative")),
        (CONNECT, bench.outside("late")),
        (CONNECT, bench.root.join("within")),
        (SEND, bench.outside("datagrams")),
        (SEND_RAW, bench.outside("datagrams")),
    ] {
        said.push(bench.run(&format!("{how} {}", socket.display())).await.text);
    }
    drop((server, late, within, datagrams));
    said
}

#[tokio::test]
async fn sockets_that_appear_later_or_have_relative_names_are_out_of_reach() {
    for (mode, network) in [
        (SandboxMode::Workspace, Network::Off),
        (SandboxMode::Workspace, Network::On),
        (SandboxMode::ReadOnly, Network::Off),
    ] {
        for text in attempt(mode, network).await {
            assert!(!text.contains("ESCAPED"), "{mode:?} {network:?}\n{text}");
        }
    }
    for text in attempt(SandboxMode::Full, Network::On).await {
        assert!(text.contains("ESCAPED"), "works nowhere\n{text}");
    }
}

#[tokio::test]
async fn connected_pairs_work() {
    let bench = Bench::new();
    let pair = "python3 -c \"import socket; a, b = socket.socketpair(); a.send(b'x'); \
                print(b.recv(1))\"";
    assert_eq!(bench.works(pair).await, "b'x'\n");
    let packets = "python3 -c \"import socket; a, b = socket.socketpair(socket.AF_UNIX, \
                   socket.SOCK_SEQPACKET | socket.SOCK_CLOEXEC); a.send(b'y'); print(b.recv(1))\"";
    assert_eq!(bench.works(packets).await, "b'y'\n");
}
