//! Reads any bytes as a pool set. The result is parts with absolute paths, or an error with the
//! number of a line of the file. Nothing panics. The same parts in the plainest words give the same
//! set.
#![no_main]

use blockyard_pmem::{PoolSet, PoolSetError};
use libfuzzer_sys::fuzz_target;
use std::os::unix::ffi::OsStrExt;

fuzz_target!(|bytes: &[u8]| {
    let lines = bytes.split(|&byte| byte == b'\n').count();
    let set = match PoolSet::parse(bytes) {
        None => return assert!(!bytes.starts_with(b"PMEMPOOLSET")),
        Some(Ok(set)) => set,
        Some(Err(PoolSetError::Empty)) => return,
        Some(Err(PoolSetError::Malformed(line, _) | PoolSetError::Unsupported(line, _))) => {
            return assert!((1..=lines).contains(&line));
        }
    };
    assert!(!set.parts.is_empty() && set.parts.len() < lines);
    let mut again = b"PMEMPOOLSET\n".to_vec();
    if set.single_header {
        again.extend(b"OPTION SINGLEHDR\n");
    }
    for part in &set.parts {
        assert!(part.path.is_absolute() && part.bytes != Some(0));
        let size = part.bytes.map_or("AUTO".into(), |bytes| bytes.to_string());
        again.extend([size.as_bytes(), b" ", part.path.as_os_str().as_bytes(), b"\n"].concat());
    }
    assert_eq!(PoolSet::parse(&again), Some(Ok(set)));
});
