use super::*;
use crate::gate::secrets::rot13;
use base64::Engine as _;
use std::io::Write as _;

fn token() -> String {
    format!("ghp_{}", "a1B2c3D4e5F6".repeat(3))
}

fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

fn base32(bytes: &[u8]) -> String {
    let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    let bits: String = bytes.iter().map(|b| format!("{b:08b}")).collect();
    let digit =
        |five: &[u8]| alphabet[five.iter().fold(0, |n, b| n * 2 + usize::from(b - b'0')) << (5 - five.len())];
    bits.as_bytes().chunks(5).map(|five| char::from(digit(five))).collect()
}

fn utf8(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// As `xxd` writes it with `group` 2 and no mark, and `hexdump -C` with 1 and a mark around the characters.
fn dump(token: &str, group: usize, mark: &str) -> String {
    let hex = |bytes: &[u8]| bytes.iter().map(|b| format!("{b:02x}")).collect::<String>();
    let lines = token.as_bytes().chunks(16).enumerate().map(|(n, line)| {
        let groups: Vec<String> = line.chunks(group).map(hex).collect();
        let colon = if mark.is_empty() { ": " } else { "  " };
        format!("\n{:08x}{colon}{}  {mark}{}{mark}", n * 16, groups.join(" "), utf8(line))
    });
    lines.collect()
}

/// Encodings of `token`, each with the name of the view that reads it.
fn forms(token: &str) -> Vec<(&'static str, String)> {
    let standard = &base64::engine::general_purpose::STANDARD;
    let url_safe = &base64::engine::general_purpose::URL_SAFE_NO_PAD;
    let join = |each: &dyn Fn(u8) -> String, by: &str| token.bytes().map(each).collect::<Vec<_>>().join(by);
    let spaced = |by: &str| token.chars().map(String::from).collect::<Vec<_>>().join(by);
    let encoded = standard.encode(format!("the token is {token}, keep it"));
    let wrapped = encoded.as_bytes().chunks(32).map(|c| String::from_utf8_lossy(c).into_owned());
    let wide: Vec<u8> = token.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let mut binary = vec![0xff, 0xfe, 0x80];
    binary.extend_from_slice(token.as_bytes());
    vec![
        ("base64", standard.encode(token)),
        ("base64", url_safe.encode(format!("token: {token}"))),
        ("base64", format!("x{}", standard.encode(token))),
        ("base64", format!("key={}", standard.encode(token))),
        ("base64", wrapped.clone().collect::<Vec<_>>().join("\r\n")),
        ("base64", wrapped.collect::<Vec<_>>().join("\" +\n    \"")),
        ("base64", encoded.as_bytes().chunks(32).map(utf8).collect::<Vec<_>>().join("\n# ")),
        ("base64", encoded.as_bytes().chunks(32).map(utf8).collect::<Vec<_>>().join("\n// ")),
        ("base64", standard.encode(&binary)),
        ("base64", standard.encode(&wide)),
        ("base64", standard.encode(gzip(token))),
        ("base64", standard.encode(standard.encode(token))),
        ("base64", standard.encode(standard.encode(standard.encode(token)))),
        ("base32", base32(token.as_bytes())),
        ("base32", base32(token.as_bytes()).to_lowercase()),
        ("hex", join(&|b| format!("{b:02x}"), "")),
        ("hex", format!("0{}", join(&|b| format!("{b:02X}"), ""))),
        ("hex", join(&|b| format!("{b:02x}"), " ")),
        ("hex", join(&|b| format!("{b:02x}"), ":")),
        ("hex", join(&|b| format!("0x{b:02x}"), ", ")),
        (
            "hex",
            join(&|b| format!("{b:02x}"), "")
                .as_bytes()
                .chunks(16)
                .map(|c| String::from_utf8_lossy(c))
                .collect::<Vec<_>>()
                .join("\n"),
        ),
        ("escaped", join(&|b| format!("\\x{b:02x}"), "")),
        ("escaped", join(&|b| format!("%{b:02X}"), "")),
        ("escaped", join(&|b| format!("\\u{b:04x}"), "")),
        ("escaped", join(&|b| format!("\\u{{{b:x}}}"), "")),
        ("escaped", join(&|b| format!("\\{b:03o}"), "")),
        ("escaped", join(&|b| format!("&#{b};"), "")),
        ("escaped", join(&|b| format!("&#x{b:x};"), "")),
        ("escaped", token.replacen("ghp_", "g\\u0068p_", 1)),
        ("escaped", token.replacen("ghp_", "ghp&lowbar;", 1)),
        ("escaped", join(&|b| format!("%25{b:02X}"), "")),
        ("decimal", join(&|b| b.to_string(), ", ")),
        ("decimal", format!("String.fromCharCode({})", join(&|b| b.to_string(), ","))),
        ("octal", join(&|b| format!("{b:03o}"), " ")),
        ("binary", join(&|b| format!("{b:08b}"), " ")),
        ("quoted-printable", join(&|b| format!("={b:02X}"), "")),
        ("quoted-printable", format!("{}=\n{}", &token[..14], &token[14..])),
        ("reversed", token.chars().rev().collect()),
        ("separated", format!("['{}']", spaced("', '"))),
        ("separated", spaced(" ")),
        ("separated", spaced("-")),
        ("separated", spaced(".")),
        ("separated", spaced("\n")),
        ("separated", format!("\"{}\" + \"{}\"", &token[..12], &token[12..])),
        ("separated", format!("'{}'\n    '{}'", &token[..12], &token[12..])),
        ("split", format!("{} {}\n  {}", &token[..12], &token[12..18], &token[18..])),
        ("separated", format!("'{}'.concat('{}')", &token[..12], &token[12..])),
        ("broken", format!("{}<b></b>{}", &token[..12], &token[12..])),
        ("broken", format!("{}\x1b[0;1m{}", &token[..12], &token[12..])),
        ("broken", format!("{}\\\n{}", &token[..12], &token[12..])),
        ("broken", format!("{}\u{a0}{}", &token[..12], &token[12..])),
        ("decimal", join(&|b| format!("chr({b})"), "+")),
        ("decimal", join(&|b| format!("Chr({b})"), " & ")),
        ("hex", dump(token, 2, "")),
        ("hex", dump(token, 1, "|")),
        ("separated", spaced("\u{200b}")),
        ("separated", spaced("\0")),
        ("look-alikes", format!("{}\u{200b}{}\0{}", &token[..6], &token[6..9], &token[9..])),
        ("look-alikes", token.chars().map(|c| char::from_u32(c as u32 + 0xFEE0).unwrap()).collect()),
        (
            "rot13",
            token
                .chars()
                .map(|c| match c {
                    'a'..='m' | 'A'..='M' => char::from(c as u8 + 13),
                    'n'..='z' | 'N'..='Z' => char::from(c as u8 - 13),
                    c => c,
                })
                .collect(),
        ),
    ]
}

#[test]
fn a_secret_is_found_behind_each_encoding_and_nothing_else_goes() {
    for (encoding, form) in forms(&token()) {
        let text = format!("before\n {form} \n; after, é");
        let hits = find(&text);
        let from = 8;
        let hit = hits.iter().find(|h| h.encoding == encoding);
        let hit = hit.unwrap_or_else(|| panic!("{encoding} {form} {hits:?}"));
        assert!(
            hit.kind == "github-token" && hit.start >= from && hit.end <= from + form.len(),
            "{form} {hits:?}"
        );
        let clean = crate::gate::redact(&crate::untrusted::Untrusted::new(&text));
        assert!(
            clean.contains("[REDACTED:github-token")
                && clean.starts_with("before\n")
                && clean.ends_with("; after, é"),
            "{clean}"
        );
        assert_eq!(find(&clean), [], "{form} -> {clean}");
    }
}

#[test]
fn a_known_value_is_found_in_every_form() {
    let value = "Canary-93vQx7-Lm42!k";
    let known = Known::new([value, "short"]);
    for (encoding, form) in forms(value) {
        assert!(!known.find(&format!("x {form} y")).is_empty(), "{encoding} {form}");
    }
    assert!(known.find(&value.to_lowercase()).len() == 1);
    assert!(known.find("short Canary-93").is_empty());
    for form in ["c a n a r y 9 3 v q x 7 l m 4 2 k", "k24ml7xqv39yranac", "CANARY_93VQX7_LM42_K"] {
        assert_eq!(known.find(form).len(), 1, "{form}");
    }
}

#[test]
fn known_values_are_found_in_base58_and_base85() {
    // Vectors of the encodings' own descriptions and of Python's base64 module.
    let known = Known::new(["Hello World!"]);
    assert_eq!(known.find("x 2NEpo7TZRRrLZSi2U y")[0].encoding, "base58");
    for form in ["<~87cURD]i,\"Ebo80~>", "NM&qnZy;B1a%^NF"] {
        assert_eq!(known.find(form).first().map(|h| h.encoding), Some("base85"), "{form}");
    }
    assert!(known.find("x 2NEpo7TZRRrLZSi2V y").is_empty());
}

#[test]
fn half_of_a_long_value_is_a_finding_and_a_few_characters_are_none() {
    let value = "sk-ant-api03-Zq8Lw2Rt5Yv7Bn4Mx1Kc6Jh9Gf3Ds0Ap-Qe8Ui2Oy5";
    let known = Known::new([value]);
    assert_eq!(known.find(&format!("head {} tail", &value[..30])).len(), 1);
    assert_eq!(known.find(&format!("head {} tail", &value[20..])).len(), 1);
    assert!(known.find("sk-ant-api03-Zq8Lw2Rt5Y").is_empty());
}

#[test]
fn ordinary_encoded_data_is_nothing() {
    for text in [
        "sha256 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "data SGVsbG8gd29ybGQsIHRoaXMgaXMgYSBwbGFpbiBzZW50ZW5jZQ==",
        "a b c d e f g h i j k l m n o p q r s t u v w x y z",
        "path%20with%20many%20spaces%2Fand%2Fslashes",
        "10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 110, 120, 130",
        "A short line.\nAnother line, with words in it; and a third one.",
        "00000000: 4865 6c6c 6f2c 2077 6f72 6c64 2120 4120  Hello, world! A \n00000010: 7365 6e74 656e 6365  sentence",
        "see http://host:8080<br>name@example.org and a<b>c</b>d, one\\\ntwo",
        "integrity sha512-vvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvw==",
    ] {
        assert_eq!(find(text), [], "{text}");
    }
}

#[test]
fn compressed_data_beyond_the_bound_is_a_finding() {
    let standard = &base64::engine::general_purpose::STANDARD;
    // What inflates to nothing but one letter costs this test little.
    let small = standard.encode(gzip(&"x".repeat(1 << 20)));
    assert_eq!(find(&small), [], "at the bound");
    let large = standard.encode(gzip(&"x".repeat((1 << 20) + 1)));
    assert!(find(&large).iter().any(|h| h.kind == "unread"), "beyond it");
    let many: String =
        (0..20).map(|n| standard.encode(gzip(&format!("text {n} of many"))) + "\n\n;\n").collect();
    assert!(find(&many).iter().any(|h| h.kind == "unread"), "more than are inflated");
}

#[test]
fn offsets_are_inside_the_text_and_on_character_boundaries() {
    for (_, form) in forms(&token()) {
        for text in [form.clone(), format!("é{form}é"), format!("日\u{200b}{form}\u{200b}本")] {
            for hit in find(&text) {
                assert!(text.get(hit.start..hit.end).is_some_and(|s| !s.is_empty()), "{text} {hit:?}");
            }
        }
    }
}

#[test]
fn a_value_that_only_its_name_marks_is_found_behind_what_decodes() {
    let line = "AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMIK7MDENGbPxRfiCYzQ8LmT5vWk2P";
    assert!(find(line).is_empty(), "as it stands it is the plain search's");
    for (encoding, form) in forms(line) {
        if !matches!(encoding, "base64" | "base32" | "hex" | "decimal" | "octal" | "binary" | "escaped") {
            continue;
        }
        // Forms that replace a part of a token leave this line as it is.
        if form != line {
            assert!(!find(&format!("x {form} y")).is_empty(), "{encoding} {form}");
        }
    }
}

#[test]
fn a_token_with_few_digits_is_found_in_every_reading() {
    let token = "ghp_kQzWvXbTnMhRgJfDsLpYcNqZwVxBtKmHrG1j";
    let rot13: String = token.bytes().map(|b| char::from(rot13(b))).collect();
    let split = format!("{} {}", &token[..20], &token[20..]);
    for text in [rot13, split, token.chars().rev().collect()] {
        assert_eq!(find(&format!("see {text} ;")).len(), 1, "{text}");
    }
}

#[test]
fn what_could_decode_is_told_from_what_could_not_at_every_alignment() {
    let token = token();
    for lead in 0..9usize {
        let bytes = [&vec![0xff; lead][..], token.as_bytes(), &[0xfe; 7]].concat();
        let base64 = base64::engine::general_purpose::STANDARD.encode(&bytes);
        let hex: String = bytes.iter().map(|b| format!("{b:02x}")).collect();
        for form in [base64, hex, base32(&bytes)] {
            let backwards: String = form.chars().rev().collect();
            for text in [form, backwards] {
                for glued in ["", "x", "ab", "abc"] {
                    assert!(!find(&format!("{glued}{text}")).is_empty(), "{lead} {glued}{text}");
                }
            }
        }
    }
}

#[test]
fn what_a_reader_does_not_see_inside_a_token_is_passed_over_in_any_number() {
    let token = token();
    let (head, tail) = token.split_at(12);
    for between in ["<!-- x -->", "<i></i><wbr>", "\x1b[0m\x1b[1;31m", "\\\r\n", "\u{2009}", "\u{3000}<b>"] {
        let hits = find(&format!("see {head}{between}{tail} ;"));
        assert!(hits.iter().any(|h| h.kind == "github-token" && h.start == 4), "{between:?} {hits:?}");
    }
    let long = format!("<{}>", "x".repeat(64));
    for between in [long.as_str(), "<", "\x1b[", "\\"] {
        let hits = find(&format!("see {head}{between}{tail} ;"));
        assert!(!hits.iter().any(|h| h.encoding == "broken"), "{between:?} {hits:?}");
    }
}

#[test]
fn values_for_one_search_are_found_in_the_same_forms() {
    use base64::Engine as _;
    let value = "Canary-93vQx7-Lm42";
    let (always, once) = (Known::new([value]), Known::once([value]));
    for text in [
        value.to_owned(),
        value.chars().rev().collect(),
        value.to_lowercase(),
        base64::engine::general_purpose::STANDARD.encode(value),
        value.bytes().map(|b| format!("{b:02x}")).collect(),
        "C a n a r y 9 3 v Q x 7 L m 4 2".to_owned(),
        "https://x.example/an/address/of/words".to_owned(),
    ] {
        let found = |known: &Known| known.find(&text).len();
        assert_eq!(found(&always), found(&once), "{text}");
        assert_eq!(found(&once), usize::from(!text.starts_with("https")), "{text}");
    }
}
