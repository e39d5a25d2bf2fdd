//! Variables that change which programs run, or what they load.
//!
//! No list of such variables is complete: nearly every program has one that names a file of settings.
//! So without a sandbox only variables that are known to be harmless may precede a command that a
//! rule allows. In the sandbox, which bounds what such a program does, the well-known ones are asked
//! about.

use super::Warning;

/// The warning about a script that sets `name`, if it needs one. `value` is `None` if it is unknown.
pub(super) fn warning(name: &str, value: Option<&str>) -> Option<Warning> {
    if changes_programs(name) {
        Some(Warning::suspicious(format!("it sets `{name}`, which changes what runs")))
    } else if is_harmless(name, value) {
        None
    } else {
        Some(Warning::unbounded(format!("it sets `{name}`, which may change what runs")))
    }
}

/// Whether no program runs or loads anything because of this variable.
fn is_harmless(name: &str, value: Option<&str>) -> bool {
    // Names and dates of commits are free text.
    if name.starts_with("GIT_AUTHOR_") || name.starts_with("GIT_COMMITTER_") {
        return true;
    }
    // A value with a slash may name a file, also for a locale or a time zone.
    let plain = |c: char| c.is_ascii_alphanumeric() || "_.,:@=+-".contains(c);
    let is_plain = value.is_some_and(|value| !value.contains("..") && value.chars().all(plain));
    is_plain && (HARMLESS.contains(&name) || name.starts_with("LC_"))
}

/// Variables about language, time, display and diagnostics.
const HARMLESS: &[&str] = &[
    "LANG",
    "LANGUAGE",
    "TZ",
    "TERM",
    "COLORTERM",
    "COLUMNS",
    "LINES",
    "NO_COLOR",
    "FORCE_COLOR",
    "CLICOLOR",
    "CLICOLOR_FORCE",
    "CI",
    "DEBIAN_FRONTEND",
    "RUST_BACKTRACE",
    "RUST_LIB_BACKTRACE",
    "RUST_LOG",
    "CARGO_TERM_COLOR",
    "CARGO_INCREMENTAL",
    "CARGO_BUILD_JOBS",
    "PYTHONUNBUFFERED",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONHASHSEED",
    "PYTHONUTF8",
    "GIT_TERMINAL_PROMPT",
    "GIT_OPTIONAL_LOCKS",
    "GIT_MERGE_AUTOEDIT",
];

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
    "OPENSSL_CONF",
    "GCONV_PATH",
    "GLIBC_TUNABLES",
    "CARGO_BUILD_RUSTC",
    "CARGO_BUILD_RUSTC_WRAPPER",
    "DOTNET_STARTUP_HOOKS",
    "LUA_INIT",
    "SVN_SSH",
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
