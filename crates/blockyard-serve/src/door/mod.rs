//! The kinds of door: NBD, and memory without a socket for tests and benchmarks. The lane's seam is [`Door`](crate::lane::door::Door).

#[cfg(any(test, feature = "memory-door"))]
pub(crate) mod memory;
pub(crate) mod nbd;
