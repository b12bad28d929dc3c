use super::*;

fn out(text: &str) -> String {
    redact_autofetch(text).0.into_owned()
}

#[test]
fn the_host_is_gone_from_every_fetching_construct() {
    let cases = [
        "![a](https://evil.example/x.png)",
        "![a]( <https://evil.example/x y> \"t\" )",
        "![a](//evil.example/x)",
        "![a][b]\n\n[b]: //evil.example/x",
        "[b]: <https://evil.example/a b> 'title'",
        "[b]:\n  https://evil.example/",
        "> [b]: https://evil.example/",
        "- x\n\n    [b]: https://evil.example/\n\n  [b]",
        "[a](htt\tps://evil.example/)",
        "[a]( http://evil.example)",
        "[a](mailto:x@evil.example)",
        "[a](ht%74ps://evil.example)",
        "[a](&#104;ttps&colon;//evil.example)",
        "[a](h&Tab;ttps://evil.example)",
        "[a](javascript:fetch('//evil.example'))",
        "[a](://evil.example)",
        "[a](\\/\\/evil.example/)",
        "[a](/\\evil.example/)",
        "[a\n](https://evil.example)",
        "[![x](y)](https://evil.example)",
        "[a <img ]>](https://evil.example)",
        "<https://evil.example/>",
        "<img src=https://evil.example>",
        "<img/src=https://evil.example>",
        "<IMG\nSRC='https://evil.example'>",
        "<img alt='>' src=https://evil.example>",
        "<im\0g src=https://evil.example>",
        "<im\u{180e}g src=https://evil.example>",
        "<im\u{34f}g src=https://evil.example>",
        "<im\u{e0041}g src=https://evil.example>",
        "<im\u{fe0f}g src=https://evil.example>",
        "<svg><image href=https://evil.example/></svg>",
        "<svg:image xlink:href=https://evil.example/>",
        "<math href='https://evil.example'>x</math>",
        "<mglyph src=https://evil.example>",
        "<table background=https://evil.example>",
        "<button formaction=https://evil.example>",
        "<blockquote cite=https://evil.example>",
        "<html manifest=https://evil.example>",
        "<a/href=https://evil.example>",
        "<a ping='https://evil.example' href=#>",
        "<div style='background:url(https://evil.example)'>",
        "<div style=background:u\\72l(https://evil.example)>",
        "<p a\" title=\">\" style='x:url(https://evil.example)'>",
        "<style>@import 'https://evil.example';</style>",
        "@import 'https://evil.example/x.css';",
        "@import url(https://evil.example/x.css)",
        "<meta http-equiv=refresh content='0;url=https://evil.example'>",
        "<base href=https://evil.example>",
        "<x onclick=location='https://evil.example'>",
        "<?xml-stylesheet href='https://evil.example'?>",
        "<link rel=prefetch href=https://evil.example>",
        "\x1b]8;;https://evil.example\x07click\x1b]8;;\x07",
        "\u{9d}8;;https://evil.example\u{9c}",
        "\x1b]1337;File=inline=1:https://evil.example\x07",
        "\x1bPq#0;evil.example\x1b\\",
        "\x1b_Gf=100,t=f;evil.example\x1b\\",
        "![^1]\n\n[^1]: https://evil.example",
        "![[https://evil.example/x.png]]",
        "<p style='font-family:\"x\";background:image-set(\"https://evil.example\")'>",
        "<p style=\"font-family:'x';background:u\\72l(https://evil.example)\">",
        "<lineargradient x:href=https://evil.example>",
        "<!ENTITY x SYSTEM 'https://evil.example/'>",
        "<!DOCTYPE x SYSTEM 'https://evil.example/'>",
        "[b]:    https://evil.example/",
        "   [b]:\n   <https://evil.example/>",
        "<applet code=x codebase=https://evil.example>",
        "<bgsound src=https://evil.example>",
        "<portal src=https://evil.example>",
        "<form action=https://evil.example>",
        "[a](file://evil.example/x) and [b](ftp://evil.example/) and [c](vbscript:evil.example)",
        "![a](data:image/svg+xml;base64,evil.example)",
        "<a \\ href=https://evil.example>",
        "<a 1 href=https://evil.example>",
        "<a ' href=https://evil.example>",
        "<a = href=https://evil.example>",
        "<a \\| href=https://evil.example>",
        "<p xml:base='https://evil.example/'>",
        "> <a\n> href=https://evil.example>x</a>",
        "> <p\n>style='background:url(https://evil.example)'>",
        "> > <p class=\n> > 'x' style='background:url(https://evil.example)'>",
        "> [a](\n> https://evil.example)",
        "> [a]:\n> https://evil.example",
        "- > <a\n  > href=https://evil.example>x</a>",
    ];
    for text in cases {
        let (clean, count) = redact_autofetch(text);
        assert!(count > 0 && !clean.contains("evil.example"), "{text:?} -> {clean:?}");
        assert!(clean.contains(MARKER), "{text:?} -> {clean:?}");
    }
}

#[test]
fn an_unclosed_tag_loses_its_opening() {
    for text in ["<img src=https://evil.example", "<p style='x:url(https://evil.example)", "<a href='x"] {
        assert!(out(text).starts_with(MARKER), "{text} -> {}", out(text));
    }
}

#[test]
fn length_hides_nothing() {
    let long = "a".repeat(9000);
    for text in [
        format!("![x](https://evil.example/{long})"),
        format!("[x](https://evil.example/{long})"),
        format!("<img alt='{long}' src=https://evil.example/>"),
        format!("<a title=\"{long}\" href=https://evil.example/>"),
        format!("<b {long} style='x:url(https://evil.example)'>"),
        format!("[{long}](https://evil.example/)"),
    ] {
        let clean = out(&text);
        assert!(!clean.contains("evil.example"), "{}", clean.get(..200).unwrap_or(&clean));
    }
    let prose = format!("a word [1] ({long}) and [see] ({long} https://example.org)");
    assert_eq!(out(&prose), prose);
}

#[test]
fn the_marker_never_becomes_a_link_itself() {
    let clean = out("![a](x)(https://evil.example) ![b](y): https://evil.example");
    assert!(!clean.contains("](") && !clean.contains("]:"), "{clean}");
}

#[test]
fn ordinary_text_and_code_are_borrowed_unchanged() {
    let cases = [
        "see https://example.org/a?b=c#d and http://x.example.",
        "let v = vec![0; 10]; m[i][j] = handlers[i](event);",
        "auto f = [](std::string s) { return s; }; arr[i](std::move(x));",
        "{ [key]: v, [other]: 'w' }",
        "if a < b && c > d || x <y { }",
        "import os.path\nfrom a.b import (c, d)\nprint(f'{x[0]}: {y}')",
        "template <class T> struct A { std::vector<T> v; A<B<T>> w; };",
        "printf(\"%s [%d]: %s\\n\", a, b, c);",
        "Vec<Image>, Option<Link>, Box<dyn Input>, HashMap<String, Frame>",
        "#include <string>\n#include <vector>\nstd::map<std::string, int> m;",
        "[^1]: text of the note, https://example.org\n\nmydata:1,2 data: 1, 2",
        "[guide](docs/guide.md) and [top](#top) and [q](?x=1)",
        "      [x]: https://example.org/in/code",
        "<!DOCTYPE html> <!-- https://example.org --> <p style=\"font:'x';color:red\">",
        "<b>bold</b> <div class=\"x\">y</div> <T extends U = V>",
        "[INFO]: started\n[WARN]: disk at 91",
        "@Import(Foo.class) @import Foundation;",
        "café 日本語 👍🏽 ❤️",
        "fn f<'a>(x: &'a str) -> Result<(), E> where T: Into<Vec<u8>> {}",
    ];
    for text in cases {
        let (clean, count) = redact_autofetch(text);
        assert_eq!((clean.as_ref(), count), (text, 0));
    }
}

#[test]
fn a_host_of_the_allowlist_keeps_its_links_and_loses_its_images() {
    let policy =
        Policy { allow_hosts: vec!["docs.example.org".into(), "*.ok.example".into()], keep_autolinks: false };
    let keep = "[a](https://docs.example.org/x) [b](https://a.b.ok.example) <https://docs.example.org/>";
    assert_eq!(redact_autofetch_with(keep, &policy), (Cow::Borrowed(keep), 0));
    for text in [
        "![a](https://docs.example.org/x)",
        "[a](http://docs.example.org/)",
        "[a](https://docs.example.org@evil.example/)",
        "[a](https://docs.example.org\\@evil.example/)",
        "[a](https://ok.example/)",
        "[a](https://notok.example/)",
        "[a](https://xok.example/)",
    ] {
        assert_ne!(redact_autofetch_with(text, &policy).1, 0, "{text}");
    }
}

#[test]
fn running_it_twice_changes_nothing_more() {
    for text in [
        "![a](b)(c)",
        "<img <img src=x>>",
        "[x]: //e\n![x]",
        "![![a](b)](c)",
        "<style><style></style>",
        "![a](x)[b](//e)",
    ] {
        let once = out(text);
        assert_eq!(out(&once), once, "{text}");
    }
}

#[test]
fn long_runs_of_openings_cost_a_bounded_number_of_steps() {
    // The budget is the bound: what a hostile text can make the look-ahead do is four steps a byte.
    for unit in [
        "[", "![", "<style>", "style=", "<a ", "<b ", "\"'", "[](", "![a][", "<b \"", "<b a=\"", "[]:",
        "<x a='\"", "](<", "data:,",
    ] {
        let text = unit.repeat(40_000 / unit.len());
        let policy = Policy::default();
        let scanner = Scanner::new(&text, &policy);
        assert!(scanner.budget <= text.len() * 4 + 4096);
        let clean = out(&text);
        assert_eq!(out(&clean), clean, "{unit}");
    }
}

#[test]
fn a_link_to_nothing_but_a_scheme_goes() {
    for text in ["<javascript:>", "](\t<javascript:>&colon;", "<MAILTO:>", "[x](javascript:)"] {
        assert_eq!(redact_autofetch(text).1, 1, "{text}");
    }
    assert_eq!(redact_autofetch("a <std:> b").1, 0);
}

#[test]
fn a_handler_goes_however_long_its_name_is() {
    for text in ["<a 'x y' on![x][b]%2f=\"ly\">", "<b onabcdefghijklmnopqrstuvwxyzabcdefghijklm='x'>"] {
        assert_ne!(redact_autofetch(text).1, 0, "{text}");
        let clean = out(text);
        assert_eq!(out(&clean), clean);
    }
}

#[test]
fn a_long_name_in_wide_letters_hides_no_attribute() {
    for lead in ["x", "xy", "xyz"] {
        let tag = format!("<{lead}{} style=\"background:url(//evil.example/x)\">", "ａ".repeat(30));
        assert!(!out(&tag).contains("evil.example"), "{tag}");
    }
}

#[test]
fn a_carriage_return_ends_a_line() {
    let clean = out("x\r\r[b]: https://evil.example/x.png\r\r![b]\r");
    assert!(!clean.contains("evil.example"), "{clean}");
}

#[test]
fn a_definition_behind_any_container_goes() {
    for prefix in ["[^1]: ", "- [ ] ", "1. [x] ", ":   ", "a. ", "iv) ", "> - [^note]: "] {
        let clean = out(&format!("{prefix}[b]: https://evil.example/x.png\n\n![b]\n"));
        assert!(!clean.contains("evil.example"), "{prefix:?}: {clean}");
    }
    // In the middle of a sentence it is none.
    let prose = "As in [b]: https://example.org says so.";
    assert_eq!(out(prose), prose);
}

#[test]
fn a_definition_whose_parentheses_do_not_balance_goes_in_any_container() {
    for dest in [
        "https://evil.example/(x",
        "//evil.example/((x",
        "https:evil.example/(()x",
        "https://evil.example/(x 't'",
    ] {
        for head in [
            "> [b]:\n> ",
            "> > [b]:\n> > ",
            "- a\n\n    [b]: ",
            "1. x\n\n   - y\n\n     [b]: ",
            ">[b]:\n>",
            "- [b]:\n  ",
        ] {
            let clean = out(&format!("{head}{dest}\n\n![b]\n"));
            assert!(!clean.contains("evil.example"), "{head:?} {dest}: {clean}");
        }
    }
    let script = out("> [b]:\n> javascript:evil(\n\n[b]\n");
    assert!(!script.contains("javascript:"), "{script}");
    let code = "    a[b]: f(x)\n    [b]: f(x)\n";
    assert_eq!(out(code), code);
}

#[test]
fn code_and_words_in_angle_brackets_stay() {
    for text in [
        "fmt = struct.pack('<H', n)\ndata = f.read()\ncontent = 2\nx = 1 if a > b else 2\n",
        "unpack('<L', s)[0]; code = 5; style = {}\n\nif x > y:\n",
        "if name.startswith(\"<frozen\"):\n    data = f(x)\n    return a > b\n",
        "Array<Object>, Promise<object>, Vec<embed>, Tracked<<Input as Stream>::Error>",
        "<meta charset=\"utf-8\">",
        "/// <param name=\"x\">the input</param>",
        "[ERROR]: src/main.rs:3\n[GET]: /api/v1\n",
        "<a name=\"0.4.2\"></a>",
        "a <a statement> of <object detection>, less <a href, cmd <input file> <import>",
        "use <input> and <source>",
    ] {
        assert_eq!(out(text), text);
    }
    // What is taken from a tag that would swallow paragraphs is its opening.
    let text = "<a href=\"x\n\nimport os\n\n\" title='b'> c";
    assert_eq!(out(text), "[REDACTED-AUTOFETCH-MARKUP] href=\"x\n\nimport os\n\n\" title='b'> c");
}

#[test]
fn an_element_with_what_arms_it_goes() {
    for text in [
        "<object data=//evil.example>",
        "<meta http-equiv=refresh content='0;url=//evil.example'>",
        "<meta name=twitter:image content=https://evil.example/x>",
        "<param name=movie value=//evil.example>",
        "<set attributeName=href to=javascript:evil.example>",
        "<input type=image src=//evil.example>",
        "<import implementation='a' src='//evil.example'>",
        "<a name=b href=//evil.example>",
    ] {
        assert!(!out(text).contains("evil.example"), "{text}");
    }
    // No language has an element of that name: it has no attributes that fetch, but style and handlers are anyone's.
    let unnamed = out("<H' style='background:url(//evil.example)'>");
    assert!(unnamed.starts_with("[REDACTED"), "{unnamed}");
}

#[test]
fn a_second_equals_sign_opens_an_unquoted_value() {
    for equals in ["==", "= ="] {
        let tag = format!("<div style{equals}\"a\";background:url(https://evil.example/x)>hi</div>");
        assert!(!out(&tag).contains("evil.example"), "{tag}");
    }
}

#[test]
fn control_characters_inside_a_terminal_sequence_hide_nothing() {
    for text in [
        "\x1b\n]8;;https://evil.example\x07click",
        "\x1b\x7f]8;;https://evil.example\x07",
        "\x1b\x01]8;;https://evil.example\x07",
        "\x1b]1\x01337;File=inline=1:evil.example\x07",
        "\x1b]0\x018;;https://evil.example\x07",
        "\x1b]133\x017;evil.example\x07",
    ] {
        assert!(!out(text).contains("evil.example"), "{text:?}");
    }
    let title = "\x1b]0;a title\x07";
    assert_eq!(out(title), title);
}

#[test]
fn an_image_that_uses_an_allowed_definition_takes_the_definition_with_it() {
    let policy = Policy { allow_hosts: vec!["docs.example.org".into()], keep_autolinks: false };
    let image = "![a]\n\n[a]: https://docs.example.org/x?d=secret\n";
    assert!(!redact_autofetch_with(image, &policy).0.contains("docs.example.org"));
    let link = "[a]\n\n[a]: https://docs.example.org/x\n";
    assert_eq!(redact_autofetch_with(link, &policy).0, link);
}

#[test]
fn a_rule_without_a_host_allows_nothing() {
    for rule in ["", ".", "*.", "*", "-"] {
        let policy = Policy { allow_hosts: vec![rule.into()], keep_autolinks: false };
        for text in ["[a](https:///evil.example/)", "[a](https://./x)", "[a](https://-/x)"] {
            assert_eq!(redact_autofetch_with(text, &policy).1, 1, "{rule} {text}");
        }
    }
}

#[test]
fn a_long_destination_and_an_escaped_one_lead_where_they_lead() {
    for text in [
        "[a](java&Tab;script:alert())",
        "[a](&#104;ttp://evil.example)",
        "[a](\\/\\/evil.example)",
        "[a](\n//evil.example)",
        "> [a](\n> //evil.example)",
    ] {
        assert_ne!(redact_autofetch(text).1, 0, "{text}");
    }
    assert_eq!(redact_autofetch("[b](x//y) [c](a%20b) [d](1:2)").1, 0);
}

#[test]
fn a_tag_that_a_block_leaves_open_is_closed_by_what_is_rendered_after_it() {
    for text in [
        "><p\n>onyl='",
        "><p\n>onyl=",
        "> <p\n> onclick='x",
        "> > <p class=\n> > 'x' style='background:url(//evil.example/\n\nx' y>",
        "> <p\n> style=\"background:url(//evil.example/x\n\ny\">",
    ] {
        let (clean, count) = redact_autofetch(text);
        assert_ne!(count, 0, "{text:?}: {clean:?}");
        assert_eq!(out(&clean), clean);
    }
    let quoted = "> <p\n> class='x'\n\ntext";
    assert_eq!(out(quoted), quoted);
}
