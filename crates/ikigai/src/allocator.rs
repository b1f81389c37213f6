//! Settings of the C library's memory allocator.

/// Makes all threads allocate from one heap.
///
/// By default glibc makes a heap for each thread that allocates, up to eight per core. One thread does
/// nearly all of our work, so more heaps only keep free memory apart. Call it before threads exist.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "the standard library does not offer this call")]
pub(crate) fn use_one_heap() {
    // SAFETY: it takes two numbers and changes a limit of the allocator; an unknown parameter is
    // ignored.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
    }
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(crate) fn use_one_heap() {}
