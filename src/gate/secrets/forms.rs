//! The table of secrets that have a structure rather than a prefix.

/// Every kind of the table.
pub(super) fn kinds() -> impl Iterator<Item = &'static str> {
    SHAPES.iter().map(|shape| shape.kind)
}

/// A structure: literals without which it cannot stand, and its form.
pub(super) struct Shape {
    pub(super) kind: &'static str,
    pub(super) literals: &'static [&'static str],
    /// One of these characters follows the literal; empty: anything.
    pub(super) then: &'static str,
    /// The literals stand in any case.
    pub(super) fold: bool,
    /// It is looked for mirrored and rotated as well.
    pub(super) hidden: bool,
    pub(super) form: Form,
}

pub(super) enum Form {
    /// Its group `s`, where there is one, is the secret.
    Regex(&'static str),
    /// What is read without an expression: the structures that ordinary text comes close to all the time.
    ByHand,
}

const fn shape(kind: &'static str, literals: &'static [&'static str], regex: &'static str) -> Shape {
    Shape { kind, literals, then: "", fold: false, hidden: true, form: Form::Regex(regex) }
}

const fn any_case(kind: &'static str, literals: &'static [&'static str], regex: &'static str) -> Shape {
    Shape { fold: true, ..shape(kind, literals, regex) }
}

const fn plain(kind: &'static str, literals: &'static [&'static str], regex: &'static str) -> Shape {
    Shape { hidden: false, ..shape(kind, literals, regex) }
}

const fn plain_any_case(kind: &'static str, literals: &'static [&'static str], regex: &'static str) -> Shape {
    Shape { fold: true, ..plain(kind, literals, regex) }
}

const fn by_hand(kind: &'static str, literals: &'static [&'static str], then: &'static str) -> Shape {
    Shape { kind, literals, then, fold: false, hidden: true, form: Form::ByHand }
}

pub(super) const SHAPES: &[Shape] = &[
    shape(
        "private-key",
        &["PRIVATE KEY-----"],
        // Up to its end line, which in a diff or a list has signs in front; of a key that is cut off, up to the next dash.
        r"-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY-----(?:(?:[^-]|-{1,4}[^-])*-{5,8}END (?:[A-Z0-9]+ ){0,3}PRIVATE KEY-----|[^-]*)",
    ),
    shape(
        "pgp-private-key",
        &["PGP PRIVATE KEY BLOCK-----"],
        r"-----BEGIN PGP PRIVATE KEY BLOCK-----[^-]*(?:-----END PGP PRIVATE KEY BLOCK-----)?",
    ),
    shape(
        "putty-private-key",
        &["PuTTY-User-Key-File-"],
        r"PuTTY-User-Key-File-[23]: [^\n]*(?:\n(?:[^\n]+\n)*|\\n[^\n]*)",
    ),
    // A JSON object begins with a brace, and a quote or white space.
    by_hand("jwt", &["eyI", "eyJ", "eyA", "eyB", "ewk", "ewl", "ewo", "ewp", "ew0", "ew1"], ""),
    Shape { hidden: false, ..by_hand("url-password", &["://"], "") },
    Shape { hidden: false, ..by_hand("url-token", &["://"], "") },
    Shape {
        hidden: false,
        ..any_case(
            "url-query-secret",
            &["token=", "key=", "auth=", "secret=", "password=", "signature="],
            r#"(?i)[?&](?:access_token|api_?key|auth|client_secret|password|private_token|refresh_token|secret|signature|token|x-amz-signature|x-goog-signature)=(?P<s>[A-Za-z0-9%+/=._~-]{16,})"#,
        )
    },
    any_case("azure-sas", &["sig="], r"(?i)(?:\b|\\[nrt])sig=(?P<s>[A-Za-z0-9%+/]{40,}(?:=|%3d))"),
    any_case("bearer-token", &["bearer"], r"(?i)(?:\b|\\[nrt])bearer\s+(?P<s>[A-Za-z0-9._~+/-]{20,}=*)"),
    any_case(
        "basic-auth",
        &["basic"],
        r"(?i)(?:\b|\\[nrt])basic\s+(?P<s>[A-Za-z0-9+/]{16,}={0,2})(?:$|[^A-Za-z0-9+/=])",
    ),
    any_case(
        "authorization-token",
        &["authorization"],
        r#"(?i)(?:\b|\\[nrt])authorization["']?\s*[:=]\s*["']?(?:token|apikey|key|splunk|ssws|geniekey|oauth|bot|pat)\s+(?P<s>[A-Za-z0-9._~+/=-]{16,})"#,
    ),
    shape(
        "azure-ad-secret",
        &["7Q~", "8Q~"],
        r"(?:^|[^A-Za-z0-9_~.-]|\\[nrt])(?P<s>[A-Za-z0-9_~.-]{3}[78]Q~[A-Za-z0-9_~.-]{30,45})",
    ),
    shape(
        "slack-webhook",
        &["hooks.slack.com/"],
        r"hooks\.slack\.com/(?:services|workflows|triggers)/(?P<s>[A-Z0-9]{8,}/[A-Za-z0-9/]{20,})",
    ),
    shape(
        "discord-webhook",
        &["/webhooks/"],
        r"discord(?:app)?\.com/api/(?:v\d+/)?webhooks/(?P<s>\d{17,20}/[A-Za-z0-9_-]{60,})",
    ),
    shape(
        "teams-webhook",
        &["webhook.office.com/"],
        r"\.webhook\.office\.com/webhookb2/(?P<s>[A-Za-z0-9@/-]{60,})",
    ),
    shape(
        "zapier-webhook",
        &["hooks.zapier.com/"],
        r"hooks\.zapier\.com/hooks/catch/(?P<s>\d{4,}/[a-z0-9]{6,})",
    ),
    shape("telegram-token", &[":AA"], r"(?:\b|\\[nrt])(?P<s>\d{8,10}:AA[A-Za-z0-9_-]{33})\b"),
    // The head of the token is base64 of a number in decimal digits.
    by_hand("discord-token", &["MT", "Mj", "Mz", "ND", "NT", "Nj", "Nz", "OD", "OT"], "AEIMQUYcgk"),
    shape(
        "terraform-token",
        &[".atlasv1."],
        r"(?:\b|\\[nrt])(?P<s>[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_-]{60,})",
    ),
    Shape {
        then: "123456789",
        ..shape("mailchimp-token", &["-us"], r"(?:\b|\\[nrt])(?P<s>[0-9a-f]{32}-us\d{1,2})\b")
    },
    any_case(
        "netrc-password",
        &["machine"],
        r"(?i)(?:\b|\\[nrt])machine(?:\s|\\[nrt])+\S+?(?:\s|\\[nrt])+login(?:\s|\\[nrt])+\S+?(?:\s|\\[nrt])+password(?:\s|\\[nrt])+(?P<s>(?:[^\s\\]|\\[^nrt])+)",
    ),
    shape(
        "google-service-account",
        &["\"private_key_id\""],
        r#""private_key_id"\s*:\s*"(?P<s>[0-9a-f]{40})""#,
    ),
    any_case(
        "cookie-session",
        &["cookie:"],
        r"(?i)(?:\b|\\[nrt])(?:set-)?cookie:[^\n]*?\b(?:session|sessionid|sid|connect\.sid|phpsessid|jsessionid|auth)=(?P<s>[A-Za-z0-9%._-]{16,})",
    ),
    any_case("gitea-token", &["gitea"], r"(?i)(?:\b|\\[nrt])gitea[a-z0-9_-]*\s*[:=]\s*(?P<s>[0-9a-f]{40})\b"),
    // Of a key that Azure signs, the signature stands at a fixed place before its end.
    plain(
        "azure-key",
        &["+ASt", "+ABa", "ACDb", "AIoT", "+ASb", "+AEh", "+ARm", "+ACR"],
        r"(?P<s>[A-Za-z0-9+/]{76}(?:\+ASt|\+ABa|ACDb)[A-Za-z0-9+/]{6}==|[A-Za-z0-9+/]{33}(?:AIoT|\+ASb|\+AEh|\+ARm)[A-P][A-Za-z0-9+/]{5}=|[A-Za-z0-9+/]{42}\+ACR[A-D][A-Za-z0-9+/]{5})",
    ),
    plain("azure-signed-key", &["JQQJ99"], r"(?:\b|\\[nrt])(?P<s>[A-Za-z0-9]{52}JQQJ99[A-Za-z0-9]{26})\b"),
    plain("newrelic-license-key", &["NRAL"], r"(?:\b|\\[nrt])(?P<s>[0-9a-f]{36}NRAL)\b"),
    plain(
        "fcm-server-key",
        &[":APA91b"],
        r"(?:\b|\\[nrt])(?P<s>AAAA[A-Za-z0-9_-]{7}:APA91b[A-Za-z0-9_-]{120,})",
    ),
    plain("jwk-private-key", &["\"d\""], r#""d"\s*:\s*"(?P<s>[A-Za-z0-9_-]{43,})""#),
    plain(
        "password-hash",
        &["$2a$", "$2b$", "$2y$", "$1$", "$apr1$", "$5$", "$6$", "$y$", "$argon2"],
        r"\$(?:2[aby]\$\d\d\$[./A-Za-z0-9]{53}|(?:1|apr1)\$[./A-Za-z0-9]{1,8}\$[./A-Za-z0-9]{22}|5\$(?:rounds=\d+\$)?[./A-Za-z0-9]{1,16}\$[./A-Za-z0-9]{43}|6\$(?:rounds=\d+\$)?[./A-Za-z0-9]{1,16}\$[./A-Za-z0-9]{86}|y\$[./A-Za-z0-9]{1,16}\$[./A-Za-z0-9]{1,86}\$[./A-Za-z0-9]{43}|argon2(?:id|i|d)\$v=\d+\$m=\d+,t=\d+,p=\d+\$[A-Za-z0-9+/]{8,}\$[A-Za-z0-9+/]{16,})",
    ),
    plain_any_case(
        "laravel-app-key",
        &["app_key"],
        r#"(?i)app_key["']?\s*[:=]\s*["']?base64:(?P<s>[A-Za-z0-9+/]{43}=)"#,
    ),
    plain(
        "pgpass-password",
        &[":5432:"],
        r"(?m)(?:^|\\n)[^\s:#\\]+:5432:[^\s:\\]+:[^\s:\\]+:(?P<s>[^\s:\\]{4,})(?:$|\s|\\[nr])",
    ),
    plain(
        "ansible-vault",
        &["$ANSIBLE_VAULT;1."],
        r"\$ANSIBLE_VAULT;1\.[0-9];AES256(?:;[A-Za-z0-9_.-]+)?(?:(?:\s|\\[nrt])+[0-9a-f]{10,})+",
    ),
    plain_any_case(
        "jdbc-password",
        &["jdbc:oracle:"],
        r#"(?i)jdbc:oracle:(?:thin|oci8?):[^\s/:@"'$]+/(?P<s>[^\s/@"']{3,})@"#,
    ),
    plain_any_case(
        "command-password",
        &[
            "curl ",
            "mysql ",
            "mysqldump ",
            "mysqladmin ",
            "sshpass ",
            "--password ",
            "--passwd ",
            "--passphrase ",
        ],
        r#"(?i)(?:(?:\b|\\[nrt])curl(?:\s[^\n]*?)?\s(?:-[a-z]*u|--user|--proxy-user)[\s=]*["']?[^\s:"'/$]+:|(?:\b|\\[nrt])mysql(?:dump|admin)?(?:\s[^\n]*?)?\s-(?-i:p)["']?|(?:\b|\\[nrt])sshpass\s+-p\s*["']?|--(?:password|passwd|passphrase)\s+["']?)(?P<s>[^\s"'\\$<>{}]{6,})"#,
    ),
    plain_any_case(
        "command-token",
        &["--token ", "--api-key ", "--apikey ", "--secret ", "--access-token ", "--auth-token "],
        r#"(?i)--(?:token|api-?key|secret|access-token|auth-token)\s+["']?(?P<s>[A-Za-z0-9._~+/=-]{16,})"#,
    ),
    plain_any_case(
        "securestring-password",
        &["securestring "],
        r#"(?i)ConvertTo-SecureString\s+(?:-String\s+)?["'](?P<s>[^"'$\s]{6,})["']"#,
    ),
];
