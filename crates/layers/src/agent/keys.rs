//! Credentials: your own certificate authority, and a certificate for each host and each watcher.
//!
//! `suiro layers keys FOLDER NAME…` makes them. `FOLDER/NAME` contains everything that the host or
//! the watcher with that name needs: its certificate, its key and the authority's certificate. The
//! authority's key stays in `FOLDER`, for names that are added later.

use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use std::{fmt, fs};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

/// The authority's certificate, in the main folder and in each name's own.
pub const AUTHORITY: &str = "authority.pem";
/// The authority's key.
const AUTHORITY_KEY: &str = "authority.key";
/// The certificate of a name.
pub const CERTIFICATE: &str = "certificate.pem";
/// Its key.
pub const KEY: &str = "key.pem";

/// Largest size of one of these files in bytes.
pub(super) const FILE_BYTES_MAX: u64 = 64 << 10;

/// How long certificates of the authority are valid: ten years.
const AUTHORITY_DAYS: u32 = 3652;

/// Why credentials could not be made or read.
#[derive(Debug, thiserror::Error)]
pub enum KeysError {
    /// A file or folder cannot be read or written.
    #[error("{doing} {}: {cause}{}", file.display(), hint(cause))]
    Io {
        /// What was being done.
        doing: &'static str,
        /// The file or folder.
        file: PathBuf,
        /// The system's error.
        cause: io::Error,
    },
    /// The name is not valid for a host.
    #[error(
        "`{name}` is not a host name: {message}\nhint: use the host name or IP address that watchers connect to"
    )]
    Name {
        /// The given name.
        name: String,
        /// What is wrong with it.
        message: String,
    },
    /// The name has the credentials of the other role.
    #[error(
        "`{name}` is a {} already, whose certificate would be replaced\nhint: give the {wanted} another name",
        wanted.other()
    )]
    Taken {
        /// The given name.
        name: String,
        /// What it was given for.
        wanted: Role,
    },
    /// A file is not what it should be.
    #[error("{}: {message}\nhint: run suiro layers keys to make it again", file.display())]
    Damaged {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        message: String,
    },
    /// The validity would not cover a day.
    #[error("validity: expected 1 to {AUTHORITY_DAYS} days, found {0}")]
    Days(u32),
}

fn hint(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::NotFound => "\nhint: run suiro layers keys FOLDER NAME… to make credentials",
        _ => "",
    }
}

impl KeysError {
    pub(super) fn io(doing: &'static str, file: &Path) -> impl FnOnce(io::Error) -> Self {
        let file = file.to_owned();
        move |cause| Self::Io { doing, file, cause }
    }

    pub(super) fn damaged(file: &Path, message: impl std::fmt::Display) -> Self {
        Self::Damaged { file: file.to_owned(), message: message.to_string() }
    }
}

/// What a certificate is good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// A host with an agent, which is asked.
    Host,
    /// A watcher, which asks.
    Watcher,
}

impl Role {
    /// RFC 5280 §4.2.1.12: id-kp-serverAuth and id-kp-clientAuth, as they stand in a certificate.
    const fn purpose(self) -> &'static [u8] {
        match self {
            Self::Host => b"\x06\x08\x2b\x06\x01\x05\x05\x07\x03\x01",
            Self::Watcher => b"\x06\x08\x2b\x06\x01\x05\x05\x07\x03\x02",
        }
    }

    const fn other(self) -> Self {
        match self {
            Self::Host => Self::Watcher,
            Self::Watcher => Self::Host,
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Host => "host",
            Self::Watcher => "watcher",
        })
    }
}

/// Refuses a name that is given for both roles, or has the certificate of the other one.
fn check_role(folder: &Path, names: &[(String, Role)]) -> Result<(), KeysError> {
    for (name, role) in names {
        let is_both = names.contains(&(name.clone(), role.other()));
        let own = folder.join(name).join(CERTIFICATE);
        // One that cannot be read is made again.
        let der =
            read(&own).ok().and_then(|text| CertificateDer::from_pem_slice(text.as_bytes()).ok());
        let purpose = role.other().purpose();
        let is_other = der.is_some_and(|der| der.windows(purpose.len()).any(|it| it == purpose));
        if is_both || is_other {
            return Err(KeysError::Taken { name: name.clone(), wanted: *role });
        }
    }
    Ok(())
}

/// Makes a certificate and a key for each name, valid from `now` for `days`, and the authority if
/// `folder` has none yet. Returns the folder of each name. A name that already has a certificate
/// gets a new one, which renews an expired one.
///
/// # Errors
/// [`KeysError`]: an invalid host name, one of the other role, days out of range, the file system.
pub fn make(
    folder: &Path,
    names: &[(String, Role)],
    days: u32,
    now: SystemTime,
) -> Result<Vec<PathBuf>, KeysError> {
    if !(1..=AUTHORITY_DAYS).contains(&days) {
        return Err(KeysError::Days(days));
    }
    // All names are checked first, so that an invalid one at the end leaves nothing half made.
    let params: Vec<_> = names
        .iter()
        .map(|(name, role)| params_of(name, *role, days, now))
        .collect::<Result<_, _>>()?;
    check_role(folder, names)?;
    private_folder(folder)?;
    let authority = authority(folder, now)?;
    let certificate = read(&folder.join(AUTHORITY))?;
    let mut made = Vec::new();
    for ((name, _), params) in names.iter().zip(params) {
        let own = folder.join(name);
        let failed = |error: rcgen::Error| KeysError::damaged(&folder.join(AUTHORITY), error);
        let key = KeyPair::generate().map_err(failed)?;
        let signed = params.signed_by(&key, &authority).map_err(failed)?;
        private_folder(&own)?;
        write(&own.join(AUTHORITY), &certificate)?;
        write(&own.join(KEY), &key.serialize_pem())?;
        write(&own.join(CERTIFICATE), &signed.pem())?;
        made.push(own);
    }
    Ok(made)
}

/// The contents of a certificate for this name.
fn params_of(
    name: &str,
    role: Role,
    days: u32,
    now: SystemTime,
) -> Result<CertificateParams, KeysError> {
    let wrong = |message: &str| KeysError::Name { name: name.into(), message: message.into() };
    // The name is also used as a folder name.
    let is_sound = |c: char| c.is_ascii_alphanumeric() || ".:-_".contains(c);
    if name.is_empty() || name.len() > 253 || name.starts_with('.') || !name.chars().all(is_sound) {
        return Err(wrong("it may contain only letters, digits, dots, hyphens and colons"));
    }
    let params = CertificateParams::new([name.to_owned()]);
    let mut params = params.map_err(|error| wrong(&error.to_string()))?;
    params.distinguished_name.push(DnType::CommonName, name);
    params.use_authority_key_identifier_extension = true;
    params.key_usages.push(KeyUsagePurpose::DigitalSignature);
    // RFC 5280 §4.2.1.12: an attacker who controls a host cannot use its certificate with other agents.
    params.extended_key_usages = vec![match role {
        Role::Host => ExtendedKeyUsagePurpose::ServerAuth,
        Role::Watcher => ExtendedKeyUsagePurpose::ClientAuth,
    }];
    valid(&mut params, days, now);
    Ok(params)
}

fn valid(params: &mut CertificateParams, days: u32, now: SystemTime) {
    const DAY: Duration = Duration::from_secs(86_400);
    let since_1970 = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let now = rcgen::date_time_ymd(1970, 1, 1) + since_1970;
    // Hosts whose clocks are slightly behind must not refuse a new one.
    params.not_before = now - DAY / 24;
    params.not_after = now + DAY * days;
}

/// The authority of a folder: the existing one, or a new one.
fn authority(folder: &Path, now: SystemTime) -> Result<Issuer<'static, KeyPair>, KeysError> {
    let (certificate, key) = (folder.join(AUTHORITY), folder.join(AUTHORITY_KEY));
    // What it signs names it and its key; its validity is only in its own certificate.
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.distinguished_name.push(DnType::CommonName, "suiro layers");
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    if certificate.exists() || key.exists() {
        let failed = |error: rcgen::Error| KeysError::damaged(&key, error);
        let pair = KeyPair::from_pem(&read(&key)?).map_err(failed)?;
        return Ok(Issuer::new(params, pair));
    }
    let failed = |error: rcgen::Error| KeysError::damaged(&certificate, error);
    valid(&mut params, AUTHORITY_DAYS, now);
    let pair = KeyPair::generate().map_err(failed)?;
    let signed = params.self_signed(&pair).map_err(failed)?;
    write(&key, &pair.serialize_pem())?;
    write(&certificate, &signed.pem())?;
    Ok(Issuer::new(params, pair))
}

fn private_folder(folder: &Path) -> Result<(), KeysError> {
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(KeysError::io("making the folder", folder))
}

/// Writes a file that only its owner may read, completely or not at all.
fn write(file: &Path, text: &str) -> Result<(), KeysError> {
    let new = file.with_extension("new");
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    let written = options.open(&new).and_then(|mut to| to.write_all(text.as_bytes()));
    written.and_then(|()| fs::rename(&new, file)).map_err(KeysError::io("writing", file))
}

pub(super) fn read(file: &Path) -> Result<String, KeysError> {
    suiro_outside::file::read_text(file, FILE_BYTES_MAX).map_err(KeysError::io("reading", file))
}
