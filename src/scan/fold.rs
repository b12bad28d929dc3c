//! Folding: one letter as a reader sees it.
//!
//! Words are compared after folding, so that compatibility forms (fullwidth, mathematical, circled), look-alikes
//! from other scripts, small capitals, accents and case make no difference, and invisible characters vanish.
//! Rules' words go through the same function, so a Russian rule still matches Russian text although some of its
//! letters fold to Latin ones.
//!
//! Look-alikes are our own selection from the confusables that Unicode Technical Standard 39 describes.

use std::sync::OnceLock;
use unicode_normalization::char::decompose_compatible;

/// What a character is to the tokeniser.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Part of a word; the folded form was appended.
    Word,
    /// A word of its own (scripts written without spaces); the folded form was appended.
    Single,
    /// Not seen by a reader; does not end a word.
    Invisible,
    /// Ends a word.
    Separator,
}

/// A folded character; `len` above the room in `bytes` means that it did not fit.
#[derive(Debug, Clone, Copy)]
struct Folded {
    kind: Kind,
    len: u8,
    bytes: [u8; 6],
}

/// Characters in a row.
const ROW: usize = 16;
/// Folded characters of the Basic Multilingual Plane, each row made when the first of it is met: a short text pays for few.
static ROWS: [OnceLock<Box<[Folded]>>; 0x10000 / ROW] = [const { OnceLock::new() }; 0x10000 / ROW];

fn row(high: u32) -> Box<[Folded]> {
    let mut out = Vec::with_capacity(8);
    let mut one = |low: u32| {
        out.clear();
        let kind = char::from_u32(high * ROW as u32 + low).map_or(Kind::Separator, |c| compute(c, &mut out));
        let mut bytes = [0; 6];
        bytes.iter_mut().zip(&out).for_each(|(b, o)| *b = *o);
        Folded { kind, len: out.len().min(255) as u8, bytes }
    };
    (0..ROW as u32).map(&mut one).collect()
}

/// Appends the folded form of the non-ASCII character `c` to `out` (UTF-8, lower case) and says what it is.
#[inline]
pub(crate) fn fold(c: char, out: &mut Vec<u8>) -> Kind {
    let u = c as u32;
    let (high, low) = (u as usize / ROW, u as usize % ROW);
    let Some(cell) = ROWS.get(high) else { return compute(c, out) };
    let Some(f) = cell.get_or_init(|| row(high as u32)).get(low) else { return compute(c, out) };
    match f.bytes.get(..usize::from(f.len)) {
        Some(bytes) => out.extend_from_slice(bytes),
        None => return compute(c, out),
    }
    f.kind
}

fn compute(c: char, out: &mut Vec<u8>) -> Kind {
    let u = c as u32;
    if invisible(u) {
        return Kind::Invisible;
    }
    match u {
        // Han, kana, Hangul syllables, Thai, Lao, Khmer, Myanmar: no spaces, or suffixes glued on.
        0x3041..=0x3096
        | 0x30a1..=0x30fa
        | 0x30fc
        | 0x3400..=0x4dbf
        | 0x4e00..=0x9fff
        | 0xac00..=0xd7a3
        | 0x0e01..=0x0e4e
        | 0x0e81..=0x0ece
        | 0x1000..=0x104f
        | 0x1780..=0x17b3
        | 0x20000..=0x3ffff => {
            push(c, out);
            return Kind::Single;
        }
        0x0900..=0x0963 | 0x0966..=0x0dff => {
            push(c, out);
            return Kind::Word;
        }
        0x1f1e6..=0x1f1ff => return letter(u - 0x1f1e6, out),
        0x1f150..=0x1f169 => return letter(u - 0x1f150, out),
        0x1f170..=0x1f189 => return letter(u - 0x1f170, out),
        _ => {}
    }
    let before = out.len();
    let mut single = false;
    decompose_compatible(c, |d| {
        let v = d as u32;
        if combining(v) || invisible(v) {
            return;
        }
        if d.is_ascii() {
            if d.is_ascii_alphanumeric() {
                out.push(d.to_ascii_lowercase() as u8);
            }
            return;
        }
        for l in d.to_lowercase() {
            if combining(l as u32) {
                continue;
            }
            match look_alike(l) {
                "" if l.is_alphanumeric() => {
                    single |= matches!(l as u32, 0x1100..=0x11ff | 0x3041..=0x30ff | 0x4e00..=0x9fff);
                    push(l, out);
                }
                "" => {}
                s => out.extend_from_slice(s.as_bytes()),
            }
        }
    });
    match out.len() == before {
        true if combining(u) => Kind::Invisible,
        true => Kind::Separator,
        false if single => Kind::Single,
        false => Kind::Word,
    }
}

fn push(c: char, out: &mut Vec<u8>) {
    out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
}

fn letter(n: u32, out: &mut Vec<u8>) -> Kind {
    out.push(b'a' + (n as u8).min(25));
    Kind::Word
}

fn combining(u: u32) -> bool {
    matches!(u, 0x0300..=0x036f | 0x0483..=0x0489 | 0x0591..=0x05bd | 0x064b..=0x065f | 0x0670 | 0x1ab0..=0x1aff
        | 0x1dc0..=0x1dff | 0x20d0..=0x20ff | 0xfe20..=0xfe2f)
}

/// Characters without a glyph of their own: default-ignorable ones, fillers, direction marks, tags, selectors.
pub(crate) fn invisible(u: u32) -> bool {
    matches!(u, 0x00ad | 0x034f | 0x061c | 0x0640 | 0x115f..=0x1160 | 0x17b4..=0x17b5 | 0x180b..=0x180f
        | 0x200b..=0x200f | 0x202a..=0x202e | 0x2060..=0x206f | 0x2800 | 0x3164 | 0xfe00..=0xfe0f | 0xfeff | 0xffa0
        | 0xfff0..=0xfffb | 0x1bca0..=0x1bca3 | 0x1d173..=0x1d17a | 0xe0000..=0xe0fff)
}

/// The Latin letters that the lower-case character `c` passes for, or nothing.
fn look_alike(c: char) -> &'static str {
    match c {
        'а' | 'α' | 'ɑ' | 'ᴀ' | 'ⱥ' | 'ꭺ' => "a",
        'в' | 'β' | 'ʙ' | 'ь' | 'ƅ' | 'ᏼ' => "b",
        'с' | 'ϲ' | 'ᴄ' | 'ⅽ' | 'ꮯ' => "c",
        'ԁ' | 'ᴅ' | 'đ' | 'ð' | 'ɖ' => "d",
        'е' | 'ε' | 'ᴇ' | 'ɛ' | 'ҽ' | 'є' | 'ꭼ' => "e",
        'ꜰ' | 'ƒ' | 'ϝ' => "f",
        'ԍ' | 'ɡ' | 'ɢ' | 'ց' | 'ꮐ' => "g",
        'һ' | 'н' | 'ʜ' | 'ħ' | 'հ' | 'ꮋ' => "h",
        'і' | 'ι' | 'ɪ' | 'ı' | 'ӏ' | 'ɩ' | 'ꭵ' => "i",
        'ј' | 'ᴊ' | 'ϳ' | 'ʝ' | 'ȷ' => "j",
        'к' | 'κ' | 'ᴋ' | 'ƙ' | 'ꮶ' => "k",
        'ʟ' | 'ł' | 'ⅼ' | 'ꮮ' | 'ɭ' => "l",
        'м' | 'ᴍ' | 'ⅿ' | 'ꮇ' => "m",
        'ո' | 'η' | 'ɴ' | 'ռ' | 'ŋ' => "n",
        'о' | 'ο' | 'ᴏ' | 'օ' | 'ø' | 'ɵ' | 'σ' | 'ჿ' => "o",
        'р' | 'ρ' | 'ᴘ' | 'ꮲ' | 'þ' => "p",
        'ԛ' | 'ꞯ' | 'զ' => "q",
        'г' | 'ʀ' | 'ꮁ' | 'ɾ' => "r",
        'ѕ' | 'ꜱ' | 'ʂ' | 'ꮪ' => "s",
        'т' | 'τ' | 'ᴛ' | 'ŧ' | 'ꭲ' => "t",
        'υ' | 'ս' | 'ᴜ' | 'ʋ' | 'μ' => "u",
        'ν' | 'ѵ' | 'ᴠ' | 'ⅴ' | 'ꮩ' => "v",
        'ԝ' | 'ω' | 'ᴡ' | 'ա' | 'ѡ' | 'ꮃ' => "w",
        'х' | 'χ' | 'ⅹ' | '×' => "x",
        'у' | 'ʏ' | 'γ' | 'ү' | 'ყ' => "y",
        'ᴢ' | 'ζ' | 'ȥ' | 'ꮓ' => "z",
        'ß' => "ss",
        'æ' => "ae",
        'œ' => "oe",
        _ => "",
    }
}

/// The folded form of a whole word, as the tokeniser would see it, without regard to separators.
#[cfg(test)]
pub(crate) fn fold_str(s: &str) -> String {
    let mut out = Vec::new();
    for c in s.chars() {
        if c.is_ascii() {
            out.push(c.to_ascii_lowercase() as u8);
        } else {
            fold(c, &mut out);
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::fold_str;

    #[test]
    fn dressed_up_letters_fold_to_plain_ones() {
        for dressed in [
            "іgnоrе",
            "𝐢𝐠𝐧𝐨𝐫𝐞",
            "ⓘⓖⓝⓞⓡⓔ",
            "ｉｇｎｏｒｅ",
            "ɪɢɴᴏʀᴇ",
            "íġñöřé",
            "ig\u{ad}no\u{200b}re",
            "i\u{3164}gnore",
            "🇮🇬🇳🇴🇷🇪",
            "IGNORE",
        ] {
            assert_eq!(fold_str(dressed), "ignore", "{dressed}");
        }
    }
}
