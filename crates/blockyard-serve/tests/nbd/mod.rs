//! An NBD client that sends one request at a time, and a server for each test.
#![allow(dead_code, reason = "each test uses a part of it")]

use blockyard::policy::Policies;
use blockyard_serve::{Address, Admission, Config, DiskConfig, Layers, Server, Source};
use core::sync::atomic::{AtomicU32, Ordering};
use core::time::Duration;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Instant;

pub(crate) const READ: u16 = 0;
pub(crate) const WRITE: u16 = 1;
pub(crate) const DISC: u16 = 2;
pub(crate) const FLUSH: u16 = 3;
pub(crate) const TRIM: u16 = 4;
pub(crate) const ZEROES: u16 = 6;
pub(crate) const EIO: u32 = 5;
pub(crate) const ENOSPC: u32 = 28;
pub(crate) const ESHUTDOWN: u32 = 108;

/// Reports a check that cannot run here. Returns whether `ci.sh` collects the report.
pub(crate) fn not_checked(what: &str) -> bool {
    eprintln!("NOT CHECKED: {what}");
    let Some(path) = std::env::var_os("BLOCKYARD_NOT_CHECKED") else { return false };
    let mut file = std::fs::File::options().append(true).open(path).unwrap();
    writeln!(file, "{what}").unwrap();
    true
}

/// Waits until a started server answers at `socket`, and returns it.
pub(crate) fn answers(mut server: Child, socket: &Path) -> Child {
    let start = Instant::now();
    while Client::connect(socket).is_err() {
        assert!(server.try_wait().unwrap().is_none(), "the server should keep running");
        assert!(start.elapsed() < Duration::from_secs(20), "the server should answer within 20 s");
        std::thread::sleep(Duration::from_millis(5));
    }
    server
}

/// Sends the server the signal of this name, such as `-TERM`.
pub(crate) fn signal(server: &Child, name: &str) {
    let sent = Command::new("kill").args([name, &server.id().to_string()]).status().unwrap();
    assert!(sent.success(), "the server should exist");
}

/// Returns a new path for each call.
pub(crate) fn path(what: &str) -> PathBuf {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let name = format!("{what}-{}-{count}", std::process::id());
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

/// Creates a file of `bytes` zeroes.
pub(crate) fn file(bytes: u64) -> PathBuf {
    let path = path("disk");
    std::fs::File::create(&path).unwrap().set_len(bytes).unwrap();
    path
}

/// Returns a path for a socket outside the target folder, because a socket's path has at most 107
/// bytes.
pub(crate) fn socket() -> PathBuf {
    let name = path("s").file_name().unwrap().to_owned();
    std::env::temp_dir().join(name).with_extension("sock")
}

pub(crate) fn disk(source: Source) -> DiskConfig {
    DiskConfig {
        name: String::new(),
        source,
        read_only: false,
        policies: Policies::NONE,
        depth: 32,
        depth_bytes: 64 << 20,
        layers: Layers::default(),
        admission: Admission::default(),
        weights: Vec::new(),
    }
}

pub(crate) fn memory(bytes: u64) -> DiskConfig {
    disk(Source::Memory { bytes, huge_pages: false })
}

/// A server with its own socket.
pub(crate) struct Running {
    pub(crate) socket: PathBuf,
    pub(crate) server: Server,
}

impl Running {
    /// Starts a server of one lane, whatever the machine, unless `change` says otherwise.
    pub(crate) fn start(disk: DiskConfig, change: impl FnOnce(&mut Config)) -> Self {
        let socket = socket();
        let mut config = Config::new(vec![disk], vec![Address::Unix(socket.clone())]);
        config.lanes = 1;
        change(&mut config);
        Self { socket, server: Server::start(&config).unwrap() }
    }

    pub(crate) fn client(&self) -> Client {
        Client::connect(&self.socket).unwrap()
    }

    /// Stops the server. It cuts off clients that do not disconnect.
    pub(crate) fn stop(self) {
        self.server.stopper().stop();
        self.server.join().unwrap();
        assert!(!self.socket.exists(), "the server should remove its socket");
    }
}

pub(crate) struct Client<S = UnixStream> {
    pub(crate) stream: S,
    pub(crate) bytes: u64,
    pub(crate) next: u64,
}

impl Client {
    pub(crate) fn connect(socket: &Path) -> io::Result<Self> {
        Self::connect_to(socket, "")
    }

    /// Connects to the export called `name`.
    pub(crate) fn connect_to(socket: &Path, name: &str) -> io::Result<Self> {
        Self::choose(greeted(UnixStream::connect(socket)?)?, name)
    }
}

/// Returns the names of the exports that the server lists on a stream that is ready for options.
pub(crate) fn listed(stream: &mut (impl Read + Write)) -> io::Result<Vec<String>> {
    stream.write_all(b"IHAVEOPT\0\0\0\x03\0\0\0\0")?;
    let mut names = Vec::new();
    loop {
        let mut head = [0; 20];
        stream.read_exact(&mut head)?;
        let len = u32::from_be_bytes(head[16..].try_into().unwrap());
        let mut data = vec![0; len.try_into().unwrap()];
        stream.read_exact(&mut data)?;
        match head[12..16] {
            [0, 0, 0, 2] => names.push(String::from_utf8(data.split_off(4)).unwrap()),
            [0, 0, 0, 1] => return Ok(names),
            ref other => panic!("the reply to LIST is {other:?}"),
        }
    }
}

/// Answers the greeting on a stream and returns the stream, ready for options.
pub(crate) fn greeted(mut stream: UnixStream) -> io::Result<UnixStream> {
    stream.set_read_timeout(Some(Duration::from_secs(60)))?;
    stream.set_write_timeout(Some(Duration::from_secs(60)))?;
    let mut greeting = [0; 18];
    stream.read_exact(&mut greeting)?;
    assert_eq!(&greeting[..16], b"NBDMAGICIHAVEOPT");
    stream.write_all(&[0, 0, 0, 3])?;
    Ok(stream)
}

impl<S: Read + Write> Client<S> {
    /// Chooses the default export on a stream that is ready for options.
    pub(crate) fn enter(stream: S) -> io::Result<Self> {
        Self::choose(stream, "")
    }

    /// Chooses the export called `name` on a stream that is ready for options.
    pub(crate) fn choose(mut stream: S, name: &str) -> io::Result<Self> {
        let len = u32::try_from(name.len()).unwrap().to_be_bytes();
        stream.write_all(&[b"IHAVEOPT\0\0\0\x01", &len[..], name.as_bytes()].concat())?;
        let mut export = [0; 10];
        stream.read_exact(&mut export)?;
        let bytes = u64::from_be_bytes(export[..8].try_into().unwrap());
        Ok(Self { stream, bytes, next: 1 })
    }

    /// Sends a request without payload and returns its cookie.
    pub(crate) fn ask(&mut self, kind: u16, offset: u64, len: u32) -> io::Result<u64> {
        let cookie = self.next;
        self.next += 1;
        self.stream.write_all(&header(kind, cookie, offset, len))?;
        Ok(cookie)
    }

    /// Reads the next reply and returns its cookie and error, 0 for none.
    pub(crate) fn reply(&mut self) -> io::Result<(u64, u32)> {
        let mut reply = [0; 16];
        self.stream.read_exact(&mut reply)?;
        assert_eq!(&reply[..4], &[0x67, 0x44, 0x66, 0x98]);
        let error = u32::from_be_bytes(reply[4..8].try_into().unwrap());
        Ok((u64::from_be_bytes(reply[8..].try_into().unwrap()), error))
    }

    /// Sends a request, waits for the reply, and returns the error, 0 for none.
    pub(crate) fn call(&mut self, kind: u16, offset: u64, len: u32) -> u32 {
        let cookie = self.ask(kind, offset, len).unwrap();
        let (replied, error) = self.reply().unwrap();
        assert_eq!(replied, cookie);
        error
    }

    pub(crate) fn read(&mut self, offset: u64, len: usize) -> Vec<u8> {
        assert_eq!(self.call(READ, offset, u32::try_from(len).unwrap()), 0);
        let mut data = vec![0; len];
        self.stream.read_exact(&mut data).unwrap();
        data
    }

    /// Writes `data`, waits for the reply, and returns the error, 0 for none.
    pub(crate) fn write(&mut self, offset: u64, data: &[u8]) -> u32 {
        let cookie = self.ask(WRITE, offset, u32::try_from(data.len()).unwrap()).unwrap();
        self.stream.write_all(data).unwrap();
        let (replied, error) = self.reply().unwrap();
        assert_eq!(replied, cookie);
        error
    }

    pub(crate) fn bye(mut self) {
        self.ask(DISC, 0, 0).unwrap();
        assert_eq!(
            self.stream.read(&mut [0]).unwrap(),
            0,
            "the server should close the connection after DISC"
        );
    }
}

pub(crate) fn header(kind: u16, cookie: u64, offset: u64, len: u32) -> [u8; 28] {
    let mut header = [0; 28];
    header[..4].copy_from_slice(&[0x25, 0x60, 0x95, 0x13]);
    header[6..8].copy_from_slice(&kind.to_be_bytes());
    header[8..16].copy_from_slice(&cookie.to_be_bytes());
    header[16..24].copy_from_slice(&offset.to_be_bytes());
    header[24..].copy_from_slice(&len.to_be_bytes());
    header
}

/// A generator of pseudorandom numbers.
pub(crate) struct Random(pub u64);

impl Random {
    /// Returns the next number, below `end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 32) % end
    }
}
