//! Copies to and from memory that may be persistent, and the write-back of its cache lines.
//!
//! # Safety
//!
//! The functions take raw memory, which their callers promise to be readable or writable. No
//! reference into it is made. Racing copies may mix bytes, and nothing here relies on them.
#![allow(unsafe_code, reason = "instructions for cache lines have no safe form")]

use core::ptr;

/// Bytes of a cache line on all supported processors.
pub(crate) const LINE_BYTES: usize = 64;

const _: () = assert!(LINE_BYTES.is_power_of_two(), "parts of lines are found by masks");

/// The way in which bytes are copied, which is a choice of the design.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Copying {
    /// With the processor's string instruction, followed by a write-back of each line. Linux did
    /// this in 2015.
    Bytewise,
    /// With the widest loads, and stores past the caches.
    NonTemporal,
    /// Like `NonTemporal`, and reads whole lines past the caches, for uncached memory.
    AlignedNonTemporal,
}

/// The instructions of this processor that make lines durable, detected when a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lines {
    write_back: WriteBack,
    stream: Stream,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WriteBack {
    /// CLWB, which keeps the line in the cache.
    #[cfg(target_arch = "x86_64")]
    Clwb,
    /// CLFLUSHOPT, which evicts the line.
    #[cfg(target_arch = "x86_64")]
    ClflushOpt,
    /// CLFLUSH, which evicts the line and waits for the one before.
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
    /// Detects the instructions of this processor. Returns `None` if it has no supported ones.
    pub(crate) fn detect() -> Option<Self> {
        #[cfg(target_arch = "x86_64")]
        {
            #[allow(unused_unsafe, reason = "newer versions of Rust call it safe")]
            // SAFETY: every processor of x86_64 has the instruction.
            let leaf = unsafe { core::arch::x86_64::__cpuid_count(7, 0) }.ebx;
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

    /// The names of the instructions for write-back and for stores past the caches.
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

    /// Starts the write-back of the lines of `len` bytes at `start`.
    ///
    /// # Safety
    ///
    /// The bytes are mapped.
    #[inline]
    pub(crate) unsafe fn write_back(self, start: *const u8, len: usize) {
        let before = start.addr() % LINE_BYTES;
        let mut line = start.wrapping_sub(before);
        let end = start.wrapping_add(len);
        while line < end {
            // SAFETY: the line overlaps the caller's bytes, so it is mapped. The instruction
            // changes nothing.
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

    /// Waits until everything that this thread wrote back or streamed is durable.
    #[inline]
    pub(crate) fn fence(self) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: every x86-64 processor has SSE.
        unsafe {
            core::arch::x86_64::_mm_sfence();
        }
    }

    /// Copies `len` bytes, which the next fence makes durable.
    ///
    /// # Safety
    ///
    /// `to` is writable and `from` readable, and they do not overlap.
    #[inline]
    pub(crate) unsafe fn write(self, copying: Copying, to: *mut u8, from: *const u8, len: usize) {
        debug_assert!(is_apart(to, from, len), "a copy does not overlap its source");
        if copying == Copying::Bytewise {
            // SAFETY: as the caller promises.
            unsafe {
                copy_bytes(to, from, len);
                self.write_back(to, len);
            }
            return;
        }
        // The incomplete lines at both ends go through the cache.
        let head = to.align_offset(LINE_BYTES).min(len);
        let body = (len - head) / LINE_BYTES * LINE_BYTES;
        // SAFETY: the three parts of the caller's bytes. The middle one starts at a line.
        unsafe {
            self.write_cached(to, from, head);
            self.stream(to.add(head), from.add(head), body);
            self.write_cached(to.add(head + body), from.add(head + body), len - head - body);
        }
    }

    /// # Safety
    ///
    /// The same as for [`write`](Self::write).
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

    /// Writes complete lines past the caches.
    ///
    /// # Safety
    ///
    /// The same as for [`write`](Self::write). `to` and `len` are multiples of a line.
    #[inline]
    unsafe fn stream(self, to: *mut u8, from: *const u8, len: usize) {
        debug_assert!(len == 0 || to.addr().is_multiple_of(LINE_BYTES), "complete lines");
        debug_assert!(len.is_multiple_of(LINE_BYTES), "complete lines");
        // SAFETY: the features were detected, and `to` is aligned.
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

/// Whether `len` bytes at `to` and `from` do not overlap.
fn is_apart(to: *const u8, from: *const u8, len: usize) -> bool {
    to.addr().abs_diff(from.addr()) >= len
}

/// Copies `len` bytes from memory that may be persistent.
///
/// # Safety
///
/// `from` is readable and `to` writable, and they do not overlap.
#[inline]
pub(crate) unsafe fn read(copying: Copying, to: *mut u8, from: *const u8, len: usize) {
    debug_assert!(is_apart(to, from, len), "a copy does not overlap its source");
    // SAFETY: as the caller promises.
    unsafe {
        match copying {
            Copying::Bytewise => copy_bytes(to, from, len),
            Copying::NonTemporal => ptr::copy_nonoverlapping(from, to, len),
            Copying::AlignedNonTemporal => read_lines(to, from, len),
        }
    }
}

/// Copies with the string instruction.
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

/// Copies with loads of 16 bytes past the caches, for complete lines.
///
/// # Safety
///
/// As for any copy.
unsafe fn read_lines(to: *mut u8, from: *const u8, len: usize) {
    let head = from.align_offset(LINE_BYTES).min(len);
    let body = (len - head) / LINE_BYTES * LINE_BYTES;
    // SAFETY: the three parts of the caller's bytes. The middle one starts at a line.
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
    debug_assert!(len == 0 || from.addr().is_multiple_of(16), "aligned loads");
    for at in (0..len).step_by(16) {
        // SAFETY: within the caller's bytes, and aligned.
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
    debug_assert!(len == 0 || to.addr().is_multiple_of(32), "aligned stores");
    for at in (0..len).step_by(32) {
        // SAFETY: within the caller's bytes, and aligned.
        unsafe {
            _mm256_stream_si256(to.add(at).cast(), _mm256_loadu_si256(from.add(at).cast()));
        }
    }
}

#[cfg(target_arch = "x86_64")]
unsafe fn stream_sse2(to: *mut u8, from: *const u8, len: usize) {
    use core::arch::x86_64::{_mm_loadu_si128, _mm_stream_si128};
    debug_assert!(len == 0 || to.addr().is_multiple_of(16), "aligned stores");
    for at in (0..len).step_by(16) {
        // SAFETY: within the caller's bytes, and aligned.
        unsafe {
            _mm_stream_si128(to.add(at).cast(), _mm_loadu_si128(from.add(at).cast()));
        }
    }
}

/// Prefetches the lines of `len` bytes at `start`.
#[inline]
pub(crate) fn prefetch(start: *const u8, len: usize) {
    #[cfg(target_arch = "x86_64")]
    for at in (0..len).step_by(LINE_BYTES) {
        // SAFETY: a hint, which has no effect on unmapped addresses.
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
    fn every_kind_of_copy_copies_exactly_its_bytes() {
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
            let mut to = vec![0; 400];
            let mut back = vec![0; 400];
            // SAFETY: both ranges lie within their buffers.
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
