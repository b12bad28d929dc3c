//! Text → syntax tree, within bounds.
//!
//! The grammar is brush-parser's: of the two crates tried it reads what bash reads (tree-sitter-bash took `((((x))))`
//! and quoted look-alikes for errors and repairs them by guessing) and is linear on all inputs tried but one: runs of
//! `(` that are not closed, where it tries arithmetic first at each level. Those are counted and refused here.

use super::limits;
use brush_parser::{ParserOptions, Token, ast, word};

/// Why a program is not judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// Longer, or nested deeper, than [`limits`] allow.
    Bound,
    /// Not bash.
    Syntax,
}

/// Options of the grammar: bash with extended globs.
pub fn options() -> ParserOptions {
    ParserOptions::default()
}

/// Parses a program. Linear in its length.
pub fn program(text: &str) -> Result<ast::Program, Refused> {
    if text.len() > limits::PROGRAM || nesting(text) > limits::NESTING {
        return Err(Refused::Bound);
    }
    let tokens = brush_parser::uncached_tokenize_str(text, &options().tokenizer_options())
        .map_err(|_| Refused::Syntax)?;
    let mut open = 0usize;
    let mut run = 0usize;
    for token in &tokens {
        match token {
            Token::Operator(op, _) if op == "(" || op == "((" => {
                open += op.len();
                run += op.len();
                if run > 12 || open > 60 {
                    return Err(Refused::Bound);
                }
            }
            Token::Operator(op, _) if op == ")" || op == "))" => open = open.saturating_sub(op.len()),
            _ => run = 0,
        }
    }
    brush_parser::parse_tokens(&tokens, &options()).map_err(|_| Refused::Syntax)
}

/// The pieces of a word.
pub fn pieces(text: &str) -> Result<Vec<word::WordPieceWithSource>, Refused> {
    if nesting(text) > limits::NESTING {
        return Err(Refused::Bound);
    }
    word::parse(text, &options()).map_err(|_| Refused::Syntax)
}

/// The pieces of a here-document's body.
pub fn heredoc_pieces(text: &str) -> Result<Vec<word::WordPieceWithSource>, Refused> {
    if nesting(text) > limits::NESTING {
        return Err(Refused::Bound);
    }
    word::parse_heredoc(text, &options()).map_err(|_| Refused::Syntax)
}

/// Most brackets open at once, quotes not regarded.
fn nesting(text: &str) -> usize {
    let (mut round, mut curly, mut most) = (0usize, 0usize, 0usize);
    for b in text.bytes() {
        match b {
            b'(' => round += 1,
            b'{' => curly += 1,
            b')' => round = round.saturating_sub(1),
            b'}' => curly = curly.saturating_sub(1),
            _ => continue,
        }
        most = most.max(round + curly);
    }
    most
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nesting_beyond_the_bound_is_refused() {
        let n = limits::NESTING + 1;
        assert_eq!(
            program(&format!("{}x{}", "$(echo ".repeat(n), ")".repeat(n))).err(),
            Some(Refused::Bound)
        );
        assert_eq!(program(&"(".repeat(3_000)).err(), Some(Refused::Bound));
        assert_eq!(program(&"x".repeat(limits::PROGRAM + 1)).err(), Some(Refused::Bound));
        assert!(program(&format!("echo {}x{}", "$(echo ".repeat(20), ")".repeat(20))).is_ok());
    }

    #[test]
    fn what_bash_does_not_read_is_refused() {
        for text in ["echo \"abc", "if true; then", "( a", "a ) b", "case x in"] {
            assert_eq!(program(text).err(), Some(Refused::Syntax), "{text}");
        }
    }
}
