//! Mutual TLS: both ends must show a certificate from the same authority before any data is
//! exchanged.

use std::path::Path;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{CertificateError, ClientConfig, RootCertStore, ServerConfig};

use super::keys::{self, AUTHORITY, CERTIFICATE, KEY, KeysError};

/// The only protocol supported (RFC 7301): others are refused in the handshake.
const PROTOCOL: &[u8] = b"suiro-layers/2";

/// A certificate, its key, and the authority that must have issued the other end's certificate.
pub struct Identity {
    roots: Arc<RootCertStore>,
    certificate: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    /// The file to name in errors about them.
    folder: std::path::PathBuf,
}

impl Identity {
    /// Reads a folder made by [`super::keys::make`].
    ///
    /// # Errors
    /// [`KeysError`], naming the file that is missing or damaged.
    pub fn read(folder: &Path) -> Result<Self, KeysError> {
        let (authority, own) = (folder.join(AUTHORITY), folder.join(CERTIFICATE));
        let mut roots = RootCertStore::empty();
        for root in certificates(&authority)? {
            roots.add(root).map_err(|error| KeysError::damaged(&authority, error))?;
        }
        let key_file = folder.join(KEY);
        let key = PrivateKeyDer::from_pem_slice(keys::read(&key_file)?.as_bytes())
            .map_err(|error| KeysError::damaged(&key_file, error))?;
        let certificate = certificates(&own)?;
        Ok(Self { roots: Arc::new(roots), certificate, key, folder: folder.to_owned() })
    }

    /// The configuration for the end that listens.
    ///
    /// # Errors
    /// [`KeysError`]: key and certificate do not match.
    pub fn server(self) -> Result<Arc<ServerConfig>, KeysError> {
        let damaged = |error: &dyn std::fmt::Display| KeysError::damaged(&self.folder, error);
        let verifier = WebPkiClientVerifier::builder_with_provider(self.roots, provider());
        let verifier = verifier.build().map_err(|error| damaged(&error))?;
        let builder = ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(|error| damaged(&error))?;
        let config = builder
            .with_client_cert_verifier(verifier)
            .with_single_cert(self.certificate, self.key);
        let mut config = config.map_err(|error| damaged(&error))?;
        config.alpn_protocols = vec![PROTOCOL.to_vec()];
        // Each connection shows its certificate: no session tickets, with which an expired one
        // could live on.
        config.send_tls13_tickets = 0;
        Ok(Arc::new(config))
    }

    /// The configuration for the end that connects.
    ///
    /// # Errors
    /// [`KeysError`]: key and certificate do not match.
    pub fn client(self) -> Result<Arc<ClientConfig>, KeysError> {
        let damaged = |error: &dyn std::fmt::Display| KeysError::damaged(&self.folder, error);
        let verifier = WebPkiServerVerifier::builder_with_provider(self.roots, provider());
        let verifier = verifier.build().map_err(|error| damaged(&error))?;
        let builder = ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(|error| damaged(&error))?;
        let config = builder
            .with_webpki_verifier(verifier)
            .with_client_auth_cert(self.certificate, self.key);
        let mut config = config.map_err(|error| damaged(&error))?;
        config.alpn_protocols = vec![PROTOCOL.to_vec()];
        Ok(Arc::new(config))
    }
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(aws_lc_rs::default_provider())
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, KeysError> {
    let text = keys::read(file)?;
    let read = CertificateDer::pem_slice_iter(text.as_bytes()).collect::<Result<Vec<_>, _>>();
    let certificates = read.map_err(|error| KeysError::damaged(file, error))?;
    if certificates.is_empty() {
        return Err(KeysError::damaged(file, "it does not contain a certificate"));
    }
    Ok(certificates)
}

/// What a failed handshake means, and how to fix it.
pub(super) fn told(error: &rustls::Error) -> String {
    use CertificateError as C;
    use rustls::AlertDescription as A;
    use rustls::Error as E;
    const RENEW: &str =
        "hint: renew it with suiro layers keys FOLDER NAME, then copy its folder to that host";
    const ROLE: &str = "hint: an agent needs a host's certificate, a watcher one that suiro layers keys \
                        made with --watcher";
    const SAME: &str = "hint: both ends need credentials from the same suiro layers keys FOLDER";
    match error {
        E::InvalidCertificate(C::Expired | C::ExpiredContext { .. }) => {
            format!("the other end's certificate has expired\n{RENEW}")
        }
        E::InvalidCertificate(C::NotValidYet | C::NotValidYetContext { .. }) => {
            "the other end's certificate is not valid yet\nhint: compare the clocks of both hosts"
                .into()
        }
        E::InvalidCertificate(C::UnknownIssuer | C::BadSignature) => {
            format!("the other end's certificate was issued by another authority\n{SAME}")
        }
        E::InvalidCertificate(C::NotValidForName | C::NotValidForNameContext { .. }) => {
            "the other end's certificate is for another name\nhint: connect to the name that \
             was given to suiro layers keys, or make a certificate for this name"
                .into()
        }
        E::InvalidCertificate(C::InvalidPurpose | C::InvalidPurposeContext { .. }) => {
            format!("the other end's certificate is for another purpose\n{ROLE}")
        }
        E::AlertReceived(A::UnsupportedCertificate) => {
            format!("the other end reports that our certificate is for another purpose\n{ROLE}")
        }
        E::NoCertificatesPresented => {
            format!("the other end did not show a certificate\n{SAME}")
        }
        E::AlertReceived(A::CertificateExpired) => {
            format!("the other end reports that our certificate has expired\n{RENEW}")
        }
        E::AlertReceived(A::UnknownCA | A::DecryptError | A::BadCertificate) => {
            format!("the other end does not trust our certificate's authority\n{SAME}")
        }
        E::AlertReceived(A::CertificateRequired) => {
            format!("the other end requires a certificate\n{SAME}")
        }
        other => format!("TLS: {other}"),
    }
}
