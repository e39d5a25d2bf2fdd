//! The `bash` tool, and the worker process that runs what it is told under the sandbox.
