//! Truncating the file of a served BTT fails that export alone. The server used to die of SIGBUS with every export.

mod nbd;

use blockyard_btt::Container;
use blockyard_pmem::{Durability, Image, ImageOptions, NewImage};
use blockyard_serve::{DiskConfig, Event, Harm, Source};
use nbd::{Client, EIO, FLUSH, READ, Running, TRIM, disk, greeted, path};
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::mpsc;

fn image() -> PathBuf {
    let path = path("btt");
    let new = NewImage { bytes: 32 << 20, sector_bytes: 512, container: Container::Namespace };
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
            let (path, other_path) = (image(), image());
            let source = |path: &Path| Source::Btt {
                path: path.to_owned(),
                durability,
                container: None,
                force: false,
            };
            let (events, happened) = mpsc::sync_channel(64);
            let running = Running::start(disk(source(&path)), |config| {
                config.events = Some(events);
                config
                    .disks
                    .push(DiskConfig { name: "other".to_owned(), ..disk(source(&other_path)) });
            });
            let (mut client, mut other) = (running.client(), client_of_other(&running.socket));
            assert_eq!(client.write(0, &[1; 4096]), 0);
            assert_eq!(other.write(0, &[2; 4096]), 0);
            File::options().write(true).open(&path).unwrap().set_len(cut).unwrap();
            for _ in 0..3 {
                let end = client.bytes - 4096;
                assert_eq!(client.call(READ, end, 4096), EIO, "{durability:?}, {cut}");
                assert_eq!(other.read(0, 4096), [2; 4096]);
            }
            if durability == Durability::Process {
                // A broken mapping fails every request, also before the end of the file.
                assert_eq!(client.call(READ, 0, 4096), EIO);
                assert_eq!(client.write(0, &[3; 512]), EIO);
                assert_eq!(client.call(TRIM, 0, 512), EIO);
                assert_eq!(client.call(FLUSH, 0, 0), EIO);
            }
            assert_eq!(other.write(4096, &[4; 4096]), 0);
            assert_eq!(other.call(FLUSH, 0, 0), 0);
            assert_eq!(other.read(4096, 4096), [4; 4096]);
            client.bye();
            other.bye();
            running.server.stopper().stop();
            // The final flush of a broken mapping fails.
            assert_eq!(running.server.join().is_err(), durability == Durability::Process);
            let disks = happened.try_iter().filter_map(|event| match event {
                Event::Disk(event) => Some((event.disk, event.harm)),
                Event::Client(_) => None,
            });
            assert_eq!(disks.collect::<Vec<_>>(), [(String::new(), Harm::Failed)], "{cut}");
            [path, other_path].iter().for_each(|path| std::fs::remove_file(path).unwrap());
        }
    }
}
