//! API keys of a server.

use std::path::Path;

use antiphon_core::AgentName;
use antiphon_interface_transport::Keys;
use antiphon_keys::{KeyHolder, KeyRing, KeyScope, Level, NewKey};
use secrecy::ExposeSecret as _;

/// The keys of two persons, `ada` and `eve`, of level `write`, which see their own work alone, and what a server with
/// them needs. They are in `folder`.
pub fn two_keys(folder: &Path) -> (Keys, [String; 2]) {
    let ring = KeyRing::open(folder.join("keys.json")).unwrap();
    let secrets = ["ada", "eve"].map(|name| {
        let new =
            NewKey { scope: KeyScope::Own, ..NewKey::new(name.parse().unwrap(), Level::Write) };
        ring.create(new).unwrap().1.expose_secret().to_owned()
    });
    (Keys::new(ring).unwrap(), secrets)
}

/// The key of an agent, of level `write`. Make it before the server that shall know it, in the same `folder`.
pub fn agents_key(folder: &Path, agent: &str) -> String {
    let ring = KeyRing::open(folder.join("keys.json")).unwrap();
    let holder = KeyHolder::Agent(AgentName::parse(agent).unwrap());
    let new = NewKey { holder, ..NewKey::new(agent.parse().unwrap(), Level::Write) };
    ring.create(new).unwrap().1.expose_secret().to_owned()
}
