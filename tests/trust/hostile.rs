//! Malformed and hostile documents: each has a verdict, and none crashes the reader.

use crate::support::Repo;
use proptest::prelude::*;

/// Documents that are no settings file, as bytes.
fn malformed() -> Vec<Vec<u8>> {
    let hook = r#"{"apiKeyHelper":"x"}"#;
    let wide = |little: bool, bom: bool| {
        let mut bytes = if bom { vec![0xfe, 0xff] } else { vec![] };
        if little && bom {
            bytes = vec![0xff, 0xfe];
        }
        for unit in hook.encode_utf16() {
            bytes.extend(if little { unit.to_le_bytes() } else { unit.to_be_bytes() });
        }
        bytes
    };
    let mut all: Vec<Vec<u8>> = [
        "",
        " ",
        "\n\n",
        "\u{feff}",
        "\u{feff}\u{feff}{}",
        "null",
        "true",
        "0",
        "\"x\"",
        "[]",
        "[{}]",
        "{",
        "}",
        "{}{}",
        "{} x",
        "{}\0",
        "\0{}",
        "{\"a\"}",
        "{\"a\":}",
        "{a:1}",
        "{'a':1}",
        "{\"a\":1,}",
        "{,}",
        "[1,]",
        "{\"a\":01}",
        "{\"a\":+1}",
        "{\"a\":.5}",
        "{\"a\":1.}",
        "{\"a\":0x1}",
        "{\"a\":NaN}",
        "{\"a\":Infinity}",
        "{\"a\":-Infinity}",
        "{\"a\":undefined}",
        "// c\n{}",
        "{/*c*/}",
        "{} // c",
        "# c\n{}",
        "{\"a\":'b'}",
        "{\"a\":\"\\x41\"}",
        "{\"a\":\"\\ud800\"}",
        "{\"a\":\"\\udc00\\ud800\"}",
        "{\"\\ud83d\":1}",
        "{\"a\":\"\u{1}\"}",
        "{\"a\":\"\n\"}",
        "{\"a\":\"\t\"}",
        "{\"a\":\"\\u12\"}",
        "{\"a\":\"\\\"}",
        "{\"a\":tru}",
        "{\"a\":TRUE}",
        "{\"a\":1e999}",
        "{\"a\":1 \"b\":2}",
        "{\"a\":1;\"b\":2}",
        "{\"a\" 1}",
        "{\"a\":1,\"a\":1}",
        "{\"a\":{\"b\":1,\"b\":2}}",
        "{\"a\":[{\"b\":1,\"b\":2}]}",
        "{\"\":1,\"\":2}",
        "{\"\\u0061\":1,\"a\":2}",
        "<settings/>",
        "---\na: 1\n",
        "\u{200b}{}",
        "\u{2028}{}",
        "{\u{a0}}",
        "{}\u{feff}",
        "{\"a\":1}\u{0}\u{0}",
        "{\"hooks\":{},\"hooks\":{\"Stop\":[]}}",
    ]
    .iter()
    .map(|text| text.as_bytes().to_vec())
    .collect();
    for n in [101, 200, 1_000, 100_000] {
        for (open, close) in [("[", "]"), ("{\"a\":", "}"), ("{\"a\":[", "]}")] {
            all.push(format!("{}1{}", open.repeat(n), close.repeat(n)).into_bytes());
            all.push(open.repeat(n).into_bytes());
        }
    }
    for little in [true, false] {
        for bom in [true, false] {
            all.push(wide(little, bom));
        }
    }
    for bad in [
        &b"{\"a\":\"\xff\"}"[..],
        b"\xc0\xaf",
        b"{\"\xed\xa0\x80\":1}",
        b"{\"a\":\"\xf5\x80\x80\x80\"}",
        b"{\"a\":\"\x80\"}",
    ] {
        all.push(bad.to_vec());
    }
    let mut late = br#"{"a":1}"#.to_vec();
    late.extend(vec![b' '; 900_000]);
    late.push(b'x');
    all.push(late);
    all
}

#[test]
fn every_malformed_document_refuses_in_every_json_file() {
    let documents = malformed();
    assert!(documents.len() >= 100, "{}", documents.len());
    for document in &documents {
        for path in [".claude/settings.json", ".mcp.json"] {
            let repo = Repo::new(&[]);
            repo.write(path, document);
            let shown = String::from_utf8_lossy(&document[..document.len().min(60)]).into_owned();
            assert!(repo.check().refuses(), "{path}: {shown:?}");
        }
    }
}

#[test]
fn every_malformed_head_of_an_agent_refuses() {
    for head in [
        "a: 1\na: 2",
        "a: &x 1\nb: *x",
        "? [a]\n: 1",
        "\"a",
        "a: |\n  x\n b",
        "- a\nb: 1",
        "%YAML 9.9\na: 1",
        "\ta: 1\n\tb: [",
        "a:\n\t- [",
    ] {
        let repo = Repo::new(&[(".claude/agents/a.md", &format!("---\n{head}\n---\nbody\n"))]);
        assert!(repo.check().refuses(), "{head:?}");
    }
    // The client quotes a one-line value that is no YAML and reads again; so does jess, and sees the same.
    assert!(!Repo::new(&[(".claude/agents/a.md", "---\na: [\n---\n")]).check().refuses());
    assert!(Repo::new(&[(".claude/agents/a.md", "---\nhooks: [\n---\n")]).check().refuses());
    assert!(
        Repo::new(&[(".claude/agents/a.md", "---\nmcpServers: {x: {command: id}\n---\n")]).check().refuses()
    );
    let deep = format!("---\nhooks: {}\n---\n", "[".repeat(5_000));
    assert!(Repo::new(&[(".claude/agents/a.md", &deep)]).check().refuses());
}

#[test]
fn every_malformed_pack_refuses() {
    for text in ["", "- a", "a", "a: [", "a: 1\na: 2", "a: &x 1\nb: *x", "a: 1\n---\nb: 2", "{", "\u{0}"] {
        for path in ["qlpack.yml", ".github/codeql/codeql-config.yml"] {
            assert!(Repo::new(&[(path, text)]).check().refuses(), "{path}: {text:?}");
        }
    }
}

#[test]
fn nothing_printed_holds_a_control_character_or_a_secret() {
    let secret = "sk-ant-api03-AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
    let repo = Repo::settings(&format!(
        r#"{{"apiKeyHelper":"\u001b[2J\u0007{secret}","hooks":{{"E\u001b]0;x\u0007\u202e":[{{"hooks":[{{"type":"command","command":"x"}}]}}]}},
           "env":{{"A\u009b\nB":"{secret}"}},"statusLine":{{"command":"echo {secret}"}},"zz\u200b\u2028":"{secret} | sh"}}"#
    ));
    repo.write("\u{1b}[31mx/.claude/settings.json", b"{");
    repo.write("a\nb/.mcp.json", br#"{"mcpServers":{"\u001b[0m":{"command":"x"}}}"#);
    let report = repo.check();
    assert!(report.refuses());
    let printed =
        [report.render_human(), report.to_json().to_string(), jess::trust::sarif::render(&report).unwrap()];
    for text in printed {
        assert!(!text.contains(secret), "{text}");
        let bad =
            |c: char| (c.is_control() && c != '\n') || matches!(c, '\u{200b}' | '\u{202e}' | '\u{2028}');
        assert!(!text.contains(bad), "{text:?}");
    }
}

#[test]
fn a_file_of_the_largest_size_is_judged_and_one_byte_more_refuses() {
    let limit = usize::try_from(jess::trust::read::MAX_BYTES).unwrap();
    for path in [".claude/settings.json", ".mcp.json", ".claude-plugin/plugin.json"] {
        let fill = |n: usize| format!("{{{}}}", " ".repeat(n - 2));
        assert!(!Repo::new(&[(path, &fill(limit))]).check().refuses(), "{path}");
        assert!(Repo::new(&[(path, &fill(limit + 1))]).check().refuses(), "{path}");
    }
}

#[test]
fn as_many_imports_as_are_allowed_are_followed_and_one_more_refuses() {
    let limit = jess::trust::rules::memory::MAX_IMPORTS;
    let text = |n: usize| (0..n).map(|i| format!("@docs/{i}.md\n")).collect::<String>();
    assert!(!Repo::new(&[("CLAUDE.md", &text(limit))]).check().refuses());
    assert!(Repo::new(&[("CLAUDE.md", &text(limit + 1))]).check().refuses());
    // The last one that is allowed is followed, so what it says counts.
    let last = format!("docs/{}.md", limit - 1);
    assert!(Repo::new(&[("CLAUDE.md", &text(limit)), (&last, "@/etc/shadow\n")]).check().refuses());
}

#[test]
fn findings_beyond_those_kept_are_counted_and_refuse() {
    let kept = jess::trust::report::MAX_FINDINGS;
    let keys = |n: usize| {
        let env: Vec<String> = (0..n).map(|i| format!("\"JESS_{i}\":\"1\"")).collect();
        format!("{{\"env\":{{{}}}}}", env.join(","))
    };
    let shown = |n: usize| {
        let report = Repo::settings(&keys(n)).check();
        assert!(report.refuses());
        let json = report.to_json();
        let listed: usize = report.files().map(|(_, f)| f.len()).sum();
        (listed, json["not_shown"].as_u64())
    };
    assert_eq!(shown(kept), (kept, None));
    assert_eq!(shown(kept + 7), (kept, Some(7)));
}

fn any_json() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        ".{0,12}".prop_map(Into::into),
    ];
    leaf.prop_recursive(5, 60, 6, |inner| {
        let key = prop_oneof![
            Just("hooks".to_string()),
            Just("command".to_string()),
            Just("permissions".to_string()),
            Just("mcpServers".to_string()),
            Just("env".to_string()),
            Just("sandbox".to_string()),
            ".{0,8}",
        ];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Into::into),
            prop::collection::vec((key, inner), 0..6)
                .prop_map(|pairs| { serde_json::Value::Object(pairs.into_iter().collect()) }),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_document_has_a_verdict_and_a_printable_report(value in any_json()) {
        let text = value.to_string();
        let repo = Repo::new(&[(".claude/settings.json", &text), (".mcp.json", &text), (".claude-plugin/plugin.json", &text)]);
        let report = repo.check();
        prop_assert!(!report.render_human().contains(|c: char| c.is_control() && c != '\n'));
        prop_assert!(value.is_object() || report.refuses());
    }

    #[test]
    fn a_handler_under_any_nesting_of_lists_refuses(depth in 0usize..20, extra in any_json()) {
        let handler = r#"{"type":"command","command":"id"}"#;
        let text = format!("{{\"note\":{extra},\"hooks\":{{\"Stop\":{}{handler}{}}}}}", "[".repeat(depth), "]".repeat(depth));
        prop_assert!(Repo::settings(&text).check().refuses());
    }

    #[test]
    fn any_bytes_have_a_verdict(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let repo = Repo::new(&[]);
        for path in [".claude/settings.json", "CLAUDE.md", ".claude/agents/a.md", ".claude/commands/c.md", "qlpack.yml"] {
            repo.write(path, &bytes);
        }
        let report = repo.check();
        prop_assert_eq!(report.to_json()["refuse"].as_bool(), Some(report.refuses()));
    }
}
