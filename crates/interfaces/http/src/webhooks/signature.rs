//! Verifies the signature of a delivery. Pure: takes headers, bytes and a time. The reason of a failure is for
//! the log; the sender learns only that the signature is invalid.
//!
//! | scheme     | signed              | age                          | id of a delivery                    |
//! |------------|---------------------|------------------------------|-------------------------------------|
//! | `standard` | `id.timestamp.body` | within [`TOLERANCE_S`]       | `webhook-id`                        |
//! | `github`   | the body            | any: the time is not signed  | its signature: the id is not signed |

use std::fmt;

use axum::http::{HeaderMap, HeaderName};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chrono::{DateTime, Utc};
use ring::hmac;
use secrecy::{ExposeSecret, SecretString};
use subtle::{Choice, ConstantTimeEq};

use antiphon_interface_transport::single_header;

/// Largest difference between now and the time of a signature, in seconds, either way.
pub const TOLERANCE_S: u64 = 300;

/// Shortest secret, in bytes. A shorter one could be guessed.
pub const WEBHOOK_SECRET_BYTES_MIN: usize = 16;

/// Longest id of a delivery, in bytes.
const ID_BYTES_MAX: usize = 160;

/// Signatures of one delivery that are checked, at most. There are two while a secret is replaced.
const SIGNATURES_MAX: usize = 8;

/// Prefix of a secret in base64.
const ENCODED: &str = "whsec_";

const ID: HeaderName = HeaderName::from_static("webhook-id");
const TIMESTAMP: HeaderName = HeaderName::from_static("webhook-timestamp");
const SIGNATURE: HeaderName = HeaderName::from_static("webhook-signature");
const GITHUB_SIGNATURE: HeaderName = HeaderName::from_static("x-hub-signature-256");

/// A signature scheme.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// Standard Webhooks.
    Standard,
    /// GitHub.
    Github,
}

/// A secret that the sender and this server share. It is never printed.
pub struct WebhookSecret(hmac::Key);

/// Why a text cannot be a secret. The error does not contain the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WebhookSecretError {
    /// The secret is too short.
    #[error(
        "a secret has at least {WEBHOOK_SECRET_BYTES_MIN} bytes: make one with `openssl rand -base64 32`"
    )]
    TooShort,
    /// The secret is not valid base64: it may be incomplete.
    #[error("expected base64 after `{ENCODED}`")]
    NotBase64,
}

impl WebhookSecret {
    /// A secret from a text: `whsec_BASE64`, or the bytes of any other text.
    pub fn new(text: &SecretString) -> Result<Self, WebhookSecretError> {
        let text = text.expose_secret();
        let bytes = match text.strip_prefix(ENCODED) {
            Some(encoded) => STANDARD.decode(encoded).map_err(|_| WebhookSecretError::NotBase64)?,
            None => text.as_bytes().to_vec(),
        };
        if bytes.len() < WEBHOOK_SECRET_BYTES_MIN {
            return Err(WebhookSecretError::TooShort);
        }
        Ok(Self(hmac::Key::new(hmac::HMAC_SHA256, &bytes)))
    }
}

impl fmt::Debug for WebhookSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WebhookSecret(***)")
    }
}

/// Why a signature is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum SignatureError {
    #[error("header `{0}` is missing, repeated or malformed")]
    Header(&'static str),
    #[error("signed more than {TOLERANCE_S} seconds from now")]
    Stale,
    #[error("the signature does not match the secret")]
    Signature,
}

/// The id of a delivery with a valid signature. A repeated delivery has the same id.
pub(super) fn verify(
    scheme: Scheme,
    secret: &WebhookSecret,
    headers: &HeaderMap,
    body: &[u8],
    now: DateTime<Utc>,
) -> Result<String, SignatureError> {
    match scheme {
        Scheme::Standard => standard(secret, headers, body, now),
        Scheme::Github => github(secret, headers, body),
    }
}

fn standard(
    WebhookSecret(key): &WebhookSecret,
    headers: &HeaderMap,
    body: &[u8],
    now: DateTime<Utc>,
) -> Result<String, SignatureError> {
    // A full stop in it would let it be read as another id with another time.
    let is_id = |id: &&str| (1..=ID_BYTES_MAX).contains(&id.len()) && !id.contains('.');
    let id =
        single_header(headers, &ID).filter(is_id).ok_or(SignatureError::Header("webhook-id"))?;
    let digits = |text: &&str| text.bytes().all(|byte| byte.is_ascii_digit());
    let timestamp = single_header(headers, &TIMESTAMP).filter(digits);
    let seconds = timestamp.and_then(|text| text.parse::<i64>().ok());
    let (Some(timestamp), Some(seconds)) = (timestamp, seconds) else {
        return Err(SignatureError::Header("webhook-timestamp"));
    };
    let presented =
        single_header(headers, &SIGNATURE).ok_or(SignatureError::Header("webhook-signature"))?;
    let mut signing = hmac::Context::with_key(key);
    for part in [id.as_bytes(), b".", timestamp.as_bytes(), b".", body] {
        signing.update(part);
    }
    let own = format!("v1,{}", STANDARD.encode(signing.sign()));
    let mut good = Choice::from(0);
    for one in presented.split(' ').take(SIGNATURES_MAX) {
        good |= own.as_bytes().ct_eq(one.as_bytes());
    }
    if !bool::from(good) {
        return Err(SignatureError::Signature);
    }
    if seconds.abs_diff(now.timestamp()) > TOLERANCE_S {
        return Err(SignatureError::Stale);
    }
    Ok(id.to_owned())
}

fn github(
    WebhookSecret(key): &WebhookSecret,
    headers: &HeaderMap,
    body: &[u8],
) -> Result<String, SignatureError> {
    let presented = single_header(headers, &GITHUB_SIGNATURE)
        .ok_or(SignatureError::Header("x-hub-signature-256"))?;
    let tag = hmac::sign(key, body);
    let own =
        tag.as_ref().iter().fold("sha256=".to_owned(), |text, byte| format!("{text}{byte:02x}"));
    if !bool::from(own.as_bytes().ct_eq(presented.to_ascii_lowercase().as_bytes())) {
        return Err(SignatureError::Signature);
    }
    Ok(own)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STANDARD_SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

    fn secret(text: &str) -> WebhookSecret {
        WebhookSecret::new(&text.into()).expect("a secret")
    }

    fn headers(lines: &[(&'static str, &str)]) -> HeaderMap {
        let line = |(name, value): &(&'static str, &str)| {
            (HeaderName::from_static(name), value.parse().expect("a value"))
        };
        let mut headers = HeaderMap::new();
        for (name, value) in lines.iter().map(line) {
            headers.append(name, value);
        }
        headers
    }

    fn at(seconds: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(seconds, 0).expect("a time")
    }

    #[test]
    fn published_example_signatures_are_valid() {
        let signed = headers(&[
            ("webhook-id", "msg_p5jXN8AQM9LWM0D4loKWxJek"),
            ("webhook-timestamp", "1614265330"),
            ("webhook-signature", "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="),
        ]);
        let body = br#"{"test": 2432232314}"#;
        let secret_of = secret(STANDARD_SECRET);
        let verified = verify(Scheme::Standard, &secret_of, &signed, body, at(1_614_265_330));
        assert_eq!(verified.as_deref(), Ok("msg_p5jXN8AQM9LWM0D4loKWxJek"));
        let own = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
        let signed = headers(&[("x-hub-signature-256", own)]);
        let secret_of = secret("It's a Secret to Everybody");
        let verified = verify(Scheme::Github, &secret_of, &signed, b"Hello, World!", at(0));
        assert_eq!(verified.as_deref(), Ok(own));
    }

    #[test]
    fn a_signature_holds_for_five_minutes_either_way() {
        let good = |now: i64| {
            let signed = headers(&[
                ("webhook-id", "msg_p5jXN8AQM9LWM0D4loKWxJek"),
                ("webhook-timestamp", "1614265330"),
                (
                    "webhook-signature",
                    "v1a,other v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE= v1,AAAA",
                ),
            ]);
            let body = br#"{"test": 2432232314}"#;
            verify(Scheme::Standard, &secret(STANDARD_SECRET), &signed, body, at(now))
        };
        for seconds in [0, 299, 300, -299, -300] {
            assert!(good(1_614_265_330 + seconds).is_ok(), "{seconds}");
        }
        for seconds in [301, -301, 1_000_000, -1_614_265_330] {
            assert_eq!(good(1_614_265_330 + seconds), Err(SignatureError::Stale), "{seconds}");
        }
    }

    #[test]
    fn short_and_incomplete_secrets_are_refused() {
        let refused = |text: &str| WebhookSecret::new(&text.into()).map(|_| ());
        for short in ["", "secret", "fifteen letters", "whsec_", "whsec_c2VjcmV0"] {
            assert_eq!(refused(short), Err(WebhookSecretError::TooShort), "{short}");
        }
        assert_eq!(refused("whsec_not base64!"), Err(WebhookSecretError::NotBase64));
        assert_eq!(refused("sixteen letters!"), Ok(()));
        let shown = format!("{:?}", secret(STANDARD_SECRET));
        assert_eq!(shown, "WebhookSecret(***)");
    }
}
