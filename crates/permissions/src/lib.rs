//! The gate: which calls may run, which are asked about, which never run.
