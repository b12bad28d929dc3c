//! Inputs nobody wrote by hand: pieces of shell in any order, events with changed bytes.

use super::world::Place;
use proptest::prelude::*;
use serde_json::json;

const PIECES: &[&str] = &[
    "cat ",
    ".env",
    "$(",
    ")",
    "`",
    "\"",
    "'",
    "{",
    "}",
    "((",
    "))",
    "[[ ",
    " ]]",
    "<<EOF\n",
    "\nEOF\n",
    "<(",
    ">(",
    "|",
    "&&",
    "||",
    ";",
    "\n",
    "if ",
    "then ",
    "fi",
    "for x in ",
    "do ",
    "done",
    "while ",
    "case x in ",
    "esac",
    ";;",
    "f() ",
    "${",
    "${a:-",
    "${a//",
    "$a",
    "$'\\x",
    "\\",
    "=",
    "a=(",
    "*",
    "?",
    "[",
    "@(",
    "!",
    "eval ",
    "sh -c ",
    "xargs ",
    "find . -exec ",
    "{} \\;",
    "python3 -c ",
    "awk ",
    "sed ",
    "git ",
    "curl ",
    "rm -rf ",
    "~",
    "/",
    "-",
    "#",
    "$((",
    "<<<",
    "&",
    ">",
    "2>&1",
    "\r",
    "\t",
    "é",
    "\u{200b}",
    "\u{1}",
    "1",
    "a ",
    "env -S ",
    "make -f - ",
    "trap ",
    "printf %s ",
    "base64 -d ",
    "tr a b ",
    "x=1 ",
    "{a,b}",
    "\"$@\"",
    "${x[0]}",
    "alias a=",
    "cd ",
    "set -- ",
    "read x",
    "ls ",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_order_of_shell_pieces_gets_one_answer(order in prop::collection::vec(0..PIECES.len(), 0..120)) {
        let place = PLACE.get_or_init(Place::new);
        let command: String = order.iter().filter_map(|i| PIECES.get(*i).copied()).collect();
        let answer = place.answer(&place.event("PreToolUse", "Bash", json!({ "command": command })), &[]);
        prop_assert_eq!(answer.exit, 0);
        if let Some(document) = answer.document {
            let word = document["hookSpecificOutput"]["permissionDecision"].clone();
            prop_assert!(word == "deny" || word == "ask", "{}", document);
        }
    }

    #[test]
    fn an_event_with_changed_bytes_is_answered_or_blocked(at in prop::collection::vec((0usize..400, any::<u8>()), 1..6)) {
        let place = PLACE.get_or_init(Place::new);
        let mut bytes = place.event("PreToolUse", "Bash", json!({ "command": "cat .env" })).to_string().into_bytes();
        for (i, b) in at {
            let i = i % bytes.len();
            bytes[i] = b;
        }
        let answer = place.answer_bytes(&bytes, &[]);
        prop_assert!(answer.exit == 0 || (answer.exit == 2 && answer.document.is_none()));
    }
}

static PLACE: std::sync::OnceLock<Place> = std::sync::OnceLock::new();
