//! The bounds of judging a command. At each of them the verdict is deny.

/// Longest program, in bytes. Linux itself refuses one argument above 128 KiB (`MAX_ARG_STRLEN`).
pub const PROGRAM: usize = 256 * 1024;
/// Brackets open at once, counted without regard to quotes.
pub const NESTING: usize = 150;
/// Programs inside programs: substitutions, `sh -c`, `eval`, functions, scripts.
pub const DEPTH: usize = 24;
/// Simple commands evaluated, all levels together.
pub const STEPS: usize = 6_000;
/// Bytes parsed, all levels together.
pub const PARSED: usize = 2 << 20;
/// Longest value that is tracked; a longer one is unknown.
pub const VALUE: usize = 64 * 1024;
/// Words that one word may become (braces, globs, splitting).
pub const FIELDS: usize = 512;
/// Values of one variable that are told apart.
pub const ALTERNATIVES: usize = 8;
/// Times that one simple command is judged for different values of its variables.
pub const CHOICES: usize = 24;
/// Rounds of a loop that are evaluated whatever they are for; of the rest only those for what is no number and no
/// ordinary file of the project.
pub const ROUNDS: usize = 32;
/// Rounds of a loop, or values of one `printf`, that are evaluated at most.
pub const ROUNDS_MAX: usize = 1_024;
/// Names in the path of a working directory that is not there yet. What is judged below it costs as many steps.
pub const CWD: usize = 64;
/// Files that a command writes and whose content is known.
pub const FILES: usize = 256;
/// Literals of a program in another language that are looked at.
pub const LITERALS: usize = 4_096;
/// Words among which the start of another command is looked for.
pub const SUFFIXES: usize = 64;
