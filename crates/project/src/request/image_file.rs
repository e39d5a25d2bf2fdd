//! Images in files of the user.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use antiphon_core::{IMAGE_BYTES_MAX, ImageBlock};

/// Formats that models read: what a file begins with, and its media type.
const FORMATS: [(&[u8], &str); 4] = [
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"RIFF", "image/webp"),
];

/// The image in a file; `None` when there is none.
pub fn read_image(path: &Path) -> Result<Option<ImageBlock>, String> {
    let is_file = path.metadata().is_ok_and(|metadata| metadata.is_file());
    let Some(file) = File::open(path).ok().filter(|_| is_file) else { return Ok(None) };
    let mut data = Vec::new();
    let longest = IMAGE_BYTES_MAX as u64 + 1;
    file.take(longest).read_to_end(&mut data).map_err(|error| error.to_string())?;
    let Some((_, media_type)) = FORMATS.iter().find(|(begin, _)| data.starts_with(begin)) else {
        return Ok(None);
    };
    ImageBlock::new(*media_type, data).map(Some).map_err(|error| error.to_string())
}
