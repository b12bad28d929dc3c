//! Reading evaluation data: one JSON object a line with `id`, `source`, `kind`, `group`, `text`, plain or gzipped.

use std::io::Read;

/// One text with a known answer.
#[derive(Debug, serde::Deserialize)]
pub struct Item {
    /// Name of the item.
    #[serde(default)]
    pub id: String,
    /// Data set it comes from.
    pub source: String,
    /// What kind of text it is.
    pub kind: String,
    /// Items of one group vary together and must not be split between training and test.
    pub group: String,
    /// The text.
    pub text: String,
    /// Whether it carries an attack.
    #[serde(default)]
    pub attack: bool,
}

/// Reads the items of `path`.
///
/// # Panics
/// When the file cannot be read or parsed: this serves commands that measure, never the scanner.
#[allow(clippy::panic)]
pub fn read_items(path: &str, attack: bool) -> Vec<Item> {
    let bytes = std::fs::read(path).unwrap_or_else(|e| panic!("reading {path}: {e}"));
    let mut text = String::new();
    if bytes.starts_with(&[0x1f, 0x8b]) {
        let read = flate2::read::GzDecoder::new(&bytes[..]).read_to_string(&mut text);
        read.unwrap_or_else(|e| panic!("unpacking {path}: {e}"));
    } else {
        text = String::from_utf8_lossy(&bytes).into_owned();
    }
    let parse = |(n, line): (usize, &str)| {
        let mut item: Item = serde_json::from_str(line).unwrap_or_else(|e| panic!("{path}:{}: {e}", n + 1));
        item.attack = attack;
        item
    };
    text.lines().filter(|l| !l.trim().is_empty()).enumerate().map(parse).collect()
}

/// Kinds of benign text that do not quote or imitate attacks.
pub fn core_benign(kind: &str) -> bool {
    !matches!(kind, "security-discussion" | "security-code" | "agent-notes" | "trigger-words")
}
