//! Whether whoever sends an event knows the secret. Pure: headers, bytes and a time go in. What is wrong is
//! said for the log alone; a stranger is told only that it was not good.
//!
//! | scheme     | signed              | when                         | what a delivery is called           |
//! |------------|---------------------|------------------------------|-------------------------------------|
//! | `standard` | `id.timestamp.body` | within [`TOLERANCE_S`]       | `webhook-id`                        |
//! | `github`   | the body            | whenever: nobody signs a time | its signature: nobody signs the id |

use std::fmt;

use axum::http::{HeaderMap, HeaderName};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chrono::{DateTime, Utc};
use ring::hmac;
use secrecy::{ExposeSecret, SecretString};
use subtle::{Choice, ConstantTimeEq};

use crate::guard::only;

/// How far from now a signature may say it was made, in seconds, either way.
pub const TOLERANCE_S: u64 = 300;

/// Shortest secret, in bytes. Anything shorter could be guessed.
pub const WEBHOOK_SECRET_BYTES_MIN: usize = 16;

/// Longest id of a delivery, in bytes.
const ID_BYTES_MAX: usize = 160;

/// Signatures of one delivery that are looked at: while a secret is changed there are two.
const SIGNATURES_MAX: usize = 8;

/// What a secret begins with that is written in base64.
const ENCODED: &str = "whsec_";

const ID: HeaderName = HeaderName::from_static("webhook-id");
const TIMESTAMP: HeaderName = HeaderName::from_static("webhook-timestamp");
const SIGNATURE: HeaderName = HeaderName::from_static("webhook-signature");
const GITHUB_SIGNATURE: HeaderName = HeaderName::from_static("x-hub-signature-256");

/// How a sender signs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// As Standard Webhooks has it.
    Standard,
    /// As GitHub does.
    Github,
}

/// What a sender and this server both know. It is never printed.
pub struct WebhookSecret(hmac::Key);

/// Why a text is no secret. It is not repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WebhookSecretError {
    /// Make a longer one.
    #[error(
        "a secret has at least {WEBHOOK_SECRET_BYTES_MIN} bytes: make one with `openssl rand -base64 32`"
    )]
    TooShort,
    /// Copy it again, whole.
    #[error("behind `{ENCODED}` a secret is base64")]
    NotBase64,
}

impl WebhookSecret {
    /// Takes a text as a secret: `whsec_BASE64`, or the bytes of anything else.
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

/// Why nobody vouches for a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Unproven {
    #[error("`{0}` is missing, there twice, or makes no sense")]
    Header(&'static str),
    #[error("it was signed more than {TOLERANCE_S} seconds from now")]
    Stale,
    #[error("the signature is not that of the secret")]
    Signature,
}

/// What a delivery is called, if its sender knows the secret. The same delivery has the same name.
pub(super) fn verify(
    scheme: Scheme,
    secret: &WebhookSecret,
    headers: &HeaderMap,
    body: &[u8],
    now: DateTime<Utc>,
) -> Result<String, Unproven> {
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
) -> Result<String, Unproven> {
    // A full stop in it would let it be read as another id with another time.
    let is_id = |id: &&str| (1..=ID_BYTES_MAX).contains(&id.len()) && !id.contains('.');
    let id = only(headers, &ID).filter(is_id).ok_or(Unproven::Header("webhook-id"))?;
    let digits = |text: &&str| text.bytes().all(|byte| byte.is_ascii_digit());
    let timestamp = only(headers, &TIMESTAMP).filter(digits);
    let seconds = timestamp.and_then(|text| text.parse::<i64>().ok());
    let (Some(timestamp), Some(seconds)) = (timestamp, seconds) else {
        return Err(Unproven::Header("webhook-timestamp"));
    };
    let shown = only(headers, &SIGNATURE).ok_or(Unproven::Header("webhook-signature"))?;
    let mut signing = hmac::Context::with_key(key);
    for part in [id.as_bytes(), b".", timestamp.as_bytes(), b".", body] {
        signing.update(part);
    }
    let own = format!("v1,{}", STANDARD.encode(signing.sign()));
    let mut good = Choice::from(0);
    for shown in shown.split(' ').take(SIGNATURES_MAX) {
        good |= own.as_bytes().ct_eq(shown.as_bytes());
    }
    if !bool::from(good) {
        return Err(Unproven::Signature);
    }
    if seconds.abs_diff(now.timestamp()) > TOLERANCE_S {
        return Err(Unproven::Stale);
    }
    Ok(id.to_owned())
}

fn github(
    WebhookSecret(key): &WebhookSecret,
    headers: &HeaderMap,
    body: &[u8],
) -> Result<String, Unproven> {
    let shown = only(headers, &GITHUB_SIGNATURE).ok_or(Unproven::Header("x-hub-signature-256"))?;
    let tag = hmac::sign(key, body);
    let own =
        tag.as_ref().iter().fold("sha256=".to_owned(), |text, byte| format!("{text}{byte:02x}"));
    if !bool::from(own.as_bytes().ct_eq(shown.to_ascii_lowercase().as_bytes())) {
        return Err(Unproven::Signature);
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
    fn signatures_of_others_are_understood() {
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
            assert_eq!(good(1_614_265_330 + seconds), Err(Unproven::Stale), "{seconds}");
        }
    }

    #[test]
    fn secrets_that_could_be_guessed_or_were_cut_are_none() {
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
