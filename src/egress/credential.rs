//! A secret that stays outside the sandbox.

use std::fmt;
use zeroize::Zeroizing;

/// A key or token of the operator.
///
/// Its memory is overwritten when it is dropped, and its `Debug` shows no part of it. It has no `Display`, no
/// `Serialize` and no `Clone`.
pub struct Credential {
    secret: Zeroizing<String>,
    scheme: Scheme,
}

/// How the credential is presented to the model's API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// `x-api-key: …`
    ApiKey,
    /// `authorization: Bearer …`, as OAuth tokens want it.
    Bearer,
}

/// The text given is no credential.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum CredentialError {
    /// Nothing but white space.
    #[error("the credential is empty; set it to the key or token of your account")]
    Empty,
    /// It would not fit a header.
    #[error("the credential has characters that no header may carry; check for line breaks and quotes")]
    Characters,
}

impl Credential {
    /// A key or token; white space around it is dropped. OAuth tokens of Claude (`sk-ant-oat…`) are presented as
    /// bearer tokens, everything else as an API key.
    pub fn new(secret: impl Into<String>) -> Result<Credential, CredentialError> {
        let given = Zeroizing::new(secret.into());
        let scheme = if given.trim().starts_with("sk-ant-oat") { Scheme::Bearer } else { Scheme::ApiKey };
        Credential::with_scheme(given, scheme)
    }

    /// A token that is presented as `authorization: Bearer …`.
    pub fn bearer(secret: impl Into<String>) -> Result<Credential, CredentialError> {
        Credential::with_scheme(Zeroizing::new(secret.into()), Scheme::Bearer)
    }

    fn with_scheme(given: Zeroizing<String>, scheme: Scheme) -> Result<Credential, CredentialError> {
        let secret = Zeroizing::new(given.trim().to_owned());
        if secret.is_empty() {
            return Err(CredentialError::Empty);
        }
        if !secret.bytes().all(|b| b.is_ascii_graphic() || b == b' ') {
            return Err(CredentialError::Characters);
        }
        Ok(Credential { secret, scheme })
    }

    /// How it is presented.
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// The secret itself, for the header that carries it upstream and for the scrubber.
    pub(super) fn expose(&self) -> &str {
        &self.secret
    }
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credential(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_shows_nothing_of_the_secret() {
        let key = Credential::new(" sk-ant-api03-abc\n").unwrap();
        assert_eq!(format!("{key:?}"), "Credential(…)");
        assert_eq!((key.expose(), key.scheme()), ("sk-ant-api03-abc", Scheme::ApiKey));
    }

    #[test]
    fn an_oauth_token_is_a_bearer_token() {
        assert_eq!(Credential::new("sk-ant-oat01-abc").unwrap().scheme(), Scheme::Bearer);
    }

    #[test]
    fn what_no_header_can_carry_is_refused() {
        assert_eq!(Credential::new("  ").unwrap_err(), CredentialError::Empty);
        assert_eq!(Credential::new("a\r\nb: c").unwrap_err(), CredentialError::Characters);
    }
}
