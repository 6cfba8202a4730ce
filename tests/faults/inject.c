/* Runs a program and fails one of its system calls.
 *
 *     inject COUNT KIND N DIR PROGRAM [ARGUMENT]...
 *
 * The N-th call of a kind on a file under DIR fails, and only that one; with N = 0 none does. How many calls of the kind
 * there were goes to the file COUNT, followed by the kind of file whose call failed: "file", "directory" or "none". The
 * exit status is the program's. At a call of the kind "kill" the program is killed, 128 and the signal is the status, and
 * with "kill in steps" the kernel cannot exchange names besides. At a call of the kind "meanwhile" the program waits while
 * the shell runs the command in the environment variable MEANWHILE, and the call goes on; "meanwhile at open" counts the
 * calls that open or lock files. With "bare" the file system has only plain renames, and
 * neither hard links nor rights nor extended attributes, as exFAT. Calls are counted over all threads, and calls that do not go through the C library are
 * seen too: the kernel hands each one to us through a seccomp filter.
 *
 * Exit status 77: the kernel has no such filters, or does not let us use them. */

#define _GNU_SOURCE
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

enum { UNSUPPORTED = 77, MOST_CALLS = 16, MOST_STEPS = 64 };

/* Which argument names the file. Calls without one are all counted. */
enum names { BY_FD, BY_PATH, BY_PATH_AT, NO_FILE };

struct call {
    int number;
    enum names names;
};

struct kind {
    const char *name;
    /* What the call answers; 0 kills the program. */
    int error;
    struct call calls[MOST_CALLS];
};

#ifdef SYS_rename
#define OLD_NAMING {SYS_rename, BY_PATH}, {SYS_link, BY_PATH}, {SYS_unlink, BY_PATH}, {SYS_rmdir, BY_PATH},
#else
#define OLD_NAMING
#endif

/* All that gives, moves or takes names. */
#define NAMING \
    { \
        OLD_NAMING {SYS_renameat, BY_PATH_AT}, {SYS_renameat2, BY_PATH_AT}, {SYS_linkat, BY_PATH_AT}, \
            {SYS_unlinkat, BY_PATH_AT}, {-1, BY_FD}, \
    }

static const char IN_STEPS[] = "kill in steps";
static const char BARE[] = "bare";
static const char MEANWHILE[] = "meanwhile";
static const char MEANWHILE_OPEN[] = "meanwhile at open";

static const struct kind KINDS[] = {
    {"kill", 0, NAMING},
    {IN_STEPS, 0, NAMING},
    {MEANWHILE, 0, NAMING},
    {MEANWHILE_OPEN, 0, {{SYS_openat, BY_PATH_AT}, {SYS_flock, BY_FD}, {-1, BY_FD}}},
    {BARE, 0, {{-1, BY_FD}}},
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

/* What a bare file system answers. */
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

/* Lets this process and its children ask us about the calls of a kind. Answers where they ask. */
static int install(const struct kind *kind) {
    struct sock_filter filter[MOST_STEPS];
    unsigned short n = 0;
    int calls = 0;
    while (kind->calls[calls].number >= 0)
        calls++;
    if (kind->name == IN_STEPS || kind->name == BARE) {
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

/* Answers -1 if the other end ended. */
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

/* A file under the directory, with or without a name, or standard output. */
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

/* A path under the directory, or one that does not begin at the root: programs are run in the directory. An empty one
 * names an open file. */
static int is_path_ours(int pid, int fd, unsigned long long address, const char *dir) {
    char name[64], path[PATH_MAX];
    snprintf(name, sizeof name, "/proc/%d/mem", pid);
    int memory = open(name, O_RDONLY);
    ssize_t length = memory < 0 ? -1 : pread(memory, path, sizeof path - 1, (off_t)address);
    close(memory);
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

/* What the first argument of a call names. */
static const char *fd_type(const struct seccomp_notif *asked) {
    char link[64];
    struct stat at;
    snprintf(link, sizeof link, "/proc/%d/fd/%d", (int)asked->pid, (int)asked->data.args[0]);
    return stat(link, &at) == 0 && S_ISDIR(at.st_mode) ? "directory" : "file";
}

/* Answers every call until the program has ended; how many were of files under the directory. */
static long supervise(int listener, const struct kind *kind, long nth, const char *dir, const char **failed) {
    long count = 0;
    for (;;) {
        struct pollfd ready = {.fd = listener, .events = POLLIN};
        if (poll(&ready, 1, -1) < 0 && errno != EINTR)
            die("poll");
        if (ready.revents & (POLLHUP | POLLERR))
            return count;
        if (!(ready.revents & POLLIN))
            continue;
        struct seccomp_notif asked = {0};
        if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &asked) != 0)
            continue;
        struct seccomp_notif_resp answer = {.id = asked.id};
        int fails = is_ours(kind, &asked, dir) && ++count == nth;
        if (fails && (kind->name == MEANWHILE || kind->name == MEANWHILE_OPEN)) {
            if (system(getenv("MEANWHILE")) != 0)
                exit(UNSUPPORTED);
            fails = 0;
        }
        if (fails) {
            *failed = fd_type(&asked);
            if (kind->error == 0)
                kill((pid_t)asked.pid, SIGKILL);
            answer.error = -kind->error;
        } else
            answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
        ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
    }
}

int main(int argc, char **argv) {
    if (argc < 6) {
        fprintf(stderr, "inject COUNT KIND N DIR PROGRAM [ARGUMENT]...\n");
        return 2;
    }
    const struct kind *kind = kind_of(argv[2]);
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
    const char *failed = "none";
    long count = supervise(listener, kind, atol(argv[3]), argv[4], &failed);
    waitpid(child, &status, 0);
    FILE *file = fopen(argv[1], "w");
    if (file == NULL || fprintf(file, "%ld %s\n", count, failed) < 0 || fclose(file) != 0)
        die(argv[1]);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
