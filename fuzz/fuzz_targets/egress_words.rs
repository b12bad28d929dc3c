//! What the model's API sends: the same passes however the stream is cut, and no secret does.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| jess::egress::fuzz::answer_of_model(data));
