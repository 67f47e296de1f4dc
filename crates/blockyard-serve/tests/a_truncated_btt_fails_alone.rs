//! Truncating the file of a served BTT fails that export alone. The server used to die of SIGBUS
//! with every export.

mod nbd;

use blockyard_btt::Container;
use blockyard_btt::find::find;
use blockyard_btt::layout::{INFO_BYTES, Layout};
use blockyard_pmem::{Durability, Image, ImageOptions, NewImage};
use blockyard_serve::{DiskConfig, Event, Harm, Source};
use nbd::{Client, EIO, FLUSH, READ, Running, TRIM, disk, greeted, path};
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::mpsc;

fn image() -> PathBuf {
    image_in(Container::Namespace)
}

fn image_in(container: Container) -> PathBuf {
    let path = path("btt");
    let new = NewImage { bytes: 32 << 20, sector_bytes: 512, container };
    drop(Image::create(&path, &new, &ImageOptions::default()).unwrap());
    path
}

/// Connects a client to the export called `other`.
fn client_of_other(socket: &Path) -> Client {
    let mut stream = greeted(UnixStream::connect(socket).unwrap()).unwrap();
    stream.write_all(b"IHAVEOPT\0\0\0\x01\0\0\0\x05other").unwrap();
    let mut export = [0; 10];
    stream.read_exact(&mut export).unwrap();
    Client { stream, bytes: u64::from_be_bytes(export[..8].try_into().unwrap()), next: 1 }
}

/// Checks [lost-page-breaks-mapping].
#[test]
fn a_truncated_export_fails_and_the_others_continue() {
    for durability in [Durability::Process, Durability::Disk] {
        for cut in [0, 20 << 20] {
            let path = image();
            let other_path = image();
            fn source(path: &Path, durability: Durability) -> Source {
                Source::Btt { path: path.to_owned(), durability, container: None, force: false }
            }
            let (events, happened) = mpsc::sync_channel(64);
            let running = Running::start(disk(source(&path, durability)), |config| {
                config.events = Some(events);
                config.disks.push(DiskConfig {
                    name: "other".to_owned(),
                    ..disk(source(&other_path, durability))
                });
            });
            let mut client = running.client();
            let mut other = client_of_other(&running.socket);
            assert_eq!(client.write(0, &[1; 4096]), 0);
            assert_eq!(other.write(0, &[2; 4096]), 0);
            File::options().write(true).open(&path).unwrap().set_len(cut).unwrap();
            for _ in 0..3 {
                let end = client.bytes - 4096;
                assert_eq!(client.call(READ, end, 4096), EIO, "{durability:?}, {cut}");
                assert_eq!(other.read(0, 4096), [2; 4096]);
            }
            // Every request fails, also before the end of the file.
            assert_eq!(client.call(READ, 0, 4096), EIO);
            assert_eq!(client.write(0, &[3; 512]), EIO);
            assert_eq!(client.call(TRIM, 0, 512), EIO);
            assert_eq!(std::fs::metadata(&path).unwrap().len(), cut, "{durability:?}");
            if durability == Durability::Process {
                assert_eq!(client.call(FLUSH, 0, 0), EIO);
            }
            assert_eq!(other.write(4096, &[4; 4096]), 0);
            assert_eq!(other.call(FLUSH, 0, 0), 0);
            assert_eq!(other.read(4096, 4096), [4; 4096]);
            client.bye();
            other.bye();
            running.server.stopper().stop();
            // The final flush of a broken mapping fails. With synchronised writes there is nothing
            // to flush.
            assert_eq!(running.server.join().is_err(), durability == Durability::Process);
            let disks = happened.try_iter().filter_map(|event| match event {
                Event::Disk(event) => Some((event.disk, event.harm)),
                Event::Client(_) => None,
            });
            let told: Vec<_> = disks.collect();
            let failed = (String::new(), Harm::Failed);
            match durability {
                Durability::Process => {
                    assert_eq!(told, [failed, (String::new(), Harm::FlushFailed)], "{cut}");
                }
                _ => assert_eq!(told, [failed], "{cut}"),
            }
            [path, other_path].iter().for_each(|path| std::fs::remove_file(path).unwrap());
        }
    }
}

/// Returns where the parts of an image end: its data, map, log, and copy of the info block.
fn ends(path: &Path) -> [(&'static str, u64); 4] {
    let options = ImageOptions { read_only: true, ..ImageOptions::default() };
    let image = Image::identify(path, &options).unwrap();
    let arena = find(&image.memory, image.container, None).unwrap()[0];
    let Layout { mapoff, flogoff, infooff, .. } = arena.info.layout;
    [("data", mapoff), ("map", flogoff), ("log", infooff), ("copy", infooff + INFO_BYTES)]
        .map(|(part, end)| (part, arena.start + end))
}

type Ask = fn(&mut Client) -> u32;

const ASKS: [(&str, Ask); 3] = [
    ("read", |client| client.call(READ, 8 * 512, 512)),
    ("write", |client| client.write(8 * 512, &[3; 512])),
    ("trim", |client| client.call(TRIM, 8 * 512, 512)),
];

/// A file was cut within the map of a synchronised table. A later write to a sector behind the cut
/// made the file long again, and other sectors, which were durable, then read as zeroes with
/// success. Or another program made it long again. Whatever was cut off, every request fails from
/// the first one on, and the server writes nothing beyond the cut.
///
/// Checks [no-answer-from-a-cut-file] and [cut-file-stays-broken].
#[test]
fn a_cut_anywhere_fails_every_request_for_ever() {
    for (durability, container) in [
        (Durability::Disk, Container::Namespace),
        (Durability::Disk, Container::Pool),
        (Durability::Calls, Container::LabelledNamespace),
        (Durability::Process, Container::Namespace),
        (Durability::Process, Container::Pool),
    ] {
        let path = image_in(container);
        let len = std::fs::metadata(&path).unwrap().len();
        let ends = ends(&path);
        let whole = std::fs::read(&path).unwrap();
        let cuts = ends.into_iter().flat_map(|(part, end)| [(part, end - 1), (part, end - 2048)]);
        for (nth, (part, cut)) in cuts.enumerate() {
            for is_long_again in [false, true] {
                let (ask_name, ask) = ASKS[nth % ASKS.len()];
                let case = format!(
                    "{durability:?}, {container:?}, {ask_name} after a cut in the {part} at {cut}, long again: {is_long_again}"
                );
                std::fs::write(&path, &whole).unwrap();
                let source =
                    Source::Btt { path: path.clone(), durability, container: None, force: false };
                let running = Running::start(disk(source), |_| {});
                let mut client = running.client();
                let last = client.bytes - 512;
                assert_eq!(client.write(8 * 512, &[1; 512]), 0);
                assert_eq!(client.write(last, &[2; 512]), 0);
                assert_eq!(client.call(FLUSH, 0, 0), 0);
                let file = File::options().write(true).open(&path).unwrap();
                file.set_len(cut).unwrap();
                if is_long_again {
                    file.set_len(len).unwrap();
                }
                assert_eq!(ask(&mut client), EIO, "{case}");
                assert_eq!(client.write(last, &[4; 512]), EIO, "{case}");
                assert_eq!(client.call(READ, last, 512), EIO, "{case}");
                let left = file.metadata().unwrap().len();
                assert_eq!(left, if is_long_again { len } else { cut }, "{case}");
                file.set_len(len).unwrap();
                assert_eq!(client.write(last, &[4; 512]), EIO, "{case}, then long again");
                for sector in [8 * 512, last] {
                    assert_eq!(client.call(READ, sector, 512), EIO, "{case}, then long again");
                }
                client.bye();
                running.server.stopper().stop();
                let ended = running.server.join();
                assert_eq!(ended.is_err(), durability != Durability::Disk, "{case}");
            }
        }
        std::fs::remove_file(path).unwrap();
    }
}

/// A cut within a page leaves the page readable, with zeroes behind the end. The next request
/// notices, whatever it is.
///
/// Checks [no-answer-from-a-cut-file].
#[test]
fn a_cut_within_a_page_fails_every_request_from_then_on() {
    // The map of an image of 32 MiB, from the format's table of images, and the first arena's
    // start.
    const MAP: u64 = 33_267_712 + 4096;
    let flush: (&str, Ask) = ("flush", |client| client.call(FLUSH, 0, 0));
    // Within the last page, which has no data, and before the map entry of the sector, in the page
    // that has it.
    for cut in [(32 << 20) - 1, MAP + 7 * 4] {
        for (name, ask) in ASKS.into_iter().chain([flush]) {
            let path = image();
            let source = Source::Btt {
                path: path.clone(),
                durability: Durability::Process,
                container: None,
                force: false,
            };
            let running = Running::start(disk(source), |_| {});
            let mut client = running.client();
            assert_eq!(client.write(8 * 512, &[1; 512]), 0);
            let file = File::options().write(true).open(&path).unwrap();
            file.set_len(cut).unwrap();
            assert_eq!(ask(&mut client), EIO, "{name}, cut to {cut} bytes");
            // A file that is long again does not have what was cut off.
            file.set_len(32 << 20).unwrap();
            assert_eq!(client.call(READ, 8 * 512, 512), EIO, "after {name}");
            client.bye();
            running.server.stopper().stop();
            assert!(running.server.join().is_err(), "the final flush fails");
            std::fs::remove_file(path).unwrap();
        }
    }
}
