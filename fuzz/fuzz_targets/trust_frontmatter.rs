//! Agents, commands and skills.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    for findings in jess::trust::fuzz::markdown(data) {
        assert!(!findings.contains(|c: char| c.is_control()), "{findings:?}");
    }
});
