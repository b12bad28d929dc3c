use super::shape::{Part, in_class, parse};
use super::table::FORMATS;
use super::*;

/// Characters of a class, varied, made here so that the repository holds no token.
fn run(class: u8, len: usize, seed: usize) -> String {
    let alphabet: Vec<u8> = (b'!'..=b'~')
        .filter(|b| in_class(class, *b) && !matches!(b, b'=' | b'%' | b'-' | b'_' | b'.' | b'+' | b'/'))
        .collect();
    (0..len).map(|i| char::from(alphabet[(i * 7 + seed * 11 + i / 5) % alphabet.len()])).collect()
}

fn token(format: &str, seed: usize, short_by: usize) -> String {
    let parts = parse(format).unwrap();
    let last = parts.iter().rposition(|p| matches!(p, Part::Run(..))).unwrap();
    parts
        .iter()
        .enumerate()
        .map(|(n, part)| match part {
            Part::Literal(text) => text.clone(),
            Part::Run(class, min, _) => run(*class, if n == last { min - short_by } else { *min }, seed + n),
        })
        .collect()
}

#[test]
fn there_are_at_least_120_kinds_and_every_shape_compiles() {
    assert!(structure::compiles());
    assert!(FORMATS.iter().all(|(_, format)| parse(format).is_some()));
    assert!(kinds().len() >= 120, "{}", kinds().len());
}

#[test]
fn each_vendor_format_is_found_whole_in_prose_code_and_headers() {
    for (kind, format) in FORMATS {
        for (seed, frame) in
            [(1, ("key ", " end")), (2, ("K=\"", "\"\n")), (3, ("(", ").")), (4, ("x\\n", "\\n"))]
        {
            let token = token(format, seed, 0);
            let text = format!("{}{token}{}", frame.0, frame.1);
            let hits = find(&text);
            let whole = hits.iter().any(|h| h.start <= frame.0.len() && h.end >= frame.0.len() + token.len());
            assert!(whole, "{kind} {format}: {hits:?}");
            assert!(!redact(&text).contains(&token), "{kind}");
        }
    }
}

#[test]
fn each_vendor_format_has_its_own_kind() {
    for (kind, format) in FORMATS {
        let token = token(format, 5, 0);
        let own = FORMATS.iter().filter(|f| f.0 == *kind);
        let own = own.filter_map(|f| f.1.split('{').next()).any(|head| token.starts_with(head));
        assert!(own, "{kind} {format}");
        // Of formats that begin alike, the first of the table names the token.
        let hits = find(&token);
        let [hit] = hits.as_slice() else { panic!("{kind}: {hits:?}") };
        assert_eq!((hit.start, hit.end), (0, token.len()), "{kind}");
        let alike = hit.kind == *kind || FORMATS.iter().any(|f| f.0 == hit.kind && alike(f.1, format));
        assert!(alike, "{kind}: {hit:?}");
    }
}

/// Do two formats begin with the same literal, or one with a part of the other's?
fn alike(a: &str, b: &str) -> bool {
    let head = |format: &str| format.split('{').next().unwrap_or_default().to_string();
    let (a, b) = (head(a), head(b));
    a.starts_with(&b) || b.starts_with(&a)
}

#[test]
fn a_token_one_character_short_or_inside_a_word_is_not_that_kind() {
    for (kind, format) in FORMATS {
        let short = token(format, 6, 1);
        let hits = find_formats(&format!("x {short} y"));
        assert!(!hits.iter().any(|h| h.kind == *kind), "{kind} {format} {short}");
        let hits = find_formats(&format!("abc{}", token(format, 7, 0)));
        assert!(!hits.iter().any(|h| h.start == 3), "{kind} inside a word");
    }
}

#[test]
fn each_vendor_name_marks_a_value_of_its_shape_and_no_other() {
    for (kind, name, class, min, max) in named::vendor_cases() {
        let value = run(class, min, 3);
        for text in [format!("{name}_key = \"{value}\""), format!("{name}: {value}\n")] {
            assert!(
                find(&text).iter().any(|h| h.kind == kind || text[h.start..h.end].contains(&value)),
                "{kind}: {text}"
            );
        }
        for len in [min - 1, max + 1] {
            let hits = find(&format!("{name}: \"{}\"", run(class, len, 4)));
            assert!(!hits.iter().any(|h| h.kind == kind), "{kind} of length {len}");
        }
        let hits = find(&format!("{name} {value}"));
        assert!(hits.is_empty(), "{kind} without a separator");
    }
}

#[test]
fn each_structure_is_found_and_its_near_miss_is_not() {
    let r = |class, len| run(class, len, 9);
    let pem = |label: &str, body: &str| format!("-----BEGIN {label}-----\n{body}\n-----END {label}-----");
    let cases: Vec<(&str, String, String)> = vec![
        ("private-key", pem("RSA PRIVATE KEY", &r(b'A', 64)), pem("PUBLIC KEY", &r(b'A', 64))),
        (
            "private-key",
            format!("-----BEGIN PRIVATE KEY-----\n{}", r(b'A', 20)),
            "-----BEGIN PRIVATE KEY-----".into(),
        ),
        (
            "pgp-private-key",
            pem("PGP PRIVATE KEY BLOCK", &r(b'A', 64)),
            pem("PGP PUBLIC KEY BLOCK", &r(b'A', 64)),
        ),
        (
            "putty-private-key",
            format!("PuTTY-User-Key-File-3: ssh-rsa\n{}\n", r(b'A', 20)),
            "PuTTY-User-Key-File".into(),
        ),
        (
            "jwt",
            format!("eyJ{}.ewo{}.{}", r(b'A', 20), r(b'A', 20), r(b'A', 20)),
            format!("eyJ{}.ewo{}", r(b'A', 20), r(b'A', 20)),
        ),
        ("jwt", format!("ewog{}.ey{}.{}", r(b'A', 20), r(b'A', 20), r(b'A', 20)), "eye.of.newt".into()),
        ("url-password", format!("postgres://u:{}@db/x", r(b'A', 9)), "postgres://user@db:5432/x".into()),
        (
            "url-password",
            format!("mongodb+srv://u:{}@db/x", r(b'A', 9)),
            "https://example.org:8080/a@b".into(),
        ),
        (
            "url-token",
            format!("https://{}@github.example/x", r(b'A', 24)),
            "https://someone@example.org/".into(),
        ),
        ("url-query-secret", format!("/api?token={}", r(b'A', 20)), "/api?token=short".into()),
        ("azure-sas", format!("se=2030&sig={}%3D", r(b'A', 43)), "sig=abc".into()),
        ("bearer-token", format!("Bearer {}", r(b'A', 24)), "Bearer of bad news arrives".into()),
        ("basic-auth", format!("Basic {}", r(b'A', 20)), "Basic authentication explained".into()),
        (
            "authorization-token",
            format!("Authorization: token {}", r(b'A', 20)),
            "Authorization: token required".into(),
        ),
        (
            "azure-ad-secret",
            format!("x {}8Q~{}", r(b'A', 3), r(b'A', 34)),
            format!("x {}8Q~{}", r(b'A', 3), r(b'A', 20)),
        ),
        (
            "slack-webhook",
            format!("https://hooks.slack.com/services/{}/{}/{}", r(b'U', 9), r(b'U', 9), r(b'A', 24)),
            "https://hooks.slack.com/services/".into(),
        ),
        (
            "discord-webhook",
            format!("https://discord.com/api/webhooks/{}/{}", r(b'D', 18), r(b'A', 68)),
            "https://discord.com/api/webhooks/1/x".into(),
        ),
        (
            "teams-webhook",
            format!("https://a.webhook.office.com/webhookb2/{}", r(b'A', 64)),
            "https://a.webhook.office.com/webhookb2/x".into(),
        ),
        (
            "zapier-webhook",
            format!("https://hooks.zapier.com/hooks/catch/{}/{}", r(b'D', 6), r(b'L', 7)),
            "https://hooks.zapier.com/hooks/catch/".into(),
        ),
        (
            "telegram-token",
            format!("{}:AA{}", r(b'D', 9), r(b'A', 33)),
            format!("{}:AA{}", r(b'D', 9), r(b'A', 30)),
        ),
        (
            "discord-token",
            format!("MTA{}.{}.{}", r(b'A', 21), r(b'A', 6), r(b'A', 27)),
            format!("MTA{}.{}.{}", r(b'A', 21), r(b'A', 5), r(b'A', 27)),
        ),
        ("terraform-token", format!("{}.atlasv1.{}", r(b'A', 14), r(b'A', 64)), "x.atlasv1.y".into()),
        ("mailchimp-token", format!("{}-us12", r(b'H', 32)), format!("{}-us12", r(b'H', 31))),
        (
            "netrc-password",
            format!("machine h login u password {}", r(b'A', 8)),
            "machine learning login".into(),
        ),
        (
            "google-service-account",
            format!("\"private_key_id\": \"{}\"", r(b'H', 40)),
            "\"private_key_id\": \"x\"".into(),
        ),
        ("cookie-session", format!("Cookie: a=1; sessionid={}", r(b'L', 24)), "Cookie: theme=dark".into()),
        ("gitea-token", format!("GITEA_TOKEN={}", r(b'H', 40)), "gitea version 1.2".into()),
        (
            "azure-key",
            format!("{}+ASt{}==", r(b'A', 76), r(b'A', 6)),
            format!("{}+ASt{}==", r(b'A', 76), r(b'A', 3)),
        ),
        (
            "azure-signed-key",
            format!("{}JQQJ99{}", r(b'A', 52), r(b'A', 26)),
            format!("{}JQQJ99{}", r(b'A', 52), r(b'A', 20)),
        ),
        ("newrelic-license-key", format!("{}NRAL", r(b'H', 36)), format!("{}NRAL", r(b'H', 35))),
        (
            "fcm-server-key",
            format!("AAAA{}:APA91b{}", r(b'A', 7), r(b'A', 134)),
            format!("AAAA{}:APA91b{}", r(b'A', 7), r(b'A', 20)),
        ),
        ("jwk-private-key", format!("\"d\": \"{}\"", r(b'A', 43)), format!("\"d\": \"{}\"", r(b'A', 45))),
        ("password-hash", format!("u:$2b$10${}", r(b'A', 53)), format!("u:$2b$10${}", r(b'A', 20))),
        ("laravel-app-key", format!("APP_KEY=base64:{}=", r(b'A', 43)), "APP_KEY=base64:abc=".into()),
        (
            "pgpass-password",
            format!("db.example.org:5432:app:web:{}\n", r(b'A', 12)),
            "- \"127.0.0.1:5432:5432\"".into(),
        ),
        (
            "ansible-vault",
            format!("$ANSIBLE_VAULT;1.1;AES256\n{}\n{}\n", r(b'H', 64), r(b'H', 64)),
            "$ANSIBLE_VAULT;1.1;AES256 is a header".into(),
        ),
        (
            "jdbc-password",
            format!("jdbc:oracle:thin:scott/{}@db:1521:x", r(b'A', 9)),
            "jdbc:oracle:thin:@db:1521:x".into(),
        ),
        (
            "command-password",
            format!("curl -su admin:{} https://h/", r(b'A', 12)),
            "curl -u user:password https://h/".into(),
        ),
        (
            "command-token",
            format!("tool --token {}", r(b'A', 24)),
            "tool --token required-by-the-server".into(),
        ),
        (
            "securestring-password",
            format!("ConvertTo-SecureString \"{}\" -AsPlainText", r(b'A', 13)),
            "ConvertTo-SecureString $value -AsPlainText".into(),
        ),
        ("password", "password=hunter2".into(), "password = getpass(prompt1)".into()),
        ("password", "\"db_password\": \"s3cr3tpw\"".into(), "password: string, passwords_1 = []".into()),
        ("generic-secret", format!("X-Api-Key: {}", r(b'A', 24)), "api_key: ${API_KEY_NUMBER_12}".into()),
        (
            "generic-secret",
            format!("export SECRET={}", r(b'A', 24)),
            "secret = load_secret_from_vault2(x)".into(),
        ),
    ];
    for (kind, positive, near) in &cases {
        assert!(find(positive).iter().any(|h| h.kind == *kind), "{kind}: {positive} {:?}", find(positive));
        assert!(find(near).is_empty(), "{kind}: {near} {:?}", find(near));
    }
    let covered: std::collections::HashSet<&str> = cases.iter().map(|c| c.0).collect();
    assert!(structure::kinds().all(|kind| covered.contains(kind)));
}

#[test]
fn prose_and_code_are_not_secrets() {
    for text in [
        "The password is checked in check_password(); see https://example.org/a:b and 1//divisor",
        "let token = self.next_token(); token: Token::Ident, api_key=os.environ['API_KEY_1']",
        "sk-some-long-css-class-name-with-many-words-inside-of-it",
        "commit 3f2a9c0b1d4e5f60718293a4b5c6d7e8f9012345 sha256:9f86d081884c7d659a2feaa0c55ad015",
        "[REDACTED:password] password=[REDACTED] https://u:[REDACTED]@h/",
    ] {
        assert_eq!(find(text), [], "{text}");
    }
}

#[test]
fn what_is_redacted_is_not_found_again() {
    let text = format!("password=hunter2 {} https://u:pass1word@h/", token("ghp_{A36}", 1, 0));
    let clean = redact(&text);
    assert_eq!(find(&clean), [], "{clean}");
}

#[test]
fn a_private_key_is_found_with_headers_in_a_diff_and_in_a_list() {
    let body = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7";
    for (label, before, headers) in [
        ("RSA ", "", "Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00FF\n\n"),
        ("ED25519 ", "", ""),
        ("", "-", ""),
        ("", "- ", ""),
        ("OPENSSH ", "> ", ""),
    ] {
        let lines =
            format!("-----BEGIN {label}PRIVATE KEY-----\n{headers}{body}\n-----END {label}PRIVATE KEY-----");
        let text: String = lines.lines().map(|line| format!("{before}{line}\n")).collect();
        let hits = find(&text);
        assert_eq!(hits.len(), 1, "{text}");
        assert!(!redact(&text).contains("MIIE"), "{}", redact(&text));
    }
}

#[test]
fn a_short_word_inside_a_value_makes_no_placeholder_of_it() {
    assert_eq!(find("api_key=kd83nullHd73hS8d2Kd93").len(), 1);
    assert_eq!(find("password=kFoo8Hx2LmQpZ9").len(), 1);
    assert!(find("password=test-1234").is_empty());
    assert!(find("password=foo.1234x").is_empty());
    assert!(find("api_key=example8d73hS8d2Kd93").is_empty());
}

#[test]
fn escapes_of_a_quoted_text_begin_and_end_names_and_values() {
    let (pw, key, token) = (run(b'A', 13, 9), run(b'B', 40, 3), run(b'A', 24, 9));
    let jwt = format!("eyJ{token}.eyJ{token}.{token}");
    for (text, values) in [
        (format!(r#"{{"a":"x\npassword={pw}\ny"}}"#), vec![&pw]),
        (format!(r#"{{"a":"x\r\npassword={pw}\u0026y"}}"#), vec![&pw]),
        (format!(r#"{{"a":"AWS_SECRET_ACCESS_KEY={key}\npassword={pw}"}}"#), vec![&key, &pw]),
        (format!(r#"{{"a":"{{\"password\": \"{pw}\"}}"}}"#), vec![&pw]),
        (format!(r#"{{\\\"db_password\\\":\\\"{pw}\\\"}}"#), vec![&pw]),
        (format!(r#"{{"password":"{pw}\n"}}"#), vec![&pw]),
        (format!(r#""Password:\t{pw}\r\n""#), vec![&pw]),
        (format!(r#""x\nBearer {token}\ny""#), vec![&token]),
        (format!(r#""x\nmachine h\nlogin u\npassword {pw}\nmachine i""#), vec![&pw]),
        (format!(r#""x\n{jwt}\ny""#), vec![&jwt]),
    ] {
        let hits = find(&text);
        let found: Vec<&str> = hits.iter().map(|h| &text[h.start..h.end]).collect();
        assert_eq!(found, values, "{text}");
    }
    for text in [
        r"C:\new\token",
        r"token: C:\new\token1234567890abcdef",
        r"pwd=C:\temp1\new2",
        r"password=D:\nas01\top2secret",
        r"set PATH=C:\new\password\t1x2y3",
        r#"{"a":"password=\ny1z2x3"}"#,
        r#"{"a":"token:\n\n"}"#,
    ] {
        assert_eq!(find(text), [], "{text}");
    }
}

#[test]
fn each_way_to_write_a_value_beside_a_name_is_read() {
    let (pw, key) = (run(b'A', 13, 9), run(b'A', 32, 9));
    for (text, value) in [
        (format!("<password>{pw}</password>"), &pw),
        (format!("<db:Password>{pw}</db:Password>"), &pw),
        (format!("<add key=\"ApiKey\" value=\"{key}\" />"), &key),
        (format!("{{\"name\": \"API_KEY\",\n  \"value\": \"{key}\"}}"), &key),
        (format!("define('DB_PASSWORD', '{pw}');"), &pw),
        (format!("os.environ.setdefault(\"API_KEY\", \"{key}\")"), &key),
        (format!("user.setPassword(\"{pw}\")"), &pw),
        (format!("user.set_password('{pw}')"), &pw),
        (format!("password: str = \"{pw}\""), &pw),
        (format!("const API_KEY: &'static str = \"{key}\";"), &key),
        (format!("client_secret: string = '{key}'"), &key),
        (format!("password = \"\"\"{pw}\"\"\""), &pw),
        (format!("password = b\"{pw}\""), &pw),
        (format!("char password[] = \"{pw}\";"), &pw),
        (format!("static PASSWORD: Option<&str> = r\"{pw}\";"), &pw),
    ] {
        let hits = find(&text);
        let found: Vec<&str> = hits.iter().map(|h| &text[h.start..h.end]).collect();
        assert_eq!(found, [value.as_str()], "{text}");
    }
    for text in [
        "<password>please</password>".to_string(),
        format!("<password>{pw}"),
        format!("Promise<Token> {key}"),
        format!("fields = (\"password\", \"{pw}\")"),
        format!("getPassword(\"{pw}\")"),
        format!("token(\"{key}\")"),
        format!("password: str = input(\"{pw}\")"),
        "password: int = 5, password = \"\", password: str = \"\"".to_string(),
    ] {
        assert_eq!(find(&text), [], "{text}");
    }
}

#[test]
fn passwords_on_command_lines_are_found() {
    let pw = run(b'A', 12, 9);
    for text in [
        format!("curl -X POST -u 'admin:{pw}' https://h/"),
        format!("curl --user admin:{pw} https://h/"),
        format!("mysql -p{pw} db"),
        format!("mysqldump -u root -p'{pw}' db"),
        format!("sshpass -p {pw} ssh h"),
        format!("tool --password {pw}"),
        format!("\"x\\nsshpass -p {pw} ssh h\\n\""),
    ] {
        let hits = find(&text);
        let found: Vec<&str> = hits.iter().map(|h| &text[h.start..h.end]).collect();
        assert_eq!(found, [pw.as_str()], "{text}");
    }
    for text in [
        "curl -u \"$USER:$PASS1234\" https://h/",
        "curl -o out1.txt https://example.org/a:b1c2d3",
        "mysql -u root -p database1",
        "mysql --protocol=tcp2 -h host1234",
        "the option --password prompts for it",
        "sshpass -p \"$PASSWORD_1\" ssh h",
    ] {
        assert_eq!(find(text), [], "{text}");
    }
}

#[test]
fn hashes_of_passwords_are_found_in_every_scheme() {
    let r = |len| run(b'A', len, 9);
    for hash in [
        format!("$2y$12${}", r(53)),
        format!("$apr1${}${}", r(8), r(22)),
        format!("$5$rounds=5000${}${}", r(16), r(43)),
        format!("$6${}${}", r(16), r(86)),
        format!("$y$j9T${}${}", r(22), r(43)),
        format!("$argon2id$v=19$m=65536,t=3,p=4${}${}", r(22), r(43)),
    ] {
        let hits = find(&format!("root:{hash}:19000:0"));
        assert_eq!(hits, [SecretHit { kind: "password-hash", start: 5, end: 5 + hash.len() }]);
    }
    assert_eq!(find("s/(a)(b)/$1$2/; $6$salt$short; cost is $5$ or $1$"), []);
}

#[test]
fn short_literals_before_rows_of_one_letter_are_no_tokens() {
    for text in [format!("EAA{}", "A".repeat(90)), "A".repeat(200), format!("oy2{}", "ab".repeat(22))] {
        assert_eq!(find(&text[..text.len().min(200)]), [], "{text}");
    }
}

#[test]
fn what_only_looks_like_a_secret_is_none_and_what_is_close_to_it_is_one() {
    let (pw, key) = (run(b'A', 13, 9), run(b'A', 32, 9));
    let id = |end: &str| format!("AKIA{}{end}", run(b'2', 16 - end.len(), 9));
    for (text, near) in [
        (id("EXAMPLE"), id("")),
        (
            format!("aws_secret_access_key = {}EXAMPLEKEY", run(b'A', 30, 9)),
            format!("aws_secret_access_key = {}", run(b'A', 40, 9)),
        ),
        ("x_auth_basic: WSManAuthenticationFlags".into(), format!("_auth: {}", run(b'A', 24, 3))),
        ("SECURITY_AUTHORITY: SID1IDENTIFIERAUTHORITY".into(), format!("_auth={}", run(b'A', 24, 3))),
        ("token_endpoint = \"oauth2/v2.0/token1234abcd\"".into(), format!("token_value = \"{key}\"")),
        ("secret_name = \"projects/123/secrets/x2y\"".into(), format!("secret_key = \"{key}\"")),
        ("credentialsId: \"jenkins-ssh-key-2024-01\"".into(), format!("credentials: \"{key}\"")),
        ("\"tokenizer_class\": \"LlamaTokenizerFast2024v2\"".into(), format!("\"tokens\": \"{key}\"")),
        ("tokenizer = \"gpt2-medium-2024-tokenizer-v1\"".into(), format!("token = \"{key}\"")),
        ("token = \"next_page_token_2024_v2_cursor\"".into(), format!("token = \"next_{key}_v2\"")),
        ("sk-learn-2024-package-name-long-name-of-a-tool".into(), format!("sk-{key}-{pw}")),
        ("pwd=/home/user1/x".into(), format!("pwd=/{pw}")),
        ("password_file=/run/secrets/db1".into(), format!("password={pw}/x")),
        ("password_hash_algo=argon2id_v19".into(), format!("password_db={pw}")),
        (
            "postgres://postgres:postgres@localhost:5432".into(),
            format!("postgres://postgres:postgres{pw}@localhost:5432"),
        ),
        ("system.eyeballs_tracker.configuration_x.loader_module".into(), format!("eyJ{key}.{key}.{key}")),
    ] {
        assert_eq!(find(&text), [], "{text}");
        assert_eq!(find(&near).len(), 1, "{near} {:?}", find(&near));
    }
}
