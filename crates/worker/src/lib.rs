//! The runner `sandbox`.
