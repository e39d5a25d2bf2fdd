//! The offline tour.
