//! Remote agents of the user's settings, as an attacker would have them.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use serde_json::{Value, json};

use crate::world::World;

/// Answers each request with a status and JSON, until the test ends. Returns the address.
fn serving(status: &'static str, body: impl Fn(u16) -> Value + Send + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let Ok(mut socket) = socket else { return };
            let _ = socket.read(&mut [0; 8192]);
            let body = body(port).to_string();
            let length = body.len();
            let _ = write!(
                socket,
                "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
            );
        }
    });
    port
}

/// What `antiphon run` says of a remote agent whose card is at this address.
fn failure(card: &str) -> String {
    let world = World::new(&format!("[a2a.remote.painter]\ncard = \"{card}\""));
    let output = world.command(&["run", "--agent", "painter", "A bird"]).output().unwrap();
    assert!(!output.status.success(), "{card}: it is refused");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn card(url: &str) -> Value {
    let interface = json!({ "url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0" });
    json!({ "name": "painter", "supportedInterfaces": [interface] })
}

#[test]
fn metadata_addresses_are_not_reached() {
    for address in ["http://169.254.169.254/", "https://[fe80::1]/", "https://[fd00:ec2::254]/"] {
        let said = failure(address);
        assert!(said.contains("not a public"), "{address}: {said}");
    }
}

#[test]
fn an_interface_at_another_host_than_its_card_is_refused() {
    let victim = TcpListener::bind("127.0.0.1:0").unwrap();
    let other = victim.local_addr().unwrap().port();
    let port = serving("200 OK", move |_| card(&format!("http://127.0.0.1:{other}/a2a")));
    let said = failure(&format!("http://127.0.0.1:{port}/"));
    assert!(said.contains("another host"), "{said}");
    victim.set_nonblocking(true).unwrap();
    assert!(victim.accept().is_err(), "something was sent there");
}

/// Two projects: `here` has the keys of the other one, or those of a stranger.
#[test]
fn a_card_has_to_be_signed_with_a_key_that_the_user_has() {
    let there = World::new("[a2a]\nagents = [\"helper\"]");
    let server = there.serve();
    let (key, stranger) = (there.run(&["keys", "card"]), World::new("").run(&["keys", "card"]));
    for (keys, is_accepted) in [(key, true), (stranger, false)] {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("keys.json");
        std::fs::write(&file, keys).unwrap();
        let here = World::new(&format!(
            "[a2a.remote.painter]\ncard = \"http://{}/\"\ntoken_env = \"THERE\"\ncard_keys = \"{}\"",
            server.address,
            file.display()
        ));
        let mut command = here.command(&["run", "--agent", "painter", "A bird"]);
        let output = command.env("THERE", &server.token).output().unwrap();
        let (said, wrong) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.status.success(), is_accepted, "{said}{wrong}");
        if is_accepted {
            assert!(said.contains("You said A bird"), "{said}");
        } else {
            assert!(wrong.contains("none of its signatures"), "{wrong}");
        }
    }
    // Nothing was sent by the one that refused.
    let listed = server.rpc(&server.token, "helper", "ListTasks", &json!({}));
    assert_eq!(listed["result"]["totalSize"], 1, "{listed}");
}

#[test]
fn an_agent_that_speaks_only_an_older_version_is_refused_with_the_reason() {
    let old = |port| json!({ "name": "painter", "url": format!("http://127.0.0.1:{port}/"), "protocolVersion": "0.3.0" });
    let port = serving("200 OK", old);
    let said = failure(&format!("http://127.0.0.1:{port}/"));
    assert!(said.contains("0.3.0") && said.contains("1.0"), "{said}");
}
