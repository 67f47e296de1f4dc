/*
 * Arrays of sectors that a power cut cannot tear, in files on persistent memory: the calls of libpmemblk,
 * kept by Blockyard. A program that was linked to libpmemblk.so.1 runs on libblockyard_pmemblk.so under
 * that name.
 *
 * A pool may be used by any number of threads at once. What is written is durable when the call returns:
 * on persistent memory that is mapped directly (DAX), or where the environment has PMEM_IS_PMEM_FORCE=1,
 * by cache lines; elsewhere by fdatasync, of all threads that wait together.
 *
 * Calls that return int return 0, or -1 with errno set; a text for the thread's last error is
 * pmemblk_errormsg's. Errors: EINVAL for a block that does not exist, EIO for one that was lost or whose
 * medium failed, EROFS for a pool that may not be written, ENOSPC.
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
/* The smallest pool, and the smallest block that is stored; smaller ones take as much. */
#define PMEMBLK_MIN_POOL ((size_t)((16u << 20) + 8192))
#define PMEMBLK_MIN_BLK ((size_t)512)

/* Opens a pool whose blocks have bsize bytes; 0 for any. NULL with errno set if it cannot be. */
PMEMblkpool *pmemblk_open(const char *path, size_t bsize);
/* Makes a pool in a new file of poolsize bytes. libpmemblk's poolsize 0, for a file that is there, is EINVAL. */
PMEMblkpool *pmemblk_create(const char *path, size_t bsize, size_t poolsize, mode_t mode);
/* Ends the use of a pool. No other thread may be in a call with it. */
void pmemblk_close(PMEMblkpool *pbp);
/* 1 if a pool that nobody uses is consistent, 0 if it is not, -1 with errno set if that cannot be told. */
int pmemblk_check(const char *path, size_t bsize);

/* Bytes of a block. */
size_t pmemblk_bsize(PMEMblkpool *pbp);
/* How many blocks there are. */
size_t pmemblk_nblock(PMEMblkpool *pbp);

/* Reads, or writes, a block: all of it or, when a write is cut, nothing. */
int pmemblk_read(PMEMblkpool *pbp, void *buf, long long blockno);
int pmemblk_write(PMEMblkpool *pbp, const void *buf, long long blockno);
/* Makes a block zeroes without writing them; marks it as lost, so that it cannot be read until written. */
int pmemblk_set_zero(PMEMblkpool *pbp, long long blockno);
int pmemblk_set_error(PMEMblkpool *pbp, long long blockno);

/* NULL if a program compiled for this version may run here, otherwise why not. */
const char *pmemblk_check_version(unsigned major_required, unsigned minor_required);
/* The text for this thread's last error. */
const char *pmemblk_errormsg(void);
/* Accepted and not needed: nothing is allocated by these. */
void pmemblk_set_funcs(void *(*malloc_func)(size_t size), void (*free_func)(void *ptr),
                       void *(*realloc_func)(void *ptr, size_t size), char *(*strdup_func)(const char *s));
/* There is nothing to be read, set or run by name: -1 with errno ENOENT. */
int pmemblk_ctl_get(PMEMblkpool *pbp, const char *name, void *arg);
int pmemblk_ctl_set(PMEMblkpool *pbp, const char *name, void *arg);
int pmemblk_ctl_exec(PMEMblkpool *pbp, const char *name, void *arg);

#ifdef __cplusplus
}
#endif
#endif
