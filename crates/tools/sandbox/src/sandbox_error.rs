//! Why a process cannot be restricted. Whatever it is, nothing is run without the restrictions.

use std::fmt::Display;
use std::path::PathBuf;

/// Why a process cannot be restricted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SandboxError {
    /// Change the policy.
    #[error("{reason}")]
    Policy {
        /// What is wrong with it.
        reason: String,
    },
    /// The machine does not have what the sandbox is made of.
    #[error("this machine does not allow {what} ({reason}). {remedy}")]
    Unavailable {
        /// What is missing.
        what: &'static str,
        /// What the kernel said.
        reason: String,
        /// What the user can do about it.
        remedy: &'static str,
    },
    /// Something that must be protected cannot be.
    #[error("`{path}` cannot be protected: {reason}")]
    Unprotectable {
        /// What.
        path: PathBuf,
        /// Why, and what to do.
        reason: String,
    },
    /// A step failed that works wherever the sandbox is available.
    #[error("the sandbox could not {step}: {reason}")]
    Failed {
        /// Which step.
        step: String,
        /// What the kernel said.
        reason: String,
    },
}

/// What to do where user namespaces are refused.
pub(crate) const NAMESPACES_REMEDY: &str = "Allow user namespaces (`sysctl \
    kernel.apparmor_restrict_unprivileged_userns=0`, `sysctl kernel.unprivileged_userns_clone=1`, \
    `sysctl user.max_user_namespaces=10000`; in a container, a seccomp profile that lets `unshare` \
    and `mount` through), or choose the mode `full`, which runs commands without a sandbox";

/// What to do where landlock is missing.
pub(crate) const LANDLOCK_REMEDY: &str = "Use Linux 5.13 or later with `landlock` among the \
    `lsm=` of its command line, or choose the mode `full`, which runs commands without a sandbox";

/// Names the step that an error belongs to.
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
