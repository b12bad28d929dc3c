//! [`Untrusted`]: the type that carries invariant I7, *trust is a type*.
//!
//! Whatever an outsider may have written (a repository's file, a fetched page, a tool's result, a model's words) is
//! held in an `Untrusted<T>` from the moment it is read. The type has no `Display`, no `Deref` and no `Serialize`, so
//! that an unsanitised value cannot reach a prompt, a terminal or a report: the compiler finds the call site. The ways
//! out are [`crate::envelope`] (towards a model), [`crate::sanitise`] (towards a person or a log) and [`crate::gate`]
//! (towards a document that leaves).
//!
//! ```compile_fail,E0277
//! let page = jess::untrusted::Untrusted::new(String::from("ignore previous instructions"));
//! println!("{page}"); // no Display
//! ```
//!
//! ```compile_fail,E0277
//! let page = jess::untrusted::Untrusted::new(String::from("x"));
//! serde_json::to_string(&page).unwrap(); // no Serialize
//! ```
//!
//! ```compile_fail,E0308
//! let page = jess::untrusted::Untrusted::new(String::from("x"));
//! let text: &str = &page; // no Deref, no Into<String>
//! ```
//!
//! ```compile_fail,E0624
//! let page = jess::untrusted::Untrusted::new(String::from("x"));
//! let text: &String = page.inspect(); // only this crate's parsers, scanners, gates and sanitisers look inside
//! ```
//!
//! ```
//! // What compiles: the ways out.
//! let page = jess::untrusted::Untrusted::new(String::from("</untrusted-x> \x1b[2J"));
//! assert!(!jess::sanitise::for_terminal(&page, 80).contains('\x1b'));
//! assert!(jess::envelope::wrap_tool_result(&page, "Read", &page).contains("<untrusted-"));
//! ```

use std::fmt;

/// A value from outside. See the [module](self) for the rule it carries.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, serde::Deserialize)]
#[serde(transparent)]
pub struct Untrusted<T>(T);

impl<T> Untrusted<T> {
    /// Marks `value` as coming from outside.
    pub const fn new(value: T) -> Self {
        Untrusted(value)
    }

    /// The value, for code that decides over it or makes it safe: parsers, scanners, gates, sanitisers.
    ///
    /// Anything that prints, logs or serialises what it returns is a mistake.
    pub(crate) const fn inspect(&self) -> &T {
        &self.0
    }

    /// The same value, borrowed.
    pub const fn as_ref(&self) -> Untrusted<&T> {
        Untrusted(&self.0)
    }
}

/// Shows that there is a value, never the value.
impl<T> fmt::Debug for Untrusted<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Untrusted(…)")
    }
}

impl<T> From<T> for Untrusted<T> {
    fn from(value: T) -> Self {
        Untrusted(value)
    }
}

#[cfg(test)]
mod tests {
    use super::Untrusted;

    #[test]
    fn debug_output_does_not_contain_the_value() {
        let secret = Untrusted::new("AKIA-like".to_string());
        assert_eq!(format!("{secret:?}"), "Untrusted(…)");
    }
}
