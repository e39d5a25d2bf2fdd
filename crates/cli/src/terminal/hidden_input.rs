//! Reads a key from the terminal, which does not show it.

use std::io::{Stdin, Write as _};

use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, tcgetattr, tcsetattr};

use crate::failure::Failure;
use crate::terminal_mode::TerminalMode;

/// Longest key that is read.
const KEY_BYTES_MAX: usize = 4096;

/// What a terminal writes before and after a paste, when a program has asked for it and did not take that back.
const PASTE_MARKS: [&str; 2] = ["\u{1b}[200~", "\u{1b}[201~"];

/// Input that the terminal does not show. The mode of the terminal is restored when this is dropped.
pub(crate) struct HiddenInput {
    before: Option<TerminalMode>,
    input: Stdin,
}

impl HiddenInput {
    /// Hides what is typed from now on.
    pub(crate) fn begin() -> Result<Self, Failure> {
        let before = TerminalMode::now();
        let stdin = std::io::stdin();
        let mut mode = tcgetattr(&stdin).map_err(unreadable)?;
        // Ctrl-C is read as a byte, so that nothing ends this process before the mode is restored.
        mode.local_modes -= LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG;
        mode.special_codes[SpecialCodeIndex::VMIN] = 1;
        mode.special_codes[SpecialCodeIndex::VTIME] = 0;
        tcsetattr(&stdin, OptionalActions::Now, &mode).map_err(unreadable)?;
        Ok(Self { before: Some(before), input: stdin })
    }

    /// Reads a line byte by byte.
    pub(crate) fn read_line(&self) -> Result<String, Failure> {
        let mut key = Vec::new();
        let end = loop {
            let mut byte = [0_u8; 1];
            match rustix::io::read(&self.input, &mut byte) {
                Ok(0) => break Err(Failure::interrupted()),
                Ok(_) => {}
                Err(rustix::io::Errno::INTR) => continue,
                Err(error) => break Err(unreadable(error)),
            }
            match byte[0] {
                b'\n' | b'\r' => break Ok(()),
                3 | 4 => break Err(Failure::interrupted()),
                8 | 127 => drop(key.pop()),
                byte if key.len() < KEY_BYTES_MAX => key.push(byte),
                _ => break Err(Failure::usage(format!("a key has at most {KEY_BYTES_MAX} bytes"))),
            }
        };
        let _ = std::io::stderr().write_all(b"\n");
        end?;
        let key = String::from_utf8(key).map_err(|_| Failure::usage("the key is not UTF-8"))?;
        Ok(without_paste_marks(&key))
    }
}

impl Drop for HiddenInput {
    fn drop(&mut self) {
        if let Some(before) = self.before.take() {
            before.restore();
        }
    }
}

/// The key without the marks that a terminal writes around a paste.
fn without_paste_marks(key: &str) -> String {
    PASTE_MARKS.iter().fold(key.to_owned(), |key, mark| key.replace(mark, ""))
}

fn unreadable(error: rustix::io::Errno) -> Failure {
    Failure::failed(format!("cannot read the key: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_marks_around_a_paste_are_not_part_of_the_key() {
        assert_eq!(without_paste_marks("\u{1b}[200~sk-1\u{1b}[201~"), "sk-1");
        assert_eq!(without_paste_marks("sk-[200~"), "sk-[200~");
    }
}
