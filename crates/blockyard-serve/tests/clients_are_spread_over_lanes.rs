//! Which lane serves whom. A watcher sees the lane and the disk of each request.

mod certificates;
mod nbd;

use blockyard::layer::delay::Extra;
use blockyard::layer::rate::Rates;
use blockyard::policy::Policies;
use blockyard::time::{Duration, Instant};
use blockyard::trace::{Action, Event};
use blockyard_serve::{Admission, Config, DiskConfig, Layers, Source, Tell, Watcher};
use certificates::Certificates;
use nbd::{Client, READ, Running, disk, file, greeted, header, memory};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::{Arc, Mutex};

const LANES: usize = 4;

/// The lane and the disk of each request that was issued.
#[derive(Clone, Debug, Default)]
struct Seen(Arc<Mutex<BTreeSet<(u32, u16)>>>);

impl Watcher for Seen {
    fn lane(&self, lane: u32, _: Instant) -> Tell {
        let Self(seen) = self.clone();
        Box::new(move |disk, event: &Event<'_>| {
            if event.action == Action::Issue {
                seen.lock().unwrap().insert((lane, disk));
            }
        })
    }
}

impl Seen {
    /// Returns the lanes that have had requests to this disk.
    fn lanes_of(&self, disk: u16) -> Vec<u32> {
        let seen = self.0.lock().unwrap();
        seen.iter().filter(|(_, of)| *of == disk).map(|(lane, _)| *lane).collect()
    }
}

fn named(name: &str, config: DiskConfig) -> DiskConfig {
    DiskConfig { name: name.to_owned(), ..config }
}

fn with_layers(layers: Layers) -> DiskConfig {
    DiskConfig { layers, ..memory(1 << 20) }
}

fn rated() -> DiskConfig {
    with_layers(Layers { rates: Some(Rates::NONE), ..Layers::default() })
}

fn delayed() -> DiskConfig {
    let delay = Some(Extra::fixed(Duration::from_ms(1)));
    with_layers(Layers { delay, ..Layers::default() })
}

/// Starts a server with a disk that all lanes serve and `more` disks.
fn start(more: Vec<DiskConfig>, change: impl FnOnce(&mut Config)) -> (Running, Seen) {
    let seen = Seen::default();
    let running = Running::start(memory(1 << 20), |config| {
        config.lanes = LANES;
        config.disks.extend(more);
        config.watcher = Some(Arc::new(seen.clone()));
        change(config);
    });
    (running, seen)
}

fn client(running: &Running, name: &str) -> Client {
    Client::connect_to(&running.socket, name).unwrap()
}

/// An operator who does not choose the number of lanes had one lane, and so one processor, for all
/// clients.
#[test]
fn by_default_clients_have_lanes_of_their_own() {
    let seen = Seen::default();
    let lanes = Config::new(Vec::new(), Vec::new()).lanes;
    let running = Running::start(memory(1 << 20), |config| {
        config.lanes = lanes;
        config.watcher = Some(Arc::new(seen.clone()));
    });
    let processors = std::thread::available_parallelism().unwrap().get();
    assert!(lanes >= processors.min(2), "{lanes} lanes for {processors} processors");
    let mut clients: Vec<_> = (0..lanes).map(|_| running.client()).collect();
    clients.iter_mut().for_each(|client| assert_eq!(client.read(0, 2), [0; 2]));
    assert_eq!(seen.lanes_of(0).len(), lanes, "each client has a lane");
    running.stop();
}

/// One lane served all disks if one of them had a delay, a rate, rules or a model; other numbers of
/// lanes were refused.
#[test]
fn a_disk_that_needs_one_lane_leaves_the_others_theirs() {
    let path = file(1 << 20);
    let other = file(1 << 20);
    fn in_file(path: &Path) -> DiskConfig {
        disk(Source::File { path: path.to_owned(), buffered: true })
    }
    fn deadline(config: DiskConfig) -> DiskConfig {
        DiskConfig { policies: Policies::mq_deadline(), ..config }
    }
    let others = [
        ("memory", DiskConfig { depth: 3, ..deadline(memory(1 << 20)) }),
        ("delay", delayed()),
        ("rate", rated()),
        ("depth", DiskConfig { depth: 3, ..in_file(&other) }),
        ("scheduled", deadline(in_file(&path))),
    ];
    let disks = others.iter().map(|(name, config)| named(name, config.clone()));
    let (running, seen) = start(disks.collect(), |_| ());
    let mut clients: Vec<_> = (0..LANES).map(|_| client(&running, "")).collect();
    for (at, (name, _)) in (1..).zip(&others) {
        let mut all: Vec<_> = (0..LANES).map(|_| client(&running, name)).collect();
        for (byte, client) in (1..).zip(&mut all) {
            assert_eq!(client.write(u64::from(byte) * 4096, &[byte; 4096]), 0, "{name}");
        }
        for byte in 1..=4 {
            assert_eq!(all[0].read(u64::from(byte) * 4096, 4096), [byte; 4096], "{name}");
        }
        let lanes = if *name == "memory" { LANES } else { 1 };
        assert_eq!(seen.lanes_of(at).len(), lanes, "{name}");
        all.into_iter().for_each(Client::bye);
    }
    clients.iter_mut().for_each(|client| assert_eq!(client.read(0, 2), [0; 2]));
    assert_eq!(seen.lanes_of(0).len(), LANES);
    let homes: BTreeSet<_> = (2..=5).flat_map(|disk| seen.lanes_of(disk)).collect();
    assert_eq!(homes.len(), 4, "the disks do not share one lane: {homes:?}");
    running.stop();
    std::fs::remove_file(path).unwrap();
    std::fs::remove_file(other).unwrap();
}

/// A request that comes together with the choice moves with its client.
#[test]
fn a_client_may_send_requests_before_it_knows_that_its_choice_is_accepted() {
    let (running, _) = start(vec![named("rate", rated())], |_| ());
    for _ in 0..LANES {
        let mut stream = greeted(UnixStream::connect(&running.socket).unwrap()).unwrap();
        let choice = b"IHAVEOPT\0\0\0\x01\0\0\0\x04rate";
        stream.write_all(&[&choice[..], &header(READ, 5, 0, 512)].concat()).unwrap();
        stream.read_exact(&mut [0; 10]).unwrap();
        let mut client = Client { stream, bytes: 1 << 20, next: 6 };
        assert_eq!(client.reply().unwrap(), (5, 0));
        client.stream.read_exact(&mut [0; 512]).unwrap();
        assert_eq!(client.read(4096, 2), [0; 2]);
        client.bye();
    }
    running.stop();
}

#[test]
fn tls_goes_on_in_the_lane_of_the_disk() {
    let certificates = Certificates::new();
    let tls = certificates.config(false);
    let (running, seen) = start(vec![named("rate", rated())], |config| config.tls = Some(tls));
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(certificates.file("ca-cert.pem")).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider);
    let config = config.with_safe_default_protocol_versions().unwrap();
    let config = Arc::new(config.with_root_certificates(roots).with_no_client_auth());
    let mut clients: Vec<_> = (0..LANES)
        .map(|_| {
            let mut stream = greeted(UnixStream::connect(&running.socket).unwrap()).unwrap();
            stream.write_all(b"IHAVEOPT\0\0\0\x05\0\0\0\0").unwrap();
            stream.read_exact(&mut [0; 20]).unwrap();
            let name = ServerName::try_from("localhost").unwrap();
            let session = ClientConnection::new(Arc::clone(&config), name).unwrap();
            Client::choose(StreamOwned::new(session, stream), "rate").unwrap()
        })
        .collect();
    for (byte, client) in (1..).zip(&mut clients) {
        assert_eq!(client.write(0, &[byte; 100_000]), 0);
        assert_eq!(client.read(0, 100_000), [byte; 100_000]);
    }
    assert_eq!(seen.lanes_of(1).len(), 1);
    running.stop();
}

/// Each client of a disk counts once, wherever it came in.
#[test]
fn a_client_that_moved_gives_its_place_back() {
    let admission = Admission { clients_max: Some(2), ..Admission::default() };
    let (running, _) = start(vec![named("rate", DiskConfig { admission, ..rated() })], |_| ());
    for _ in 0..3 * LANES {
        let both = [client(&running, "rate"), client(&running, "rate")];
        assert!(Client::connect_to(&running.socket, "rate").is_err(), "the third client");
        both.into_iter().for_each(Client::bye);
        // The lane forgets a client just after it has closed the connection.
        let until = std::time::Instant::now() + core::time::Duration::from_secs(20);
        while running.server.gauge().read().unwrap().clients > 0
            && std::time::Instant::now() < until
        {
            std::thread::sleep(core::time::Duration::from_millis(1));
        }
    }
    running.stop();
}
