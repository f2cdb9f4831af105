//! A key pair and its fingerprint.

use std::{
    fmt, fs, io,
    io::{Read as _, Write as _},
    os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _},
    path::Path,
    str::FromStr,
    sync::Arc,
};

use rustls::{
    pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer},
    sign::CertifiedKey,
};

use super::{hex, unhex};

/// What a key is known by: SHA-256 of its public half (SubjectPublicKeyInfo, DER).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fingerprint(pub(super) [u8; 32]);

impl Fingerprint {
    const PREFIX: &str = "sha256:";

    /// Of a public key in DER.
    pub(super) fn of(public_key: &[u8]) -> Self {
        let digest = ring::digest::digest(&ring::digest::SHA256, public_key);
        Self(digest.as_ref().try_into().expect("SHA-256 has 32 bytes"))
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}{}", Self::PREFIX, hex(&self.0))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

impl FromStr for Fingerprint {
    type Err = IdentityError;

    fn from_str(text: &str) -> Result<Self, IdentityError> {
        let digits = text.strip_prefix(Self::PREFIX).and_then(unhex);
        digits.map(Self).ok_or_else(|| IdentityError::NotAFingerprint { found: text.to_owned() })
    }
}

/// Why a key or a fingerprint is of no use.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// A file could not be read or written.
    #[error("{path}: {source}")]
    File {
        /// Which file.
        path: String,
        /// What the system said.
        source: io::Error,
    },
    /// A file is there, and has something else in it.
    #[error("{path} is no key; `anabranchd keygen` makes one")]
    NotAKey {
        /// Which file.
        path: String,
    },
    /// Others may read the private key.
    #[error("{path} can be read by others than its owner (mode {mode:o}); expected 600: chmod 600 {path}")]
    Exposed {
        /// Which file.
        path: String,
        /// Its permissions.
        mode: u32,
    },
    /// Text that is no fingerprint.
    #[error(
        "\"{found}\" is no fingerprint; expected sha256: and 64 hexadecimal digits, as `anabranchd keygen` prints"
    )]
    NotAFingerprint {
        /// What there was.
        found: String,
    },
    /// Text that is no token.
    #[error(
        "\"{found}\" is no token; expected 64 hexadecimal digits, as `anabranchd receive --token` prints"
    )]
    NotAToken {
        /// What there was.
        found: String,
    },
}

/// A key pair (Ed25519, RFC 8032).
#[derive(Clone)]
pub struct Identity {
    pub(super) key: Arc<CertifiedKey>,
    fingerprint: Fingerprint,
}

impl Identity {
    /// A new one, and what [`read`](Self::read) reads: PKCS #8 in DER.
    ///
    /// # Panics
    /// If the system has no random numbers, which Linux always has.
    pub fn generate() -> (Self, Vec<u8>) {
        let document = ring::signature::Ed25519KeyPair::generate_pkcs8(&ring::rand::SystemRandom::new());
        let bytes = document.expect("getrandom(2) works").as_ref().to_vec();
        (Self::from_pkcs8(&bytes).expect("it is a key"), bytes)
    }

    fn from_pkcs8(bytes: &[u8]) -> Option<Self> {
        let private = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(bytes.to_vec()));
        let key = rustls::crypto::ring::sign::any_eddsa_type(match &private {
            PrivateKeyDer::Pkcs8(key) => key,
            _ => return None,
        });
        let key = key.ok()?;
        let public = key.public_key()?.to_vec();
        let fingerprint = Fingerprint::of(&public);
        let key = Arc::new(CertifiedKey::new(vec![CertificateDer::from(public)], key));
        Some(Self { key, fingerprint })
    }

    /// Makes a key and writes it into a file that only its owner may read, which must not exist.
    ///
    /// # Errors
    /// [`IdentityError::File`].
    pub fn create(path: &Path) -> Result<Self, IdentityError> {
        let failed = |source| IdentityError::File { path: path.display().to_string(), source };
        let (identity, bytes) = Self::generate();
        let mut options = fs::OpenOptions::new();
        let mut file = options.write(true).create_new(true).mode(0o600).open(path).map_err(failed)?;
        file.write_all(&bytes).and_then(|()| file.sync_all()).map_err(failed)?;
        Ok(identity)
    }

    /// Reads the file that [`create`](Self::create) has written.
    ///
    /// # Errors
    /// If it cannot be read, is no key, or can be read by others.
    pub fn read(path: &Path) -> Result<Self, IdentityError> {
        let name = || path.display().to_string();
        let failed = |source| IdentityError::File { path: name(), source };
        let mut file = fs::File::open(path).map_err(failed)?;
        let mode = file.metadata().map_err(failed)?.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            return Err(IdentityError::Exposed { path: name(), mode });
        }
        let mut bytes = Vec::new();
        io::Read::by_ref(&mut file).take(4096).read_to_end(&mut bytes).map_err(failed)?;
        Self::from_pkcs8(&bytes).ok_or_else(|| IdentityError::NotAKey { path: name() })
    }

    /// What others know it by.
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }
}
