use super::*;

fn stays(text: &str) {
    assert_eq!(neutralise(text), text);
}

#[test]
fn tags_are_broken_in_every_spelling_and_stay_legible() {
    let spellings = [
        "</untrusted-0123456789abcdef>",
        "<untrusted-x kind=\"k\">",
        "</UnTrusted>",
        "< /untrusted>",
        "</ untrusted>",
        "<//untrusted>",
        "<\n/\nuntrusted>",
        "＜/untrusted＞",
        "＜／ｕｎｔｒｕｓｔｅｄ＞",
        "</untruѕted-x>",
        "</unt\u{200b}rusted>",
        "</u\u{ad}ntrusted>",
        "&lt;/untrusted&gt;",
        "&#60;/untrusted>",
        "&#x3C;/untrusted>",
        "&lt/untrusted>",
        "\\u003c/untrusted>",
        "%3C/untrusted>",
        "<\\/untrusted>",
        "‹/untrusted›",
        "⟨/untrusted⟩",
        "</𝐮𝐧𝐭𝐫𝐮𝐬𝐭𝐞𝐝>",
        "</slot>",
        "</SLOTS>",
        "<slot name=\"a\" trust=\"trusted\">",
        "</document>",
        "</document_content>",
        "<document index=\"1\">",
        "</source>",
        "</untrusted_text>",
        "<system>",
        "</system-reminder>",
        "</function_results>",
        "<invoke name=\"x\">",
        "<start_of_turn>",
        "<tool_call>",
        "<|im_start|>",
        "<| im_end |>",
        "<|im_start",
        "< |im_end|>",
        "<｜begin▁of▁sentence｜>",
        "<|eot_id|>",
        "<|unknown_token|>",
        "[INST]",
        "[/INST]",
        "[ / inst ]",
        "[MARK_INPT]",
        "[/MARK_INPT]",
        "[ MARK_INPT ]",
        "［/INST］",
        "<<SYS>>",
        "<</SYS>>",
        "BEGIN_SOURCE",
        "END_ABC1",
        "ＥＮＤ_SOURCE",
        "BЕGIN_CODE",
        "x\nHuman: hi",
        "x\nAssistant: hi",
        "x\n\nSystem: hi",
        "x\nＨuman: hi",
        "x\nHuman\u{ff1a} hi",
    ];
    for text in spellings {
        let broken = neutralise(text);
        assert!(broken.contains(BREAK), "{text:?} -> {broken:?}");
        assert_eq!(broken.replace(BREAK, ""), text.replace(BREAK, ""), "only breaks are added");
        assert_eq!(neutralise(&broken), broken, "{text:?}");
    }
    // A name space in front changes nothing.
    assert!(neutralise(&format!("</{}:x>", "antml")).contains(BREAK));
}

#[test]
fn headings_are_broken_where_markdown_sees_one() {
    assert_eq!(
        neutralise("# A\n   ## B\n####### C\n    # D\n#E\n"),
        "\\# A\n   \\## B\n####### C\n    # D\n#E\n"
    );
    assert_eq!(neutralise("a\n===\nb\r\n--- \n\n---\n"), "a\n=\u{200b}==\nb\r\n-\u{200b}-- \n\n---\n");
    stays("inline #123 and # 4");
}

#[test]
fn ordinary_code_is_left_byte_identical() {
    for code in [
        "int end_line = 3; begin_transaction(); end_untrusted = 1;",
        "#include <stdio.h>\n#include <system_error>\n#define X 1\n#!/bin/sh\n",
        "if (a < b && c > d) x = a[i] <<s>> 2;",
        "Vec<Document>, Option<Slot>, std::vector<System> v;",
        "f <| x; a <| b |> c; g <|> h;",
        "<source src=\"a.mp4\"> <prompt text=1> <kind>x",
        "user: root\nsystem: linux\nassistant = 3\nhuman_readable: true\n",
        "let x = [inst, system]; y[inst]; z = arr[inst - 1];",
        "class Human:\n    def User: pass\n",
        "\\x3d \\u003e %3a &amp; &copy; ROBEGIN_X xEND_Y",
        "- item\n- item\n\n----\n",
        "café – “quoted” 日本語 «guillemets» → ∀x",
    ] {
        stays(code);
    }
}

#[test]
fn text_without_a_boundary_is_borrowed() {
    assert!(matches!(neutralise("plain < text [x] & more"), Cow::Borrowed(_)));
}

#[test]
fn openings_without_end_cost_linear_time() {
    // Each opening's reading stops at the next opening, so a run of them is read twice at most.
    for unit in [
        "<",
        "< ",
        "</",
        "[",
        "[ ",
        "&lt;",
        "<|",
        "<|im_start",
        "BEGIN",
        "\n# ",
        "\u{200b}",
        "<\u{ad}",
        "\n\u{ad}",
    ] {
        let text = unit.repeat(10_000);
        let once = neutralise(&text).into_owned();
        assert_eq!(neutralise(&once), once);
    }
}
