//! Certificates: a server makes one for its run and leaves it in the trial's folder, where its clients find the only
//! certificate that they trust.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, KeyPair, KeyUsagePurpose};
use rustls::RootCertStore;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use sha2::{Digest, Sha256};

/// Largest certificate that is read.
const BYTES_MAX: u64 = 64 << 10;
/// Browsers take the hash of a certificate that is valid for at most 14 days (W3C WebTransport).
const DAYS: u64 = 13;
const DAY: std::time::Duration = std::time::Duration::from_secs(86_400);

/// Why there is no certificate, or none that can be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// None could be made.
    #[error("making a certificate for {name}: {cause}")]
    Make {
        /// Whose it is.
        name: String,
        /// What the library said.
        cause: rcgen::Error,
    },
    /// The file could not be read or written.
    #[error("{doing} {}: {cause}{}", file.display(), hint(cause))]
    Io {
        /// What was being done.
        doing: &'static str,
        /// The file.
        file: PathBuf,
        /// What the system said.
        cause: io::Error,
    },
    /// It cannot be used.
    #[error("the certificate {}: {cause}", file.display())]
    Use {
        /// The file.
        file: PathBuf,
        /// What the library said.
        cause: rustls::Error,
    },
}

fn hint(cause: &io::Error) -> &'static str {
    match cause.kind() {
        io::ErrorKind::NotFound => {
            "\nhint: start the server first; on another machine, copy this file from its folder"
        }
        _ => "",
    }
}

/// Where the server of that name leaves its certificate, in DER.
pub fn file(dir: &Path, server: &str) -> PathBuf {
    dir.join(format!("certificate.{server}.der"))
}

/// Makes a certificate for the names, valid from a time in nanoseconds since 1970, and writes it to `to`. Returns the TLS
/// configuration of a server.
///
/// # Errors
/// [`TlsError`].
pub fn server(
    names: Vec<String>,
    now_unix_ns: u64,
    to: &Path,
    protocols: Vec<Vec<u8>>,
) -> Result<rustls::ServerConfig, TlsError> {
    let name = names.first().cloned().unwrap_or_default();
    let failed = |cause| TlsError::Make { name: name.clone(), cause };
    let mut params = CertificateParams::new(names).map_err(failed)?;
    params.distinguished_name.push(DnType::CommonName, &name);
    params.key_usages.push(KeyUsagePurpose::DigitalSignature);
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let now = rcgen::date_time_ymd(1970, 1, 1) + std::time::Duration::from_nanos(now_unix_ns);
    // Hosts whose clocks are slightly behind must not refuse it.
    params.not_before = now - DAY / 24;
    params.not_after = now + DAY * (DAYS as u32);
    let key = KeyPair::generate().map_err(failed)?;
    let certificate = params.self_signed(&key).map_err(failed)?;
    let der = certificate.der().clone();
    std::fs::write(to, &der).map_err(|cause| TlsError::Io {
        doing: "writing",
        file: to.to_owned(),
        cause,
    })?;
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let used = |cause| TlsError::Use { file: to.to_owned(), cause };
    let builder = rustls::ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(used)?;
    let mut config =
        builder.with_no_client_auth().with_single_cert(vec![der], key).map_err(used)?;
    config.alpn_protocols = protocols;
    Ok(config)
}

/// The TLS configuration of a client that trusts only the certificate in the file.
///
/// # Errors
/// [`TlsError`].
pub fn client(from: &Path, protocols: Vec<Vec<u8>>) -> Result<rustls::ClientConfig, TlsError> {
    let der = read(from)?;
    let used = |cause| TlsError::Use { file: from.to_owned(), cause };
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from(der)).map_err(used)?;
    let builder = rustls::ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(used)?;
    let mut config = builder.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = protocols;
    Ok(config)
}

/// SHA-256 of the public key in the certificate in the file (`SubjectPublicKeyInfo`, RFC 5280 §4.1.2.7): by it Chromium knows
/// a certificate that no authority signed.
///
/// # Errors
/// [`TlsError`].
pub fn key_sha256(from: &Path) -> Result<[u8; 32], TlsError> {
    let der = CertificateDer::from(read(from)?);
    let used = |cause| TlsError::Use { file: from.to_owned(), cause };
    let parsed = rustls::server::ParsedCertificate::try_from(&der).map_err(used)?;
    Ok(Sha256::digest(parsed.subject_public_key_info()).into())
}

fn read(from: &Path) -> Result<Vec<u8>, TlsError> {
    suiro_outside::file::read(from, BYTES_MAX).map_err(|cause| TlsError::Io {
        doing: "reading the server's certificate",
        file: from.to_owned(),
        cause,
    })
}

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(aws_lc_rs::default_provider())
}
