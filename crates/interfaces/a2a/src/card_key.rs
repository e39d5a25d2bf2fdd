//! The key that signs agent cards: ES256 (ECDSA on P-256 with SHA-256) over the canonical card (RFC 8785), as section 8.4
//! of the specification has it. It is in the state folder, and stays: clients keep its public part. A file that holds no
//! such key is an error, because a new key would be one that no client trusts.

use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use a2a::{AgentCard, AgentCardSignature};
use antiphon_private_file::{AccessError, open, parent_of};
use base64::Engine as _;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// The key file, in the state folder.
const FILE: &str = "a2a-card-key.pem";

/// Largest key file, in bytes.
const FILE_BYTES_MAX: u64 = 4096;

/// First and last line of a key file (PKCS #8 in PEM).
const PEM_BEGIN: &str = "-----BEGIN PRIVATE KEY-----";
const PEM_END: &str = "-----END PRIVATE KEY-----";

/// Characters of a line of a key file.
const PEM_LINE: usize = 64;

/// Bytes of a coordinate of a public key, which is `4`, `x`, `y`.
const COORDINATE_BYTES: usize = 32;

/// The key that signs agent cards.
#[derive(Debug)]
pub struct CardKey {
    pair: EcdsaKeyPair,
    id: String,
}

/// Why there is no key.
#[derive(Debug, thiserror::Error)]
pub enum CardKeyError {
    /// The file cannot be used: make it readable for you alone.
    #[error("cannot use the key of agent cards {}: {reason}", path.display())]
    Access {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The file holds no key: restore it, or remove it and give clients the new public key.
    #[error(
        "{} holds no private key on P-256: restore it, or remove it and give clients the new public key (antiphon keys card)",
        path.display()
    )]
    Broken {
        /// The file.
        path: PathBuf,
    },
}

impl CardKey {
    /// The key in a state folder, which exists. A new one is created when there is none.
    pub fn in_state(state: &Path) -> Result<Self, CardKeyError> {
        Self::open(&state.join(FILE))
    }

    fn open(path: &Path) -> Result<Self, CardKeyError> {
        let refused = |error: &dyn std::fmt::Display| CardKeyError::Access {
            path: path.to_owned(),
            reason: error.to_string(),
        };
        let text = match read(path) {
            Err(AccessError::Io(error)) if error.kind() == io::ErrorKind::NotFound => {
                create(path).map_err(|error| refused(&error))?;
                read(path)
            }
            text => text,
        };
        let text = text.map_err(|error| refused(&error))?;
        let pair = decoded(&text).and_then(|der| {
            let random = SystemRandom::new();
            EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &der, &random).ok()
        });
        let pair = pair.ok_or_else(|| CardKeyError::Broken { path: path.to_owned() })?;
        // The thumbprint of RFC 7638: its members in this order, without spaces.
        let (x, y) = coordinates(&pair);
        let thumbprint = format!(r#"{{"crv":"P-256","kty":"EC","x":"{x}","y":"{y}"}}"#);
        let id = BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(thumbprint.as_bytes()));
        Ok(Self { pair, id })
    }

    /// Its public part, as a set of JSON Web Keys (RFC 7517).
    pub fn public(&self) -> Value {
        let (x, y) = coordinates(&self.pair);
        json!({ "keys": [{
            "kty": "EC", "crv": "P-256", "x": x, "y": y, "kid": self.id, "alg": "ES256", "use": "sig",
        }] })
    }

    /// Thumbprint of the public part (RFC 7638).
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// The signature of a canonical card. `public_url` is where clients read the public part.
    pub(crate) fn sign(
        &self,
        canonical: &[u8],
        public_url: &str,
    ) -> Result<AgentCardSignature, ring::error::Unspecified> {
        let header = json!({ "alg": "ES256", "typ": "JOSE", "kid": self.id, "jku": public_url });
        let protected = BASE64_URL_SAFE_NO_PAD.encode(header.to_string());
        let signed = format!("{protected}.{}", BASE64_URL_SAFE_NO_PAD.encode(canonical));
        let signature = self.pair.sign(&SystemRandom::new(), signed.as_bytes())?;
        let signature = BASE64_URL_SAFE_NO_PAD.encode(signature);
        Ok(AgentCardSignature { protected, signature, header: None })
    }
}

/// A card as it is signed. Fields that are not set are left out, so no value is the default of its type.
pub(crate) fn canonical(card: &AgentCard) -> serde_json::Result<Vec<u8>> {
    let unsigned = AgentCard { signatures: None, ..card.clone() };
    serde_json_canonicalizer::to_vec(&unsigned)
}

fn coordinates(pair: &EcdsaKeyPair) -> (String, String) {
    let point = pair.public_key().as_ref();
    let (x, y) = point.get(1..).unwrap_or_default().split_at(COORDINATE_BYTES);
    (BASE64_URL_SAFE_NO_PAD.encode(x), BASE64_URL_SAFE_NO_PAD.encode(y))
}

fn read(path: &Path) -> Result<String, AccessError> {
    let mut text = String::new();
    open(path)?.take(FILE_BYTES_MAX).read_to_string(&mut text)?;
    Ok(text)
}

/// Writes a new key, unless another process has written one meanwhile: all use the first.
fn create(path: &Path) -> io::Result<()> {
    let made = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new());
    let der = made.map_err(|_| io::Error::other("there are no random numbers"))?;
    let mut file = tempfile::NamedTempFile::new_in(parent_of(path))?;
    writeln!(file, "{PEM_BEGIN}")?;
    for line in BASE64_STANDARD.encode(der.as_ref()).as_bytes().chunks(PEM_LINE) {
        file.write_all(line)?;
        writeln!(file)?;
    }
    writeln!(file, "{PEM_END}")?;
    file.as_file().sync_all()?;
    match file.persist_noclobber(path) {
        Err(failed) if failed.error.kind() != io::ErrorKind::AlreadyExists => Err(failed.error),
        Ok(_) | Err(_) => Ok(()),
    }
}

fn decoded(pem: &str) -> Option<Vec<u8>> {
    let inner = pem.trim().strip_prefix(PEM_BEGIN)?.strip_suffix(PEM_END)?;
    let text: String = inner.split_whitespace().collect();
    BASE64_STANDARD.decode(text).ok()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn processes_that_start_at_once_use_one_key() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("card-key");
        let ids: BTreeSet<String> = std::thread::scope(|threads| {
            let open = || threads.spawn(|| CardKey::open(&path).unwrap().id().to_owned());
            let started: Vec<_> = (0..8).map(|_| open()).collect();
            started.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(ids.len(), 1, "{ids:?}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing else is left");
    }

    #[test]
    fn a_file_without_a_key_or_that_others_read_is_refused_and_stays() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("card-key");
        CardKey::open(&path).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert!(matches!(CardKey::open(&path), Err(CardKeyError::Access { .. })));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        for broken in ["", "no key", &text.replacen('M', "A", 1), PEM_BEGIN] {
            std::fs::write(&path, broken).unwrap();
            assert!(matches!(CardKey::open(&path), Err(CardKeyError::Broken { .. })), "{broken}");
            assert_eq!(std::fs::read_to_string(&path).unwrap(), broken, "it stays");
        }
    }

    /// The example of section 8.4.1 of the specification, and what RFC 8785 sorts by: UTF-16 units.
    #[test]
    fn canonical_json_is_that_of_the_rfc() {
        let fragment = json!({
            "name": "Example Agent", "description": "",
            "capabilities": { "streaming": false, "pushNotifications": false }, "skills": [],
        });
        let expected = r#"{"capabilities":{"pushNotifications":false,"streaming":false},"description":"","name":"Example Agent","skills":[]}"#;
        assert_eq!(serde_json_canonicalizer::to_string(&fragment).unwrap(), expected);
        let sorted = json!({ "\u{20ac}": 1, "\r": 2, "\u{fb33}": 3, "1": 4, "\u{1f600}": 5, "\u{80}": 6, "\u{f6}": 7 });
        let expected = "{\"\\r\":2,\"1\":4,\"\u{80}\":6,\"\u{f6}\":7,\"\u{20ac}\":1,\"\u{1f600}\":5,\"\u{fb33}\":3}";
        assert_eq!(serde_json_canonicalizer::to_string(&sorted).unwrap(), expected);
    }
}
