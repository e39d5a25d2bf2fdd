//! What a process may touch: namespaces, landlock and seccomp.
