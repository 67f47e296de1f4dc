//! Independent clients read and write served disks: libnbd's nbdinfo and nbdcopy, qemu-img and
//! qemu-io, and fio's NBD engine with verification.
//!
//! A test is skipped if its client is missing, except in CI (`CI` is set), where all clients are
//! required.

#[path = "../../blockyard-serve/tests/nbd/mod.rs"]
mod nbd;

#[path = "../../blockyard-serve/tests/certificates/mod.rs"]
mod certificates;

use blockyard::policy::Policies;
use blockyard_serve::{Config, DiskConfig, Server, Source};
use certificates::Certificates;
use nbd::{Random, Running, disk, memory};
use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

const BYTES: u64 = 8 << 20;

fn has(program: &str) -> bool {
    let has = Command::new(program).arg("--version").output().is_ok();
    assert!(has || std::env::var_os("CI").is_none(), "CI requires {program}");
    if !has {
        eprintln!("skipped: {program} is not installed");
    }
    has
}

/// Runs `program` and returns its standard output.
fn run(program: &str, args: &[&str]) -> String {
    let output = Command::new(program).args(args).output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {args:?}: {printed}{errors}");
    printed
}

fn uri(running: &Running) -> String {
    format!("nbd+unix:///?socket={}", running.socket.display())
}

/// Runs `check` on a disk of each kind, with different designs and numbers of lanes.
fn each_kind(check: impl Fn(&Running)) {
    for (buffered, lanes) in [(false, 1), (true, 2)] {
        let path = nbd::file(BYTES);
        let file = disk(Source::File { path: path.clone(), buffered });
        let file = DiskConfig { policies: Policies::mq_deadline(), ..file };
        let running = Running::start(file, |config| config.lanes = lanes);
        check(&running);
        running.stop();
        fs::remove_file(path).unwrap();
    }
    for policies in [Policies::NONE, Policies::mq_kyber()] {
        let running = Running::start(DiskConfig { policies, ..memory(BYTES) }, |_| ());
        check(&running);
        running.stop();
    }
}

/// Creates a file whose first half is random and whose second half is a hole.
fn half_full() -> (std::path::PathBuf, Vec<u8>) {
    let path = nbd::file(0);
    let mut random = Random(7);
    let half = BYTES / 2;
    let mut bytes: Vec<u8> = (0..half).map(|_| random.below(256).to_be_bytes()[7]).collect();
    fs::write(&path, &bytes).unwrap();
    fs::File::options().write(true).open(&path).unwrap().set_len(BYTES).unwrap();
    bytes.resize(usize::try_from(BYTES).unwrap(), 0);
    (path, bytes)
}

fn is_same(path: &Path, bytes: &[u8]) -> bool {
    fs::read(path).unwrap() == bytes
}

#[test]
fn libnbd_copies_both_ways_and_sees_the_holes() {
    if !has("nbdcopy") || !has("nbdinfo") {
        return;
    }
    let (source, bytes) = half_full();
    each_kind(|running| {
        let uri = uri(running);
        let back = nbd::path("back");
        run("nbdcopy", &["--connections=4", source.to_str().unwrap(), &uri]);
        run("nbdcopy", &["--connections=4", "--requests=16", &uri, back.to_str().unwrap()]);
        assert!(is_same(&back, &bytes));
        let map = run("nbdinfo", &["--map", &uri]);
        let lines: Vec<Vec<&str>> =
            map.lines().map(|line| line.split_whitespace().collect()).collect();
        let half = (BYTES / 2).to_string();
        assert_eq!(lines[0], ["0", &half, "0", "data"], "{map}");
        assert_eq!(lines[1], [&half, &half, "3", "hole,zero"], "{map}");
        assert!(run("nbdinfo", &["--list", &uri]).contains("can_multi_conn: true"));
        fs::remove_file(back).unwrap();
    });
    fs::remove_file(source).unwrap();
}

#[test]
fn qemu_converts_compares_and_finds_its_patterns() {
    if !has("qemu-img") || !has("qemu-io") {
        return;
    }
    let (source, bytes) = half_full();
    each_kind(|running| {
        let uri = uri(running);
        let back = nbd::path("back");
        let from = source.to_str().unwrap();
        let to = back.to_str().unwrap();
        run("qemu-img", &["convert", "-n", "-W", "-f", "raw", "-O", "raw", from, &uri]);
        let same = run("qemu-img", &["compare", "-f", "raw", "-F", "raw", from, &uri]);
        assert!(same.contains("Images are identical"), "{same}");
        run("qemu-img", &["convert", "-f", "raw", "-O", "raw", &uri, to]);
        assert!(is_same(&back, &bytes));
        let script = [
            "write -P 7 1000 5000",
            "read -P 7 1000 5000",
            "write -z 4096 1000",
            "read -P 0 4096 1000",
            "read -P 7 5096 904",
            "write -f -P 9 777 1",
            "read -P 9 777 1",
            "discard 1M 1M",
            "aio_write -P 3 2M 1M",
            "aio_flush",
            "flush",
            "read -P 3 2M 1M",
        ];
        let commands: Vec<_> = script.iter().flat_map(|line| ["-c", *line]).collect();
        let printed = run("qemu-io", &[&["-f", "raw"], &*commands, &[&uri]].concat());
        assert!(!printed.contains("failed"), "{printed}");
        fs::remove_file(back).unwrap();
    });
    fs::remove_file(source).unwrap();
}

fn served_file(path: &Path, read_only: bool) -> DiskConfig {
    let file = disk(Source::File { path: path.to_owned(), buffered: false });
    DiskConfig { read_only, ..file }
}

/// Two writers of one file destroy it, so the server takes the locks of QEMU's file driver.
#[test]
fn qemu_and_the_server_do_not_write_one_file() {
    if !has("qemu-io") {
        return;
    }
    let path = nbd::file(BYTES);
    let name = path.to_str().unwrap();

    let running = Running::start(served_file(&path, false), |_| ());
    let output = Command::new("qemu-io").args(["-f", "raw", "-c", "write 0 512", name]).output();
    let errors = String::from_utf8(output.unwrap().stderr).unwrap();
    assert!(errors.contains("Failed to get \"write\" lock"), "{errors}");
    running.stop();

    let reader = Running::start(served_file(&path, true), |_| ());
    assert!(reader.server.written_elsewhere().is_empty());
    let mut writer = Command::new("qemu-io")
        .args(["-f", "raw", name])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    writer.stdin.as_mut().unwrap().write_all(b"write 0 512\n").unwrap();
    let mut answer = [0; 16];
    writer.stdout.as_mut().unwrap().read_exact(&mut answer).unwrap();
    let refused = Server::start(&Config::new(vec![served_file(&path, false)], Vec::new()))
        .expect_err("qemu-io writes the file")
        .to_string();
    assert!(refused.contains("another disk, program or mount writes to it"), "{refused}");
    let beside = Running::start(served_file(&path, true), |_| ());
    assert_eq!(beside.server.written_elsewhere(), [""], "the default export");
    drop(writer.stdin.take());
    assert!(writer.wait().unwrap().success());
    beside.stop();
    reader.stop();
    fs::remove_file(path).unwrap();
}

fn check_every_command(running: &Running, read_only: bool) {
    let mut nbdsh = Command::new("nbdsh");
    nbdsh.args(["-c", include_str!("peers/every_command.py")]).env("NBD_URI", uri(running));
    // Debian's Python has the module; another Python in the path may not.
    let path = std::env::var("PATH").unwrap();
    nbdsh.env("PATH", format!("/usr/bin:{path}"));
    if read_only {
        nbdsh.env("READ_ONLY", "yes");
    }
    let output = nbdsh.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.ends_with(" kinds of sessions\n"), "{said}");
    if said.starts_with('2') {
        nbd::not_checked("extended headers by libnbd, which has them since 1.18");
    }
}

/// The script lists the commands, the flags, and the requests that must be refused.
#[test]
fn libnbd_does_every_command_with_every_flag() {
    if !has("nbdsh") {
        return;
    }
    each_kind(|running| check_every_command(running, false));
    let (path, _) = half_full();
    let file = disk(Source::File { path: path.clone(), buffered: false });
    let running = Running::start(DiskConfig { read_only: true, ..file }, |_| ());
    check_every_command(&running, true);
    running.stop();
    fs::remove_file(path).unwrap();
}

/// Makes a file system from a folder of files on a served disk, checks it, and finds the files in
/// it.
#[test]
fn a_file_system_is_made_and_checked_through_fuse() {
    if !has("nbdfuse") || Command::new("mkfs.ext4").arg("-V").output().is_err() {
        return;
    }
    if fs::File::options().read(true).write(true).open("/dev/fuse").is_err() {
        nbd::not_checked("a file system on what is served, as there is no /dev/fuse here");
        return;
    }
    let mount = nbd::path("mount");
    let files = nbd::path("files");
    for folder in [&mount, &files] {
        fs::create_dir(folder).unwrap();
    }
    let mut random = Random(3);
    for file in 0..20_u8 {
        let bytes: Vec<u8> =
            (0..random.below(300_000)).map(|_| random.below(256).to_be_bytes()[7]).collect();
        fs::write(files.join(file.to_string()), bytes).unwrap();
    }
    let back = nbd::path("back");
    each_kind(|running| {
        let image = mount.join("disk");
        let mut fuse = Command::new("nbdfuse").arg(&image).arg(uri(running)).spawn().unwrap();
        let start = std::time::Instant::now();
        while !image.exists() {
            assert!(fuse.try_wait().unwrap().is_none(), "nbdfuse should keep running");
            assert!(start.elapsed().as_secs() < 20, "the disk should be mounted within 20 s");
            std::thread::sleep(core::time::Duration::from_millis(10));
        }
        let image = image.to_str().unwrap();
        run("mkfs.ext4", &["-q", "-F", "-d", files.to_str().unwrap(), image]);
        run("e2fsck", &["-f", "-n", image]);
        for file in 0..20_u8 {
            let dump = format!("dump /{file} {}", back.display());
            run("debugfs", &["-R", &dump, image]);
            assert!(fs::read(&back).unwrap() == fs::read(files.join(file.to_string())).unwrap());
        }
        run("fusermount3", &["-u", mount.to_str().unwrap()]);
        assert!(fuse.wait().unwrap().success());
    });
    fs::remove_file(back).unwrap();
    fs::remove_dir(mount).unwrap();
    fs::remove_dir_all(files).unwrap();
}

/// With `[ ... ]` libnbd creates the socket, and the server finds it through LISTEN_FDS.
#[test]
fn libnbd_starts_a_server_of_its_own() {
    if !has("nbdcopy") || !has("nbdinfo") {
        return;
    }
    let server = env!("CARGO_BIN_EXE_blockyard");
    let (source, bytes) = half_full();
    let copy = nbd::file(BYTES);
    let from = source.to_str().unwrap();
    let to = copy.to_str().unwrap();
    let size = run("nbdinfo", &["--size", "[", server, "serve", "memory:3m", "]"]);
    assert_eq!(size.trim(), "3145728");
    run("nbdcopy", &["--", from, "[", server, "serve", to, "--lanes", "2", "]"]);
    assert!(is_same(&copy, &bytes));
    fs::remove_file(copy).unwrap();
    fs::remove_file(source).unwrap();
}

/// A client's kernel schedules for a hard disk only if the export says that it is one.
#[test]
fn libnbd_sees_which_disks_rotate() {
    if !has("nbdinfo") {
        return;
    }
    let server = env!("CARGO_BIN_EXE_blockyard");
    for (device, rotates) in [("hdd-7200", true), ("nvme-tlc", false)] {
        let served = ["--", "[", server, "serve", "memory:3m", "--as", device, "]"];
        let info = run("nbdinfo", &served);
        assert!(info.contains(&format!("is_rotational: {rotates}\n")), "{device}: {info}");
    }
}

/// Both sides have certificates. A client without one is refused.
#[test]
fn libnbd_and_qemu_copy_over_tls() {
    if !has("nbdcopy") || !has("nbdinfo") || !has("qemu-img") {
        return;
    }
    let certificates = Certificates::new();
    let (source, bytes) = half_full();
    let from = source.to_str().unwrap();
    let folder = certificates.0.to_str().unwrap();
    for lanes in [1, 2] {
        let running = Running::start(memory(BYTES), |config| {
            config.tls = Some(certificates.config(true));
            config.lanes = lanes;
        });
        let socket = running.socket.to_str().unwrap();
        let uri = format!("nbds+unix:///?socket={socket}&tls-certificates={folder}");
        let back = nbd::path("back");
        let to = back.to_str().unwrap();
        run("nbdcopy", &["--connections=4", from, &uri]);
        run("nbdcopy", &["--connections=4", "--requests=16", &uri, to]);
        assert!(is_same(&back, &bytes));
        let info = run("nbdinfo", &[&uri]);
        assert!(info.contains("protocol: newstyle-fixed with TLS"), "{info}");

        let credentials =
            format!("tls-creds-x509,id=tls,endpoint=client,dir={folder},verify-peer=on");
        let image = format!(
            "driver=nbd,server.type=unix,server.path={socket},tls-creds=tls,tls-hostname=localhost"
        );
        let opts = ["--object", &credentials, "--image-opts"];
        fs::remove_file(&back).unwrap();
        run("qemu-img", &[&["convert"][..], &opts, &["-O", "raw", &image, to]].concat());
        assert!(is_same(&back, &bytes));

        let nobody = certificates.without_client();
        for refused in [
            format!("nbd+unix:///?socket={socket}"),
            format!("nbds+unix:///?socket={socket}&tls-certificates={}", nobody.display()),
        ] {
            let output = Command::new("nbdinfo").arg(&refused).output().unwrap();
            assert!(!output.status.success(), "{refused}");
        }
        fs::remove_file(back).unwrap();
        running.stop();
    }
    fs::remove_file(source).unwrap();
}

#[test]
fn fio_finds_what_it_wrote() {
    if !has("fio") {
        return;
    }
    if !run("fio", &["--enghelp"]).contains("nbd") {
        assert!(std::env::var_os("CI").is_none(), "CI requires fio with its NBD engine");
        eprintln!("skipped: this fio has no NBD engine");
        return;
    }
    each_kind(|running| {
        let uri = format!("--uri={}", uri(running));
        for how in [
            &["--rw=randwrite", "--bs=4k"][..],
            &["--rw=randwrite", "--bsrange=512-64k", "--bs_unaligned", "--norandommap=0"],
            &["--rw=write", "--bs=1m"],
        ] {
            let common =
                ["--name=v", "--ioengine=nbd", &uri, "--size=4m", "--iodepth=16", "--thread"];
            // Without this fio leaves a state file in the current folder.
            let verify =
                ["--verify=crc32c", "--do_verify=1", "--verify_fatal=1", "--verify_state_save=0"];
            run("fio", &[&common[..], how, &verify].concat());
        }
    });
}
