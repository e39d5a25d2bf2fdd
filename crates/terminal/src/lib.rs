//! The runner `terminal`: command-line agents in terminals of their own.
