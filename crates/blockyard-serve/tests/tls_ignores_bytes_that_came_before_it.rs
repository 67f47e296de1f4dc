//! TLS: which clients are admitted, which bytes are dropped at its start, and that it carries all
//! data.

mod certificates;
mod nbd;

use certificates::Certificates;
use core::time::Duration;
use nbd::{Client, FLUSH, Random, Running, WRITE, disk, file, greeted, header, listed, memory};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Instant;

use blockyard_serve::{Admission, DiskConfig, Source};

type Protected = StreamOwned<ClientConnection, UnixStream>;

const STARTTLS: &[u8] = b"IHAVEOPT\0\0\0\x05\0\0\0\0";
const LIST: &[u8] = b"IHAVEOPT\0\0\0\x03\0\0\0\0";
const STRUCTURED_REPLY: &[u8] = b"IHAVEOPT\0\0\0\x08\0\0\0\0";
const ACK: [u8; 4] = [0, 0, 0, 1];

/// Returns the configuration of a client that trusts the authority and presents the certificate
/// `name`, if any.
fn config(certificates: &Certificates, name: Option<&str>) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    fn read(name: &str, certificates: &Certificates) -> CertificateDer<'static> {
        CertificateDer::from_pem_file(certificates.file(&format!("{name}-cert.pem"))).unwrap()
    }
    roots.add(read("ca", certificates)).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.unwrap().with_root_certificates(roots);
    Arc::new(match name {
        None => builder.with_no_client_auth(),
        Some(name) => {
            let key = certificates.file(&format!("{name}-key.pem"));
            let key = PrivateKeyDer::from_pem_file(key).unwrap();
            builder.with_client_auth_cert(vec![read(name, certificates)], key).unwrap()
        }
    })
}

/// Reads the reply to `option` and returns its kind.
fn reply(stream: &mut impl Read, option: u8) -> io::Result<[u8; 4]> {
    let mut reply = [0; 20];
    stream.read_exact(&mut reply)?;
    assert_eq!(reply[8..12], [0, 0, 0, option], "the reply should name this option");
    let len = u32::from_be_bytes(reply[16..].try_into().unwrap());
    io::copy(&mut stream.take(len.into()), &mut io::sink())?;
    Ok(reply[12..16].try_into().unwrap())
}

/// Sends `said` unprotected and in one piece, then returns the stream under TLS.
fn protected(running: &Running, config: &Arc<ClientConfig>, said: &[u8]) -> io::Result<Protected> {
    let mut stream = greeted(UnixStream::connect(&running.socket)?)?;
    stream.write_all(said)?;
    assert_eq!(reply(&mut stream, 5)?, ACK);
    let name = ServerName::try_from("localhost").unwrap();
    let session = ClientConnection::new(Arc::clone(config), name).unwrap();
    let mut stream = StreamOwned::new(session, stream);
    while stream.conn.is_handshaking() {
        stream.conn.complete_io(&mut stream.sock)?;
    }
    Ok(stream)
}

/// Checks [nothing-before-tls].
#[test]
fn starttls_drops_the_bytes_before_and_after_it() {
    let certificates = Certificates::new();
    let running = Running::start(memory(1 << 20), |server| {
        let tls = certificates.config(false);
        server.tls = Some(blockyard_serve::TlsConfig { is_required: false, ..tls });
    });
    let config = config(&certificates, None);

    // Structured replies were negotiated without protection.
    let mut stream = greeted(UnixStream::connect(&running.socket).unwrap()).unwrap();
    stream.write_all(STRUCTURED_REPLY).unwrap();
    assert_eq!(reply(&mut stream, 8).unwrap(), ACK);
    stream.write_all(STARTTLS).unwrap();
    assert_eq!(reply(&mut stream, 5).unwrap(), ACK);
    let name = ServerName::try_from("localhost").unwrap();
    let session = ClientConnection::new(Arc::clone(&config), name).unwrap();
    let mut client = Client::enter(StreamOwned::new(session, stream)).unwrap();
    // A structured reply would have a different magic number.
    assert_eq!(client.read(4095, 3), [0; 3]);

    // An attacker in the middle injects an option after STARTTLS.
    for behind in [LIST, STRUCTURED_REPLY, &[LIST, LIST, b"IHAVE"].concat()] {
        let said = [STARTTLS, behind].concat();
        let mut stream = protected(&running, &config, &said).unwrap();
        stream.write_all(b"IHAVEOPT\0\0\0\x63\0\0\0\0").unwrap();
        assert_eq!(
            reply(&mut stream, 0x63).unwrap(),
            [0x80, 0, 0, 1],
            "the option should be unknown, and its reply the first"
        );
        assert_eq!(Client::enter(stream).unwrap().read(0, 3), [0; 3]);
    }
    running.stop();
}

/// A client under TLS writes for many times the lane's patience while another one waits for memory.
/// It is not cut off.
///
/// Checks [idle-holder-cut-off].
#[test]
fn a_slow_writer_under_tls_is_not_cut_off() {
    const PIECE: usize = 128 << 10;
    let certificates = Certificates::new();
    let patience = Duration::from_secs(1);
    let path = file(16 << 20);
    let source = Source::File { path: path.clone(), buffered: true };
    let running = Running::start(disk(source), |server| {
        server.tls = Some(certificates.config(false));
        (server.lane_bytes_max, server.patience) = (64 << 10, patience);
    });
    let config = config(&certificates, None);
    let mut slow = Client::enter(protected(&running, &config, STARTTLS).unwrap()).unwrap();
    let mut other = Client::enter(protected(&running, &config, STARTTLS).unwrap()).unwrap();
    slow.stream.write_all(&header(WRITE, 7, 0, 3 << 20)).unwrap();
    slow.stream.write_all(&[7; 2 * PIECE]).unwrap();
    std::thread::scope(|scope| {
        // The other one waits for the turn meanwhile.
        let written = scope.spawn(|| other.write(8 << 20, &[9; 1 << 20]));
        for _ in 2..24 {
            std::thread::sleep(patience / 3); // slow, but never silent for the whole patience
            slow.stream.write_all(&[7; PIECE]).expect("the writer should not be cut off");
        }
        assert_eq!(slow.reply().expect("the writer should not be cut off"), (7, 0));
        assert_eq!(written.join().unwrap(), 0);
    });
    running.stop();
    std::fs::remove_file(path).unwrap();
}

/// Returns the certificate that the server presents to a new client.
fn shown(running: &Running, config: &Arc<ClientConfig>) -> CertificateDer<'static> {
    let stream = protected(running, config, STARTTLS).unwrap();
    stream.conn.peer_certificates().unwrap()[0].clone()
}

#[test]
fn reloaded_certificates_are_shown_to_new_sessions_only() {
    let certificates = Certificates::new();
    let running =
        Running::start(memory(1 << 20), |server| server.tls = Some(certificates.config(false)));
    let config = config(&certificates, None);
    let before = shown(&running, &config);
    let mut old = Client::enter(protected(&running, &config, STARTTLS).unwrap()).unwrap();
    let reloader = running.server.reloader();

    // The key does not match the certificate, so the server keeps the old pair.
    std::fs::copy(certificates.file("client-key.pem"), certificates.file("server-key.pem"))
        .unwrap();
    let error = reloader.reload().unwrap_err().to_string();
    assert!(error.contains("not the key of"), "{error}");
    assert_eq!(shown(&running, &config), before);

    std::fs::copy(certificates.file("client-cert.pem"), certificates.file("server-cert.pem"))
        .unwrap();
    assert_eq!(reloader.reload().unwrap(), Some(Vec::new()));
    assert_ne!(shown(&running, &config), before);
    assert_eq!(old.read(0, 3), [0; 3], "an existing session should continue");
    running.stop();
}

#[test]
fn required_tls_refuses_plain_clients() {
    let certificates = Certificates::new();
    let running =
        Running::start(memory(1 << 20), |server| server.tls = Some(certificates.config(true)));
    assert!(
        Client::connect(&running.socket).is_err(),
        "the server should cut off EXPORT_NAME, which has no error reply"
    );
    let mut stream = greeted(UnixStream::connect(&running.socket).unwrap()).unwrap();
    stream.write_all(LIST).unwrap();
    assert_eq!(reply(&mut stream, 3).unwrap(), [0x80, 0, 0, 5], "TLS_REQD");

    fn enter(
        name: Option<&str>,
        running: &Running,
        certificates: &Certificates,
    ) -> Result<Client<StreamOwned<ClientConnection, UnixStream>>, io::Error> {
        let stream = protected(running, &config(certificates, name), STARTTLS)?;
        Client::enter(stream)
    }
    assert_eq!(enter(Some("client"), &running, &certificates).unwrap().read(0, 2), [0; 2]);
    // With TLS 1.3 a client learns of a refused certificate only after its handshake.
    assert!(
        enter(None, &running, &certificates).is_err(),
        "a client without a certificate should be refused"
    );
    assert!(
        enter(Some("other"), &running, &certificates).is_err(),
        "a certificate of an unknown authority should be refused"
    );
    assert_eq!(
        enter(Some("client"), &running, &certificates).unwrap().read(0, 2),
        [0; 2],
        "the server should still serve"
    );
    running.stop();
}

#[test]
fn an_export_is_shown_to_the_owners_of_some_certificates() {
    let certificates = Certificates::new();
    let names = |name: &str| vec![ServerName::try_from(name.to_owned()).unwrap()];
    fn export(name: &str, names: Vec<ServerName<'static>>) -> DiskConfig {
        let admission = Admission { names, ..Admission::default() };
        DiskConfig { name: name.to_owned(), admission, ..memory(4096) }
    }
    let running = Running::start(export("all", vec![]), |server| {
        server.tls = Some(certificates.config(true));
        server.disks.push(export("theirs", names("client")));
        server.disks.push(export("another", names("clien")));
    });
    fn of(
        name: &str,
        running: &Running,
        certificates: &Certificates,
    ) -> StreamOwned<ClientConnection, UnixStream> {
        protected(running, &config(certificates, Some(name)), STARTTLS).unwrap()
    }
    assert_eq!(listed(&mut of("client", &running, &certificates)).unwrap(), ["all", "theirs"]);
    assert_eq!(listed(&mut of("server", &running, &certificates)).unwrap(), ["all"]);
    assert_eq!(
        Client::choose(of("client", &running, &certificates), "theirs").unwrap().read(0, 2),
        [0; 2]
    );
    assert!(Client::choose(of("server", &running, &certificates), "theirs").is_err());
    assert_eq!(
        Client::choose(of("server", &running, &certificates), "all").unwrap().read(0, 2),
        [0; 2]
    );
    running.stop();
}

#[test]
fn a_client_without_tls_after_starttls_is_cut_off_alone() {
    let certificates = Certificates::new();
    let running = Running::start(memory(1 << 20), |server| {
        server.tls = Some(certificates.config(false));
        server.handshake_deadline = Duration::from_millis(300);
    });
    let config = config(&certificates, None);
    let mut good = Client::enter(protected(&running, &config, STARTTLS).unwrap()).unwrap();
    let start = Instant::now();
    for said in [&b"GET / HTTP/1.1\r\n\r\n"[..], LIST, &[0x16, 3, 1, 0xff, 0xff], &[0x16, 3], &[]] {
        let mut stream = greeted(UnixStream::connect(&running.socket).unwrap()).unwrap();
        stream.write_all(STARTTLS).unwrap();
        assert_eq!(reply(&mut stream, 5).unwrap(), ACK);
        stream.write_all(said).unwrap();
        let mut rest = Vec::new();
        // The server cuts off the client, at the deadline if necessary, gracefully or not.
        drop(stream.read_to_end(&mut rest));
        assert!(rest.len() < 16, "the server should send at most an alert");
        assert_eq!(good.write(0, &[1; 5]), 0);
    }
    assert!(start.elapsed() < Duration::from_secs(10));
    drop(good);
    running.stop();
}

/// DISC arrives while the reply before it is being sent. TLS ends after the reply, not within it.
#[test]
fn requests_before_a_disconnect_are_answered_to_the_last_byte() {
    let certificates = Certificates::new();
    let running =
        Running::start(memory(8 << 20), |server| server.tls = Some(certificates.config(false)));
    let config = config(&certificates, None);
    let mut client = Client::enter(protected(&running, &config, STARTTLS).unwrap()).unwrap();
    client.ask(nbd::READ, 0, 8 << 20).unwrap();
    let (_, error) = client.reply().unwrap();
    assert_eq!(error, 0);
    client.ask(nbd::DISC, 0, 0).unwrap();
    let mut data = Vec::new();
    client.stream.read_to_end(&mut data).unwrap();
    assert_eq!(data.len(), 8 << 20);
    running.stop();
}

#[test]
fn tls_carries_every_byte() {
    let certificates = Certificates::new();
    let path = file(4 << 20);
    let on_file = disk(Source::File { path: path.clone(), buffered: true });
    for disk in [memory(4 << 20), on_file] {
        let running = Running::start(disk, |server| server.tls = Some(certificates.config(true)));
        let config = config(&certificates, Some("client"));
        let mut client = Client::enter(protected(&running, &config, STARTTLS).unwrap()).unwrap();
        let mut random = Random(5);
        let mut oracle = vec![0; 4 << 20];
        for len in [1, 511, 4096, 16_384, 16_385, 65_535, 65_537, 300_001, 1 << 20, 3 << 20] {
            let at = usize::try_from(random.below((4 << 20) - len as u64)).unwrap();
            let data: Vec<u8> = (0..len).map(|_| random.below(256).to_be_bytes()[7]).collect();
            assert_eq!(client.write(at as u64, &data), 0);
            oracle[at..at + len].copy_from_slice(&data);
            assert_eq!(client.read(at as u64, len), data);
        }
        // Many requests are in flight before the client starts to read.
        for at in 0..64 {
            client.ask(nbd::READ, at << 16, 1 << 16).unwrap();
        }
        for _ in 0..64 {
            let (cookie, error) = client.reply().unwrap();
            assert_eq!(error, 0);
            let mut data = vec![0; 1 << 16];
            client.stream.read_exact(&mut data).unwrap();
            let at = usize::try_from(cookie - 21).unwrap() << 16;
            assert!(data == oracle[at..at + (1 << 16)], "read {cookie}");
        }
        assert_eq!(client.call(FLUSH, 0, 0), 0);
        client.bye();
        running.stop();
    }
    std::fs::remove_file(path).unwrap();
}
