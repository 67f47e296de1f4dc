//! The servers, and how each is started on a disk in memory.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Size of the disk, in bytes.
pub const DISK_BYTES: usize = 1 << 30;

/// A server to be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// `blockyard serve` on memory, with a design.
    Blockyard(&'static str),
    /// `blockyard serve` on memory, without io_uring.
    BlockyardThreads,
    /// `blockyard serve` on a file in memory, without io_uring.
    BlockyardThreadsFile,
    /// `blockyard serve` on the file at this path, by direct I/O.
    BlockyardFile(&'static str),
    /// `blockyard serve` on so many disks in memory, whose exports are named by [`Self::disk`].
    Disks(usize),
    /// The bare loop: [`bare`](super::bare).
    Bare,
    /// nbdkit's memory plugin.
    NbdkitMemory,
    /// nbdkit's file plugin, on a file in memory.
    NbdkitFile,
    /// nbd-server, on a file in memory.
    NbdServer,
    /// qemu-nbd, on a file in memory.
    QemuNbd,
    /// qemu-storage-daemon, on a file in memory.
    QemuStorage,
    /// qemu-storage-daemon's null device.
    QemuStorageNull,
}

impl Peer {
    /// All servers, in the order of the tables.
    pub const ALL: [Self; 11] = [
        Self::Blockyard("none"),
        Self::Blockyard("mq-deadline"),
        Self::BlockyardThreads,
        Self::BlockyardThreadsFile,
        Self::Bare,
        Self::NbdkitMemory,
        Self::NbdkitFile,
        Self::NbdServer,
        Self::QemuNbd,
        Self::QemuStorage,
        Self::QemuStorageNull,
    ];

    /// The name of its row.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            Self::Blockyard(design) => format!("blockyard {design}"),
            Self::BlockyardThreads => "blockyard threads".into(),
            Self::BlockyardThreadsFile => "blockyard threads file".into(),
            Self::BlockyardFile(path) => format!("blockyard none, {path}"),
            Self::Disks(count) => format!("blockyard none, {count} disks"),
            Self::Bare => "bare loop".into(),
            Self::NbdkitMemory => "nbdkit memory".into(),
            Self::NbdkitFile => "nbdkit file".into(),
            Self::NbdServer => "nbd-server".into(),
            Self::QemuNbd => "qemu-nbd".into(),
            Self::QemuStorage => "qemu-storage-daemon file".into(),
            Self::QemuStorageNull => "qemu-storage-daemon null".into(),
        }
    }

    /// The export that clients open.
    #[must_use]
    pub fn export(self) -> &'static str {
        match self {
            Self::NbdServer | Self::QemuStorage | Self::QemuStorageNull => "disk",
            _ => "",
        }
    }

    /// The export of one of [`Self::Disks`].
    #[must_use]
    pub fn disk(number: usize) -> String {
        format!("disk-{number}")
    }

    /// Whether reads return written data.
    #[must_use]
    pub(crate) fn keeps_data(self) -> bool {
        self != Self::QemuStorageNull
    }

    fn program(self, programs: &Programs) -> PathBuf {
        match self {
            Self::Blockyard(_)
            | Self::BlockyardThreads
            | Self::BlockyardThreadsFile
            | Self::BlockyardFile(_)
            | Self::Disks(_) => programs.blockyard.clone(),
            Self::Bare => programs.bare.clone(),
            Self::NbdkitMemory | Self::NbdkitFile => "nbdkit".into(),
            Self::NbdServer => "nbd-server".into(),
            Self::QemuNbd => "qemu-nbd".into(),
            Self::QemuStorage | Self::QemuStorageNull => "qemu-storage-daemon".into(),
        }
    }

    fn arguments(self, folder: &Path) -> Vec<OsString> {
        let [socket, file, config, pid] = [SOCKET, FILE, CONFIG, PID].map(|name| {
            let path = folder.join(name).into_os_string().into_string();
            path.expect("UTF-8 path of the server's own folder")
        });
        let words = match self {
            Self::Blockyard(design) => serve(&socket, "memory:1g", design),
            Self::BlockyardThreads => by_threads(serve(&socket, "memory:1g", "none")),
            Self::BlockyardThreadsFile => by_threads(serve(&socket, &file, "none")),
            Self::BlockyardFile(path) => serve(&socket, path, "none"),
            Self::Disks(count) => {
                let exports = (0..count).map(Self::disk).flat_map(|disk| {
                    ["--export".to_owned(), format!("{disk}=memory:{}", DISK_BYTES / 256)]
                });
                let words = ["serve", "--max-connections", "16384", "--nbd"].map(String::from);
                words.into_iter().chain([format!("unix:{socket}")]).chain(exports).collect()
            }
            Self::Bare => vec!["bare".into(), socket],
            Self::NbdkitMemory => ["-f", "-U", &socket, "memory", "1G"].map(String::from).to_vec(),
            Self::NbdkitFile => ["-f", "-U", &socket, "file", &file].map(String::from).to_vec(),
            Self::NbdServer => ["-C", &config, "-p", &pid].map(String::from).to_vec(),
            Self::QemuNbd => {
                let words = ["-t", "-e", "64", "-f", "raw", "-k", &socket, &file];
                words.map(String::from).to_vec()
            }
            Self::QemuStorage => qemu(&socket, format!("driver=file,node-name=d,filename={file}")),
            Self::QemuStorageNull => {
                qemu(&socket, "driver=null-co,node-name=d,size=1073741824".into())
            }
        };
        words.into_iter().map(OsString::from).collect()
    }
}

/// Returns the arguments of our server for one disk.
fn serve(socket: &str, disk: &str, design: &str) -> Vec<String> {
    let address = format!("unix:{socket}");
    ["serve", disk, "--nbd", &address, "--design", design].map(String::from).to_vec()
}

/// Returns the arguments of QEMU's storage daemon for one disk.
fn qemu(socket: &str, blockdev: String) -> Vec<String> {
    let node = "--nbd-server".to_owned();
    let export = "type=nbd,id=e,node-name=d,name=disk,writable=on".to_owned();
    let address = format!("addr.type=unix,addr.path={socket}");
    vec!["--blockdev".into(), blockdev, node, address, "--export".into(), export]
}

/// Returns the arguments of our server with those that do without io_uring.
fn by_threads(mut words: Vec<String>) -> Vec<String> {
    words.extend(["--io", "threads"].map(String::from));
    words
}

const SOCKET: &str = "socket";
const FILE: &str = "disk";
const CONFIG: &str = "nbd-server.conf";
/// nbd-server either runs in the background or exits after its first connection; its PID file names
/// the process.
const PID: &str = "pid";

/// Paths of programs that are not on the search path.
#[derive(Clone, Debug)]
pub struct Programs {
    /// `blockyard`.
    pub blockyard: PathBuf,
    /// The program that serves the bare loop with the arguments `bare SOCKET`.
    pub bare: PathBuf,
}

/// A running server, which is stopped on drop.
#[derive(Debug)]
pub struct Server {
    child: Child,
    /// The serving process: the child, except for a server in the background.
    pid: u32,
    folder: PathBuf,
}

impl Server {
    /// Starts the server on the given processors (a list for `taskset`) and in a folder of its own.
    /// Our server chooses the number of its lanes by these processors.
    ///
    /// # Errors
    ///
    /// Returns [`NotFound`](io::ErrorKind::NotFound) if the program is not installed, and another
    /// error if the server does not accept connections.
    pub fn start(peer: Peer, programs: &Programs, cpus: &str) -> io::Result<Self> {
        let program = find(&peer.program(programs)).ok_or(io::ErrorKind::NotFound)?;
        // In memory, because no disk may take part in the measurement.
        let name = format!("blockyard-peers-{}", std::process::id());
        let folder = Path::new("/dev/shm").join(name);
        fs::create_dir_all(&folder)?;
        fs::File::create(folder.join(FILE))?.set_len(DISK_BYTES as u64)?;
        let socket = folder.join(SOCKET);
        let file = folder.join(FILE);
        let config = format!(
            "[generic]\nunixsock = {}\n[disk]\nexportname = {}\n",
            socket.display(),
            file.display()
        );
        fs::write(folder.join(CONFIG), config)?;
        let child = Command::new("taskset")
            .args(["-c", cpus])
            .arg(program)
            .args(peer.arguments(&folder))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(fs::File::create(folder.join("log"))?)
            .spawn()?;
        let mut server = Self { pid: child.id(), child, folder };
        super::client::wait_for(&server.socket()).map_err(|error| {
            let log = fs::read_to_string(server.folder.join("log")).unwrap_or_default();
            io::Error::other(format!("{error}; it said: {}", log.trim()))
        })?;
        if let Ok(pid) = fs::read_to_string(server.folder.join(PID)) {
            server.pid = pid.trim().parse().map_err(io::Error::other)?;
        }
        Ok(server)
    }

    /// The socket at which it listens.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.folder.join(SOCKET)
    }

    /// The serving process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid
    }
}

impl Drop for Server {
    /// Errors are ignored: the process and the files may be gone already.
    fn drop(&mut self) {
        if self.pid == self.child.id() {
            drop(self.child.kill());
        } else {
            drop(Command::new("kill").arg(self.pid.to_string()).status());
        }
        drop(self.child.wait());
        drop(fs::remove_dir_all(&self.folder));
    }
}

/// Finds the program on the search path or in `sbin`, where daemons are.
fn find(program: &Path) -> Option<PathBuf> {
    if program.components().count() > 1 {
        return program.exists().then(|| program.to_owned());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]);
    folders.map(|folder| folder.join(program)).find(|file| file.exists())
}
