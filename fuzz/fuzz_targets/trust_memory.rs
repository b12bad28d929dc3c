//! Instruction files and their imports.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = jess::trust::fuzz::imports(data);
});
