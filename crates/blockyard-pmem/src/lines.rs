//! Copying to and from memory that may be persistent, and writing its cache lines back.
//!
//! # Safety
//!
//! The functions take raw memory: whoever calls them promises that it is readable or writable. No reference
//! into it is made. Racing copies may mix bytes; nothing here relies on them.
#![allow(unsafe_code, reason = "instructions for cache lines have no safe form")]

use core::ptr;

/// Bytes of a cache line, on every processor that these instructions are known for.
pub(crate) const LINE_BYTES: usize = 64;

/// How bytes are copied: what designs of a BTT differ in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Copying {
    /// By the processor's instruction for strings of bytes, and what was written is written back line by
    /// line. As Linux did in 2015.
    Bytewise,
    /// By the widest loads there are; written past the caches.
    NonTemporal,
    /// Read past the caches as well, by whole lines: for memory that is not cached.
    AlignedNonTemporal,
}

/// What a processor can do to make lines durable, found when a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lines {
    write_back: WriteBack,
    stream: Stream,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WriteBack {
    /// CLWB: the line stays in the cache.
    #[cfg(target_arch = "x86_64")]
    Clwb,
    /// CLFLUSHOPT: it does not.
    #[cfg(target_arch = "x86_64")]
    ClflushOpt,
    /// CLFLUSH: nor does it, and each waits for the one before.
    #[cfg(target_arch = "x86_64")]
    Clflush,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stream {
    #[cfg(target_arch = "x86_64")]
    Avx,
    #[cfg(target_arch = "x86_64")]
    Sse2,
}

impl Lines {
    /// What this processor can do; `None` if nothing that is known here.
    pub(crate) fn detect() -> Option<Self> {
        #[cfg(target_arch = "x86_64")]
        {
            let leaf = core::arch::x86_64::__cpuid_count(7, 0).ebx;
            let write_back = match leaf {
                bits if bits & 1 << 24 != 0 => WriteBack::Clwb,
                bits if bits & 1 << 23 != 0 => WriteBack::ClflushOpt,
                _ => WriteBack::Clflush,
            };
            let stream =
                if std::is_x86_feature_detected!("avx") { Stream::Avx } else { Stream::Sse2 };
            Some(Self { write_back, stream })
        }
        #[cfg(not(target_arch = "x86_64"))]
        None
    }

    /// The names of what is used, for people.
    pub(crate) fn names(self) -> (&'static str, &'static str) {
        let write_back = match self.write_back {
            #[cfg(target_arch = "x86_64")]
            WriteBack::Clwb => "clwb",
            #[cfg(target_arch = "x86_64")]
            WriteBack::ClflushOpt => "clflushopt",
            #[cfg(target_arch = "x86_64")]
            WriteBack::Clflush => "clflush",
        };
        let stream = match self.stream {
            #[cfg(target_arch = "x86_64")]
            Stream::Avx => "avx",
            #[cfg(target_arch = "x86_64")]
            Stream::Sse2 => "sse2",
        };
        (write_back, stream)
    }

    /// Begins to write back the lines of `len` bytes at `start`.
    ///
    /// # Safety
    ///
    /// They are mapped.
    #[inline]
    pub(crate) unsafe fn write_back(self, start: *const u8, len: usize) {
        let before = start.addr() % LINE_BYTES;
        let mut line = start.wrapping_sub(before);
        let end = start.wrapping_add(len);
        while line < end {
            // SAFETY: the line has a byte of the caller's, so it is mapped; nothing is changed by this.
            unsafe {
                match self.write_back {
                    #[cfg(target_arch = "x86_64")]
                    WriteBack::Clwb => {
                        core::arch::asm!("clwb [{}]", in(reg) line, options(nostack, preserves_flags));
                    }
                    #[cfg(target_arch = "x86_64")]
                    WriteBack::ClflushOpt => {
                        core::arch::asm!("clflushopt [{}]", in(reg) line, options(nostack, preserves_flags));
                    }
                    #[cfg(target_arch = "x86_64")]
                    WriteBack::Clflush => core::arch::x86_64::_mm_clflush(line),
                }
            }
            line = line.wrapping_add(LINE_BYTES);
        }
    }

    /// Waits until what this thread wrote back or streamed is durable.
    #[inline]
    pub(crate) fn fence(self) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: every x86-64 processor has SSE.
        unsafe {
            core::arch::x86_64::_mm_sfence();
        }
    }

    /// Copies `len` bytes so that a fence makes them durable.
    ///
    /// # Safety
    ///
    /// `to` is writable and `from` readable, and they do not overlap.
    #[inline]
    pub(crate) unsafe fn write(self, copying: Copying, to: *mut u8, from: *const u8, len: usize) {
        if copying == Copying::Bytewise {
            // SAFETY: as the caller promises.
            unsafe {
                copy_bytes(to, from, len);
                self.write_back(to, len);
            }
            return;
        }
        // Parts of lines at both ends go through the cache.
        let head = to.align_offset(LINE_BYTES).min(len);
        let body = (len - head) / LINE_BYTES * LINE_BYTES;
        // SAFETY: three parts of what the caller promises; the middle one begins at a line.
        unsafe {
            self.write_cached(to, from, head);
            self.stream(to.add(head), from.add(head), body);
            self.write_cached(to.add(head + body), from.add(head + body), len - head - body);
        }
    }

    /// # Safety
    ///
    /// As [`write`](Self::write).
    #[inline]
    unsafe fn write_cached(self, to: *mut u8, from: *const u8, len: usize) {
        if len > 0 {
            // SAFETY: as the caller promises.
            unsafe {
                ptr::copy_nonoverlapping(from, to, len);
                self.write_back(to, len);
            }
        }
    }

    /// Writes whole lines past the caches.
    ///
    /// # Safety
    ///
    /// As [`write`](Self::write); `to` and `len` are whole lines.
    #[inline]
    unsafe fn stream(self, to: *mut u8, from: *const u8, len: usize) {
        // SAFETY: the features were found, and `to` is aligned.
        unsafe {
            match self.stream {
                #[cfg(target_arch = "x86_64")]
                Stream::Avx => stream_avx(to, from, len),
                #[cfg(target_arch = "x86_64")]
                Stream::Sse2 => stream_sse2(to, from, len),
            }
        }
    }
}

/// Copies `len` bytes out of memory that may be persistent.
///
/// # Safety
///
/// `from` is readable and `to` writable, and they do not overlap.
#[inline]
pub(crate) unsafe fn read(copying: Copying, to: *mut u8, from: *const u8, len: usize) {
    // SAFETY: as the caller promises.
    unsafe {
        match copying {
            Copying::Bytewise => copy_bytes(to, from, len),
            Copying::NonTemporal => ptr::copy_nonoverlapping(from, to, len),
            Copying::AlignedNonTemporal => read_lines(to, from, len),
        }
    }
}

/// Copies by the instruction for strings of bytes.
///
/// # Safety
///
/// As for any copy.
#[inline]
unsafe fn copy_bytes(to: *mut u8, from: *const u8, len: usize) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: as the caller promises; the direction flag is clear in Rust code.
    unsafe {
        core::arch::asm!(
            "rep movsb",
            inout("rcx") len => _, inout("rdi") to => _, inout("rsi") from => _,
            options(nostack, preserves_flags)
        );
    }
    #[cfg(not(target_arch = "x86_64"))]
    // SAFETY: as the caller promises.
    unsafe {
        ptr::copy_nonoverlapping(from, to, len);
    }
}

/// Copies by loads of 16 bytes past the caches, whole lines where there are some.
///
/// # Safety
///
/// As for any copy.
unsafe fn read_lines(to: *mut u8, from: *const u8, len: usize) {
    let head = from.align_offset(LINE_BYTES).min(len);
    let body = (len - head) / LINE_BYTES * LINE_BYTES;
    // SAFETY: three parts of what the caller promises; the middle one begins at a line.
    unsafe {
        ptr::copy_nonoverlapping(from, to, head);
        #[cfg(target_arch = "x86_64")]
        if std::is_x86_feature_detected!("sse4.1") {
            load_sse41(to.add(head), from.add(head), body);
        } else {
            ptr::copy_nonoverlapping(from.add(head), to.add(head), body);
        }
        #[cfg(not(target_arch = "x86_64"))]
        ptr::copy_nonoverlapping(from.add(head), to.add(head), body);
        let done = head + body;
        ptr::copy_nonoverlapping(from.add(done), to.add(done), len - done);
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "sse4.1")]
unsafe fn load_sse41(to: *mut u8, from: *const u8, len: usize) {
    use core::arch::x86_64::{__m128i, _mm_storeu_si128, _mm_stream_load_si128};
    for at in (0..len).step_by(16) {
        // SAFETY: within what the caller promises, and aligned.
        unsafe {
            let bytes = _mm_stream_load_si128(from.add(at).cast::<__m128i>());
            _mm_storeu_si128(to.add(at).cast(), bytes);
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx")]
unsafe fn stream_avx(to: *mut u8, from: *const u8, len: usize) {
    use core::arch::x86_64::{_mm256_loadu_si256, _mm256_stream_si256};
    for at in (0..len).step_by(32) {
        // SAFETY: within what the caller promises, and aligned.
        unsafe {
            _mm256_stream_si256(to.add(at).cast(), _mm256_loadu_si256(from.add(at).cast()));
        }
    }
}

#[cfg(target_arch = "x86_64")]
unsafe fn stream_sse2(to: *mut u8, from: *const u8, len: usize) {
    use core::arch::x86_64::{_mm_loadu_si128, _mm_stream_si128};
    for at in (0..len).step_by(16) {
        // SAFETY: within what the caller promises, and aligned.
        unsafe {
            _mm_stream_si128(to.add(at).cast(), _mm_loadu_si128(from.add(at).cast()));
        }
    }
}

/// Fetches the lines of `len` bytes at `start`.
#[inline]
pub(crate) fn prefetch(start: *const u8, len: usize) {
    #[cfg(target_arch = "x86_64")]
    for at in (0..len).step_by(LINE_BYTES) {
        // SAFETY: a hint, which does nothing where nothing is mapped.
        unsafe {
            use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            _mm_prefetch::<_MM_HINT_T0>(start.wrapping_add(at).cast());
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (start, len);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_to_copy_copies_what_is_there_and_nothing_else() {
        let Some(lines) = Lines::detect() else { return };
        let from: Vec<u8> = (0..300).map(|n| (n % 251) as u8 + 1).collect();
        let mut ways = vec![lines];
        #[cfg(target_arch = "x86_64")]
        {
            ways.push(Lines { stream: Stream::Sse2, ..lines });
            ways.push(Lines { write_back: WriteBack::Clflush, ..lines });
            if std::is_x86_feature_detected!("avx") {
                ways.push(Lines { stream: Stream::Avx, ..lines });
            }
        }
        let copyings = [Copying::Bytewise, Copying::NonTemporal, Copying::AlignedNonTemporal];
        for (lines, copying, at, len) in ways.iter().flat_map(|&lines| {
            copyings.iter().flat_map(move |&copying| {
                [(0, 64), (1, 63), (7, 200), (63, 2), (64, 192), (5, 0)]
                    .map(|(at, len)| (lines, copying, at, len))
            })
        }) {
            let (mut to, mut back) = (vec![0; 400], vec![0; 400]);
            // SAFETY: both lie within their buffers.
            unsafe {
                lines.write(copying, to.as_mut_ptr().add(at), from.as_ptr(), len);
                lines.fence();
                read(copying, back.as_mut_ptr().add(3), to.as_ptr().add(at), len);
            }
            assert_eq!(to[at..at + len], from[..len], "{copying:?} {at} {len}");
            assert!(to[..at].iter().chain(&to[at + len..]).all(|&byte| byte == 0));
            assert_eq!(back[3..3 + len], from[..len], "{copying:?} {at} {len}");
            assert!(back[..3].iter().chain(&back[3 + len..]).all(|&byte| byte == 0));
        }
    }
}
