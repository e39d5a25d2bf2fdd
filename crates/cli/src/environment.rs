//! Captures the environment of the process once.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use antiphon_project::environment::{Environment, Questions, Warnings};
use antiphon_project::request_drop::ProvidedRequestDrop;

use crate::foreground_process::VARIABLE;
use crate::request_drop::FileDrop;
use crate::terminal;

/// Environment variables, current folder, and warnings to standard error.
pub(crate) fn capture() -> Environment {
    Environment {
        variables: std::env::vars_os().filter(|(name, _)| name != VARIABLE).collect(),
        current_dir: std::env::current_dir().ok(),
        account_home: account_home(),
        warnings: Warnings::new(|warning| terminal::note(&format!("antiphon: {warning}\n"))),
        questions: Questions::new(terminal::ask),
        request_drop: ProvidedRequestDrop::new(FileDrop),
        ..Environment::default()
    }
}

/// The home folder that `/etc/passwd` has for the user of this process. Accounts of other services, such as
/// LDAP, are not looked up: for these the environment decides.
fn account_home() -> Option<PathBuf> {
    let user = fs::metadata("/proc/self").ok()?.uid();
    let accounts = fs::read(Path::new("/etc/passwd")).ok()?;
    home_in(&String::from_utf8_lossy(&accounts), user)
}

/// The home folder of the user with this number.
fn home_in(accounts: &str, user: u32) -> Option<PathBuf> {
    let home = accounts.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        let [_, _, number, _, _, home, ..] = fields.as_slice() else { return None };
        (number.parse() == Ok(user)).then(|| PathBuf::from(home))
    });
    home.filter(|home| home.is_absolute() && home.parent().is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_home_of_an_account_is_found_by_its_number() {
        let accounts =
            "root:x:0:0:root:/root:/bin/sh\nodd\nada:x:7:7::/home/ada:/bin/sh\nno:x:8:8::/:";
        assert_eq!(home_in(accounts, 7), Some("/home/ada".into()));
        assert_eq!(home_in(accounts, 0), Some("/root".into()));
        assert_eq!(home_in(accounts, 8), None, "the whole system is no home");
        assert_eq!(home_in(accounts, 9), None);
    }
}
