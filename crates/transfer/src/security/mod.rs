//! Who may send to whom: keys, fingerprints, one-time tokens, and TLS 1.3 with both.
//!
//! Both ends show a raw public key (RFC 7250), which has no name, no date and no issuer; whom it belongs to says the list of
//! fingerprints of the other end. So there is nothing to revoke but a line of that list, and no clock that must be right.

mod identity;
mod tls;
mod token;

pub use identity::{Fingerprint, Identity, IdentityError};
pub(crate) use tls::peer_of;
pub use tls::{ClientTls, ServerTls, Servers};
pub use token::{Admission, OnceToken};

/// What both ends must agree on in TLS (RFC 7301).
pub(crate) const ALPN: &[u8] = b"anabranch-transfer/1";

/// Bytes as hexadecimal digits.
fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// So many bytes from twice as many hexadecimal digits, and nothing else.
fn unhex<const N: usize>(text: &str) -> Option<[u8; N]> {
    if text.len() != 2 * N || !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    let mut bytes = [0; N];
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16).ok()?;
    }
    Some(bytes)
}

/// Bytes that nobody can guess.
///
/// # Panics
/// If the system has no random numbers, which Linux always has.
pub fn random<const N: usize>() -> [u8; N] {
    use ring::rand::SecureRandom as _;
    let mut bytes = [0; N];
    ring::rand::SystemRandom::new().fill(&mut bytes).expect("getrandom(2) works");
    bytes
}
