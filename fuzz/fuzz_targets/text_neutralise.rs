#![no_main]
//! For any input: neutralising twice is neutralising once, and no boundary of any envelope style comes through.

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let once = jess::envelope::neutralise(text);
    assert_eq!(jess::envelope::neutralise(&once), once, "not idempotent for {text:?}");
    let lower = once.to_lowercase();
    for boundary in ["</untrusted", "<untrusted", "</document>", "</untrusted_text", "[/mark_inpt]", "</slot>", "<|im_start|>", "[/inst]"] {
        assert!(!lower.contains(boundary), "{boundary} in {once:?}");
    }
});
