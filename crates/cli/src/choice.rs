//! Lets the user choose one of a list on the terminal.

use crate::failure::Failure;
use crate::terminal;

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

fn read_line() -> Result<String, Failure> {
    let mut line = String::new();
    match std::io::stdin().read_line(&mut line) {
        Ok(0) | Err(_) => Err(Failure::interrupted()),
        Ok(_) => Ok(line),
    }
}
