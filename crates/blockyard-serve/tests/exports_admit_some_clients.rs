//! Exports that only some clients may use, and only so many at a time.

mod nbd;

use blockyard_serve::{Address, Admission, DiskConfig, Place};
use nbd::{Client, Running, greeted, listed, memory};
use std::io::Read;
use std::net::TcpStream;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

fn from(name: &str, places: &[&str]) -> DiskConfig {
    let places = places.iter().map(|place| place.parse().unwrap()).collect();
    let admission = Admission { places, ..Admission::default() };
    DiskConfig { name: name.to_owned(), admission, ..memory(4096) }
}

#[test]
fn an_export_is_shown_to_clients_from_some_places() {
    let user = std::fs::metadata("/proc/self").unwrap().uid();
    let own = format!("unix:{user}");
    let other = format!("unix:{}", user + 1);
    let running = Running::start(from("all", &[]), |config| {
        config.addresses.push(Address::Tcp("127.0.0.1:0".to_owned()));
        config.disks.extend([
            from("unix", &["unix"]),
            from("own", &[&own]),
            from("other", &[&other, "10.0.0.0/8", "127.0.0.2"]),
            from("near", &["127.0.0.0/8", "::1"]),
            from("wide", &["0.0.0.0/0"]),
        ]);
    });
    fn local(socket: &std::path::Path) -> UnixStream {
        greeted(UnixStream::connect(socket).unwrap()).unwrap()
    }
    assert_eq!(listed(&mut local(&running.socket)).unwrap(), ["all", "unix", "own"]);
    assert_eq!(Client::choose(local(&running.socket), "own").unwrap().read(0, 2), [0; 2]);
    assert!(Client::choose(local(&running.socket), "near").is_err());
    assert!(Client::choose(local(&running.socket), "other").is_err());

    let Address::Tcp(address) = &running.server.addresses()[1] else { panic!("a TCP address") };
    fn remote(address: &str) -> TcpStream {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.read_exact(&mut [0; 18]).unwrap();
        std::io::Write::write_all(&mut stream, &[0, 0, 0, 3]).unwrap();
        stream
    }
    assert_eq!(listed(&mut remote(address)).unwrap(), ["all", "near", "wide"]);
    assert_eq!(Client::choose(remote(address), "near").unwrap().read(0, 2), [0; 2]);
    assert!(Client::choose(remote(address), "unix").is_err());
    running.stop();
}

#[test]
fn an_export_has_at_most_so_many_clients() {
    let admission = Admission { clients_max: Some(2), ..Admission::default() };
    let running = Running::start(DiskConfig { admission, ..memory(4096) }, |config| {
        config.lanes = 2;
        config.disks.push(from("other", &[]));
    });
    let mut first = running.client();
    let second = running.client();
    assert!(Client::connect(&running.socket).is_err(), "the third client");
    let mut other = Client::connect_to(&running.socket, "other").unwrap();
    assert_eq!((first.read(0, 2), other.read(0, 2)), (vec![0; 2], vec![0; 2]));
    second.bye();
    // The lane forgets a client just after it has closed the connection.
    let until = Instant::now() + Duration::from_secs(10);
    let third = std::iter::repeat_with(|| Client::connect(&running.socket))
        .take_while(|_| Instant::now() < until)
        .find_map(Result::ok);
    assert_eq!(third.expect("the place of the second").read(0, 2), [0; 2]);
    running.stop();
}

#[test]
fn a_place_is_an_address_a_network_or_unix() {
    for text in ["10.0.0.0/8", "127.0.0.1/32", "::1/128", "2001:db8::/32", "unix", "unix:0"] {
        assert_eq!(text.parse::<Place>().unwrap().to_string(), text);
    }
    assert_eq!("::ffff:10.1.2.3".parse::<Place>().unwrap().to_string(), "10.1.2.3/32");
    for wrong in
        ["", "10.0.0", "10.0.0.0/33", "::/129", "unix:", "unix:x", "10.0.0.0/", "/8", "localhost"]
    {
        let error = wrong.parse::<Place>().unwrap_err();
        assert!(error.starts_with(&format!("{wrong}: not an address")), "{error}");
    }
}
