//! Images in a request.

use antiphon_core::ImageBlock;
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;

/// The image as a `data:` URL.
pub(crate) fn data_url(image: &ImageBlock) -> String {
    let mut url = format!("data:{};base64,", image.mime_type());
    BASE64.encode_string(image.data(), &mut url);
    url
}
