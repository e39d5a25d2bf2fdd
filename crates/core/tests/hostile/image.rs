//! Pictures at and over the limit, and data that is none.

use antiphon_core::{IMAGE_BYTES_MAX, ImageBlock, InputBlock, Message, MessageError, UserMessage};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE};

use crate::{TIME, question, refusal};

fn picture(data: &str) -> String {
    question(&format!(r#"{{"type":"image","data":"{data}","mime_type":"image/png"}}"#))
}

#[test]
fn a_picture_at_the_limit_is_taken() {
    let data = vec![7_u8; IMAGE_BYTES_MAX];
    let message: Message = serde_json::from_str(&picture(&STANDARD.encode(&data))).unwrap();
    let image = ImageBlock::new("image/png", data).unwrap();
    let expected =
        UserMessage { content: vec![InputBlock::Image(image)], timestamp: TIME.parse().unwrap() };
    assert!(message == Message::User(expected));
}

#[test]
fn a_picture_one_byte_over_the_limit_is_refused() {
    let data = STANDARD.encode(vec![7_u8; IMAGE_BYTES_MAX + 1]);
    let reason = MessageError::ImageTooLarge { bytes: IMAGE_BYTES_MAX + 1 }.to_string();
    assert!(refusal::<Message>(picture(&data)).ends_with(&reason));
}

#[test]
fn a_picture_far_over_the_limit_is_refused_before_it_is_decoded() {
    let garbage = "@".repeat(4 * IMAGE_BYTES_MAX);
    let reason = MessageError::ImageTooLarge { bytes: 3 * IMAGE_BYTES_MAX }.to_string();
    assert!(refusal::<Message>(picture(&garbage)).ends_with(&reason));
}

#[test]
fn a_picture_in_another_alphabet_is_refused() {
    let bytes = [0xfb, 0xff, 0xfe, 0x01];
    let (plain, unpadded) = (STANDARD.encode(bytes), STANDARD_NO_PAD.encode(bytes));
    assert!(serde_json::from_str::<Message>(&picture(&plain)).is_ok());
    for data in [
        URL_SAFE.encode(bytes),
        unpadded,
        format!("{plain}="),
        format!("{plain}{plain}"),
        format!("data:image/png;base64,{plain}"),
        plain.replace('/', "/\\n"),
        "====".to_owned(),
        "AB==".to_owned(),
        "A".to_owned(),
        "é".to_owned(),
    ] {
        let said = refusal::<Message>(picture(&data));
        assert!(said.starts_with("content[0]: `data` is not base64: "), "{data}: {said}");
    }
}
