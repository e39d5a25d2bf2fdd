//! Variables that change which programs run, or what they load.

/// Whether setting `name` may make a harmless command run something else.
pub(crate) fn changes_programs(name: &str) -> bool {
    NAMES.contains(&name)
        || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        || (name.starts_with("GIT_") && !is_harmless_git(name))
        || (name.starts_with("CARGO_") && (name.ends_with("_RUNNER") || name.ends_with("_LINKER")))
}

const NAMES: &[&str] = &[
    "PATH",
    "HOME",
    "SHELL",
    "ENV",
    "BASH_ENV",
    "BASHOPTS",
    "SHELLOPTS",
    "BASH_COMPAT",
    "BASH_LOADABLES_PATH",
    "POSIXLY_CORRECT",
    "PROMPT_COMMAND",
    "PS0",
    "PS4",
    "CDPATH",
    "EXECIGNORE",
    "XDG_CONFIG_HOME",
    "EDITOR",
    "VISUAL",
    "PAGER",
    "MANPAGER",
    "BROWSER",
    "LESSOPEN",
    "LESSCLOSE",
    "SSH_ASKPASS",
    "SUDO_ASKPASS",
    "PERL5OPT",
    "PERL5LIB",
    "PERL5DB",
    "PERLLIB",
    "PYTHONSTARTUP",
    "PYTHONPATH",
    "PYTHONHOME",
    "PYTHONINSPECT",
    "PYTHONBREAKPOINT",
    "RUBYOPT",
    "RUBYLIB",
    "NODE_OPTIONS",
    "NODE_PATH",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "_JAVA_OPTIONS",
    "RUSTC",
    "RUSTDOC",
    "RUSTC_WRAPPER",
    "RUSTC_WORKSPACE_WRAPPER",
    "MAKEFLAGS",
    "GNUMAKEFLAGS",
    "MAKEFILES",
    "TAR_OPTIONS",
    "RSYNC_RSH",
    "RIPGREP_CONFIG_PATH",
];

const PREFIXES: &[&str] = &["LD_", "DYLD_", "BASH_FUNC_", "npm_config_", "NPM_CONFIG_"];

fn is_harmless_git(name: &str) -> bool {
    name.starts_with("GIT_AUTHOR_")
        || name.starts_with("GIT_COMMITTER_")
        || matches!(name, "GIT_TERMINAL_PROMPT" | "GIT_OPTIONAL_LOCKS" | "GIT_MERGE_AUTOEDIT")
}
