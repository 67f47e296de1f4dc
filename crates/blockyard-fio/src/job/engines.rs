//! The names of I/O engines: those that are modelled, those that run as another one, and those that
//! never reach the block layer.

use super::error::ValueFault;
use super::model::{Engine, Job};
use super::value::{Parsed, Value};

const NETWORK: &str = "its I/O goes to a server, past this machine's block layer";
const METADATA: &str = "it asks a file system for work on metadata, which is not modelled";
const MAPPED: &str = "it stores to mapped persistent memory, past the block layer";
const IDLE: &str = "it does no I/O on a disk";
const GPU: &str = "it moves data between a disk and the memory of a GPU";

/// The engines that run as another one: the name, the engine, and in what they are alike.
const ALIKE: &[(&str, Engine, &str)] = &[
    ("posixaio", Engine::Psync, "glibc does the I/Os of one file one after another"),
    ("io_uring_cmd", Engine::IoUring, "its commands take the same path, here with merging"),
    ("libblkio", Engine::IoUring, "its driver for Linux is io_uring"),
    ("xnvme", Engine::IoUring, "its usual backend is io_uring"),
    ("null", Engine::Psync, "the device makes the difference here, not the engine"),
    ("cpp_null", Engine::Psync, "the device makes the difference here, not the engine"),
    ("sg", Engine::Psync, "each command is a call that returns when it has ended"),
    ("windowsaio", Engine::Libaio, "both submit direct I/O and collect completions"),
    ("mmap", Engine::Psync, "a page that is not in memory is read with its read-ahead"),
];

/// The engines that are refused, by reason.
const REFUSED: &[(&str, &[&str])] = &[
    (
        NETWORK,
        &[
            "net",
            "netsplice",
            "rdma",
            "librpma_apm_client",
            "librpma_apm_server",
            "librpma_gpspm_client",
            "librpma_gpspm_server",
            "rados",
            "rbd",
            "gfapi",
            "gfapi_async",
            "libhdfs",
            "http",
            "nbd",
            "nfs",
            "libiscsi",
            "dfs",
            "ime_psync",
            "ime_psyncv",
            "ime_aio",
        ],
    ),
    (
        METADATA,
        &[
            "filecreate",
            "filestat",
            "filedelete",
            "fileoperations",
            "dircreate",
            "dirstat",
            "dirdelete",
            "ftruncate",
            "falloc",
            "e4defrag",
        ],
    ),
    (MAPPED, &["libpmem", "dev-dax", "pmemblk"]),
    (IDLE, &["cpuio", "exec", "page_fault"]),
    (GPU, &["libcufile", "libhipfile"]),
    ("zoned devices are not modelled", &["libzbc"]),
    ("raw flash has no block layer", &["mtd"]),
    ("pages that move through a pipe are not modelled", &["splice"]),
];

/// Reads the name of an engine.
pub(super) fn name(value: Value<'_>) -> Parsed<&'static str> {
    let text = value.text()?;
    let modelled = Engine::ALL.iter().map(|(name, _)| *name);
    let mut known = modelled.chain(ALIKE.iter().map(|(name, _, _)| *name));
    if let Some(name) = known.find(|name| *name == text) {
        return Ok(name);
    }
    let refused = REFUSED.iter().find(|(_, names)| names.contains(&text));
    Err(match refused {
        Some((reason, _)) => ValueFault::NotModelled { text: text.to_owned(), reason },
        None => {
            let names: Vec<_> = Engine::ALL.iter().map(|(name, _)| *name).collect();
            ValueFault::NotOneOf { text: text.to_owned(), allowed: names.join(" ") }
        }
    })
}

/// Returns in what the engine of `job` and the one that it runs as are alike; `None` if it is
/// modelled itself.
pub(super) fn likeness(job: &Job) -> Option<&'static str> {
    ALIKE.iter().find(|(name, ..)| *name == job.engine_name).map(|(_, _, reason)| *reason)
}

/// Whether the engine sends commands or moves no data, so that no page cache is involved.
fn bypasses_cache(name: &str) -> bool {
    matches!(name, "null" | "cpp_null" | "sg" | "io_uring_cmd")
}

/// Sets the engine of a job whose options are all known, and what follows from the engine's name.
pub(super) fn settle(job: &mut Job) {
    let name = job.engine_name;
    let modelled = Engine::ALL.iter().find(|(known, _)| *known == name).map(|(_, engine)| *engine);
    let alike = ALIKE.iter().find(|(known, ..)| *known == name).map(|(_, engine, _)| *engine);
    job.engine = modelled.or(alike).expect("a name that was read should be in a table");
    job.direct = (job.direct || bypasses_cache(name)) && name != "mmap";
    match name {
        "null" | "cpp_null" if job.iodepth > 1 => job.engine = Engine::Libaio,
        // Each file has a queue of its own, from which one I/O is taken at a time.
        "posixaio" if job.direct && job.files() > 1 => {
            job.engine = Engine::Libaio;
            job.iodepth = job.iodepth.min(u32::try_from(job.files()).unwrap_or(u32::MAX));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::super::build::parse_bytes;
    use super::super::source::NoSource;
    use super::*;

    fn job(options: &str) -> Result<Job, String> {
        let text = format!("[a]\n{options}");
        let file = parse_bytes("f", text.as_bytes(), &NoSource).map_err(|e| e.to_string())?;
        Ok(file.jobs.into_iter().next().expect("a job file has a job"))
    }

    #[test]
    fn no_engine_is_in_two_tables() {
        let modelled = Engine::ALL.iter().map(|(name, _)| *name);
        let alike = ALIKE.iter().map(|(name, ..)| *name);
        let refused = REFUSED.iter().flat_map(|(_, names)| names.iter().copied());
        let mut all: Vec<_> = modelled.chain(alike).chain(refused).collect();
        all.sort_unstable();
        assert!(all.windows(2).all(|pair| pair[0] != pair[1]), "{all:?}");
    }

    fn runs(options: &str) -> Result<(Engine, u32, bool), String> {
        job(options).map(|job| (job.engine, job.depth(), job.direct))
    }

    #[test]
    fn engines_that_are_alike_run_as_one_another() {
        assert_eq!(runs("ioengine=windowsaio\ndirect=1\niodepth=4"), Ok((Engine::Libaio, 4, true)));
        assert_eq!(runs("ioengine=io_uring_cmd\niodepth=4"), Ok((Engine::IoUring, 4, true)));
        assert_eq!(runs("ioengine=null"), Ok((Engine::Psync, 1, true)));
        assert_eq!(runs("ioengine=null\niodepth=8"), Ok((Engine::Libaio, 8, true)));
        assert_eq!(runs("ioengine=sg\niodepth=8"), Ok((Engine::Psync, 1, true)));
        assert_eq!(runs("ioengine=mmap\ndirect=1"), Ok((Engine::Psync, 1, false)));
    }

    fn depth(options: &str) -> u32 {
        job(&format!("ioengine=posixaio\n{options}")).unwrap().depth()
    }

    #[test]
    fn posix_aio_has_one_io_of_each_file_in_flight() {
        assert_eq!(depth("direct=1\niodepth=16"), 1);
        assert_eq!(depth("direct=1\niodepth=16\nnrfiles=4"), 4);
        assert_eq!(depth("direct=1\niodepth=2\nnrfiles=4"), 2);
        assert_eq!(depth("iodepth=16\nnrfiles=4"), 1, "buffered reads");
    }

    fn refused(name: &str) -> String {
        job(&format!("ioengine={name}")).unwrap_err()
    }

    #[test]
    fn an_engine_without_a_block_device_is_refused_with_its_reason() {
        assert_eq!(
            refused("rados"),
            "f:2: `ioengine`: `rados` is not modelled: its I/O goes to a server, past this \
             machine's block layer"
        );
        assert!(refused("cpuio").contains("does no I/O"));
        assert!(refused("foo").contains("is not one of: sync psync"));
    }

    fn mapped(options: &str) -> Result<Job, String> {
        job(&format!("ioengine=mmap\n{options}"))
    }

    #[test]
    fn mapped_files_are_in_the_page_cache() {
        assert!(mapped("rw=read\nbs=64k").is_ok());
        assert!(mapped("rw=randread\nbs=8k").is_ok());
        assert!(mapped("rw=write\nfsync=1").is_ok_and(|job| job.is_mapped()));
        let part = mapped("rw=write\nbs=2k\nfsync=1").unwrap_err();
        assert!(part.contains("f:5: `fsync` contradicts `bs`"), "{part}");
        let direct = mapped("rw=write\ndirect=1").unwrap_err();
        assert!(direct.contains("f:4: `direct` is not supported yet"), "{direct}");
    }
}
