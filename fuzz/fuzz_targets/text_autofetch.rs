#![no_main]
//! For any input: what a CommonMark renderer and an HTML tokeniser make of the redacted text fetches nothing, and
//! redacting it again changes nothing.

use libfuzzer_sys::fuzz_target;

#[path = "../render.rs"]
mod render;

fuzz_target!(|text: &str| {
    let (clean, _) = jess::envelope::redact_autofetch(text);
    if let Some(what) = render::fetches(&clean) {
        panic!("{what} in {clean:?} from {text:?}");
    }
    let (again, _) = jess::envelope::redact_autofetch(&clean);
    assert_eq!(again, clean, "not idempotent for {text:?}");
});
