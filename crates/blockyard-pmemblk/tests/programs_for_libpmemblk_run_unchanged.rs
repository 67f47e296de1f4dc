//! Programs that were linked to libpmemblk run with this library in its place: fio's engine for
//! libpmemblk, which verifies every byte it wrote, and then libpmemblk's checker on the pool. Needs
//! Debian's packages fio and pmdk-tools.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

/// A folder with this library under the name that programs look for.
static FOLDER: LazyLock<PathBuf> = LazyLock::new(folder_with_library);

fn folder() -> PathBuf {
    FOLDER.clone()
}

fn folder_with_library() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("instead-of-libpmemblk");
    std::fs::create_dir_all(&folder).expect("space on the test disk");
    let name = folder.join("libpmemblk.so.1");
    let _ = std::fs::remove_file(&name);
    let built = std::env::current_exe().expect("path of this test");
    let built = built.parent().expect("folder of this test").join("libblockyard_pmemblk.so");
    assert!(built.exists(), "{} was not built", built.display());
    std::os::unix::fs::symlink(built, name).expect("space on the test disk");
    folder
}

fn is_there(program: &str) -> bool {
    let there = Command::new(program).arg("--version").output().is_ok();
    assert!(there || std::env::var_os("CI").is_none(), "{program} is needed");
    if !there {
        eprintln!("skipped: {program} is not installed");
    }
    there
}

#[test]
fn fio_verifies_its_writes_through_its_libpmemblk_engine() {
    if !is_there("fio") || !is_there("pmempool") {
        return;
    }
    let folder = folder();
    // With cache line write-back, and with synchronisation of the file.
    for (jobs, forced, size) in [(1, "1", "4m"), (3, "1", "4m"), (2, "0", "256k")] {
        let pool = folder.join(format!("fio-{jobs}-{forced}.pool"));
        let _ = std::fs::remove_file(&pool);
        // The engine's file name has the block size and the size in MiB after commas.
        let name = format!("--filename={},512,64", pool.display());
        // fio leaves its verification state in the current folder.
        let out = Command::new("fio")
            .current_dir(&folder)
            .env("LD_LIBRARY_PATH", &folder)
            .env("PMEM_IS_PMEM_FORCE", forced)
            .args(["--name=verify", "--ioengine=pmemblk", "--rw=randwrite", "--bs=4k"])
            .args(["--thread", "--verify=crc32c", "--do_verify=1", "--verify_fatal=1"])
            .args([&format!("--size={size}"), "--output-format=terse", &name])
            .arg(format!("--numjobs={jobs}"))
            .arg("--offset_increment=8m")
            .output()
            .expect("fio runs");
        let words = String::from_utf8_lossy(&out.stderr);
        assert!(out.status.success(), "{jobs} jobs: {words}");
        let rows = String::from_utf8_lossy(&out.stdout).lines().filter(|l| l.contains(';')).count();
        assert_eq!(rows, jobs, "a row for each job");
        let out = Command::new("pmempool")
            .arg("check")
            .arg(&pool)
            .output()
            .expect("a program that starts");
        let words = String::from_utf8_lossy(&out.stdout);
        assert!(out.status.success() && !words.contains("not consistent"), "{words}");
        let _ = std::fs::remove_file(&pool);
    }
}

/// Compiles a C program with our header, and links it to this library.
fn compile(folder: &Path, name: &str, program: &str) -> PathBuf {
    let source = folder.join(format!("{name}.c"));
    let binary = folder.join(name);
    std::fs::write(&source, program).expect("space on the test disk");
    let compiled = Command::new("cc")
        .arg("-Wall")
        .arg("-Werror")
        .arg(concat!("-I", env!("CARGO_MANIFEST_DIR"), "/include"))
        .arg(&source)
        .arg(folder.join("libpmemblk.so.1"))
        .arg("-o")
        .arg(&binary)
        .output()
        .expect("a C compiler");
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    binary
}

/// Runs a compiled program on a pool that does not exist yet.
fn run(folder: &Path, program: &Path) -> std::process::Output {
    let pool = program.with_extension("pool");
    let _ = std::fs::remove_file(&pool);
    let mut command = Command::new(program);
    command
        .current_dir(folder)
        .env("LD_LIBRARY_PATH", folder)
        .arg(&pool)
        .output()
        .expect("a program that starts")
}

#[test]
fn the_program_of_the_readme_runs() {
    let readme = include_str!("../README.md");
    let program = readme.split("```c\n").nth(1).and_then(|rest| rest.split("```").next());
    let folder = folder();
    let program = compile(&folder, "readme", program.expect("a C program in the README"));
    let out = run(&folder, &program);
    assert_eq!(out.status.code(), Some(0), "{}", String::from_utf8_lossy(&out.stdout));
}

/// A C program gets errno and a text for each error.
#[test]
fn a_c_program_with_our_header_gets_every_error() {
    const PROGRAM: &str = r#"
#include "blockyard_pmemblk.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
static void say(const char *what, int done) { printf("%s %d %s\n", what, done, done ? strerror(errno) : ""); }
int main(int argc, char **argv) {
    char block[520], back[520];
    memset(block, 7, sizeof block);
    if (pmemblk_check_version(PMEMBLK_MAJOR_VERSION, PMEMBLK_MINOR_VERSION)) return 1;
    if (!pmemblk_check_version(2, 0)) return 2;
    PMEMblkpool *pool = pmemblk_create(argv[1], sizeof block, PMEMBLK_MIN_POOL, 0600);
    if (!pool) { puts(pmemblk_errormsg()); return 3; }
    long long last = (long long)pmemblk_nblock(pool) - 1;
    say("write", pmemblk_write(pool, block, last));
    say("beyond", pmemblk_write(pool, block, last + 1));
    say("negative", pmemblk_read(pool, back, -1));
    say("error", pmemblk_set_error(pool, 3));
    say("lost", pmemblk_read(pool, back, 3));
    puts(pmemblk_errormsg());
    say("zero", pmemblk_set_zero(pool, 3));
    say("zeroes", pmemblk_read(pool, back, 3) || back[0]);
    say("again", !!pmemblk_open(argv[1], 0));
    pmemblk_close(pool);
    say("other size", !!pmemblk_open(argv[1], 512));
    pool = pmemblk_open(argv[1], 0);
    say("bytes", pmemblk_bsize(pool) != 520);
    say("read", pmemblk_read(pool, back, last) || memcmp(block, back, sizeof block));
    pmemblk_close(pool);
    printf("check %d\n", pmemblk_check(argv[1], 520));
    int none = pmemblk_check("/no/such/file", 0);
    printf("no file %d %s\n", none, strerror(errno));
    return 0;
}
"#;
    let folder = folder();
    let program = compile(&folder, "program", PROGRAM);
    let out = run(&folder, &program);
    let said = String::from_utf8_lossy(&out.stdout);
    assert_eq!(out.status.code(), Some(0), "{said}");
    let pool = folder.join("program.pool").display().to_string();
    let expected = [
        "write 0 ",
        "beyond -1 Invalid argument",
        "negative -1 Invalid argument",
        "error 0 ",
        "lost -1 Input/output error",
        &format!("pmemblk_read: {pool}: the sector was lost and not written since"),
        "zero 0 ",
        "zeroes 0 ",
        "again 0 ",
        "other size 0 ",
        "bytes 0 ",
        "read 0 ",
        "check 1",
        "no file -1 No such file or directory",
    ];
    assert_eq!(said.lines().collect::<Vec<_>>(), expected);
}

/// A C program creates and opens a pool set, and gets an error for what is not supported.
#[test]
fn a_c_program_uses_pool_sets() {
    const PROGRAM: &str = r#"
#include "blockyard_pmemblk.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>
static void made(const char *what, PMEMblkpool *pool) {
    printf("%s %s\n", what, pool ? "" : strerror(errno));
    if (pool) pmemblk_close(pool);
}
int main(int argc, char **argv) {
    char set[999], part[2][999], block[4096] = {1}, back[4096];
    sprintf(set, "%s", argv[1]);
    for (int n = 0; n < 2; n++) { sprintf(part[n], "%s.part%d", argv[1], n); unlink(part[n]); }
    const char *ends[] = {"", "REPLICA\n20M /r\n", "REPLICA host set\n", "OPTION NOHDRS\n", "20M /\n", "1 /x\n", "x\n"};
    for (int n = 6; n >= 0; n--) {
        FILE *file = fopen(set, "w");
        fprintf(file, "PMEMPOOLSET\n20M %s\n8M %s\n%s", part[0], part[1], ends[n]);
        fclose(file);
        made("size", pmemblk_create(set, 4096, 32 << 20, 0640));
        made("create", pmemblk_create(set, 4096, 0, 0640));
    }
    struct stat stat0, stat1;
    if (stat(part[0], &stat0) || stat(part[1], &stat1)) return 1;
    printf("modes %o %o\n", stat0.st_mode & 0777, stat1.st_mode & 0777);
    printf("allocated %d\n", stat0.st_blocks >= (20 << 20) / 512 && stat1.st_blocks >= (8 << 20) / 512);
    PMEMblkpool *pool = pmemblk_open(set, 4096);
    if (!pool) { puts(pmemblk_errormsg()); return 2; }
    long long last = (long long)pmemblk_nblock(pool) - 1;
    printf("write %d\n", pmemblk_write(pool, block, last) || pmemblk_read(pool, back, last) || memcmp(block, back, 4096));
    pmemblk_close(pool);
    printf("check %d\n", pmemblk_check(set, 4096));
    made("part", pmemblk_open(part[0], 4096));
    unlink(part[1]);
    made("missing", pmemblk_open(set, 4096));
    unlink(part[0]);
    unlink(set);
    // More than is free, and less than the file system has.
    struct statvfs space;
    if (statvfs(".", &space)) return 3;
    size_t size = (space.f_bfree + (space.f_blocks - space.f_bfree) / 2) * space.f_frsize;
    made("full", pmemblk_create(set, 512, size, 0600));
    printf("left %d\n", !access(set, F_OK));
    return 0;
}
"#;
    let folder = folder();
    let program = compile(&folder, "sets", PROGRAM);
    let out = run(&folder, &program);
    let said = String::from_utf8_lossy(&out.stdout);
    assert_eq!(out.status.code(), Some(0), "{said}");
    let [invalid, unsupported] = ["create Invalid argument", "create Operation not supported"];
    let created =
        [invalid, invalid, unsupported, invalid, unsupported, unsupported, "create "].into_iter();
    let expected = [
        "modes 640 640",
        "allocated 1",
        "write 0",
        "check 1",
        "part Invalid argument",
        "missing No such file or directory",
        "full No space left on device",
        "left 0",
    ];
    let expected = created.flat_map(|answer| ["size File exists", answer]).chain(expected);
    assert_eq!(said.lines().collect::<Vec<_>>(), expected.collect::<Vec<_>>());
}

/// Calls with odd arguments and in odd states.
const ODD_CALLS: &str = r#"
#include "blockyard_pmemblk.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
static void say(const char *what, int done) { printf("%s %d %s\n", what, done, done ? strerror(errno) : ""); }
static void made(const char *what, PMEMblkpool *pool) {
    say(what, !pool);
    if (pool) pmemblk_close(pool);
}
int main(int argc, char **argv) {
    const char *path = argv[1];
    char block[8192] = {1}, back[8192];
    made("none", pmemblk_create(path, 512, 0, 0600));
    int fd = open(path, O_RDWR | O_CREAT, 0640);
    if (ftruncate(fd, 32 << 20)) return 1;
    PMEMblkpool *pool = pmemblk_create(path, 8192, 0, 0600);
    if (!pool) { puts(pmemblk_errormsg()); return 2; }
    say("write", pmemblk_write(pool, block, 5));
    say("read", pmemblk_read(pool, back, 5) || memcmp(block, back, sizeof block));
    say("buffer", pmemblk_write(pool, NULL, 5));
    int value = 7;
    say("get", pmemblk_ctl_get(pool, "sds.at_create", &value) || value != 1);
    say("set", pmemblk_ctl_set(NULL, "prefault.at_open", &value));
    say("unknown", pmemblk_ctl_get(pool, "nosuch", &value));
    say("action", pmemblk_ctl_exec(pool, "sds.at_create", &value));
    say("no name", pmemblk_ctl_get(pool, NULL, &value));
    pmemblk_close(pool);
    struct stat stat;
    fstat(fd, &stat);
    say("allocated", stat.st_blocks < (32 << 20) / 512);
    int holes = open("odd.holes", O_RDWR | O_CREAT | O_TRUNC, 0640), no = 0;
    if (ftruncate(holes, 1L << 32)) return 1;
    say("set", pmemblk_ctl_set(NULL, "fallocate.at_create", &no));
    made("holes", pmemblk_create("odd.holes", 8192, 0, 0600));
    struct stat sparse;
    fstat(holes, &sparse);
    say("sparse", sparse.st_blocks > (1 << 28) / 512);
    unlink("odd.holes");
    say("mode", (stat.st_mode & 0777) != 0640 || stat.st_size != 32 << 20);
    made("not empty", pmemblk_create(path, 512, 0, 0600));
    made("exists", pmemblk_create(path, 512, 32 << 20, 0600));
    made("reopened", pmemblk_open(path, 8192));
    unlink(path);
    made("huge", pmemblk_create(path, 512, (size_t)1 << 60, 0600));
    puts(pmemblk_errormsg());
    say("left", access(path, F_OK));
    made("no bytes", pmemblk_create(path, 0, 32 << 20, 0600));
    made("large", pmemblk_create(path, 1 << 20, 32 << 20, 0600));
    made("few", pmemblk_create(path, 64 << 10, 20 << 20, 0600));
    say("left", access(path, F_OK));
    made("no path", pmemblk_open(NULL, 512));
    made("no path", pmemblk_create(NULL, 512, 32 << 20, 0600));
    say("check", pmemblk_check(NULL, 512));
    say("pool", pmemblk_read(NULL, back, 0));
    say("pool", pmemblk_write(NULL, back, 0));
    say("pool", pmemblk_set_zero(NULL, 0));
    say("pool", pmemblk_set_error(NULL, 0));
    say("sizes", pmemblk_bsize(NULL) || pmemblk_nblock(NULL));
    pmemblk_close(NULL);
    // Bytes of an older use behind the first page.
    fd = open(path, O_RDWR | O_CREAT, 0600);
    memset(block, 9, sizeof block);
    for (int n = 1; n < 4096; n++) if (pwrite(fd, block, sizeof block, n * 8192L) < 0) return 3;
    pool = pmemblk_create(path, 4096, 0, 0600);
    if (!pool) { puts(pmemblk_errormsg()); return 4; }
    int old = 0;
    for (size_t n = 0; n < pmemblk_nblock(pool); n++) old += pmemblk_read(pool, back, (long long)n) || back[9];
    say("old bytes", old);
    pmemblk_close(pool);
    printf("consistent %d\n", pmemblk_check(path, 4096));
    return 0;
}
"#;

/// What libpmemblk 1.12 answers to the same calls, which its users rely on.
#[test]
fn odd_calls_are_answered_as_by_libpmemblk() {
    let folder = folder();
    let program = compile(&folder, "odd", ODD_CALLS);
    let out = run(&folder, &program);
    let said = String::from_utf8_lossy(&out.stdout);
    assert_eq!(out.status.code(), Some(0), "{said}");
    let pool = folder.join("odd.pool").display().to_string();
    let expected = [
        "none 1 No such file or directory",
        "write 0 ",
        "read 0 ",
        "buffer -1 Invalid argument",
        "get 0 ",
        "set 0 ",
        "unknown -1 Invalid argument",
        "action -1 Invalid argument",
        "no name -1 Invalid argument",
        "allocated 0 ",
        "set 0 ",
        "holes 0 ",
        "sparse 0 ",
        "mode 0 ",
        "not empty 1 File exists",
        "exists 1 File exists",
        "reopened 0 ",
        "huge 1 No space left on device",
        &format!("pmemblk_create: {pool}: the file system has no space for the pool"),
        "left -1 No such file or directory",
        "no bytes 1 Invalid argument",
        "large 1 Invalid argument",
        "few 1 Invalid argument",
        "left -1 No such file or directory",
        "no path 1 Invalid argument",
        "no path 1 Invalid argument",
        "check -1 Invalid argument",
        "pool -1 Invalid argument",
        "pool -1 Invalid argument",
        "pool -1 Invalid argument",
        "pool -1 Invalid argument",
        "sizes 0 ",
        "old bytes 0 ",
        "consistent 1",
    ];
    assert_eq!(said.lines().collect::<Vec<_>>(), expected);
}

/// Nothing that is written to a pool with copy_on_write.at_open reaches its file. What libpmemblk
/// 1.12 answers.
#[test]
fn a_c_program_discards_its_changes() {
    const PROGRAM: &str = r#"
#include "blockyard_pmemblk.h"
#include <stdio.h>
#include <string.h>
static char block[512];
static void writes(PMEMblkpool *pool, int byte) {
    memset(block, byte, sizeof block);
    printf("write %d\n", pmemblk_write(pool, block, 3));
}
static void reads(PMEMblkpool *pool) {
    int failed = pmemblk_read(pool, block, 3);
    printf("read %d %d\n", failed, block[511]);
}
int main(int argc, char **argv) {
    int yes = 1, no = 0;
    pmemblk_ctl_set(NULL, "copy_on_write.at_open", &yes);
    PMEMblkpool *pool = pmemblk_create(argv[1], sizeof block, PMEMBLK_MIN_POOL, 0600);
    if (!pool) { puts(pmemblk_errormsg()); return 1; }
    writes(pool, 7);
    pmemblk_close(pool);
    pool = pmemblk_open(argv[1], sizeof block);
    if (!pool) { puts(pmemblk_errormsg()); return 2; }
    writes(pool, 9);
    reads(pool);
    printf("zero %d\n", pmemblk_set_zero(pool, 4));
    printf("locked %d\n", !pmemblk_open(argv[1], sizeof block));
    pmemblk_close(pool);
    printf("check %d\n", pmemblk_check(argv[1], sizeof block));
    pmemblk_ctl_set(NULL, "copy_on_write.at_open", &no);
    pool = pmemblk_open(argv[1], sizeof block);
    if (!pool) { puts(pmemblk_errormsg()); return 3; }
    reads(pool);
    pmemblk_close(pool);
    return 0;
}
"#;
    let folder = folder();
    let program = compile(&folder, "discards", PROGRAM);
    let out = run(&folder, &program);
    let said = String::from_utf8_lossy(&out.stdout);
    assert_eq!(out.status.code(), Some(0), "{said}");
    let expected = ["write 0", "write 0", "read 0 9", "zero 0", "locked 1", "check 1", "read 0 7"];
    assert_eq!(said.lines().collect::<Vec<_>>(), expected);
}

/// Far more threads than processors, and than threads with lanes of their own, wait for the disk
/// and not for each other: this counts how often a thread goes to sleep. When 84 of 100 threads
/// looked for lanes every 50 µs, the others had no processor to work on, and this program did not
/// end within minutes.
#[test]
fn two_hundred_threads_sleep_seldom() {
    const PROGRAM: &str = r#"
#include "blockyard_pmemblk.h"
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
enum { THREADS = 200, WRITES = 20 };
static PMEMblkpool *pool;
static void *work(void *number) {
    char block[512], back[512];
    memset(block, 1 + (int)(long)number, sizeof block);
    for (int n = 0; n < WRITES; n++)
        if (pmemblk_write(pool, block, n * THREADS + (long)number)) return pool;
    if (pmemblk_read(pool, back, (long)number) || memcmp(block, back, sizeof back)) return pool;
    return NULL;
}
int main(int argc, char **argv) {
    pthread_t threads[THREADS];
    int failed = 0;
    alarm(120);
    pool = pmemblk_create(argv[1], 512, PMEMBLK_MIN_POOL, 0600);
    if (!pool) { puts(pmemblk_errormsg()); return 1; }
    for (long n = 0; n < THREADS; n++) if (pthread_create(&threads[n], NULL, work, (void *)n)) return 2;
    for (int n = 0; n < THREADS; n++) {
        void *end;
        if (pthread_join(threads[n], &end)) return 3;
        failed += end != NULL;
    }
    pmemblk_close(pool);
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    printf("failed %d\nsleeps for a write %ld\n", failed, usage.ru_nvcsw / (THREADS * WRITES));
    return 0;
}
"#;
    let folder = folder();
    let program = compile(&folder, "threads", PROGRAM);
    let out = run(&folder, &program);
    let said = String::from_utf8_lossy(&out.stdout);
    assert_eq!(out.status.code(), Some(0), "{said}");
    let sleeps = said.strip_prefix("failed 0\nsleeps for a write ").map(|rest| rest.trim().parse());
    assert!(matches!(sleeps, Some(Ok(0..100_u32))), "{said}");
}
