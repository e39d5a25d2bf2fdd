//! Paths that hold keys and passwords of the user, and the files of Antiphon itself: neither commands nor file tools
//! read them, and no project has its root there.
//!
//! The list follows the home folder of the environment and that of the user's account, and the variables that
//! tell programs to keep their keys elsewhere. What a program's own settings file says is not known.

use std::path::{Path, PathBuf};

use antiphon_sandbox::{SECRETS_IN_HOME, SECRETS_OF_MACHINE};

use crate::environment::Environment;
use crate::project::Project;
use crate::settings::UserSettings;
use crate::state::state_base;

/// Variables that name a file or folder with keys. One may name several, separated by colons.
const VARIABLES: &[&str] = &[
    "AWS_CONFIG_FILE",
    "AWS_SHARED_CREDENTIALS_FILE",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AZURE_CONFIG_DIR",
    "BOTO_CONFIG",
    "CLAUDE_CONFIG_DIR",
    "CLOUDSDK_CONFIG",
    "CODEX_HOME",
    "DOCKER_CONFIG",
    "GH_CONFIG_DIR",
    "GNUPGHOME",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "HELM_CONFIG_HOME",
    "HISTFILE",
    "KUBECONFIG",
    "NETRC",
    "NPM_CONFIG_USERCONFIG",
    "OCI_CLI_CONFIG_FILE",
    "PASSWORD_STORE_DIR",
    "PGPASSFILE",
    "PIP_CONFIG_FILE",
    "RCLONE_CONFIG",
    "SOPS_AGE_KEY_FILE",
    "TF_CLI_CONFIG_FILE",
    "npm_config_userconfig",
];

/// Variables that stand for a folder of the home folder.
const FOLDERS: &[(&str, &str)] = &[
    ("XDG_CONFIG_HOME", ".config"),
    ("XDG_DATA_HOME", ".local/share"),
    ("XDG_STATE_HOME", ".local/state"),
    ("CARGO_HOME", ".cargo"),
    ("GEM_HOME", ".gem"),
    ("GRADLE_USER_HOME", ".gradle"),
];

/// What neither commands nor file tools may read: keys, passwords, the user's own list, and the files of
/// Antiphon itself, in this and every other project.
pub(crate) fn hidden_paths(project: &Project, settings: &UserSettings) -> Vec<PathBuf> {
    let (environment, root) = (&settings.environment, project.root());
    let home = environment.home();
    let mut hidden = in_homes(environment);
    hidden.extend(named(environment));
    hidden.extend(SECRETS_OF_MACHINE.iter().map(PathBuf::from));
    hidden.extend(settings.sandbox.hidden.iter().filter_map(|path| match path.strip_prefix("~") {
        Ok(rest) => home.as_ref().map(|home| home.join(rest)),
        Err(_) => Some(path.clone()),
    }));
    hidden.extend(state_base(environment).ok());
    // What lies in the project and is missing needs no place reserved for it. The rest may appear later.
    hidden.retain(|path| !path.starts_with(root) || path.exists());
    // The user's configuration folder is hidden; when the project lies in it, only our files are.
    match settings.path.parent() {
        Some(folder) if root.starts_with(folder) => {
            hidden.extend([settings.path.clone(), settings.remembered_path()]);
        }
        Some(folder) => hidden.push(folder.to_owned()),
        None => {}
    }
    // Hiding a folder that contains the project would hide the project.
    hidden.retain(|path| !root.starts_with(path));
    hidden.sort();
    hidden.dedup();
    hidden
}

/// The home folders of the user: that of the environment, and that of the account if it exists.
pub(crate) fn homes(environment: &Environment) -> Vec<PathBuf> {
    let mut homes: Vec<PathBuf> = environment.home().into_iter().collect();
    let of_account = environment.account_home.iter().filter(|home| home.is_dir());
    homes.extend(of_account.cloned());
    homes.dedup();
    homes
}

/// Keys and passwords at their usual places in the home folders.
pub(crate) fn in_homes(environment: &Environment) -> Vec<PathBuf> {
    let homes = homes(environment);
    homes.iter().flat_map(|home| SECRETS_IN_HOME.iter().map(|name| home.join(name))).collect()
}

/// Keys and passwords at places that variables name.
pub(crate) fn named(environment: &Environment) -> Vec<PathBuf> {
    let mut named = Vec::new();
    for (variable, usual) in FOLDERS {
        let Some(folder) = environment.absolute_path(variable) else { continue };
        let below =
            SECRETS_IN_HOME.iter().filter_map(|name| Path::new(name).strip_prefix(usual).ok());
        named.extend(
            below.filter(|rest| !rest.as_os_str().is_empty()).map(|rest| folder.join(rest)),
        );
    }
    let values = VARIABLES.iter().filter_map(|variable| environment.text(variable));
    named.extend(values.flat_map(|value| value.split(':').map(PathBuf::from).collect::<Vec<_>>()));
    // A relative path depends on the folder of the program. Nothing is left to read if home is hidden.
    let homes = homes(environment);
    named.retain(|path| {
        path.is_absolute()
            && path.parent().is_some()
            && !homes.iter().any(|home| home.starts_with(path))
    });
    named
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_found_where_variables_and_the_account_say() {
        let folder = tempfile::tempdir().unwrap();
        let pair = |name: &str, value: &str| (name.into(), value.into());
        let environment = Environment {
            variables: [
                pair("HOME", "/home/ada"),
                pair("XDG_CONFIG_HOME", "/settings"),
                pair("CARGO_HOME", "/cargo"),
                pair("KUBECONFIG", "/kube/one:/kube/two:relative"),
                pair("GNUPGHOME", "/gnupg"),
                pair("CODEX_HOME", "/agents/codex"),
                pair("CLAUDE_CONFIG_DIR", "/agents/claude"),
                pair("RCLONE_CONFIG", "/clouds/rclone.conf"),
                pair("HISTFILE", "/typed"),
                pair("XDG_DATA_HOME", "/data"),
                pair("DOCKER_CONFIG", "/home/ada"),
                pair("AWS_SHARED_CREDENTIALS_FILE", "/"),
            ]
            .into(),
            account_home: Some(folder.path().to_owned()),
            ..Environment::default()
        };
        let (usual, named) = (in_homes(&environment), named(&environment));
        let has = |list: &[PathBuf], path: &str| list.contains(&PathBuf::from(path));
        assert!(has(&usual, "/home/ada/.ssh"));
        assert!(usual.contains(&folder.path().join(".ssh")));
        for name in [".tsh", ".cloudflared", ".config/Code", ".config/Cursor"] {
            assert!(usual.contains(&folder.path().join(name)), "{name}");
        }
        for path in [
            "/settings/gh",
            "/settings/Cursor",
            "/kube/one",
            "/kube/two",
            "/gnupg",
            "/agents/codex",
            "/agents/claude",
            "/clouds/rclone.conf",
            "/typed",
            "/data/goose",
            "/data/mkcert",
            "/data/TelegramDesktop",
            "/data/atuin",
        ] {
            assert!(has(&named, path), "{path}");
        }
        assert!(named.iter().any(|path| path.starts_with("/cargo/")), "{named:?}");
        for path in ["/home/ada", "/", "relative", "/cargo", "/settings"] {
            assert!(!has(&named, path), "{path}");
        }
    }
}
