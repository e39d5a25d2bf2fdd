//! The signature of a card, checked against the public keys that the user has for its agent (section 8.4 of the
//! specification). Where the card names a key (`jku`), nothing is fetched: only keys of the user count.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use ring::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};
use serde::Deserialize;
use serde_json::Value;

/// Signatures of a card that are looked at, at most.
const SIGNATURES_MAX: usize = 16;

/// Public keys, at most.
const KEYS_MAX: usize = 64;

/// Bytes of a coordinate of a key.
const COORDINATE_BYTES: usize = 32;

/// Public keys, one of which has signed a card.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CardKeys(Vec<CardKey>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct CardKey {
    id: Option<String>,
    /// `4`, `x`, `y`.
    point: Vec<u8>,
}

/// A set of JSON Web Keys (RFC 7517).
#[derive(Debug, Deserialize)]
struct KeySet {
    keys: Vec<WebKey>,
}

#[derive(Debug, Deserialize)]
struct WebKey {
    kty: String,
    crv: Option<String>,
    x: Option<String>,
    y: Option<String>,
    kid: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Signature {
    protected: String,
    signature: String,
}

#[derive(Debug, Deserialize)]
struct Protected {
    alg: String,
    kid: Option<String>,
    /// Extensions that a reader has to know: there are none.
    crit: Option<Value>,
}

impl CardKeys {
    /// Reads a set of keys. Keys of other kinds are left out.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let set: KeySet = serde_json::from_str(text)
            .map_err(|error| format!("it is no set of JSON Web Keys: {error}"))?;
        let keys: Vec<CardKey> = set.keys.iter().take(KEYS_MAX).filter_map(CardKey::of).collect();
        if keys.is_empty() {
            return Err("it has no key on P-256 (ES256)".to_owned());
        }
        Ok(Self(keys))
    }

    /// Whether one of the keys has signed a card.
    pub(crate) fn check(&self, card: &Value) -> Result<(), String> {
        let signatures = card.get("signatures").and_then(Value::as_array);
        let signatures = signatures.filter(|signatures| !signatures.is_empty());
        let signatures = signatures.ok_or("it is not signed")?;
        // Some implementations leave empty values out of what they sign, also where the specification keeps them.
        let unsigned = without_signatures(card);
        let forms = [Some(unsigned.clone()), without_empty(unsigned)];
        let payloads: Vec<String> = forms
            .into_iter()
            .flatten()
            .filter_map(|form| serde_json_canonicalizer::to_vec(&form).ok())
            .map(|canonical| BASE64_URL_SAFE_NO_PAD.encode(canonical))
            .collect();
        let is_valid = |signature: &Value| {
            let signature = Signature::deserialize(signature).ok()?;
            payloads.iter().any(|payload| self.has_signed(&signature, payload)).then_some(())
        };
        if signatures.iter().take(SIGNATURES_MAX).any(|signature| is_valid(signature).is_some()) {
            return Ok(());
        }
        Err("none of its signatures is of a key in `card_keys`".to_owned())
    }

    fn has_signed(&self, signature: &Signature, payload: &str) -> bool {
        let decode = |text: &str| BASE64_URL_SAFE_NO_PAD.decode(text).ok();
        let protected = decode(&signature.protected)
            .and_then(|protected| serde_json::from_slice::<Protected>(&protected).ok());
        let (Some(protected), Some(bytes)) = (protected, decode(&signature.signature)) else {
            return false;
        };
        if protected.alg != "ES256" || protected.crit.is_some() {
            return false;
        }
        let signed = format!("{}.{payload}", signature.protected);
        let is_named = |key: &&CardKey| key.id.is_none() || key.id == protected.kid;
        self.0.iter().filter(is_named).any(|key| {
            let key = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, &key.point);
            key.verify(signed.as_bytes(), &bytes).is_ok()
        })
    }
}

impl CardKey {
    fn of(key: &WebKey) -> Option<Self> {
        if key.kty != "EC" || key.crv.as_deref() != Some("P-256") {
            return None;
        }
        let coordinate = |text: &Option<String>| {
            let bytes = BASE64_URL_SAFE_NO_PAD.decode(text.as_deref()?).ok()?;
            (bytes.len() == COORDINATE_BYTES).then_some(bytes)
        };
        let point = [vec![4], coordinate(&key.x)?, coordinate(&key.y)?].concat();
        Some(Self { id: key.kid.clone(), point })
    }
}

fn without_signatures(card: &Value) -> Value {
    let mut unsigned = card.clone();
    if let Some(fields) = unsigned.as_object_mut() {
        fields.shift_remove("signatures");
    }
    unsigned
}

/// A value without empty texts, lists and objects. Its depth is bounded, as that of everything that is parsed.
fn without_empty(value: Value) -> Option<Value> {
    match value {
        Value::Object(fields) => {
            let kept =
                fields.into_iter().filter_map(|(name, value)| Some((name, without_empty(value)?)));
            let kept: serde_json::Map<String, Value> = kept.collect();
            (!kept.is_empty()).then_some(Value::Object(kept))
        }
        Value::Array(values) => {
            let kept: Vec<Value> = values.into_iter().filter_map(without_empty).collect();
            (!kept.is_empty()).then_some(Value::Array(kept))
        }
        Value::String(text) => (!text.is_empty()).then_some(Value::String(text)),
        Value::Null => None,
        Value::Bool(_) | Value::Number(_) => Some(value),
    }
}
