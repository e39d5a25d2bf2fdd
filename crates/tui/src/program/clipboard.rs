//! An image of the clipboard, as a file that the prompt names.

use std::process::Stdio;
use std::time::Duration;

use antiphon_core::IMAGE_BYTES_MAX;
use antiphon_project::is_image;
use tokio::io::AsyncReadExt as _;
use tokio::process::Command;

use super::Program;
use super::lookups::Found;

/// How long a program may take to give the image.
const READ_TIMEOUT: Duration = Duration::from_secs(5);

/// Programs that print the image of the clipboard: on Wayland, and on X11.
const READERS: [(&str, &[&str]); 2] = [
    ("wl-paste", &["--type", "image/png"]),
    ("xclip", &["-selection", "clipboard", "-t", "image/png", "-o"]),
];

impl Program<'_, '_> {
    /// Takes the image of the clipboard into the prompt.
    pub(super) fn take_image(&mut self) {
        self.look_up(clipboard_image());
    }

    /// Keeps an image as a file while the program runs, and names it in the prompt.
    pub(super) fn insert_image(&mut self, data: &[u8]) {
        match self.keep_image(data) {
            Ok(path) => {
                let (_, word) = self.composer.word_before_cursor();
                let blank = if word.is_empty() { "" } else { " " };
                self.composer.insert(&format!("{blank}@{path} "));
                self.complete();
            }
            Err(reason) => self.error(&format!("the image cannot be kept: {reason}")),
        }
    }

    fn keep_image(&mut self, data: &[u8]) -> Result<String, String> {
        if self.images.is_none() {
            let folder = tempfile::Builder::new().prefix("antiphon-images-").tempdir();
            self.images = Some(folder.map_err(|error| error.to_string())?);
        }
        let Some(folder) = &self.images else { return Err("there is no folder".to_owned()) };
        let count = std::fs::read_dir(folder.path()).map_err(|error| error.to_string())?.count();
        let path = folder.path().join(format!("clipboard-{}.png", count + 1));
        std::fs::write(&path, data).map_err(|error| error.to_string())?;
        path.to_str().map(str::to_owned).ok_or_else(|| "its path is not UTF-8".to_owned())
    }
}

/// The image of the clipboard, from the first program that gives one.
async fn clipboard_image() -> Found {
    let mut is_installed = false;
    for (program, arguments) in READERS {
        match tokio::time::timeout(READ_TIMEOUT, read(program, arguments)).await {
            Ok(Ok(data)) if data.len() > IMAGE_BYTES_MAX => {
                return Found::Error(format!(
                    "the image of the clipboard has more than {} MiB: save a smaller one and name it with @",
                    IMAGE_BYTES_MAX / 1024 / 1024
                ));
            }
            Ok(Ok(data)) if is_image(&data) => return Found::Image(data),
            Ok(Ok(_)) | Err(_) => is_installed = true,
            // It is not there; the next one may be.
            Ok(Err(_)) => {}
        }
    }
    Found::Error(if is_installed {
        "the clipboard has no image: copy one first, or name a file with @".to_owned()
    } else {
        "the clipboard cannot be read: install wl-clipboard or xclip, or name a file with @"
            .to_owned()
    })
}

async fn read(program: &str, arguments: &[&str]) -> std::io::Result<Vec<u8>> {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    // It ends with the lookup, also when that is given up.
    let mut child = command.kill_on_drop(true).spawn()?;
    let mut data = Vec::new();
    if let Some(output) = child.stdout.take() {
        output.take(IMAGE_BYTES_MAX as u64 + 1).read_to_end(&mut data).await?;
    }
    Ok(data)
}
