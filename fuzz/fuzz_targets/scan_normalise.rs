#![no_main]
//! See `jess::scan::fuzzing::normalise` for what must hold.
libfuzzer_sys::fuzz_target!(|text: &[u8]| jess::scan::fuzzing::normalise(text));
