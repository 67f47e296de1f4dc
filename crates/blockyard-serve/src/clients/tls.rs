//! The configuration of TLS: certificates and keys from files, and whether clients must use it.
//!
//! A certificate outside its time of validity is used, as the other side decides whether it accepts that, and [`Untimely`] says so.

use core::fmt;
use core::time::Duration;
use rustls::Error::InvalidCertificate;
use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::{Error as PemError, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::{ParsedCertificate, WebPkiClientVerifier};
use rustls::{CertificateError, RootCertStore, ServerConfig};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use blockyard_std::parts::words::{counted, error_words};

/// The PEM files that TLS needs, and whether clients must use it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsConfig {
    /// The server's certificate chain: its own certificate, and those up to one that clients trust.
    pub certificate: PathBuf,
    /// The private key of the certificate.
    pub key: PathBuf,
    /// Certificates of authorities. A client is refused unless one of them has signed its certificate. Without this
    /// file, clients need no certificate.
    pub client_authorities: Option<PathBuf>,
    /// Whether clients without TLS are refused.
    pub is_required: bool,
}

/// The reason why a file of [`TlsConfig`] cannot be used.
#[derive(Debug)]
pub struct TlsError {
    file: PathBuf,
    words: String,
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.file.display(), self.words)
    }
}

impl core::error::Error for TlsError {}

/// A certificate outside its time of validity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Untimely {
    file: PathBuf,
    /// The number of the certificate in its file, from 1.
    number: usize,
    /// Whether it is not valid yet; else it has expired.
    is_early: bool,
    /// The time until its validity begins, or since it ended.
    away: Duration,
}

impl fmt::Display for Untimely {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(u64, &str); 3] = [(86_400, "day"), (3600, "hour"), (60, "minute")];
        let secs = self.away.as_secs();
        let unit = UNITS.into_iter().find(|(unit, _)| secs >= *unit);
        let (unit, noun) = unit.unwrap_or((1, "second"));
        let away = counted(secs / unit, noun);
        write!(f, "{}: certificate {} ", self.file.display(), self.number)?;
        match self.is_early {
            true => write!(f, "will not be valid before {away} from now"),
            false => write!(f, "expired {away} ago"),
        }
    }
}

/// What [`TlsConfig::load`] has found.
pub(crate) struct Loaded {
    pub(crate) config: Arc<ServerConfig>,
    pub(crate) untimely: Vec<Untimely>,
}

impl TlsConfig {
    /// Reads the files, and checks that they fit together.
    pub(crate) fn load(&self) -> Result<Loaded, TlsError> {
        let chain = read_certificates(&self.certificate)?;
        let mut untimely = find_untimely(&self.certificate, &chain);
        let key = PrivateKeyDer::from_pem_file(&self.key)
            .map_err(|error| pem_error(&self.key, "private key", error))?;
        let provider = Arc::new(default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .expect("ciphers of the provider");
        let builder = match &self.client_authorities {
            None => builder.with_no_client_auth(),
            Some(file) => {
                let mut roots = RootCertStore::empty();
                let authorities = read_certificates(file)?;
                untimely.extend(find_untimely(file, &authorities));
                for certificate in authorities {
                    roots.add(certificate).map_err(|error| rustls_error(file, &error))?;
                }
                let verifier =
                    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
                        .build()
                        .expect("certificate authority without a revocation list");
                builder.with_client_cert_verifier(verifier)
            }
        };
        let config = builder.with_single_cert(chain, key).map_err(|error| match error {
            rustls::Error::InconsistentKeys(_) => TlsError {
                file: self.key.clone(),
                words: format!("not the key of {}", self.certificate.display()),
            },
            error => rustls_error(&self.certificate, &error),
        })?;
        Ok(Loaded { config: Arc::new(config), untimely })
    }
}

/// Returns those of the certificates of `file` that are outside their time of validity.
fn find_untimely(file: &Path, certificates: &[CertificateDer<'_>]) -> Vec<Untimely> {
    let numbered = certificates.iter().enumerate();
    let untimely = numbered.filter_map(|(at, certificate)| {
        let (is_early, away) = time_outside_validity(certificate, UnixTime::now())?;
        Some(Untimely { file: file.to_owned(), number: at + 1, is_early, away })
    });
    untimely.collect()
}

/// Returns whether the validity of a certificate begins after `now`, and the time from `now` to its begin or since its end, or
/// `None` if it is valid.
fn time_outside_validity(
    certificate: &CertificateDer<'_>,
    now: UnixTime,
) -> Option<(bool, Duration)> {
    let parsed = ParsedCertificate::try_from(certificate).ok()?;
    let nobody = RootCertStore::empty();
    let algorithms = default_provider().signature_verification_algorithms.all;
    // No authority is known here, but the verification looks at the time first.
    match verify_server_cert_signed_by_trust_anchor(&parsed, &nobody, &[], now, algorithms) {
        Err(InvalidCertificate(CertificateError::ExpiredContext { not_after, .. })) => {
            Some((false, time_between(not_after, now)))
        }
        Err(InvalidCertificate(CertificateError::NotValidYetContext { not_before, .. })) => {
            Some((true, time_between(now, not_before)))
        }
        _ => None,
    }
}

fn time_between(from: UnixTime, to: UnixTime) -> Duration {
    Duration::from_secs(to.as_secs().saturating_sub(from.as_secs()))
}

/// Returns all certificates of a file, which must hold at least one.
fn read_certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let found =
        CertificateDer::pem_file_iter(file).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    match found {
        Ok(found) if found.is_empty() => {
            Err(pem_error(file, "certificate", PemError::NoItemsFound))
        }
        Ok(found) => Ok(found),
        Err(error) => Err(pem_error(file, "certificate", error)),
    }
}

fn pem_error(file: &Path, what: &str, error: PemError) -> TlsError {
    let words = match error {
        PemError::Io(error) => error_words(&error),
        PemError::NoItemsFound => format!("there is no {what} in it"),
        error => format!("no PEM file: {error}"),
    };
    TlsError { file: file.to_owned(), words }
}

fn rustls_error(file: &Path, error: &rustls::Error) -> TlsError {
    TlsError { file: file.to_owned(), words: error.to_string() }
}
