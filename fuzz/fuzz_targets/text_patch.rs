#![no_main]
//! For any patch: findings are bounded and on lines of it, another line end changes none of them, and a path that climbs,
//! or that is outside the scope, is named whatever is around it.

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let scope = ["src".to_string()];
    let found = jess::gate::patch::check(text, &scope);
    assert!(found.len() <= jess::gate::MAX_FINDINGS + 1);
    let body = text.strip_suffix('\n').unwrap_or(text);
    if !body.contains('\r') {
        let other = body.replace('\n', "\r\n");
        assert_eq!(jess::gate::patch::check(&other, &scope), jess::gate::patch::check(body, &scope));
    }
    let hunk = "--- a/src/x\n+++ b/../../.github/x\n@@ -1,1 +1,2 @@\n a\n+b\n";
    let hidden = format!("{hunk}{text}");
    let named = jess::gate::patch::check(&hidden, &scope);
    assert!(named.iter().any(|f| f.kind == "patch:escaping-path"));
    // A text that is whole by itself hides nothing of what follows. One that is not, as a hunk that takes the lines behind
    // it for its own, is named for that.
    let after = format!("{body}\n{hunk}");
    assert!(!jess::gate::patch::check(body, &scope).is_empty() || !jess::gate::patch::check(&after, &scope).is_empty());
});
