//! Tables of values: cells that are quoted over lines or with doubled marks, and the cells of each column as one text.

use super::stitch::Stitch;
use crate::scan::decode::View;
use csv_core::{ReadFieldResult, ReaderBuilder};

/// Columns that are read as texts of their own.
const COLUMNS: usize = 64;
/// Cells that are kept.
const CELLS: usize = 400_000;

/// The delimiter when a text with this extension and head is a table.
pub(super) fn delimiter(extension: &str, head: &str) -> Option<u8> {
    match extension {
        "csv" => Some(if head.lines().next().is_some_and(|l| l.contains(';') && !l.contains(',')) {
            b';'
        } else {
            b','
        }),
        "tsv" | "tab" => Some(b'\t'),
        "" | "txt" | "log" | "dat" => b",\t;|".iter().copied().find(|d| regular(head, *d)),
        _ => None,
    }
}

/// Three or more lines with the same number of delimiters, at least two each.
fn regular(head: &str, delimiter: u8) -> bool {
    let count = |l: &str| memchr::memchr_iter(delimiter, l.as_bytes()).count();
    let counts: Vec<usize> = head.lines().take(5).map(count).collect();
    // The last of a head may be cut off.
    let whole = counts.len().saturating_sub(1).max(3);
    counts.len() >= 3 && counts.iter().take(whole).all(|c| *c >= 2 && Some(c) == counts.first())
}

/// The views of the cells and columns in `text`.
pub(super) fn views(text: &str, delimiter: u8, out: &mut Vec<View>) {
    let source = text.as_bytes();
    let mut reader = ReaderBuilder::new().delimiter(delimiter).build();
    let (mut cells, mut columns) = (Stitch::default(), Vec::<Vec<(u32, u32)>>::new());
    let mut buffer = vec![0u8; 64 * 1024];
    let (mut at, mut begin, mut column, mut kept) = (0usize, 0usize, 0usize, 0usize);
    // Bytes of the last cell, when the text ends without a line break.
    let mut open = 0;
    loop {
        let input = source.get(at..).unwrap_or_default();
        let (result, read, written) = reader.read_field(input, buffer.get_mut(open..).unwrap_or_default());
        at += read;
        let value = buffer.get(..open + written).unwrap_or_default();
        match result {
            // The end is told by an empty input.
            ReadFieldResult::InputEmpty if !input.is_empty() => open += written,
            ReadFieldResult::InputEmpty | ReadFieldResult::End => break,
            ReadFieldResult::OutputFull => {
                open = 0;
                cells.changed(value, source, begin, at);
                begin = at;
            }
            ReadFieldResult::Field { record_end } => {
                open = 0;
                let (from, to) = bounds(source, begin, at, delimiter);
                if source.get(from..to) != Some(value) || value.contains(&b'\n') {
                    cells.changed(value, source, from, to);
                    cells.close(true);
                }
                if column < COLUMNS && kept < CELLS && value.iter().any(u8::is_ascii_alphabetic) {
                    if columns.len() <= column {
                        columns.resize_with(column + 1, Vec::new);
                    }
                    if let Some(list) = columns.get_mut(column) {
                        list.push((from as u32, to as u32));
                    }
                    kept += 1;
                }
                column = if record_end { 0 } else { column + 1 };
                begin = at;
            }
        }
    }
    out.extend(cells.view("csv cell"));
    if columns.iter().filter(|c| c.len() > 1).count() > 1 {
        let mut stitch = Stitch::default();
        for column in columns.iter().filter(|c| c.len() > 1) {
            for (from, to) in column {
                stitch.verbatim(source, *from as usize, *to as usize);
                stitch.between(b"\n");
            }
            stitch.close(true);
        }
        out.extend(stitch.view("csv column"));
    }
}

/// The cell in `source[from..to]` without its delimiter, its line break and its quotation marks.
fn bounds(source: &[u8], mut from: usize, mut to: usize, delimiter: u8) -> (usize, usize) {
    while from < to && matches!(source.get(from), Some(b'\n' | b'\r')) {
        from += 1;
    }
    while to > from && source.get(to - 1).is_some_and(|b| matches!(b, b'\n' | b'\r') || *b == delimiter) {
        to -= 1;
    }
    if to >= from + 2 && source.get(from) == Some(&b'"') && source.get(to - 1) == Some(&b'"') {
        return (from + 1, to - 1);
    }
    (from, to)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(name: &str, text: &str) -> String {
        let mut out = Vec::new();
        views(text, b',', &mut out);
        let found = out.into_iter().find(|v| v.name == name);
        found.map(|v| String::from_utf8(v.bytes).unwrap().trim().to_string()).unwrap_or_default()
    }

    #[test]
    fn columns_are_read_downwards_and_quoted_cells_as_they_are_meant() {
        let text = "a,\"x \"\"y\"\"\nz\",1\nb,c,2\r\nd,e";
        assert_eq!(view("csv cell", text), "x \"y\"\nz");
        assert_eq!(view("csv column", text), "a\nb\nd\n\n\nx \"\"y\"\"\nz\nc\ne");
    }

    #[test]
    fn a_table_shows_in_its_lines() {
        assert_eq!(delimiter("", "a,b,c\nd,e,f\ng,h,i\nj"), Some(b','));
        assert_eq!(delimiter("", "Dear all, good morning,\nas I said, yes.\nBye\n"), None);
        assert_eq!(delimiter("tsv", ""), Some(b'\t'));
    }
}
