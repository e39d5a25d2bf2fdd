//! Why a process cannot be restricted. Then nothing is run.

use std::fmt::Display;
use std::path::PathBuf;

/// Why a process cannot be restricted. Then nothing is run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SandboxError {
    /// The policy is invalid. Change it.
    #[error("{reason}")]
    Policy {
        /// What is wrong with the policy.
        reason: String,
    },
    /// The machine lacks a feature that the sandbox needs.
    #[error("this machine does not allow {what} ({reason}). {remedy}")]
    Unavailable {
        /// The missing feature.
        what: &'static str,
        /// The error of the kernel.
        reason: String,
        /// What the user can do about it.
        remedy: &'static str,
    },
    /// A path cannot be protected.
    #[error("`{path}` cannot be protected: {reason}")]
    Unprotectable {
        /// The path.
        path: PathBuf,
        /// Why, and what to do.
        reason: String,
    },
    /// A step failed that works wherever the sandbox is available.
    #[error("the sandbox could not {step}: {reason}")]
    Failed {
        /// Name of the step.
        step: String,
        /// The error of the kernel.
        reason: String,
    },
}

/// Advice where user namespaces are refused.
pub(crate) const NAMESPACES_REMEDY: &str = "Allow user namespaces (`sysctl \
    kernel.apparmor_restrict_unprivileged_userns=0`, `sysctl kernel.unprivileged_userns_clone=1`, \
    `sysctl user.max_user_namespaces=10000`; in a container, a seccomp profile that lets `unshare` \
    and `mount` through), or choose the mode `full`, which runs commands without a sandbox";

/// Advice where landlock is missing.
pub(crate) const LANDLOCK_REMEDY: &str = "Use Linux 5.13 or later with `landlock` among the \
    `lsm=` of its command line, or choose the mode `full`, which runs commands without a sandbox";

/// Adds the name of the step to an error.
pub(crate) trait Step<T> {
    fn during(self, step: impl Display) -> Result<T, SandboxError>;
}

impl<T, E: Display> Step<T> for Result<T, E> {
    fn during(self, step: impl Display) -> Result<T, SandboxError> {
        self.map_err(|error| SandboxError::Failed {
            step: step.to_string(),
            reason: error.to_string(),
        })
    }
}
