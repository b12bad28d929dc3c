//! What the run sends first: the head of a request, a ClientHello, a question to the resolver.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Some((kind, data)) = data.split_first() else { return };
    match kind % 3 {
        0 => jess::egress::fuzz::head(data),
        1 => jess::egress::fuzz::hello(data),
        _ => jess::egress::fuzz::question(data),
    }
});
