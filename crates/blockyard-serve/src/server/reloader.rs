//! Reads the certificates of a running server again.

use crate::clients::tls::{Loaded, TlsConfig, TlsError, Untimely};
use crate::door::nbd;
use std::sync::Arc;

/// Reads the certificates of a [`Server`](crate::Server) again.
#[derive(Clone, Debug)]
pub struct Reloader {
    /// The TLS of the server, with its files.
    pub(crate) tls: Option<(Arc<nbd::Tls>, TlsConfig)>,
}

impl Reloader {
    /// Reads the files of the server's TLS again. Clients that start TLS from now on get the new certificates; those
    /// that have started it keep the old ones. Returns the certificates outside their time of validity, which are used all the
    /// same, or `None` if the server has no TLS.
    ///
    /// # Errors
    ///
    /// A file cannot be read, or the files do not fit together. The server then keeps its old certificates.
    pub fn reload(&self) -> Result<Option<Vec<Untimely>>, TlsError> {
        let Some((tls, files)) = &self.tls else { return Ok(None) };
        let Loaded { config, untimely } = files.load()?;
        tls.replace(config);
        Ok(Some(untimely))
    }
}
