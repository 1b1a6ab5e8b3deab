/* A driver that does what `drives.erl` asks for. */

#include <erl_driver.h>

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

/* Operations of port_control/3. */
enum {
    ECHO, TIMER, CANCEL, JOB, MONITOR, DEMONITOR, DEQUEUE, SIZE, PIPE, TERMS, FAIL, BINARY, CREATE, FREE, END, EXIT,
    LOCK, SYSTEM, EOF_, SLOW,
};

typedef struct {
    ErlDrvPort port;
    ErlDrvTermData term;
    ErlDrvTermData asker;
    ErlDrvMonitor monitor;
    ErlDrvPDL lock;
    int ready;
    int is_slow;
    int pipe[2];
} work;

static ErlDrvMutex *count_lock;
static int count;

static int init(void)
{
    count_lock = erl_drv_mutex_create("work_count");
    return count_lock == NULL;
}

static void finish(void)
{
    erl_drv_mutex_destroy(count_lock);
}

static ErlDrvData start(ErlDrvPort port, char *command)
{
    if (strstr(command, "general") != NULL)
        return ERL_DRV_ERROR_GENERAL;
    if (strstr(command, "badarg") != NULL)
        return ERL_DRV_ERROR_BADARG;
    if (strstr(command, "errno") != NULL) {
        errno = ENOSPC;
        return ERL_DRV_ERROR_ERRNO;
    }
    work *work = driver_alloc(sizeof *work);
    memset(work, 0, sizeof *work);
    work->port = port;
    work->term = driver_mk_port(port);
    work->lock = driver_pdl_create(port);
    if (strstr(command, "binary") != NULL)
        set_port_control_flags(port, PORT_CONTROL_FLAG_BINARY);
    return (ErlDrvData)work;
}

static void stop(ErlDrvData data)
{
    work *work = (void *)data;
    driver_output(work->port, "stopped", 7);
    driver_free(work);
}

/* Sends {Port, {Tag, Number}}. */
static void tell(work *work, char *tag, long number)
{
    ErlDrvTermData terms[] = {
        ERL_DRV_PORT, work->term,
        ERL_DRV_ATOM, driver_mk_atom(tag),
        ERL_DRV_INT, (ErlDrvTermData)number,
        ERL_DRV_TUPLE, 2,
        ERL_DRV_TUPLE, 2,
    };
    erl_drv_output_term(work->term, terms, sizeof terms / sizeof *terms);
}

static void outputv(ErlDrvData data, ErlIOVec *vector)
{
    work *work = (void *)data;
    char first = 0;
    driver_vec_to_buf(vector, &first, 1);
    switch (first) {
    case 'q':
        driver_enqv(work->port, vector, 1);
        break;
    case 'p':
        driver_pushqv(work->port, vector, 1);
        break;
    case 'o':
        driver_output(work->port, vector->iov[vector->vsize - 1].iov_base, vector->iov[vector->vsize - 1].iov_len);
        break;
    case 'b':
        set_busy_port(work->port, 1);
        break;
    default:
        driver_outputv(work->port, "<", 1, vector, 0);
    }
}

static void timeout(ErlDrvData data)
{
    work *work = (void *)data;
    unsigned long left = 1;
    if (work->is_slow)
        usleep(50000);
    driver_read_timer(work->port, &left);
    tell(work, "timeout", (long)left);
}

static void ready_input(ErlDrvData data, ErlDrvEvent event)
{
    work *work = (void *)data;
    char byte;
    if (read((int)(intptr_t)event, &byte, 1) != 1)
        return;
    if (++work->ready == 3)
        driver_select(work->port, event, ERL_DRV_READ | ERL_DRV_USE, 0);
    tell(work, "ready", work->ready);
}

static void stop_select(ErlDrvEvent event, void *unused)
{
    (void)unused;
    close((int)(intptr_t)event);
}

static void invoke(void *data)
{
    erl_drv_mutex_lock(count_lock);
    *(int *)data = ++count;
    erl_drv_mutex_unlock(count_lock);
}

static void ready_async(ErlDrvData data, ErlDrvThreadData job)
{
    tell((work *)data, "job", *(int *)job);
    driver_free(job);
}

static void process_exit(ErlDrvData data, ErlDrvMonitor *monitor)
{
    work *work = (void *)data;
    tell(work, "down", driver_compare_monitors(monitor, &work->monitor));
}

static void flush(ErlDrvData data)
{
    work *work = (void *)data;
    driver_set_timer(work->port, 1);
    driver_deq(work->port, driver_sizeq(work->port));
}

/* Sends a term with one of each kind to who asked, from a thread of its own. */
static void *send_terms(void *data)
{
    work *work = data;
    ErlDrvSInt64 least = INT64_MIN;
    ErlDrvUInt64 most = UINT64_MAX;
    double half = 0.5;
    char external[] = {(char)131, 'k', 0, 2, 1, 2};
    ErlDrvBinary *binary = driver_alloc_binary(100);
    memset(binary->orig_bytes, 'b', 100);
    ErlDrvTermData terms[] = {
        ERL_DRV_NIL,
        ERL_DRV_ATOM, driver_mk_atom("an atom"),
        ERL_DRV_INT, (ErlDrvTermData)-1,
        ERL_DRV_UINT, (ErlDrvTermData)-1,
        ERL_DRV_INT64, (ErlDrvTermData)&least,
        ERL_DRV_UINT64, (ErlDrvTermData)&most,
        ERL_DRV_FLOAT, (ErlDrvTermData)&half,
        ERL_DRV_PORT, work->term,
        ERL_DRV_PID, work->asker,
        ERL_DRV_BINARY, (ErlDrvTermData)binary, 90, 10,
        ERL_DRV_BUF2BINARY, (ErlDrvTermData)"bytes", 5,
        ERL_DRV_STRING, (ErlDrvTermData)"tail", 4,
        ERL_DRV_STRING_CONS, (ErlDrvTermData)"text", 4,
        ERL_DRV_EXT2TERM, (ErlDrvTermData)external, sizeof external,
        ERL_DRV_ATOM, driver_mk_atom("key"),
        ERL_DRV_INT, 1,
        ERL_DRV_MAP, 1,
        ERL_DRV_NIL,
        ERL_DRV_LIST, 2,
        ERL_DRV_TUPLE, 14,
    };
    int size = sizeof terms / sizeof *terms;
    erl_drv_send_term(work->term, work->asker, terms, size);
    driver_free_binary(binary);
    ErlDrvTermData wrong[] = {ERL_DRV_INT, 1, ERL_DRV_TUPLE, 2};
    return (void *)(intptr_t)erl_drv_send_term(work->term, work->asker, wrong, 4);
}

static int32_t number(const char *bytes)
{
    const unsigned char *b = (const unsigned char *)bytes;
    return (int32_t)((uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3]);
}

/* The answer is `size` times the byte. */
static ErlDrvSSizeT answer(char **to, ErlDrvSizeT room, char byte, ErlDrvSizeT size)
{
    if (size > room)
        *to = driver_alloc(size);
    memset(*to, byte, size);
    return (ErlDrvSSizeT)size;
}

static void start_pipe(work *work)
{
    if (pipe(work->pipe) != 0)
        return;
    driver_select(work->port, (ErlDrvEvent)(intptr_t)work->pipe[0], ERL_DRV_READ | ERL_DRV_USE, 1);
    if (write(work->pipe[1], "abcdef", 6) == 6)
        close(work->pipe[1]);
}

static int is_sent_from_thread(work *work)
{
    ErlDrvTid thread;
    void *refused = NULL;
    work->asker = driver_caller(work->port);
    if (erl_drv_thread_create("terms", &thread, send_terms, work, NULL) != 0)
        return 0;
    erl_drv_thread_join(thread, &refused);
    return refused == (void *)(intptr_t)-1;
}

static void create(work *parent)
{
    work *new = driver_alloc(sizeof *new);
    memset(new, 0, sizeof *new);
    new->port = driver_create_port(parent->port, driver_connected(parent->port), "work_drv", (ErlDrvData)new);
    new->term = driver_mk_port(new->port);
    tell(new, "created", 0);
}

static ErlDrvSSizeT control(ErlDrvData data, unsigned operation, char *in, ErlDrvSizeT size, char **out,
                            ErlDrvSizeT room)
{
    work *work = (void *)data;
    switch (operation) {
    case ECHO:
        return answer(out, room, in[0], (ErlDrvSizeT)number(in + 1));
    case TIMER:
        return answer(out, room, '0', (ErlDrvSizeT)-driver_set_timer(work->port, (unsigned long)number(in)));
    case SLOW:
        work->is_slow = 1;
        return answer(out, room, '0', (ErlDrvSizeT)-driver_set_timer(work->port, 0));
    case CANCEL:
        return answer(out, room, '0', (ErlDrvSizeT)-driver_cancel_timer(work->port));
    case JOB:
        driver_async(work->port, NULL, invoke, driver_alloc(sizeof(int)), driver_free);
        return 0;
    case MONITOR:
        return answer(out, room, '0', (ErlDrvSizeT)driver_monitor_process(work->port, driver_caller(work->port),
                                                                        &work->monitor));
    case DEMONITOR:
        return answer(out, room, '0', (ErlDrvSizeT)driver_demonitor_process(work->port, &work->monitor));
    case DEQUEUE: {
        int elements = 0;
        driver_pdl_lock(work->lock);
        SysIOVec *vector = driver_peekq(work->port, &elements);
        driver_output(work->port, vector[0].iov_base, vector[0].iov_len);
        driver_deq(work->port, vector[0].iov_len);
        driver_pdl_unlock(work->lock);
        return 0;
    }
    case SIZE:
        return answer(out, room, '0', driver_sizeq(work->port));
    case PIPE:
        start_pipe(work);
        return 0;
    case TERMS:
        return answer(out, room, '0', (ErlDrvSizeT)is_sent_from_thread(work));
    case FAIL:
        driver_failure_atom(work->port, "a reason");
        return 0;
    case BINARY: {
        ErlDrvBinary *binary = driver_alloc_binary(10);
        binary = driver_realloc_binary(binary, size);
        memcpy(binary->orig_bytes, in, size);
        *out = (char *)binary;
        return (ErlDrvSSizeT)size;
    }
    case CREATE:
        create(work);
        return 0;
    case FREE:
        set_busy_port(work->port, 0);
        return 0;
    case END:
        driver_failure_posix(work->port, EPIPE);
        return 0;
    case EXIT:
        driver_exit(work->port, 0);
        return 0;
    case LOCK:
        return answer(out, room, '0', (ErlDrvSizeT)driver_pdl_get_refc(work->lock));
    case SYSTEM: {
        ErlDrvSysInfo info;
        driver_system_info(&info, sizeof info);
        return answer(out, room, '0', (ErlDrvSizeT)info.driver_major_version);
    }
    case EOF_:
        driver_failure_eof(work->port);
        return 0;
    default:
        return -1;
    }
}

static ErlDrvSSizeT call(ErlDrvData data, unsigned operation, char *in, ErlDrvSizeT size, char **out, ErlDrvSizeT room,
                         unsigned *flags)
{
    static char kept[1 << 16];
    (void)data;
    if (operation == 2) {
        *flags = DRIVER_CALL_KEEP_BUFFER;
        *out = memcpy(kept, in, size);
        return (ErlDrvSSizeT)size;
    }
    if (operation != 1)
        return -1;
    if (size > room)
        *out = driver_alloc(size);
    memcpy(*out, in, size);
    return (ErlDrvSSizeT)size;
}

static ErlDrvEntry entry = {
    .init = init,
    .start = start,
    .stop = stop,
    .ready_input = ready_input,
    .driver_name = "work_drv",
    .finish = finish,
    .control = control,
    .timeout = timeout,
    .outputv = outputv,
    .ready_async = ready_async,
    .flush = flush,
    .call = call,
    .extended_marker = ERL_DRV_EXTENDED_MARKER,
    .major_version = ERL_DRV_EXTENDED_MAJOR_VERSION,
    .minor_version = ERL_DRV_EXTENDED_MINOR_VERSION,
    .driver_flags = FLAGS,
    .process_exit = process_exit,
    .stop_select = stop_select,
};

DRIVER_INIT(work_drv)
{
    return &entry;
}
