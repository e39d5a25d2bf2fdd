//! Lets the user choose one of a list on the terminal.

use std::io::Stdin;

use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, tcgetattr, tcsetattr};

use crate::failure::Failure;
use crate::terminal;
use crate::terminal_mode::TerminalMode;

/// The byte of Ctrl-C.
const INTERRUPT: u8 = 3;

/// Longest answer that is kept.
const LINE_BYTES_MAX: usize = 64;

/// Lets the user choose one of a list; the first when the answer is empty.
pub(crate) fn choose(choices: &[String]) -> Result<usize, Failure> {
    for (number, choice) in choices.iter().enumerate() {
        terminal::note(&format!("  {}  {choice}\n", number + 1));
    }
    loop {
        terminal::note(&format!("\nChoose 1 to {} [1]: ", choices.len()));
        let line = read_line()?;
        match line.trim().parse::<usize>() {
            Ok(number) if (1..=choices.len()).contains(&number) => return Ok(number - 1),
            Err(_) if line.trim().is_empty() => return Ok(0),
            Ok(_) | Err(_) => {}
        }
    }
}

/// Reads a line. When it is interrupted, what follows begins on a line of its own.
fn read_line() -> Result<String, Failure> {
    let input = std::io::stdin();
    let before = TerminalMode::now();
    if let Ok(mut mode) = tcgetattr(&input) {
        // Ctrl-C is read as a byte that ends the line. If that cannot be had, it ends this process.
        mode.local_modes -= LocalModes::ISIG;
        mode.special_codes[SpecialCodeIndex::VEOL] = INTERRUPT;
        let _ = tcsetattr(&input, OptionalActions::Now, &mode);
    }
    let line = line_of(&input);
    before.restore();
    if line.is_err() {
        terminal::note("\n");
    }
    line
}

/// Reads byte by byte, so that nothing of the next answer is taken.
fn line_of(input: &Stdin) -> Result<String, Failure> {
    let mut line = Vec::new();
    loop {
        let mut byte = [0_u8; 1];
        match rustix::io::read(input, &mut byte) {
            Err(rustix::io::Errno::INTR) => continue,
            Ok(0) | Err(_) => return Err(Failure::interrupted()),
            Ok(_) => {}
        }
        match byte[0] {
            b'\n' => return Ok(String::from_utf8_lossy(&line).into_owned()),
            INTERRUPT => return Err(Failure::interrupted()),
            byte if line.len() < LINE_BYTES_MAX => line.push(byte),
            // Such a long line is no choice.
            _ => {}
        }
    }
}
