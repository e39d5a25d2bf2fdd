//! The socket in the sandbox that leads to the proxy, and the variables that tell programs of it.

use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::AsFd;

use crate::message::{CallId, ProxyRequest, Reply, packet, send};

/// Variables that programs read the address of a proxy from. Those of the package managers are for
/// programs that ignore the usual ones.
const PROXY_VARIABLES: [&str; 8] = [
    "ALL_PROXY",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "YARN_HTTPS_PROXY",
    "YARN_HTTP_PROXY",
    "all_proxy",
    "http_proxy",
    "https_proxy",
];

/// Variables with hosts that are reached without the proxy.
const NO_PROXY_VARIABLES: [&str; 2] = ["NO_PROXY", "no_proxy"];

/// Opens a socket for a call and passes it to the shell. Returns the variables for its commands.
pub(super) fn open(
    shell: impl AsFd,
    call: &CallId,
    request: &ProxyRequest,
) -> io::Result<Vec<(&'static str, String)>> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = format!("http://{}", listener.local_addr()?);
    let reply = packet(&Reply::Listening { call: call.clone() })?;
    send(shell, &reply, Some(listener.as_fd()))?;
    let proxy = PROXY_VARIABLES.map(|name| (name, address.clone()));
    let no_proxy = NO_PROXY_VARIABLES.map(|name| (name, request.no_proxy.clone()));
    // Node reads the variables only with this one.
    let node = ("NODE_USE_ENV_PROXY", "1".to_owned());
    Ok(proxy.into_iter().chain(no_proxy).chain([node]).collect())
}
