//! A TLS handshake takes a signature. With RSA and 4096 bits, that is the time of hundreds of
//! reads.

mod certificates;
mod nbd;

use certificates::Certificates;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use nbd::{Running, greeted, memory};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The connections that one peer has at a time.
const CONNECTIONS: usize = 16;

/// Returns the first message of a client's handshake.
fn hello() -> Vec<u8> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").unwrap();
    let mut hello = Vec::new();
    ClientConnection::new(Arc::new(config), name).unwrap().write_tls(&mut hello).unwrap();
    hello
}

/// Begins a handshake, and returns the stream.
fn begun(socket: &Path, hello: &[u8]) -> UnixStream {
    let mut stream = greeted(UnixStream::connect(socket).unwrap()).unwrap();
    stream.write_all(b"IHAVEOPT\0\0\0\x05\0\0\0\0").unwrap();
    stream.read_exact(&mut [0; 20]).unwrap();
    stream.write_all(hello).unwrap();
    stream
}

/// One peer began handshakes as fast as it could, and another client of the lane got 8 reads a
/// second.
#[test]
fn a_peer_that_begins_handshakes_does_not_take_the_lane_from_others() {
    let certificates = Certificates::new();
    certificates.use_rsa();
    let running = Running::start(memory(1 << 20), |config| {
        let tls = certificates.config(false);
        config.tls = Some(blockyard_serve::TlsConfig { is_required: false, ..tls });
    });
    let mut client = running.client();
    let hello = hello();
    let handshakes = AtomicU64::new(0);
    let is_over = AtomicBool::new(false);
    let begin = || {
        while !is_over.load(Ordering::Relaxed) {
            let streams: Vec<_> =
                (0..CONNECTIONS).map(|_| begun(&running.socket, &hello)).collect();
            for mut stream in streams {
                // The answer to the hello has the signature.
                stream.read_exact(&mut [0]).unwrap();
                handshakes.fetch_add(1, Ordering::Relaxed);
            }
        }
    };
    let reads = std::thread::scope(|scope| {
        scope.spawn(begin);
        scope.spawn(begin);
        while handshakes.load(Ordering::Relaxed) == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
        let start = Instant::now();
        let before = handshakes.load(Ordering::Relaxed);
        let mut reads = 0;
        while start.elapsed() < Duration::from_secs(3) {
            client.read(0, 512);
            reads += 1;
        }
        is_over.store(true, Ordering::Relaxed);
        let meanwhile = handshakes.load(Ordering::Relaxed) - before;
        // A lane that gives handshakes a tenth of its time does hundreds of reads for each, on a
        // busy machine some. Without a share, there were twenty handshakes for each read.
        assert!(2 * reads > meanwhile, "{reads} reads and {meanwhile} handshakes");
        reads
    });
    eprintln!("{reads} reads, {} handshakes", handshakes.load(Ordering::Relaxed));
    client.bye();
    running.stop();
}
