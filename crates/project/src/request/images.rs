//! Images of a prompt: files that are named beside it, and files of an image format that it names itself, as `@path` or as a
//! path that was pasted.

use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use antiphon_core::port::{Clock as _, SystemClock};
use antiphon_core::{
    IMAGE_BYTES_MAX, ImageBlock, InputBlock, Message, RawJson, TextBlock, UserMessage, escaped,
};
use rustix::fs::OFlags;

use crate::error::ProjectError;

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
/// Only names in `typed` count, the part of the prompt that a person wrote: text of a file or a pipe names none.
pub fn prompt_with_images(
    prompt: &str,
    typed: &str,
    root: &Path,
) -> Result<Option<Vec<InputBlock>>, String> {
    with_images(prompt, typed, root, &[])
}

/// The same with the images in `files`, which come first; each must be one.
pub fn prompt_with_files(
    prompt: &str,
    typed: &str,
    root: &Path,
    files: &[PathBuf],
) -> Result<Option<Vec<InputBlock>>, String> {
    let image = |file: &PathBuf| {
        let shown = escaped(&file.to_string_lossy()).into_owned();
        match read_image(&root.join(file)) {
            Ok(Some(image)) => Ok(InputBlock::Image(image)),
            Ok(None) => Err(format!("{shown}: there is no PNG, JPEG, GIF or WebP file")),
            Err(why) => Err(format!("{shown}: {why}")),
        }
    };
    let images = files.iter().map(image).collect::<Result<Vec<_>, _>>()?;
    with_images(prompt, typed, root, &images)
}

fn with_images(
    prompt: &str,
    typed: &str,
    root: &Path,
    images: &[InputBlock],
) -> Result<Option<Vec<InputBlock>>, String> {
    let named = typed.split_whitespace().filter_map(image_path);
    let mut blocks = vec![InputBlock::Text(TextBlock { text: prompt.to_owned() })];
    blocks.extend_from_slice(images);
    for name in named {
        let image =
            read_image(&root.join(name)).map_err(|why| format!("{}: {why}", escaped(name)))?;
        blocks.extend(image.map(InputBlock::Image));
        if blocks.len() > IMAGES_MAX + 1 {
            break;
        }
    }
    if blocks.len() > IMAGES_MAX + 1 {
        return Err(format!(
            "a prompt can have {IMAGES_MAX} images: send the others with the next one"
        ));
    }
    Ok((blocks.len() > 1).then_some(blocks))
}

/// The blocks of a first message in the form of a user message.
pub fn blocks_json(content: Vec<InputBlock>) -> Result<RawJson, ProjectError> {
    let unwritable = |error: serde_json::Error| ProjectError::Failed(error.to_string());
    let message = Message::User(UserMessage { content, timestamp: SystemClock.now() });
    let mut message = serde_json::to_value(&message).map_err(unwritable)?;
    RawJson::of(&message["content"].take()).map_err(|error| ProjectError::Failed(error.to_string()))
}

/// Whether data is an image of a format that models read.
pub fn is_image(data: &[u8]) -> bool {
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
pub fn read_image(path: &Path) -> Result<Option<ImageBlock>, String> {
    // A named pipe would be waited for.
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).map_err(|error| error.to_string())?;
    let opened = File::options().read(true).custom_flags(flags).open(path);
    let is_file = |file: &File| file.metadata().is_ok_and(|metadata| metadata.is_file());
    let Some(file) = opened.ok().filter(is_file) else { return Ok(None) };
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
        let blocks = prompt_with_images(&prompt, &prompt, root).unwrap().unwrap();
        assert_eq!(blocks.len(), 3, "{blocks:?}");
        assert_eq!(blocks[0], InputBlock::Text(TextBlock { text: prompt }));
        let InputBlock::Image(image) = &blocks[1] else { panic!("{blocks:?}") };
        assert_eq!((image.mime_type(), image.data()), ("image/png", &b"\x89PNG\r\n\x1a\nrest"[..]));
        assert_eq!(prompt_with_images("no image here", "no image here", root), Ok(None));
        assert_eq!(prompt_with_images("of a file: @a.PNG", "/review", root), Ok(None));
        rustix::fs::mknodat(
            rustix::fs::CWD,
            root.join("pipe.png"),
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR,
            0,
        )
        .unwrap();
        assert_eq!(read_image(&root.join("pipe.png")), Ok(None));
    }

    #[test]
    fn a_named_file_must_be_an_image() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a"), b"GIF89a").unwrap();
        std::fs::write(folder.path().join("b.png"), b"no image").unwrap();
        let of =
            |name: &str| prompt_with_files("look", "look", folder.path(), &[PathBuf::from(name)]);
        assert_eq!(of("a").unwrap().unwrap().len(), 2);
        for name in ["b.png", "none.png", "."] {
            let error = of(name).unwrap_err();
            assert!(error.contains("there is no PNG"), "{error}");
        }
        let many = vec![PathBuf::from("a"); IMAGES_MAX + 1];
        assert!(prompt_with_files("look", "look", folder.path(), &many).is_err());
    }

    #[test]
    fn an_image_that_is_too_large_is_an_error_that_names_it() {
        let folder = tempfile::tempdir().unwrap();
        let mut data = b"GIF89a".to_vec();
        data.resize(IMAGE_BYTES_MAX + 1, 0);
        std::fs::write(folder.path().join("big.gif"), data).unwrap();
        let error = prompt_with_images("@big.gif", "@big.gif", folder.path()).unwrap_err();
        assert!(error.starts_with("big.gif: "), "{error}");
    }
}
