//! API keys of a server.

use std::path::Path;

use antiphon_interface_transport::Keys;
use antiphon_keys::{KeyRing, KeyScope, Level, NewKey};
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
