//! Settings and MCP files: any bytes have a verdict, and what is printed holds no control character.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    for findings in jess::trust::fuzz::json(data) {
        assert!(!findings.contains(|c: char| c.is_control()), "{findings:?}");
    }
});
