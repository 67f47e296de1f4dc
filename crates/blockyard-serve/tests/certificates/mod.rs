//! Certificates for one test: an authority, a server's and a client's certificate that it signed,
//! and a certificate signed by another authority. The files have the names that libnbd and qemu
//! expect.
#![allow(dead_code, reason = "each test uses a part of it")]

use blockyard_serve::TlsConfig;
use rcgen::{
    BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use std::path::PathBuf;

/// A folder of certificates.
pub(crate) struct Certificates(pub(crate) PathBuf);

impl Certificates {
    pub(crate) fn new() -> Self {
        let folder = crate::nbd::path("certificates");
        std::fs::create_dir(&folder).unwrap();
        let this = Self(folder);
        let authority = this.authority("ca");
        this.sign(&authority, "server");
        this.sign(&authority, "client");
        let somebody = this.authority("other-ca");
        this.sign(&somebody, "other");
        this
    }

    /// Returns a folder for a client that has the authority's certificate and none of its own.
    pub(crate) fn without_client(&self) -> PathBuf {
        let folder = self.0.join("nobody");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::copy(self.file("ca-cert.pem"), folder.join("ca-cert.pem")).unwrap();
        folder
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Replaces the certificate of the server by one of RSA with 4096 bits, whose signatures take
    /// long.
    pub(crate) fn use_rsa(&self) {
        let key = KeyPair::from_pem(include_str!("rsa-4096-key.pem")).unwrap();
        let params = CertificateParams::new(["localhost".to_owned()]).unwrap();
        self.write("server", &params.self_signed(&key).unwrap().pem(), &key);
    }

    /// Returns the configuration of a server that requires TLS, and client certificates if
    /// `knows_clients`.
    pub(crate) fn config(&self, knows_clients: bool) -> TlsConfig {
        TlsConfig {
            certificate: self.file("server-cert.pem"),
            key: self.file("server-key.pem"),
            client_authorities: knows_clients.then(|| self.file("ca-cert.pem")),
            is_required: true,
        }
    }

    fn authority(&self, name: &str) -> Issuer<'static, KeyPair> {
        let mut params = CertificateParams::new([]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate().unwrap();
        self.write(name, &params.self_signed(&key).unwrap().pem(), &key);
        Issuer::new(params, key)
    }

    fn sign(&self, authority: &Issuer<'_, KeyPair>, name: &str) {
        let mut params = CertificateParams::new(["localhost".to_owned(), name.to_owned()]).unwrap();
        // qemu 10 refuses a certificate without the second usage.
        params.key_usages =
            vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let key = KeyPair::generate().unwrap();
        self.write(name, &params.signed_by(&key, authority).unwrap().pem(), &key);
    }

    fn write(&self, name: &str, certificate: &str, key: &KeyPair) {
        std::fs::write(self.file(&format!("{name}-cert.pem")), certificate).unwrap();
        std::fs::write(self.file(&format!("{name}-key.pem")), key.serialize_pem()).unwrap();
    }
}

impl Drop for Certificates {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}
