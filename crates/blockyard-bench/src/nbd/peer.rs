//! The servers: how each is started on a disk in memory.

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
    /// `blockyard serve` of memory, with a design.
    Blockyard(&'static str),
    /// A receive and a send for each turn, and nothing else: [`bare`](super::bare).
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
    /// All of them, in the order of the tables.
    pub const ALL: [Self; 9] = [
        Self::Blockyard("none"),
        Self::Blockyard("mq-deadline"),
        Self::Bare,
        Self::NbdkitMemory,
        Self::NbdkitFile,
        Self::NbdServer,
        Self::QemuNbd,
        Self::QemuStorage,
        Self::QemuStorageNull,
    ];

    /// Its row's name.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            Self::Blockyard(design) => format!("blockyard {design}"),
            Self::Bare => "bare loop".into(),
            Self::NbdkitMemory => "nbdkit memory".into(),
            Self::NbdkitFile => "nbdkit file".into(),
            Self::NbdServer => "nbd-server".into(),
            Self::QemuNbd => "qemu-nbd".into(),
            Self::QemuStorage => "qemu-storage-daemon file".into(),
            Self::QemuStorageNull => "qemu-storage-daemon null".into(),
        }
    }

    /// The export that clients ask for.
    #[must_use]
    pub fn export(self) -> &'static str {
        match self {
            Self::NbdServer | Self::QemuStorage | Self::QemuStorageNull => "disk",
            _ => "",
        }
    }

    /// Whether what is written is there when it is read.
    #[must_use]
    pub fn keeps_data(self) -> bool {
        self != Self::QemuStorageNull
    }

    fn program(self, programs: &Programs) -> PathBuf {
        match self {
            Self::Blockyard(_) => programs.blockyard.clone(),
            Self::Bare => programs.bare.clone(),
            Self::NbdkitMemory | Self::NbdkitFile => "nbdkit".into(),
            Self::NbdServer => "nbd-server".into(),
            Self::QemuNbd => "qemu-nbd".into(),
            Self::QemuStorage | Self::QemuStorageNull => "qemu-storage-daemon".into(),
        }
    }

    fn arguments(self, folder: &Path, cpus: &str) -> Vec<OsString> {
        let at = |name| folder.join(name).into_os_string().into_string().expect("we named it");
        let (socket, file) = (at(SOCKET), at(FILE));
        let node = "--nbd-server";
        let qemu = |blockdev: String| {
            let export = "type=nbd,id=e,node-name=d,name=disk,writable=on".to_owned();
            let address = format!("addr.type=unix,addr.path={socket}");
            vec!["--blockdev".into(), blockdev, node.into(), address, "--export".into(), export]
        };
        let words = match self {
            Self::Blockyard(design) => {
                let (address, lanes) =
                    (format!("unix:{socket}"), cpus.split(',').count().to_string());
                let words = ["serve", "memory:1g", "--nbd", &address, "--lanes", &lanes];
                let words = words.into_iter().chain(["--design", design]);
                words.map(String::from).collect()
            }
            Self::Bare => vec!["bare".into(), socket],
            Self::NbdkitMemory => ["-f", "-U", &socket, "memory", "1G"].map(String::from).to_vec(),
            Self::NbdkitFile => ["-f", "-U", &socket, "file", &file].map(String::from).to_vec(),
            Self::NbdServer => ["-C", &at(CONFIG), "-p", &at(PID)].map(String::from).to_vec(),
            Self::QemuNbd => {
                let words = ["-t", "-e", "16", "-f", "raw", "-k", &socket, &file];
                words.map(String::from).to_vec()
            }
            Self::QemuStorage => qemu(format!("driver=file,node-name=d,filename={file}")),
            Self::QemuStorageNull => qemu("driver=null-co,node-name=d,size=1073741824".into()),
        };
        words.into_iter().map(OsString::from).collect()
    }
}

const SOCKET: &str = "socket";
const FILE: &str = "disk";
const CONFIG: &str = "nbd-server.conf";
/// nbd-server runs on in the background only, or ends with its first connection: it says where.
const PID: &str = "pid";

/// Where programs that are not on the path are.
#[derive(Clone, Debug)]
pub struct Programs {
    /// `blockyard`.
    pub blockyard: PathBuf,
    /// What serves the bare loop when told `bare SOCKET`.
    pub bare: PathBuf,
}

/// A server that runs, until this is dropped.
#[derive(Debug)]
pub struct Server {
    child: Child,
    /// The process that serves: the child's, but for a server that went to the background.
    pid: u32,
    folder: PathBuf,
}

impl Server {
    /// Starts it on these processors (a list for `taskset`), in a folder of its own; ours with a lane
    /// for each.
    ///
    /// # Errors
    ///
    /// [`NotFound`](io::ErrorKind::NotFound) where its program is not installed; any other where
    /// it does not take connections.
    pub fn start(peer: Peer, programs: &Programs, cpus: &str) -> io::Result<Self> {
        let program = find(&peer.program(programs)).ok_or(io::ErrorKind::NotFound)?;
        // Files in memory: no disk is to be measured.
        let name = format!("blockyard-peers-{}", std::process::id());
        let folder = Path::new("/dev/shm").join(name);
        fs::create_dir_all(&folder)?;
        fs::File::create(folder.join(FILE))?.set_len(DISK_BYTES as u64)?;
        let (socket, file) = (folder.join(SOCKET), folder.join(FILE));
        let config = format!(
            "[generic]\nunixsock = {}\n[disk]\nexportname = {}\n",
            socket.display(),
            file.display()
        );
        fs::write(folder.join(CONFIG), config)?;
        let child = Command::new("taskset")
            .args(["-c", cpus])
            .arg(program)
            .args(peer.arguments(&folder, cpus))
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

    /// Where it listens.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.folder.join(SOCKET)
    }

    /// Its process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid
    }
}

impl Drop for Server {
    /// What cannot be stopped or removed any more is gone already.
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

/// The program where the path has it; daemons are in `sbin`, which not every path names.
fn find(program: &Path) -> Option<PathBuf> {
    if program.components().count() > 1 {
        return program.exists().then(|| program.to_owned());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]);
    folders.map(|folder| folder.join(program)).find(|file| file.exists())
}
