//! What names a boundary.

/// Element names of envelopes, prompts and tool protocols. `untrusted` and `antml` match with any suffix.
pub(super) const TAGS: &[&str] = &[
    "slot",
    "slots",
    "document",
    "documents",
    "document_content",
    "documentcontent",
    "document_contents",
    "source",
    "kind",
    "system",
    "system-reminder",
    "system_prompt",
    "system-prompt",
    "system_instruction",
    "system_instructions",
    "sys",
    "human",
    "assistant",
    "instructions",
    "function_calls",
    "function_call",
    "function_results",
    "function_result",
    "invoke",
    "parameter",
    "tool_call",
    "tool_calls",
    "tool_result",
    "tool_results",
    "tool_response",
    "tool_responses",
    "tool_use",
    "tool_output",
    "tools",
    "start_of_turn",
    "end_of_turn",
    "bos",
    "eos",
    "think",
    "thinking",
    "endoftext",
    "begin_of_text",
    "end_of_text",
    "user_input",
    "user_query",
    "prompt",
    "local-command-stdout",
    "command-name",
    "command-message",
    "important",
    "admin",
    "developer",
    // Special tokens of tokenizers.
    "s",
    "unk",
    "pad",
    "sop",
    "eop",
    "eoh",
    "eoa",
    "turn",
    "start_of_image",
    "end_of_image",
    "end_of_utterance",
    "arg_key",
    "arg_value",
    "longcat_system",
    "longcat_user",
    "longcat_assistant",
    "longcat_tool_call",
    // What harnesses put around what they tell a model.
    "user",
    "instruction",
    "function_response",
    "function_responses",
    "tool_outputs",
    "tool_use_error",
    "environment_context",
    "environment_details",
    "user_instructions",
    "user_info",
    "turn_aborted",
    "persisted-output",
    "ide_selection",
    "ide_opened_file",
    "task-notification",
    "user-prompt-submit-hook",
    "local-command-stderr",
    "local-command-caveat",
    "command-args",
    "bash-input",
    "bash-stdout",
    "bash-stderr",
];

/// Of tokens that are numbered (`<extra_id_0>`, `<reserved_102>`), what stands before the number.
pub(super) const NUMBERED: &[&str] =
    &["reserved", "reserved_token", "extra_id", "special", "unused", "tokens_unused"];

/// [`NUMBERED`], for a whole name.
pub(super) fn numbered(name: &str) -> bool {
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    stem.len() < name.len() && NUMBERED.contains(&stem.trim_end_matches('_'))
}

/// Names that ordinary HTML or XML uses too: only their closing form, or an opening with the attributes that an envelope
/// has, is a boundary.
pub(super) const SHARED: &[&str] = &[
    "source",
    "kind",
    "important",
    "admin",
    "developer",
    "prompt",
    "tools",
    "human",
    "assistant",
    "instructions",
    "instruction",
    "user",
    "parameter",
];

/// Names in square brackets.
pub(super) const BRACKETS: &[&str] = &[
    "mark_inpt",
    "mark_inst",
    "mark_resp",
    "inst",
    "system_prompt",
    "available_tools",
    "tool_results",
    "tool_calls",
    "tool_content",
    "systemprompt",
    "gmask",
    "unused_token",
];

/// Names in square brackets that are tokens in capitals only: in small letters they are words and indices.
pub(super) const CAPITAL_BRACKETS: &[&str] =
    &["args", "call_id", "think", "model_settings", "bot", "eot", "bos", "eos", "inpt", "resp"];

/// By length, the first letters that names of that length have, as bits from `a` on.
struct Index([u32; 25]);

impl Index {
    const fn of(names: &[&str]) -> Index {
        let mut by_length = [0u32; 25];
        let mut i = 0;
        while i < names.len() {
            let name = names[i].as_bytes();
            by_length[name.len()] |= 1 << (name[0] - b'a');
            i += 1;
        }
        Index(by_length)
    }

    fn may_hold(&self, name: &[u8]) -> bool {
        let first = name.first().map_or(0, u8::to_ascii_lowercase);
        let letters = self.0.get(name.len()).copied().unwrap_or(0);
        first.is_ascii_lowercase() && letters >> (first - b'a') & 1 != 0
    }
}

const TAG_INDEX: Index = Index::of(TAGS);
const BRACKET_INDEX: Index = Index::of(BRACKETS);
const CAPITAL_INDEX: Index = Index::of(CAPITAL_BRACKETS);

/// Could a boundary's name stand at the start of `text`? False only where a plain spelling says no: a name of letters that
/// is none of them, with something plain behind it. Most openings in code and pages are settled here.
pub(super) fn tag_possible(text: &[u8]) -> bool {
    let Some(name) = plain_name(text) else { return prefixed_possible(text) };
    let starts = |prefix: &[u8]| name.get(..prefix.len()).is_some_and(|n| n.eq_ignore_ascii_case(prefix));
    starts(b"untrusted")
        || starts(b"antml")
        || name.ends_with(b"_")
        || name.ends_with(b"-")
        || (TAG_INDEX.may_hold(name) && holds(TAGS, name))
        // `<turn|>`, and a number at the end.
        || text.get(name.len()..).is_some_and(|rest| rest.starts_with(b"|>"))
        || (name.last().is_some_and(u8::is_ascii_digit)
            && std::str::from_utf8(name).is_ok_and(|name| numbered(&name.to_ascii_lowercase())))
}

/// [`tag_possible`] for a name that is not plain: `<std::` and `<http:` name nothing after the colon.
fn prefixed_possible(text: &[u8]) -> bool {
    if !text.first().is_some_and(u8::is_ascii_alphabetic) {
        return true;
    }
    let len = text.iter().take(64).take_while(|b| b.is_ascii_alphanumeric()).count();
    let starts = |prefix: &[u8]| text.get(..prefix.len()).is_some_and(|n| n.eq_ignore_ascii_case(prefix));
    let after = text.get(len + 1).filter(|_| text.get(len) == Some(&b':'));
    let nothing = after.is_some_and(|b| matches!(b, b'<' | b'>' | b'"' | b'(' | b')' | b'=' | b'.'));
    !nothing || starts(b"untrusted") || starts(b"antml")
}

fn holds(names: &[&str], name: &[u8]) -> bool {
    names.iter().any(|known| known.len() == name.len() && name.eq_ignore_ascii_case(known.as_bytes()))
}

/// [`tag_possible`] for what stands after a `[`.
pub(super) fn bracket_possible(text: &[u8]) -> bool {
    plain_name(text).is_none_or(|name| {
        BRACKET_INDEX.may_hold(name)
            || (name.first().is_some_and(u8::is_ascii_uppercase) && CAPITAL_INDEX.may_hold(name))
            // `[MARK INPT]`
            || name.eq_ignore_ascii_case(b"mark")
    })
}

/// The name at the start of `text` when it and what ends it are plain ASCII that spells nothing else.
fn plain_name(text: &[u8]) -> Option<&[u8]> {
    text.first().filter(|b| b.is_ascii_alphabetic())?;
    let name = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
    let len = text.iter().take(64).take_while(|b| name(b)).count();
    let plain =
        |b: &u8| matches!(b, b' '..=b'~' | b'\t' | b'\n' | b'\r') && !matches!(b, b'&' | b'\\' | b'%' | b':');
    text.get(len).is_none_or(plain).then(|| text.get(..len)).flatten()
}
