/* Runs a program, and makes system calls of the program fail, shortens them or logs them.
 *
 *     inject COUNT KIND N DIR PROGRAM [ARGUMENT]...
 *
 * Only the N-th call of a kind on a file under DIR fails. If "N+" is given, all later calls of the kind fail too. If N is
 * 0, no call fails. The number of calls of the kind is written to the file COUNT, followed by the type of the file whose
 * call failed first: "file", "directory" or "none". The exit status is that of the program. These kinds do not make a
 * call fail:
 *
 *     kill               the program is killed; the exit status is 128 plus the number of the signal
 *     kill in steps      like kill; in addition, the kernel cannot exchange names
 *     meanwhile          at a call that changes names, the program waits while the shell runs the command in the
 *                        environment variable MEANWHILE; then the call continues
 *     meanwhile at open  like meanwhile, at a call that opens, examines or locks a file
 *     bare               the file system has only plain renames. Like exFAT, it has no hard links, access rights or
 *                        extended attributes
 *     short              the call reads or writes only the first half of its bytes
 *     log                calls that change or flush files under DIR are logged to the file in the environment variable
 *                        LOG
 *     log in steps       like log; in addition, the kernel cannot exchange names
 *
 * The calls of all threads are counted. Calls that do not use the C library are counted too, because the kernel passes each
 * call to this supervisor through a seccomp filter. Calls that copy a file inside the kernel fail, as in an old kernel, so
 * the program reads and writes the file instead.
 *
 * The log contains a line for each call. The line is written before the call is made or, for create and mkdir, when the
 * file or directory exists. INODE is the inode number of a file or directory, and DIR is the inode number of the directory
 * that contains NAME:
 *
 *     create DIR NAME INODE      NAME is a new, empty file
 *     mkdir DIR NAME INODE
 *     write INODE OFFSET LENGTH  followed by the bytes and a newline
 *     truncate INODE LENGTH      the file gets this length
 *     sync INODE
 *     rename DIR NAME DIR NAME   link and exchange have the same form
 *     unlink DIR NAME            also if NAME is a directory
 *
 * The log omits calls that fail because a name exists or is missing, and calls of other programs that the program runs.
 *
 * Exit status 77: the kernel does not support such filters, or does not allow this process to use them. */

#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { UNSUPPORTED = 77, MOST_CALLS = 24, MOST_STEPS = 64, MOST_PENDING = 16 };

/* The argument of a call that names the file. All calls of the form NO_FILE are counted. */
enum names { BY_FD, BY_PATH, BY_PATH_AT, NO_FILE };

struct call {
    int number;
    enum names names;
};

struct kind {
    const char *name;
    /* The errno that the call returns. The value 0 kills the program instead. */
    int error;
    struct call calls[MOST_CALLS];
};

#ifdef SYS_rename
#define OLD_NAMING {SYS_rename, BY_PATH}, {SYS_link, BY_PATH}, {SYS_unlink, BY_PATH}, {SYS_rmdir, BY_PATH},
#else
#define OLD_NAMING
#endif

/* All calls that add, move or remove names. */
#define NAMING \
    { \
        OLD_NAMING {SYS_renameat, BY_PATH_AT}, {SYS_renameat2, BY_PATH_AT}, {SYS_linkat, BY_PATH_AT}, \
            {SYS_unlinkat, BY_PATH_AT}, {-1, BY_FD}, \
    }

static const char IN_STEPS[] = "kill in steps";
static const char BARE[] = "bare";
static const char MEANWHILE[] = "meanwhile";
static const char MEANWHILE_OPEN[] = "meanwhile at open";
static const char SHORT[] = "short";
static const char LOG[] = "log";
static const char LOG_STEPS[] = "log in steps";

/* All calls that change or flush files. */
#ifdef SYS_open
#define OLD_MAKING {SYS_open, BY_PATH}, {SYS_mkdir, BY_PATH},
#else
#define OLD_MAKING
#endif
#define CHANGING \
    { \
        OLD_MAKING OLD_NAMING {SYS_openat, BY_PATH_AT}, {SYS_mkdirat, BY_PATH_AT}, {SYS_renameat, BY_PATH_AT}, \
            {SYS_renameat2, BY_PATH_AT}, {SYS_linkat, BY_PATH_AT}, {SYS_unlinkat, BY_PATH_AT}, {SYS_write, BY_FD}, \
            {SYS_pwrite64, BY_FD}, {SYS_writev, BY_FD}, {SYS_pwritev, BY_FD}, {SYS_ftruncate, BY_FD}, \
            {SYS_fsync, BY_FD}, {SYS_fdatasync, BY_FD}, {-1, BY_FD}, \
    }

static const struct kind KINDS[] = {
    {"kill", 0, NAMING},
    {IN_STEPS, 0, NAMING},
    {MEANWHILE, 0, NAMING},
    {MEANWHILE_OPEN, 0, {{SYS_openat, BY_PATH_AT}, {SYS_statx, BY_PATH_AT}, {SYS_flock, BY_FD}, {-1, BY_FD}}},
    {BARE, 0, {{-1, BY_FD}}},
    {SHORT,
     0,
     {
         {SYS_read, BY_FD},
         {SYS_pread64, BY_FD},
         {SYS_readv, BY_FD},
         {SYS_preadv, BY_FD},
         {SYS_write, BY_FD},
         {SYS_pwrite64, BY_FD},
         {SYS_writev, BY_FD},
         {SYS_pwritev, BY_FD},
         {-1, BY_FD},
     }},
    {LOG, 0, CHANGING},
    {LOG_STEPS, 0, CHANGING},
    {"write",
     ENOSPC,
     {
         {SYS_write, BY_FD},
         {SYS_pwrite64, BY_FD},
         {SYS_writev, BY_FD},
         {SYS_pwritev, BY_FD},
         {SYS_ftruncate, BY_FD},
         {SYS_fallocate, BY_FD},
         {-1, BY_FD},
     }},
    {"sync", EIO, {{SYS_fsync, BY_FD}, {SYS_fdatasync, BY_FD}, {SYS_sync_file_range, BY_FD}, {-1, BY_FD}}},
    {"rename",
     EIO,
     {
#ifdef SYS_rename
         {SYS_rename, BY_PATH},
         {SYS_link, BY_PATH},
#endif
         {SYS_renameat, BY_PATH_AT},
         {SYS_renameat2, BY_PATH_AT},
         {SYS_linkat, BY_PATH_AT},
         {-1, BY_FD},
     }},
    {"open",
     EMFILE,
     {
#ifdef SYS_open
         {SYS_open, BY_PATH},
         {SYS_mkdir, BY_PATH},
#endif
         {SYS_openat, BY_PATH_AT},
         {SYS_mkdirat, BY_PATH_AT},
         {-1, BY_FD},
     }},
    {"read",
     EIO,
     {
         {SYS_read, BY_FD},
         {SYS_pread64, BY_FD},
         {SYS_readv, BY_FD},
         {SYS_preadv, BY_FD},
         {SYS_getdents64, BY_FD},
         {-1, BY_FD},
     }},
    {"remove",
     EBUSY,
     {
#ifdef SYS_unlink
         {SYS_unlink, BY_PATH},
         {SYS_rmdir, BY_PATH},
#endif
         {SYS_unlinkat, BY_PATH_AT},
         {-1, BY_FD},
     }},
    {"status",
     EIO,
     {
#ifdef SYS_stat
         {SYS_stat, BY_PATH},
         {SYS_lstat, BY_PATH},
         {SYS_readlink, BY_PATH},
         {SYS_access, BY_PATH},
#endif
         {SYS_fstat, BY_FD},
         {SYS_lseek, BY_FD},
         {SYS_newfstatat, BY_PATH_AT},
         {SYS_statx, BY_PATH_AT},
         {SYS_readlinkat, BY_PATH_AT},
         {SYS_faccessat, BY_PATH_AT},
         {-1, BY_FD},
     }},
    {"change",
     EPERM,
     {
#ifdef SYS_chmod
         {SYS_chmod, BY_PATH},
         {SYS_chown, BY_PATH},
#endif
         {SYS_fchmod, BY_FD},
         {SYS_fchown, BY_FD},
         {SYS_fchmodat, BY_PATH_AT},
         {SYS_fchownat, BY_PATH_AT},
         {SYS_fsetxattr, BY_FD},
         {SYS_utimensat, BY_PATH_AT},
         {-1, BY_FD},
     }},
    {"lock", ENOLCK, {{SYS_flock, BY_FD}, {-1, BY_FD}}},
    {"thread",
     EAGAIN,
     {
         {SYS_clone, NO_FILE},
#ifdef SYS_clone3
         {SYS_clone3, NO_FILE},
#endif
         {-1, BY_FD},
     }},
};

static void die(const char *what) {
    perror(what);
    exit(UNSUPPORTED);
}

static const struct kind *kind_of(const char *name) {
    for (size_t i = 0; i < sizeof KINDS / sizeof *KINDS; i++)
        if (strcmp(KINDS[i].name, name) == 0)
            return &KINDS[i];
    fprintf(stderr, "no such kind: %s\n", name);
    exit(2);
}

/* The errors that a file system without optional features returns, by the number of the system call. */
static const struct {
    int number, error;
} BARE_CALLS[] = {
#ifdef SYS_link
    {SYS_link, EPERM},
    {SYS_chmod, EPERM},
#endif
    {SYS_linkat, EPERM},
    {SYS_fchmod, EPERM},
    {SYS_fchmodat, EPERM},
    {SYS_listxattr, EOPNOTSUPP},
    {SYS_llistxattr, EOPNOTSUPP},
    {SYS_flistxattr, EOPNOTSUPP},
};

/* Calls that copy inside the kernel. If they do not exist, a program reads and writes instead. */
static const int COPYING[] = {SYS_copy_file_range, SYS_sendfile, SYS_splice};

/* Installs a filter that passes each call of a kind, by this process and its children, to a supervisor. Returns the
 * descriptor on which the supervisor receives the calls. */
static int install(const struct kind *kind) {
    struct sock_filter filter[MOST_STEPS];
    unsigned short n = 0;
    int calls = 0;
    while (kind->calls[calls].number >= 0)
        calls++;
    if (kind->name == IN_STEPS || kind->name == LOG_STEPS || kind->name == BARE) {
        filter[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
        filter[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_renameat2, 0, 3);
        filter[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[4]));
        unsigned int flags = kind->name == BARE ? RENAME_EXCHANGE | RENAME_NOREPLACE : RENAME_EXCHANGE;
        filter[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, flags, 0, 1);
        filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL);
    }
    filter[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (size_t i = 0; kind->name == BARE && i < sizeof BARE_CALLS / sizeof *BARE_CALLS; i++) {
        unsigned int error = (unsigned int)BARE_CALLS[i].error;
        filter[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, BARE_CALLS[i].number, 0, 1);
        filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error);
    }
    for (size_t i = 0; i < sizeof COPYING / sizeof *COPYING; i++) {
        filter[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, COPYING[i], 0, 1);
        filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS);
    }
    for (int i = 0; i < calls; i++)
        filter[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kind->calls[i].number, calls - i, 0);
    filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF);
    struct sock_fprog program = {n, filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        die("prctl");
    int listener = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
    if (listener < 0)
        die("seccomp");
    return listener;
}

static void send_fd(int socket, int fd) {
    char byte = 0, control[CMSG_SPACE(sizeof fd)] = {0};
    struct iovec data = {&byte, 1};
    struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(header), &fd, sizeof fd);
    if (sendmsg(socket, &message, 0) < 0)
        die("sendmsg");
}

/* Returns -1 if the process at the other end has ended. */
static int receive_fd(int socket) {
    int fd;
    char byte, control[CMSG_SPACE(sizeof fd)];
    struct iovec data = {&byte, 1};
    struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    if (recvmsg(socket, &message, 0) <= 0 || CMSG_FIRSTHDR(&message) == NULL)
        return -1;
    memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
    return fd;
}

static int is_under(const char *path, const char *dir) {
    size_t length = strlen(dir);
    return strncmp(path, dir, length) == 0 && (path[length] == '/' || path[length] == ' ' || path[length] == 0);
}

/* Returns 1 if the descriptor is standard output, or a file under the directory, even if the file has no name. */
static int is_fd_ours(int pid, int fd, const char *dir) {
    char link[64], path[PATH_MAX];
    if (fd == STDOUT_FILENO)
        return 1;
    snprintf(link, sizeof link, "/proc/%d/fd/%d", pid, fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0)
        return 0;
    path[length] = 0;
    return is_under(path, dir);
}

/* Reads memory of the program. Returns the number of bytes that were read, or -1. */
static ssize_t peek(int pid, unsigned long long address, void *bytes, size_t length) {
    char name[64];
    snprintf(name, sizeof name, "/proc/%d/mem", pid);
    int memory = open(name, O_RDONLY | O_CLOEXEC);
    ssize_t found = memory < 0 ? -1 : pread(memory, bytes, length, (off_t)address);
    close(memory);
    return found;
}

/* Returns 1 if a path is under the directory. Relative paths are under the directory, because programs are run in it. An
 * empty path denotes the open file of the descriptor. */
static int is_path_ours(int pid, int fd, unsigned long long address, const char *dir) {
    char path[PATH_MAX];
    ssize_t length = peek(pid, address, path, sizeof path - 1);
    if (length <= 0)
        return 0;
    path[length] = 0;
    if (path[0] == 0)
        return is_fd_ours(pid, fd, dir);
    return path[0] != '/' || is_under(path, dir);
}

static int is_ours(const struct kind *kind, const struct seccomp_notif *asked, const char *dir) {
    for (const struct call *call = kind->calls; call->number >= 0; call++) {
        if (call->number != asked->data.nr)
            continue;
        switch (call->names) {
        case BY_FD:
            return is_fd_ours((int)asked->pid, (int)asked->data.args[0], dir);
        case BY_PATH:
            return is_path_ours((int)asked->pid, -1, asked->data.args[0], dir);
        case BY_PATH_AT:
            return is_path_ours((int)asked->pid, (int)asked->data.args[0], asked->data.args[1], dir);
        case NO_FILE:
            return 1;
        }
    }
    return 0;
}

/* Returns the kind of file that the descriptor in the first argument of a call refers to. */
static const char *fd_type(const struct seccomp_notif *asked) {
    char link[64];
    struct stat at;
    snprintf(link, sizeof link, "/proc/%d/fd/%d", (int)asked->pid, (int)asked->data.args[0]);
    return stat(link, &at) == 0 && S_ISDIR(at.st_mode) ? "directory" : "file";
}


/* The process id of the program, and a descriptor of this process. The kinds "short" and "log" do not affect other
 * programs that the program runs. */
static pid_t program;
static int program_fd = -1;

static void must(int done, const char *what) {
    if (!done)
        die(what);
}

static int is_of_program(const struct seccomp_notif *asked) {
    char task[64];
    snprintf(task, sizeof task, "/proc/%d/task/%d", (int)program, (int)asked->pid);
    return access(task, F_OK) == 0;
}

/* Returns a duplicate of a descriptor of the program. The duplicate shares the file offset. */
static int borrow(int number) {
    int fd = (int)syscall(SYS_pidfd_getfd, program_fd, number, 0);
    must(fd >= 0, "pidfd_getfd");
    return fd;
}

static int is_write(int number) {
    return number == SYS_write || number == SYS_pwrite64 || number == SYS_writev || number == SYS_pwritev;
}

static int has_offset(int number) {
    return number == SYS_pread64 || number == SYS_preadv || number == SYS_pwrite64 || number == SYS_pwritev;
}

/* Returns the n-th buffer that a call reads into or writes from. If there is no such buffer, its length is 0. */
static struct iovec part_of(const struct seccomp_notif *asked, unsigned long long n) {
    int number = asked->data.nr;
    unsigned long long address = asked->data.args[1], count = asked->data.args[2];
    struct iovec part = {NULL, 0};
    if (number == SYS_readv || number == SYS_preadv || number == SYS_writev || number == SYS_pwritev) {
        if (n < count) {
            ssize_t found = peek((int)asked->pid, address + n * sizeof part, &part, sizeof part);
            must(found == (ssize_t)sizeof part, "a vector of the program");
        }
    } else if (n == 0)
        part = (struct iovec){(void *)(size_t)address, count};
    return part;
}

/* Returns a copy of bytes in the memory of the program. The caller must free the copy. */
static char *bytes_of(const struct seccomp_notif *asked, struct iovec part) {
    char *bytes = malloc(part.iov_len + 1);
    must(bytes != NULL, "malloc");
    ssize_t found = part.iov_len == 0 ? 0 : peek((int)asked->pid, (size_t)part.iov_base, bytes, part.iov_len);
    must(found == (ssize_t)part.iov_len, "the memory of the program");
    return bytes;
}

/* Reads or writes in place of the program, but only the first half of the first buffer. Returns the result of the call. */
static long shorten(const struct seccomp_notif *asked) {
    int fd = borrow((int)asked->data.args[0]), number = asked->data.nr;
    off_t offset = (off_t)asked->data.args[3];
    struct iovec part = part_of(asked, 0);
    part.iov_len = (part.iov_len + 1) / 2;
    char *bytes = bytes_of(asked, part);
    ssize_t done;
    if (is_write(number))
        done = has_offset(number) ? pwrite(fd, bytes, part.iov_len, offset) : write(fd, bytes, part.iov_len);
    else
        done = has_offset(number) ? pread(fd, bytes, part.iov_len, offset) : read(fd, bytes, part.iov_len);
    long answer = done < 0 ? -errno : done;
    if (done > 0 && !is_write(number)) {
        char name[64];
        snprintf(name, sizeof name, "/proc/%d/mem", (int)asked->pid);
        int memory = open(name, O_WRONLY);
        must(pwrite(memory, bytes, (size_t)done, (off_t)(size_t)part.iov_base) == done, "the memory of the program");
        close(memory);
    }
    free(bytes);
    close(fd);
    return answer;
}

/* A path, and the inode number of the directory that contains it. */
struct entry {
    char path[PATH_MAX];
    unsigned long long dir;
};

/* Returns the directory entry that a path of the program names. Does not follow a symbolic link at the end of the path. */
static struct entry entry_at(const struct seccomp_notif *asked, int fd, unsigned long long address) {
    struct entry entry = {.dir = 0};
    char parent[PATH_MAX] = ".";
    struct stat at;
    int base = 0;
    ssize_t length = peek((int)asked->pid, address, parent, sizeof parent - 1);
    must(length > 0, "a path of the program");
    parent[length] = 0;
    if (parent[0] != '/' && fd != AT_FDCWD)
        base = snprintf(entry.path, sizeof entry.path, "/proc/%d/fd/%d/", (int)asked->pid, fd);
    snprintf(entry.path + base, sizeof entry.path - (size_t)base, "%.*s", PATH_MAX - 64, parent);
    strcpy(parent, entry.path);
    char *slash = strrchr(parent, '/');
    strcpy(slash == NULL ? parent : slash + 1, slash == NULL ? "." : "");
    if (stat(parent, &at) == 0)
        entry.dir = at.st_ino;
    return entry;
}

static const char *name_of(const struct entry *entry) {
    const char *slash = strrchr(entry->path, '/');
    return slash == NULL ? entry->path : slash + 1;
}

/* Returns the inode number of an entry, or 0 if the entry does not exist. */
static unsigned long long inode_of(const struct entry *entry) {
    struct stat at;
    return lstat(entry->path, &at) == 0 ? at.st_ino : 0;
}

/* Entries that are being created by calls. They have no inode until the call is complete. */
static struct {
    const char *what;
    struct entry entry;
} pending[MOST_PENDING];
static size_t pending_count;

static void log_made(FILE *log) {
    size_t left = 0;
    for (size_t i = 0; i < pending_count; i++) {
        const struct entry *entry = &pending[i].entry;
        unsigned long long inode = inode_of(entry);
        if (inode != 0)
            fprintf(log, "%s %llu %s %llu\n", pending[i].what, entry->dir, name_of(entry), inode);
        else
            pending[left++] = pending[i];
    }
    pending_count = left;
}

static void expect(const char *what, const struct entry *entry) {
    must(pending_count < MOST_PENDING, "too many files are made at once");
    pending[pending_count].what = what;
    pending[pending_count++].entry = *entry;
}

static void log_open(FILE *log, const struct entry *entry, int flags) {
    struct stat at;
    if ((flags & O_TMPFILE) == O_TMPFILE)
        return;
    if (stat(entry->path, &at) != 0) {
        if (flags & O_CREAT)
            expect("create", entry);
    } else if ((flags & O_TRUNC) && S_ISREG(at.st_mode))
        fprintf(log, "truncate %llu 0\n", (unsigned long long)at.st_ino);
}

/* Returns 1 if the entry is a directory that is not empty. No file or directory can be renamed over it. */
static int is_full_directory(const struct entry *entry) {
    DIR *dir = opendir(entry->path);
    int entries = 0;
    if (dir == NULL)
        return 0;
    while (entries < 3 && readdir(dir) != NULL)
        entries++;
    closedir(dir);
    return entries == 3;
}

/* Logs a rename, unless the kernel will refuse it. "exchange" requires both names to exist, other calls only the first. */
static void log_rename(FILE *log, const char *what, const struct entry *from, const struct entry *to, int may_replace) {
    unsigned long long taken = inode_of(to);
    int is_exchange = strcmp(what, "exchange") == 0;
    int is_possible = is_exchange ? taken != 0 : taken == 0 || (may_replace && !is_full_directory(to));
    if (inode_of(from) != 0 && is_possible)
        fprintf(log, "%s %llu %s %llu %s\n", what, from->dir, name_of(from), to->dir, name_of(to));
}

/* Logs a removal, unless the call removes a file as a directory or a directory as a file, which fails. */
static void log_removal(FILE *log, const struct entry *entry, int as_directory) {
    struct stat at;
    if (lstat(entry->path, &at) == 0 && !S_ISDIR(at.st_mode) == !as_directory)
        fprintf(log, "unlink %llu %s\n", entry->dir, name_of(entry));
}

static void log_file(FILE *log, const struct seccomp_notif *asked) {
    int fd = borrow((int)asked->data.args[0]), number = asked->data.nr;
    struct stat at;
    must(fstat(fd, &at) == 0, "fstat");
    unsigned long long inode = at.st_ino;
    if (!S_ISREG(at.st_mode) && !S_ISDIR(at.st_mode)) {
        /* Writes to standard output, a pipe or a device are not logged. */
    } else if (number == SYS_fsync || number == SYS_fdatasync)
        fprintf(log, "sync %llu\n", inode);
    else if (number == SYS_ftruncate)
        fprintf(log, "truncate %llu %llu\n", inode, (unsigned long long)asked->data.args[1]);
    else {
        off_t offset = lseek(fd, 0, SEEK_CUR);
        if (has_offset(number))
            offset = (off_t)asked->data.args[3];
        else if (fcntl(fd, F_GETFL) & O_APPEND)
            offset = at.st_size;
        struct iovec part;
        for (unsigned long long n = 0; (part = part_of(asked, n)).iov_len > 0; n++) {
            char *bytes = bytes_of(asked, part);
            fprintf(log, "write %llu %lld %zu\n", inode, (long long)offset, part.iov_len);
            fwrite(bytes, 1, part.iov_len, log);
            fputc('\n', log);
            offset += (off_t)part.iov_len;
            free(bytes);
        }
    }
    close(fd);
}

static void log_call(FILE *log, const struct seccomp_notif *asked) {
    const unsigned long long *args = (const unsigned long long *)asked->data.args;
    struct entry from, to;
    switch (asked->data.nr) {
#ifdef SYS_open
    case SYS_open:
        from = entry_at(asked, AT_FDCWD, args[0]);
        log_open(log, &from, (int)args[1]);
        break;
    case SYS_mkdir:
        from = entry_at(asked, AT_FDCWD, args[0]);
        if (inode_of(&from) == 0)
            expect("mkdir", &from);
        break;
    case SYS_rename:
    case SYS_link:
        from = entry_at(asked, AT_FDCWD, args[0]);
        to = entry_at(asked, AT_FDCWD, args[1]);
        log_rename(log, asked->data.nr == SYS_link ? "link" : "rename", &from, &to, asked->data.nr != SYS_link);
        break;
    case SYS_unlink:
    case SYS_rmdir:
        from = entry_at(asked, AT_FDCWD, args[0]);
        log_removal(log, &from, asked->data.nr == SYS_rmdir);
        break;
#endif
    case SYS_openat:
        from = entry_at(asked, (int)args[0], args[1]);
        log_open(log, &from, (int)args[2]);
        break;
    case SYS_mkdirat:
        from = entry_at(asked, (int)args[0], args[1]);
        if (inode_of(&from) == 0)
            expect("mkdir", &from);
        break;
    case SYS_renameat:
    case SYS_renameat2:
    case SYS_linkat: {
        unsigned long long flags = asked->data.nr == SYS_renameat2 ? args[4] : 0;
        from = entry_at(asked, (int)args[0], args[1]);
        to = entry_at(asked, (int)args[2], args[3]);
        const char *what = flags & RENAME_EXCHANGE ? "exchange" : asked->data.nr == SYS_linkat ? "link" : "rename";
        log_rename(log, what, &from, &to, asked->data.nr != SYS_linkat && !(flags & RENAME_NOREPLACE));
        break;
    }
    case SYS_unlinkat:
        from = entry_at(asked, (int)args[0], args[1]);
        log_removal(log, &from, args[2] & AT_REMOVEDIR);
        break;
    default:
        log_file(log, asked);
    }
}

/* The calls of a kind that fail, counted from 1. */
struct nth {
    long first;
    int and_all_after;
};

static int is_chosen(struct nth nth, long count) {
    return nth.first > 0 && (count == nth.first || (nth.and_all_after && count > nth.first));
}

/* Answers calls until the program has ended. Returns the number of calls on files under the directory. */
static long supervise(int listener, const struct kind *kind, struct nth nth, const char *dir, FILE *log, const char **failed) {
    long count = 0;
    for (;;) {
        struct pollfd ready = {.fd = listener, .events = POLLIN};
        if (poll(&ready, 1, -1) < 0 && errno != EINTR)
            die("poll");
        if (ready.revents & (POLLHUP | POLLERR))
            break;
        if (!(ready.revents & POLLIN))
            continue;
        struct seccomp_notif asked = {0};
        if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &asked) != 0)
            continue;
        struct seccomp_notif_resp answer = {.id = asked.id, .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE};
        int is_one = is_ours(kind, &asked, dir) && ((log == NULL && kind->name != SHORT) || is_of_program(&asked));
        if (log != NULL)
            log_made(log);
        if (is_one && log != NULL)
            log_call(log, &asked);
        if (is_one && is_chosen(nth, ++count)) {
            if (kind->name == MEANWHILE || kind->name == MEANWHILE_OPEN) {
                if (system(getenv("MEANWHILE")) != 0)
                    exit(UNSUPPORTED);
            } else if (kind->name == SHORT) {
                long done = shorten(&asked);
                answer.flags = 0;
                answer.error = done < 0 ? (int)done : 0;
                answer.val = done < 0 ? 0 : done;
            } else {
                if (kind->error == 0)
                    kill((pid_t)asked.pid, SIGKILL);
                answer.flags = 0;
                answer.error = -kind->error;
            }
            if (strcmp(*failed, "none") == 0)
                *failed = fd_type(&asked);
        }
        ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
    }
    if (log != NULL)
        log_made(log);
    return count;
}

int main(int argc, char **argv) {
    if (argc < 6) {
        fprintf(stderr, "inject COUNT KIND N DIR PROGRAM [ARGUMENT]...\n");
        return 2;
    }
    const struct kind *kind = kind_of(argv[2]);
    struct nth nth = {.first = strtol(argv[3], NULL, 10), .and_all_after = strchr(argv[3], '+') != NULL};
    int sockets[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0)
        die("socketpair");
    pid_t child = fork();
    if (child < 0)
        die("fork");
    if (child == 0) {
        close(sockets[0]);
        int listener = install(kind);
        send_fd(sockets[1], listener);
        close(listener);
        execv(argv[5], argv + 5);
        _exit(127);
    }
    close(sockets[1]);
    int listener = receive_fd(sockets[0]);
    int status;
    if (listener < 0) {
        waitpid(child, &status, 0);
        return UNSUPPORTED;
    }
    program = child;
    program_fd = (int)syscall(SYS_pidfd_open, child, 0);
    FILE *log = NULL;
    if (kind->name == SHORT)
        close(borrow(STDERR_FILENO));
    if (kind->name == LOG || kind->name == LOG_STEPS)
        must((log = fopen(getenv("LOG"), "w")) != NULL, "the log");
    const char *failed = "none";
    long count = supervise(listener, kind, nth, argv[4], log, &failed);
    if (log != NULL && fclose(log) != 0)
        die("the log");
    waitpid(child, &status, 0);
    FILE *file = fopen(argv[1], "w");
    if (file == NULL || fprintf(file, "%ld %s\n", count, failed) < 0 || fclose(file) != 0)
        die(argv[1]);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
