//! TLS 1.3 with raw public keys on both ends (RFC 8446, RFC 7250), by rustls.

use std::{collections::BTreeSet, sync::Arc};

use rustls::{
    CertificateError, ClientConfig, ClientConnection, Connection, DigitallySignedStruct, DistinguishedName,
    Error, ServerConfig, ServerConnection, SignatureScheme,
    client::{
        AlwaysResolvesClientRawPublicKeys, Resumption,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    },
    crypto::{CryptoProvider, verify_tls13_signature_with_raw_key},
    pki_types::{CertificateDer, ServerName, SubjectPublicKeyInfoDer, UnixTime},
    server::{
        AlwaysResolvesServerRawPublicKeys, NoServerSessionStorage,
        danger::{ClientCertVerified, ClientCertVerifier},
    },
    version::TLS13,
};

use super::{ALPN, Admission, Fingerprint, Identity, OnceToken};

/// Which receivers a sender sends to.
#[derive(Clone, Debug)]
pub enum Servers {
    /// Those with one of these keys.
    Pinned(BTreeSet<Fingerprint>),
    /// The one that gave the token.
    OfToken(OnceToken),
}

impl Servers {
    fn has(&self, who: Fingerprint) -> bool {
        match self {
            Self::Pinned(fingerprints) => fingerprints.contains(&who),
            Self::OfToken(token) => token.is_of(who),
        }
    }
}

/// How a sender makes its connections secret.
#[derive(Clone, Debug)]
pub struct ClientTls(Arc<ClientConfig>);

/// How a receiver does.
#[derive(Clone, Debug)]
pub struct ServerTls(Arc<ServerConfig>);

impl ClientTls {
    /// With this key of its own, towards those receivers.
    ///
    /// # Panics
    /// If the cryptography does not know TLS 1.3, which it does.
    pub fn new(identity: &Identity, servers: Servers) -> Self {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = Arc::new(Pins { accept: Accept::Server(servers), provider: provider.clone() });
        let builder = ClientConfig::builder_with_provider(provider).with_protocol_versions(&[&TLS13]);
        let mut config = builder
            .expect("the provider knows TLS 1.3")
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_client_cert_resolver(Arc::new(AlwaysResolvesClientRawPublicKeys::new(
                identity.key.clone(),
            )));
        config.alpn_protocols = vec![ALPN.to_vec()];
        config.resumption = Resumption::disabled();
        config.enable_sni = false;
        Self(Arc::new(config))
    }

    /// A new connection's.
    pub(crate) fn connection(&self) -> Connection {
        let name = ServerName::try_from("anabranch.invalid").expect("it is a name");
        let connection = ClientConnection::new(self.0.clone(), name);
        connection.expect("the configuration is complete").into()
    }
}

impl ServerTls {
    /// With this key of its own; whom it lets in, as far as the key alone says.
    ///
    /// # Panics
    /// If the cryptography does not know TLS 1.3, which it does.
    pub fn new(identity: &Identity, admission: Arc<Admission>) -> Self {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = Arc::new(Pins { accept: Accept::Client(admission), provider: provider.clone() });
        let builder = ServerConfig::builder_with_provider(provider).with_protocol_versions(&[&TLS13]);
        let mut config = builder
            .expect("the provider knows TLS 1.3")
            .with_client_cert_verifier(verifier)
            .with_cert_resolver(Arc::new(AlwaysResolvesServerRawPublicKeys::new(identity.key.clone())));
        config.alpn_protocols = vec![ALPN.to_vec()];
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Self(Arc::new(config))
    }

    /// A new connection's.
    pub(crate) fn connection(&self) -> Connection {
        ServerConnection::new(self.0.clone()).expect("the configuration is complete").into()
    }
}

/// The key that the other end has proven to have; none before the handshake is done.
pub(crate) fn peer_of(connection: &Connection) -> Option<Fingerprint> {
    connection.peer_certificates()?.first().map(|key| Fingerprint::of(key))
}

/// Accepts keys by their fingerprints.
#[derive(Debug)]
struct Pins {
    accept: Accept,
    provider: Arc<CryptoProvider>,
}

#[derive(Debug)]
enum Accept {
    Server(Servers),
    Client(Arc<Admission>),
}

impl Pins {
    fn check(&self, key: &CertificateDer<'_>) -> Result<(), Error> {
        let who = Fingerprint::of(key);
        let is_fine = match &self.accept {
            Accept::Server(servers) => servers.has(who),
            Accept::Client(admission) => admission.may_come_in(who),
        };
        match is_fine {
            true => Ok(()),
            false => Err(Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure)),
        }
    }

    fn check_signature(
        &self,
        message: &[u8],
        key: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        let key = SubjectPublicKeyInfoDer::from(key.as_ref());
        verify_tls13_signature_with_raw_key(message, &key, signature, algorithms)
    }
}

/// What would be checked in TLS 1.2, which is not spoken.
fn no_tls12() -> Result<HandshakeSignatureValid, Error> {
    Err(Error::PeerIncompatible(rustls::PeerIncompatible::Tls12NotOffered))
}

impl ServerCertVerifier for Pins {
    fn verify_server_cert(
        &self,
        key: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.check(key).map(|()| ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _key: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        no_tls12()
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        key: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.check_signature(message, key, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}

impl ClientCertVerifier for Pins {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        key: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.check(key).map(|()| ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _key: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        no_tls12()
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        key: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.check_signature(message, key, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}
