//! A proxy that closes connections after a random number of bytes.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// A proxy that closes connections. It ends when it is dropped.
pub struct CuttingProxy {
    /// Address of the proxy.
    pub address: SocketAddr,
    /// Connections that were cut so far.
    pub cuts: Arc<AtomicUsize>,
    /// Bytes of responses that were forwarded so far.
    pub forwarded: watch::Receiver<u64>,
    _connections: JoinSet<()>,
}

/// The next pseudorandom number.
fn next(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *seed >> 33
}

impl CuttingProxy {
    /// Forwards less than `bytes_max` bytes of the responses of each connection.
    pub async fn new(to: SocketAddr, mut seed: u64, bytes_max: u64) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let cuts = Arc::new(AtomicUsize::new(0));
        let mut connections = JoinSet::new();
        let counter = Arc::clone(&cuts);
        let (sender, forwarded) = watch::channel(0);
        connections.spawn(async move {
            let mut open = JoinSet::new();
            loop {
                let (client, _) = listener.accept().await.unwrap();
                let bytes = next(&mut seed) % bytes_max;
                let (counter, forwarded) = (Arc::clone(&counter), sender.clone());
                open.spawn(async move {
                    if forward(client, to, bytes, &forwarded).await.is_none() {
                        counter.fetch_add(1, Ordering::SeqCst);
                    }
                });
            }
        });
        Self { address, cuts, forwarded, _connections: connections }
    }
}

/// Forwards bytes both ways. `None` when the limit was reached.
async fn forward(
    mut client: TcpStream,
    to: SocketAddr,
    mut left: u64,
    forwarded: &watch::Sender<u64>,
) -> Option<()> {
    let mut server = TcpStream::connect(to).await.ok()?;
    let (mut up, mut down) = ([0; 4096], [0; 512]);
    loop {
        tokio::select! {
            read = client.read(&mut up) => match read {
                Ok(0) | Err(_) => return Some(()),
                Ok(count) => server.write_all(&up[..count]).await.ok()?,
            },
            read = server.read(&mut down) => match read {
                Ok(0) | Err(_) => return Some(()),
                Ok(count) => {
                    let count = (count as u64).min(left);
                    left -= count;
                    client.write_all(&down[..usize::try_from(count).unwrap()]).await.ok()?;
                    forwarded.send_modify(|bytes| *bytes += count);
                    if left == 0 {
                        return None;
                    }
                }
            },
        }
    }
}
