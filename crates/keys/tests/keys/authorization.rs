//! The `Authorization` header of a client.

use antiphon_keys::{
    AUTHORIZATION_BYTES_MAX, KEY_CHARS, KeyId, KeyRefusal, PresentedKey, parse_authorization,
};
use proptest::prelude::*;

const KEY: &str = "ak_abcDEF12_0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefg";

fn id(header: &[u8]) -> Result<String, KeyRefusal> {
    parse_authorization(header).map(|presented| presented.claimed_id().to_string())
}

#[test]
fn both_schemes_are_read_in_any_case_and_with_spaces() {
    assert_eq!(KEY.len(), KEY_CHARS);
    for header in ["Bearer @", "bearer @", "ApiKey @", "APIKEY   @", " apikey @  "] {
        assert_eq!(id(header.replace('@', KEY).as_bytes()), Ok("abcDEF12".to_owned()), "{header}");
    }
}

#[test]
fn anything_else_is_malformed() {
    let secret = &KEY[12..];
    for header in [
        String::new(),
        "Bearer".to_owned(),
        "Bearer ".to_owned(),
        KEY.to_owned(),
        format!("Basic {KEY}"),
        format!("Bearer{KEY}"),
        format!("Bearer\t{KEY}"),
        format!("Bearer {KEY} x"),
        format!("Bearer {KEY}x"),
        format!("Bearer {}", &KEY[..KEY_CHARS - 1]),
        format!("Bearer {}", KEY.replace("ak_", "AK_")),
        format!("Bearer {}", KEY.replace("F12_", "F12-")),
        format!("Bearer {}", KEY.replace('0', "_")),
        format!("Bearer {}", KEY.replace('D', "\u{e9}")),
        format!("Bearer ak_abcDEF1{secret}_"),
        format!("Bearer, Bearer {KEY}"),
        format!("Bearer {}{KEY}", " ".repeat(AUTHORIZATION_BYTES_MAX)),
    ] {
        assert_eq!(id(header.as_bytes()), Err(KeyRefusal::Malformed), "{header:?}");
    }
    assert_eq!(id(b"Bearer \xff"), Err(KeyRefusal::Malformed));
}

#[test]
fn a_presented_key_is_not_printed() {
    let presented = PresentedKey::parse(KEY).unwrap();
    assert_eq!(format!("{presented:?}"), "PresentedKey(abcDEF12, ***)");
}

#[test]
fn an_error_about_an_id_does_not_repeat_what_may_be_a_whole_key() {
    let error = KEY.parse::<KeyId>().unwrap_err();
    assert_eq!(
        error.to_string(),
        "a key's id has 8 letters and digits: the part of `ak_ID_SECRET` in the middle"
    );
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_bytes_are_refused_without_a_panic(header in proptest::collection::vec(any::<u8>(), 0..400)) {
        prop_assert!(parse_authorization(&header).is_err());
    }

    #[test]
    fn a_key_is_read_back_or_refused_as_it_is(
        id in "[a-zA-Z0-9_]{7,9}", secret in "[a-zA-Z0-9_-]{42,44}"
    ) {
        let good = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let is_key = id.len() == 8 && secret.len() == 43 && good(&id) && good(&secret);
        let found = PresentedKey::parse(&format!("ak_{id}_{secret}"));
        prop_assert_eq!(found.ok().map(|it| it.claimed_id().to_string()), is_key.then_some(id));
    }
}
