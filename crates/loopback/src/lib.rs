//! The runner `loopback`.
