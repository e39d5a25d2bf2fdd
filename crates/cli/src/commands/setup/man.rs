//! `antiphon man`: the manual pages, one for each command.

use std::fmt::Write as _;
use std::io;
use std::path::PathBuf;

use clap::{Args, Command};
use clap_mangen::Man as Page;

use crate::failure::Failure;
use crate::terminal;

/// Title of the manual that the pages belong to.
const MANUAL: &str = "Antiphon Manual";

/// Write the manual pages, one for each command.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  antiphon man ~/.local/share/man/man1
  antiphon man /tmp/man && man -l /tmp/man/antiphon-run.1")]
pub(crate) struct Man {
    /// Folder for the pages; it is created.
    folder: PathBuf,
}

impl Man {
    pub(crate) fn run(self, command: Command) -> Result<(), Failure> {
        let refuse = |error: io::Error| {
            Failure::usage(format!("cannot write to {}: {error}", self.folder.display()))
        };
        std::fs::create_dir_all(&self.folder).map_err(refuse)?;
        let mut command = command.disable_help_subcommand(true);
        command.build();
        self.write(&command).map_err(refuse)?;
        terminal::note(&format!("antiphon: written to {}\n", self.folder.display()));
        Ok(())
    }

    /// Writes the page of a command, and those of the commands below it.
    fn write(&self, command: &Command) -> io::Result<()> {
        for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
            self.write(below)?;
        }
        let name = command.get_display_name().unwrap_or_else(|| command.get_name());
        std::fs::write(self.folder.join(format!("{name}.1")), page(command, name)?)
    }
}

fn page(command: &Command, name: &str) -> io::Result<String> {
    let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    // A page has room for the options that the short help leaves out.
    let command = command.clone().mut_args(|arg| arg.hide_short_help(false));
    let (has_options, has_commands) =
        (command.get_arguments().any(|arg| !arg.is_hide_set()), command.has_subcommands());
    let page = Page::new(command)
        .title(name.to_uppercase())
        .source(concat!("antiphon ", env!("CARGO_PKG_VERSION")))
        .manual(MANUAL);
    let mut text = Vec::new();
    page.render_title(&mut text)?;
    page.render_name_section(&mut text)?;
    page.render_synopsis_section(&mut text)?;
    page.render_description_section(&mut text)?;
    if has_options {
        page.render_options_section(&mut text)?;
    }
    if has_commands {
        page.render_subcommands_section(&mut text)?;
    }
    // The page has no date. An empty word has to be quoted, or the version would be one.
    let text = String::from_utf8_lossy(&text).replacen(" 1  \"", " 1 \"\" \"", 1);
    let mut text = plain(&text);
    text.push_str(&notes_and_examples(&after));
    Ok(text)
}

/// The same page in ASCII, without what formatters warn about: blank lines, blanks at the end of a line, doubled breaks.
fn plain(page: &str) -> String {
    let mut text = String::with_capacity(page.len());
    for line in page.lines().map(str::trim_end).filter(|line| !line.is_empty()) {
        let is_doubled = line == ".br" && (text.ends_with(".br\n") || text.ends_with(".sp\n"));
        if line == ".sp" && text.ends_with(".br\n") {
            text.truncate(text.len() - ".br\n".len());
        }
        if !is_doubled {
            text.push_str(&ascii(line));
            text.push('\n');
        }
    }
    text
}

/// What the help says behind the options, as sections. The lines of examples are not filled.
fn notes_and_examples(after: &str) -> String {
    let (notes, examples) = match after.split_once("Examples:\n") {
        Some((notes, examples)) => (notes.trim(), examples.trim_end()),
        None => (after.trim(), ""),
    };
    let mut text = String::new();
    for (index, paragraph) in notes.split("\n\n").filter(|text| !text.is_empty()).enumerate() {
        text.push_str(if index == 0 { ".SH NOTES\n" } else { ".PP\n" });
        let lines: Vec<String> = paragraph.lines().map(escaped).collect();
        let lines = lines.join("\n");
        // The lines of a list stay as they are.
        let is_list = paragraph.lines().any(|line| line.starts_with(' '));
        // Writing to a String cannot fail.
        let _ =
            if is_list { writeln!(text, ".nf\n{lines}\n.fi") } else { writeln!(text, "{lines}") };
    }
    if !examples.is_empty() {
        let lines: Vec<String> = examples.lines().map(|line| escaped(line.trim_start())).collect();
        let _ = write!(text, ".SH EXAMPLES\n.nf\n{}\n.fi\n", lines.join("\n"));
    }
    text
}

/// A line of text for a formatter: no character of it is an instruction.
fn escaped(line: &str) -> String {
    let line = line.replace('\\', "\\(rs").replace('-', "\\-").replace('\'', "\\(aq");
    let guard = if line.starts_with('.') { "\\&" } else { "" };
    format!("{guard}{}", ascii(&line))
}

fn ascii(line: &str) -> String {
    let mut text = String::with_capacity(line.len());
    for c in line.chars() {
        if c.is_ascii() {
            text.push(c);
        } else {
            let _ = write!(text, "\\[u{:04X}]", u32::from(c));
        }
    }
    text
}
