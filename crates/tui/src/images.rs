//! Images of a prompt: files of an image format that it names, as `@path` or as a path that was pasted.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use antiphon_core::{IMAGE_BYTES_MAX, ImageBlock, InputBlock, TextBlock};
use antiphon_view::display::escaped;

/// Images of one prompt.
const IMAGES_MAX: usize = 20;

/// Formats that models read: what a file begins with, and its media type.
const FORMATS: [(&[u8], &str); 4] = [
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"RIFF", "image/webp"),
];

/// Endings of their names.
const ENDINGS: [&str; 5] = [".png", ".jpg", ".jpeg", ".gif", ".webp"];

/// The prompt with its images; `None` when it names none. A file that is named like an image and is none stays text.
pub(crate) fn blocks(prompt: &str, root: &Path) -> Result<Option<Vec<InputBlock>>, String> {
    let named = prompt.split_whitespace().filter_map(image_path);
    let mut blocks = vec![InputBlock::Text(TextBlock { text: prompt.to_owned() })];
    for name in named {
        let Some(image) =
            read(&root.join(name)).map_err(|why| format!("{}: {why}", escaped(name)))?
        else {
            continue;
        };
        if blocks.len() > IMAGES_MAX {
            return Err(format!(
                "a prompt can have {IMAGES_MAX} images: send the others with the next one"
            ));
        }
        blocks.push(InputBlock::Image(image));
    }
    Ok((blocks.len() > 1).then_some(blocks))
}

/// Whether data is an image of a format that models read.
pub(crate) fn is_image(data: &[u8]) -> bool {
    FORMATS.iter().any(|(begin, _)| data.starts_with(begin))
}

/// The path that a word of a prompt names, if it ends like an image. A path without `@` must be whole.
fn image_path(word: &str) -> Option<&str> {
    let word = word.trim_matches(|c| matches!(c, '\'' | '"' | '`' | ',' | ')' | '('));
    let path = match word.strip_prefix('@') {
        Some(path) => path,
        None => Some(word).filter(|word| word.starts_with('/'))?,
    };
    let lower = path.to_ascii_lowercase();
    ENDINGS.iter().any(|ending| lower.ends_with(ending)).then_some(path)
}

/// The image in a file; `None` when there is none.
fn read(path: &Path) -> Result<Option<ImageBlock>, String> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn named_images_are_sent_with_the_prompt_and_other_files_stay_text() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        std::fs::write(root.join("a.PNG"), b"\x89PNG\r\n\x1a\nrest").unwrap();
        std::fs::write(root.join("text.png"), b"no image").unwrap();
        let pasted = root.join("a.PNG");
        let prompt = format!("see @a.PNG, @text.png @none.gif a.PNG and {}", pasted.display());
        let blocks = blocks(&prompt, root).unwrap().unwrap();
        assert_eq!(blocks.len(), 3, "{blocks:?}");
        assert_eq!(blocks[0], InputBlock::Text(TextBlock { text: prompt }));
        let InputBlock::Image(image) = &blocks[1] else { panic!("{blocks:?}") };
        assert_eq!((image.mime_type(), image.data()), ("image/png", &b"\x89PNG\r\n\x1a\nrest"[..]));
        assert_eq!(super::blocks("no image here", root), Ok(None));
    }

    #[test]
    fn an_image_that_is_too_large_is_an_error_that_names_it() {
        let folder = tempfile::tempdir().unwrap();
        let mut data = b"GIF89a".to_vec();
        data.resize(IMAGE_BYTES_MAX + 1, 0);
        std::fs::write(folder.path().join("big.gif"), data).unwrap();
        let error = blocks("@big.gif", folder.path()).unwrap_err();
        assert!(error.starts_with("big.gif: "), "{error}");
    }
}
