//! Letters as a reader sees them: look-alikes folded to ASCII, invisible characters skipped.

/// The ASCII character that `c` passes for: full-width and mathematical forms, Cyrillic and Greek look-alikes, other
/// spellings of brackets and bars. ASCII stays itself.
pub(crate) fn fold(c: char) -> char {
    if c.is_ascii() {
        return c;
    }
    let n = c as u32;
    match n {
        0xFF01..=0xFF5E => return char::from_u32(n - 0xFEE0).unwrap_or(c),
        // Mathematical alphanumerics: thirteen alphabets of 52 letters, then five sets of ten digits.
        0x1D400..=0x1D6A3 => {
            let i = (n - 0x1D400) % 52;
            let base = if i < 26 { u32::from(b'A') + i } else { u32::from(b'a') + i - 26 };
            return char::from_u32(base).unwrap_or(c);
        }
        0x1D7CE..=0x1D7FF => return char::from_u32(u32::from(b'0') + (n - 0x1D7CE) % 10).unwrap_or(c),
        // Parenthesised letters, then squared ones, plain and negative, and negative circled ones.
        0x249C..=0x24B5 => return char::from_u32(u32::from(b'a') + n - 0x249C).unwrap_or(c),
        0x1F130..=0x1F149 => return char::from_u32(u32::from(b'A') + n - 0x1F130).unwrap_or(c),
        0x1F150..=0x1F169 => return char::from_u32(u32::from(b'A') + n - 0x1F150).unwrap_or(c),
        0x1F170..=0x1F189 => return char::from_u32(u32::from(b'A') + n - 0x1F170).unwrap_or(c),
        0x24B6..=0x24CF => return char::from_u32(u32::from(b'A') + n - 0x24B6).unwrap_or(c),
        0x24D0..=0x24E9 => return char::from_u32(u32::from(b'a') + n - 0x24D0).unwrap_or(c),
        _ => {}
    }
    match c {
        '﹤' | '‹' | '\u{2329}' | '\u{3008}' | '⟨' | '˂' | '❮' | 'ᐸ' | '❰' | '≺' | '⧼' | '«' | '《' | '⟪'
        | '⪡' | '≪' | '⋖' | '◁' | '⦑' => '<',
        '﹥' | '›' | '\u{232a}' | '\u{3009}' | '⟩' | '˃' | '❯' | 'ᐳ' | '❱' | '≻' | '⧽' | '»' | '》' | '⟫'
        | '⪢' | '≫' | '⋗' | '▷' | '⦒' => '>',
        '⁄' | '∕' | '⧸' | '╱' | '⟋' | '／' => '/',
        '∣' | '│' | '┃' | '❘' | 'ǀ' | '￨' | '⏐' => '|',
        '【' | '〔' | '⟦' | '〚' | '⁅' | '〖' | '❲' | '〘' => '[',
        '】' | '〕' | '⟧' | '〛' | '⁆' | '〗' | '❳' | '〙' => ']',
        '▁' | '‗' | '＿' | 'ˍ' => '_',
        '‐' | '‑' | '‒' | '–' | '—' | '−' | '﹣' | '˗' => '-',
        '：' | '∶' | 'ː' | '꞉' | '︓' | '﹕' => ':',
        'а' | 'ɑ' | 'α' | 'ᴀ' => 'a',
        'ϲ' | 'с' | 'ⅽ' => 'c',
        'ԁ' | 'ⅾ' | 'ᴅ' => 'd',
        'е' | 'ҽ' | 'ε' | 'ᴇ' => 'e',
        'ɡ' => 'g',
        'һ' => 'h',
        'і' | 'ɩ' | 'ι' | 'ı' | 'ⅰ' => 'i',
        'ј' => 'j',
        'κ' | 'к' => 'k',
        'ӏ' | 'ⅼ' => 'l',
        'м' | 'ⅿ' | 'ᴍ' => 'm',
        'п' | 'ո' | 'η' | 'ɴ' => 'n',
        'о' | 'ο' | 'օ' | 'σ' | 'ᴏ' => 'o',
        'р' | 'ρ' => 'p',
        'ԛ' => 'q',
        'г' | 'ꭇ' | 'ʀ' => 'r',
        'ѕ' | 'ꜱ' | 'ſ' => 's',
        'т' | 'τ' | 'ᴛ' => 't',
        'υ' | 'ս' | 'ц' | 'ᴜ' => 'u',
        'ν' | 'ѵ' => 'v',
        'ѡ' | 'ԝ' | 'ω' => 'w',
        'х' | 'χ' => 'x',
        'у' | 'γ' => 'y',
        'А' | 'Α' => 'A',
        'В' | 'Β' => 'B',
        'С' | 'Ϲ' => 'C',
        'Ԁ' => 'D',
        'Е' | 'Ε' => 'E',
        'Ԍ' => 'G',
        'Н' | 'Η' => 'H',
        'І' | 'Ι' | 'Ӏ' => 'I',
        'Ј' => 'J',
        'К' | 'Κ' => 'K',
        'М' | 'Μ' => 'M',
        'Ν' => 'N',
        'О' | 'Ο' => 'O',
        'Р' | 'Ρ' => 'P',
        'Ѕ' => 'S',
        'Т' | 'Τ' => 'T',
        'Ѵ' => 'V',
        'Х' | 'Χ' => 'X',
        'У' | 'Υ' => 'Y',
        'Ζ' => 'Z',
        c => c,
    }
}

/// Shows nothing: what a reader skips between two letters. Combining marks count, since a look-alike tag may wear them.
pub(crate) fn invisible(c: char) -> bool {
    super::autofetch::is_bypass(c)
        || matches!(c as u32, 0x1..=0x8 | 0xE..=0x1F | 0x7F..=0x9F | 0x300..=0x36F | 0xFE00..=0xFE0F | 0xFFF0..=0xFFFB)
}
