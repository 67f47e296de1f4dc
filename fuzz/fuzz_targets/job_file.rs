//! Reads any bytes as a job file and as a command line. The result is jobs or an error; nothing panics.
#![no_main]

use std::io;

use blockyard_fio::job::{JobFile, Source, parse_args, parse_bytes};
use blockyard_fio::workload::Generator;
use libfuzzer_sys::fuzz_target;

/// Answers each include with the second half of the input and each variable with its third line, so that
/// no file is read.
struct Input<'a>(&'a [u8]);

impl Source for Input<'_> {
    fn read(&self, path: &str) -> Result<Vec<u8>, io::ErrorKind> {
        if path.len() > 64 { Err(io::ErrorKind::NotFound) } else { Ok(self.0.to_vec()) }
    }

    fn variable(&self, name: &str) -> Option<String> {
        let line = self.0.split(|byte| *byte == b'\n').nth(2)?;
        (name.len() < 8).then(|| String::from_utf8_lossy(line).into_owned())
    }
}

fuzz_target!(|bytes: &[u8]| {
    let source = Input(&bytes[bytes.len() / 2..]);
    if let Ok(file) = parse_bytes("job", bytes, &source) {
        run(&file);
    }
    if let Ok(text) = core::str::from_utf8(bytes)
        && let Ok(file) = parse_args(text.lines(), &source)
    {
        run(&file);
    }
});

/// Resolves each accepted job and checks that its first I/Os lie within their regions.
fn run(file: &JobFile) {
    for job in file.jobs.iter().take(4) {
        for device_bytes in [1 << 20, 1 << 40] {
            let Ok(resolved) = job.resolve(job.numjobs - 1, device_bytes) else { continue };
            let mut generator = Generator::new(job, job.numjobs - 1, &resolved, 1);
            for io in core::iter::from_fn(|| generator.next(None)).take(64) {
                if let Some(range) = resolved.files.get(usize::from(io.file)) {
                    assert!(io.offset_bytes >= range.start_bytes || io.len_bytes == 0);
                    assert!(io.offset_bytes + u64::from(io.len_bytes) <= range.end_bytes());
                }
            }
        }
    }
}
