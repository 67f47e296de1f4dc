/*
 * Arrays of blocks that a power cut cannot tear, in files on persistent memory, with the interface of libpmemblk,
 * implemented by Blockyard. A program that was linked to libpmemblk.so.1 runs with libblockyard_pmemblk.so under
 * that name.
 *
 * Any number of threads may use a pool at the same time. A write is durable when the call returns. On persistent
 * memory that is mapped directly (DAX), or if the environment has PMEM_IS_PMEM_FORCE=1, cache lines are written
 * back. Elsewhere fdatasync makes writes durable, once for all threads that wait together.
 *
 * Calls that return int return 0, or -1 and set errno. pmemblk_errormsg returns the text of the thread's last error.
 * Errors: EINVAL for a block that does not exist, EIO for a block that was lost or whose medium failed, EROFS for a
 * pool that must not be written, ENOSPC also for a pool larger than the free space, EINVAL for a NULL pointer. Texts
 * name the call and the file. pmemblk_bsize and pmemblk_nblock return 0 for NULL.
 *
 * fork: the child inherits the pool's mapping or descriptor and the lock on its file, but not the other threads, and
 * its copies of the free blocks and locks no longer follow the parent's. So after fork only one of the two processes
 * may use the pool, and no thread may be in a call during fork. The other process must not even close the pool: it
 * calls exec or _exit. The file stays locked until both have ended, closed the pool, or called exec (descriptors are
 * close-on-exec). To use a pool in a child, open it there, after every other process has closed it.
 */
#ifndef BLOCKYARD_PMEMBLK_H
#define BLOCKYARD_PMEMBLK_H

#include <stddef.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pmemblk PMEMblkpool;

#define PMEMBLK_MAJOR_VERSION 1
#define PMEMBLK_MINOR_VERSION 1
/* The smallest pool, and the smallest block that is stored: smaller blocks take the same space. */
#define PMEMBLK_MIN_POOL ((size_t)((16u << 20) + 8192))
/* The smallest part of a pool set. */
#define PMEMBLK_MIN_PART ((size_t)(2u << 20))
#define PMEMBLK_MIN_BLK ((size_t)512)

/* Opens a pool with blocks of bsize bytes, or of any size if bsize is 0. Returns NULL and sets errno on failure. */
PMEMblkpool *pmemblk_open(const char *path, size_t bsize);
/*
 * Creates a pool in a new file of poolsize bytes (EEXIST if the file exists), or, with a poolsize of 0, in an existing
 * file, which keeps its size and mode, and whose first 4096 bytes must be zero (EEXIST). A block has 1 to 1048576 bytes
 * (EINVAL; libpmemblk also accepts larger ones, in a pool with room for 512 of them).
 * The pool gets all its space now. EINVAL if it has fewer than 512 blocks.
 *
 * A path may be that of a pool set, as poolset(5) describes it: each part is a file or a device DAX of its own. With a
 * poolsize of 0, missing parts are created with the mode. ENOTSUP for REPLICA sections, for directories, and for
 * several parts on device DAX.
 */
PMEMblkpool *pmemblk_create(const char *path, size_t bsize, size_t poolsize, mode_t mode);
/* Closes a pool. No other thread may be in a call with it. */
void pmemblk_close(PMEMblkpool *pbp);
/* Returns 1 if a pool that nobody uses is consistent, 0 if it is not, or -1 and sets errno if this is unknown. */
int pmemblk_check(const char *path, size_t bsize);

/* Returns the bytes of a block. */
size_t pmemblk_bsize(PMEMblkpool *pbp);
/* Returns the number of blocks. */
size_t pmemblk_nblock(PMEMblkpool *pbp);

/* Read or write a block. A write that is cut by a power failure has no effect. */
int pmemblk_read(PMEMblkpool *pbp, void *buf, long long blockno);
int pmemblk_write(PMEMblkpool *pbp, const void *buf, long long blockno);
/* Zeroes a block without writing data; marks a block as lost, so that it cannot be read until it is written. */
int pmemblk_set_zero(PMEMblkpool *pbp, long long blockno);
int pmemblk_set_error(PMEMblkpool *pbp, long long blockno);

/* Returns NULL if a program compiled for this version can run with the library, otherwise the reason. */
const char *pmemblk_check_version(unsigned major_required, unsigned minor_required);
/* Returns the text of this thread's last error. */
const char *pmemblk_errormsg(void);
/* Accepted and ignored: the library does not allocate with these functions. */
void pmemblk_set_funcs(void *(*malloc_func)(size_t size), void (*free_func)(void *ptr),
                       void *(*realloc_func)(void *ptr, size_t size), char *(*strdup_func)(const char *s));
/*
 * Settings of the process, by name: fallocate.at_create, sds.at_create, prefault.at_open, prefault.at_create and
 * copy_on_write.at_open. arg points to an int. EINVAL for other names, and for every action. Values at the start come
 * from the environment, as PMEMBLK_CONF="name=0;name=1". They are stored but have no effect, with two exceptions: with
 * copy_on_write.at_open, pmemblk_open opens a pool whose changes are discarded when it is closed (ENOTSUP on a device
 * DAX); without fallocate.at_create, a pool in an existing file or in a pool set gets only the space for its maps and
 * logs.
 */
int pmemblk_ctl_get(PMEMblkpool *pbp, const char *name, void *arg);
int pmemblk_ctl_set(PMEMblkpool *pbp, const char *name, void *arg);
int pmemblk_ctl_exec(PMEMblkpool *pbp, const char *name, void *arg);

#ifdef __cplusplus
}
#endif
#endif
