//! Bus errors: the end of a mapping instead of the end of the process.
//!
//! The kernel sends SIGBUS to a thread that touches a page of a mapping whose bytes cannot be had:
//! the file was truncated, or the medium failed. [`catch_bus_errors`] makes this an error of the
//! mapping.
//!
//! # Rules
//!
//! - **[lost-page-breaks-mapping]** A bus error in a guarded mapping marks the mapping as broken,
//!   and puts zeroes in the place of the whole mapping, before the access continues. An access
//!   looks at the mark after it has touched the mapping, so it never answers with these zeroes. The
//!   file is not touched any more. A file that was cut short within a page breaks its mapping as
//!   soon as a flush or [`Mapped::look_for_cut`](super::Mapped::look_for_cut) finds it.
//!
//! # Safety
//!
//! The handler is async-signal-safe: it loads and stores atomics and makes system calls, and takes
//! no lock and no memory. A node of the list is never freed, so the handler may follow the list at
//! any time. It costs 48 bytes for each mapping that was ever guarded.
//!
//! A thread in the handler is about to access the mapping that has the address, so this mapping
//! lives. A node is alive from after its mapping is made until before it is unmapped. So a live
//! node whose range has the address is the node of that mapping, as two mappings that live at the
//! same time do not overlap.

use core::ffi::{c_int, c_void};
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering, compiler_fence};
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
use std::sync::{Mutex, Once, OnceLock, PoisonError};

/// A mapping that is, or was, guarded.
#[derive(Debug)]
struct Node {
    start: AtomicPtr<c_void>,
    len: usize,
    is_alive: AtomicBool,
    is_broken: AtomicBool,
    next: *const Self,
}

// SAFETY: `next` never changes, and points to a node that is never freed.
unsafe impl Send for Node {}
// SAFETY: as above.
unsafe impl Sync for Node {}

/// The newest node.
static NODES: AtomicPtr<Node> = AtomicPtr::new(ptr::null_mut());
/// Held while a node is added.
static ADDING: Mutex<()> = Mutex::new(());
static CATCHING: Once = Once::new();
/// What the process did with SIGBUS before.
static BEFORE: OnceLock<libc::sigaction> = OnceLock::new();
/// The mark of mappings that are not guarded.
static UNBROKEN: AtomicBool = AtomicBool::new(false);

/// Makes bus errors in mappings that are opened from now on errors of the medium: every later call
/// on such a mapping returns [`MediaError::Failed`](blockyard_btt::MediaError::Failed), and nothing
/// more is written to its file.
///
/// Without this, a process dies by SIGBUS if another process truncates a file that it has mapped,
/// or if the medium cannot read a page. This installs a handler of SIGBUS for the whole process, so
/// it is up to the program to ask for it. Signals that concern other memory go to the previous
/// handler, which is then reinstalled.
///
/// # Panics
///
/// Panics if the system refuses a handler, which POSIX excludes for SIGBUS.
pub fn catch_bus_errors() {
    CATCHING.call_once(|| {
        // SAFETY: zeroes are a valid `sigaction`, and both calls get pointers to whole ones. The
        // handler is async-signal-safe: see the module.
        unsafe {
            let mut before = core::mem::zeroed::<libc::sigaction>();
            let asked = libc::sigaction(libc::SIGBUS, ptr::null(), &raw mut before);
            assert_eq!(asked, 0, "the action of SIGBUS can be read");
            BEFORE.get_or_init(|| before);
            let mut action = core::mem::zeroed::<libc::sigaction>();
            action.sa_sigaction = handle as *const () as usize;
            // A stack of its own, where the thread has one: the cause may be an overflow of its
            // stack.
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            let set = libc::sigaction(libc::SIGBUS, &raw const action, ptr::null_mut());
            assert_eq!(set, 0, "SIGBUS can be handled");
        }
    });
}

/// The handler of SIGBUS.
extern "C" fn handle(signal: c_int, info: *mut libc::siginfo_t, _: *mut c_void) {
    // SAFETY: the kernel passes a `siginfo_t`. Where the signal was sent by a process, the address
    // is not used.
    let (code, address) = unsafe { ((*info).si_code, (*info).si_addr().addr()) };
    let is_access = matches!(
        code,
        libc::BUS_ADRALN | libc::BUS_ADRERR | libc::BUS_OBJERR | libc::BUS_MCEERR_AR
    );
    if is_access
        && let Some(node) = node_at(address)
        && node.break_up()
    {
        return; // the access continues
    }
    if code == libc::BUS_MCEERR_AO {
        return; // bad memory that nobody has touched yet
    }
    if let Some(before) = BEFORE.get() {
        // SAFETY: the action is the one that `sigaction` returned.
        unsafe { libc::sigaction(signal, before, ptr::null_mut()) };
    }
    if !is_access {
        // SAFETY: `raise` is async-signal-safe. An access needs no new signal, because it is
        // repeated.
        unsafe { libc::raise(signal) };
    }
}

/// The node of the live mapping that has `address`.
fn node_at(address: usize) -> Option<&'static Node> {
    let mut next = NODES.load(Ordering::Acquire).cast_const();
    // SAFETY: null, or a node, which is complete when it is published and never freed.
    while let Some(node) = unsafe { next.as_ref() } {
        let start = node.start.load(Ordering::Relaxed).addr();
        if (start..start + node.len).contains(&address) && node.is_alive.load(Ordering::SeqCst) {
            return Some(node);
        }
        next = node.next;
    }
    None
}

impl Node {
    /// [lost-page-breaks-mapping]. Returns whether the zeroes are in place.
    fn break_up(&self) -> bool {
        // Before the zeroes: a thread that finds them has waited for the kernel to put them there.
        self.is_broken.store(true, Ordering::SeqCst);
        let access = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::PRIVATE | MapFlags::FIXED | MapFlags::NORESERVE;
        // SAFETY: the range is a live mapping of a `Mapped`, to which nothing refers but copies and
        // atomics. The kernel replaces it at once, so no access finds the range unmapped, and
        // `Mapped` unmaps the replacement.
        unsafe { mmap_anonymous(self.start.load(Ordering::Relaxed), self.len, access, flags) }
            .is_ok()
    }
}

/// The guard of one mapping, if the process catches bus errors.
#[derive(Debug)]
pub(super) struct Guard {
    node: Option<&'static Node>,
    is_broken: &'static AtomicBool,
}

impl Guard {
    /// Guards a new mapping of `len` bytes.
    pub(super) fn new(start: NonNull<u8>, len: usize) -> Self {
        if !CATCHING.is_completed() {
            return Self::none();
        }
        // The list is whole at any time.
        let _adding = ADDING.lock().unwrap_or_else(PoisonError::into_inner);
        let node = Box::leak(Box::new(Node {
            start: AtomicPtr::new(start.as_ptr().cast()),
            len,
            is_alive: AtomicBool::new(true),
            is_broken: AtomicBool::new(false),
            next: NODES.load(Ordering::Relaxed),
        }));
        NODES.store(node, Ordering::Release);
        Self { node: Some(node), is_broken: &node.is_broken }
    }

    /// No guard.
    pub(super) const fn none() -> Self {
        Self { node: None, is_broken: &UNBROKEN }
    }

    /// Whether the mapping was whole when the caller accessed it.
    #[inline]
    pub(super) fn is_whole(&self) -> bool {
        // The handler ran in this thread during the access, or before another thread's zeroes could
        // be found.
        compiler_fence(Ordering::SeqCst);
        !self.is_broken.load(Ordering::Relaxed)
    }

    /// Breaks the mapping, if it is guarded.
    #[cold]
    pub(super) fn break_up(&self) {
        if let Some(node) = self.node {
            node.break_up(); // the mark counts, even if the kernel has no memory for the zeroes
        }
    }

    /// The mapping is about to be unmapped.
    pub(super) fn end(&self) {
        if let Some(node) = self.node {
            node.is_alive.store(false, Ordering::SeqCst);
        }
    }
}
