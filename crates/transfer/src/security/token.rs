//! Tokens that let one sender in, once.

use std::{collections::BTreeSet, fmt, str::FromStr, sync::Mutex};

use super::{Fingerprint, IdentityError, hex, random, unhex};
use crate::wire::TOKEN_BYTES;

/// A secret of 128 bits and the first 128 bits of the receiver's fingerprint: who has it knows whom to send to, and may.
///
/// The sender tells the secret only to a receiver that has proven to have that key, so that nobody in between learns it.
#[derive(Clone, PartialEq, Eq)]
pub struct OnceToken {
    secret: [u8; TOKEN_BYTES],
    receiver: [u8; 16],
}

impl OnceToken {
    /// A new one for a receiver.
    pub fn new(receiver: Fingerprint) -> Self {
        Self { secret: random(), receiver: *receiver.0.first_chunk().expect("a fingerprint has 32 bytes") }
    }

    /// What the sender proves with.
    pub fn secret(&self) -> [u8; TOKEN_BYTES] {
        self.secret
    }

    /// Whether it is that receiver's.
    pub(super) fn is_of(&self, receiver: Fingerprint) -> bool {
        receiver.0.starts_with(&self.receiver)
    }

    /// Whether a secret is this one's. Takes as long whether it is or not: hashes are compared in constant time.
    fn accepts(&self, secret: &[u8; TOKEN_BYTES]) -> bool {
        blake3::hash(secret) == blake3::hash(&self.secret)
    }
}

impl fmt::Display for OnceToken {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}{}", hex(&self.secret), hex(&self.receiver))
    }
}

impl fmt::Debug for OnceToken {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("OnceToken(secret)")
    }
}

impl FromStr for OnceToken {
    type Err = IdentityError;

    fn from_str(text: &str) -> Result<Self, IdentityError> {
        let bytes: [u8; 32] =
            unhex(text).ok_or_else(|| IdentityError::NotAToken { found: text.to_owned() })?;
        let (secret, receiver) = bytes.split_at(TOKEN_BYTES);
        let half = |bytes: &[u8]| bytes.try_into().expect("sixteen bytes");
        Ok(Self { secret: half(secret), receiver: half(receiver) })
    }
}

/// Whom a receiver lets in.
#[derive(Debug)]
pub struct Admission {
    trusted: BTreeSet<Fingerprint>,
    token: Option<OnceToken>,
    /// Who has come with the token first. Nobody else can after that.
    token_owner: Mutex<Option<Fingerprint>>,
}

impl Admission {
    /// Those keys, and the first that comes with the token, if there is one.
    pub fn new(trusted: impl IntoIterator<Item = Fingerprint>, token: Option<OnceToken>) -> Self {
        Self { trusted: trusted.into_iter().collect(), token, token_owner: Mutex::new(None) }
    }

    /// Whether a key can be refused before it has said anything.
    pub(super) fn may_come_in(&self, who: Fingerprint) -> bool {
        self.token.is_some() || self.trusted.contains(&who)
    }

    /// Whether a key is let in, that shows this secret or none.
    pub fn lets_in(&self, who: Fingerprint, secret: Option<&[u8; TOKEN_BYTES]>) -> bool {
        if self.trusted.contains(&who) {
            return true;
        }
        let (Some(token), Some(secret)) = (&self.token, secret) else { return false };
        if !token.accepts(secret) {
            return false;
        }
        let mut owner = self.token_owner.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        *owner.get_or_insert(who) == who
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_lets_in_the_first_who_shows_it_and_nobody_after() {
        let [receiver, first, second] = [1, 2, 3].map(|byte| Fingerprint([byte; 32]));
        let token = OnceToken::new(receiver);
        assert_eq!(token.to_string().parse::<OnceToken>().unwrap(), token);
        assert!(token.is_of(receiver) && !token.is_of(first));
        let admission = Admission::new([receiver], Some(token.clone()));
        assert!(!admission.lets_in(first, None) && !admission.lets_in(first, Some(&[0; 16])));
        assert!(admission.lets_in(first, Some(&token.secret())));
        assert!(admission.lets_in(first, Some(&token.secret())), "its further connections");
        assert!(!admission.lets_in(second, Some(&token.secret())), "the token is used up");
        assert!(admission.lets_in(receiver, None), "whom it trusts needs none");
    }

    #[test]
    fn without_a_token_strangers_are_refused_before_they_speak() {
        let admission = Admission::new([Fingerprint([1; 32])], None);
        assert!(admission.may_come_in(Fingerprint([1; 32])) && !admission.may_come_in(Fingerprint([2; 32])));
        assert!(!admission.lets_in(Fingerprint([2; 32]), Some(&[0; 16])));
    }
}
