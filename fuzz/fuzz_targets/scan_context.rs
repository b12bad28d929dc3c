#![no_main]
//! See `jess::scan::fuzzing::context` for what must hold.
libfuzzer_sys::fuzz_target!(|text: &str| jess::scan::fuzzing::context(text));
