//! What the fuzz targets do with their input. They live here, and not in `fuzz/`, so that the
//! corpus can be replayed by an ordinary test, on the stable compiler and without `libFuzzer`.

pub(crate) mod parse;
pub(crate) mod stream;
