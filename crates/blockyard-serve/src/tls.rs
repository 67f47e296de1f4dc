//! The configuration of TLS: certificates and keys from files, and whether clients must use it.

use core::fmt;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::{Error as PemError, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::words::error_words;

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

impl TlsConfig {
    /// Reads the files, and checks that they fit together.
    pub(crate) fn load(&self) -> Result<Arc<ServerConfig>, TlsError> {
        let chain = certificates(&self.certificate)?;
        let key = PrivateKeyDer::from_pem_file(&self.key)
            .map_err(|error| of_pem(&self.key, "private key", error))?;
        let provider = Arc::new(default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .expect("ciphers of the provider");
        let builder = match &self.client_authorities {
            None => builder.with_no_client_auth(),
            Some(file) => {
                let mut roots = RootCertStore::empty();
                for certificate in certificates(file)? {
                    roots.add(certificate).map_err(|error| of_rustls(file, &error))?;
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
            error => of_rustls(&self.certificate, &error),
        })?;
        Ok(Arc::new(config))
    }
}

/// Returns all certificates of a file, which must hold at least one.
fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let found =
        CertificateDer::pem_file_iter(file).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    match found {
        Ok(found) if found.is_empty() => Err(of_pem(file, "certificate", PemError::NoItemsFound)),
        Ok(found) => Ok(found),
        Err(error) => Err(of_pem(file, "certificate", error)),
    }
}

fn of_pem(file: &Path, what: &str, error: PemError) -> TlsError {
    let words = match error {
        PemError::Io(error) => error_words(&error),
        PemError::NoItemsFound => format!("there is no {what} in it"),
        error => format!("no PEM file: {error}"),
    };
    TlsError { file: file.to_owned(), words }
}

fn of_rustls(file: &Path, error: &rustls::Error) -> TlsError {
    TlsError { file: file.to_owned(), words: error.to_string() }
}
