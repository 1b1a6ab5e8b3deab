/* A library for tests: a NIF for each family of functions of erl_nif.h. */

#include <erl_nif.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

static ErlNifResourceType *thing_type;

struct thing {
    ErlNifPid owner;
    ErlNifMonitor monitor;
    int fds[2];
    int number;
};

static ERL_NIF_TERM atom(ErlNifEnv *env, const char *name)
{
    return enif_make_atom(env, name);
}

static ERL_NIF_TERM ok(ErlNifEnv *env, ERL_NIF_TERM value)
{
    return enif_make_tuple2(env, atom(env, "ok"), value);
}

/* Tells the owner of a thing what has happened to it. */
static void tell(struct thing *thing, const char *what)
{
    ErlNifEnv *env = enif_alloc_env();
    enif_send(NULL, &thing->owner, env,
              enif_make_tuple2(env, atom(env, what), enif_make_int(env, thing->number)));
    enif_free_env(env);
}

static void thing_gone(ErlNifEnv *env, void *object)
{
    (void)env;
    tell(object, "gone");
}

static void thing_down(ErlNifEnv *env, void *object, ErlNifPid *pid, ErlNifMonitor *monitor)
{
    (void)env, (void)pid;
    struct thing *thing = object;
    tell(thing, enif_compare_monitors(monitor, &thing->monitor) == 0 ? "down" : "other");
}

static void thing_stop(ErlNifEnv *env, void *object, ErlNifEvent fd, int is_direct)
{
    (void)env, (void)is_direct;
    struct thing *thing = object;
    close(fd);
    tell(thing, "stop");
}

static ERL_NIF_TERM numbers(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc;
    int i;
    unsigned u;
    long l;
    unsigned long ul;
    double d;
    ERL_NIF_TERM list = enif_make_list(env, 0);
    if (enif_get_double(env, argv[0], &d))
        list = enif_make_list_cell(env, enif_make_double(env, d), list);
    if (enif_get_ulong(env, argv[0], &ul))
        list = enif_make_list_cell(env, enif_make_ulong(env, ul), list);
    if (enif_get_long(env, argv[0], &l))
        list = enif_make_list_cell(env, enif_make_long(env, l), list);
    if (enif_get_uint(env, argv[0], &u))
        list = enif_make_list_cell(env, enif_make_uint(env, u), list);
    if (enif_get_int(env, argv[0], &i))
        list = enif_make_list_cell(env, enif_make_int(env, i), list);
    return enif_make_tuple2(env, enif_make_int(env, enif_term_type(env, argv[0])), list);
}

static ERL_NIF_TERM texts(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc;
    char latin1[8], utf8[8];
    unsigned length = 0;
    int a = enif_get_string(env, argv[0], latin1, sizeof latin1, ERL_NIF_LATIN1);
    int b = enif_get_string(env, argv[0], utf8, sizeof utf8, ERL_NIF_UTF8);
    int c = enif_get_string_length(env, argv[0], &length, ERL_NIF_UTF8);
    char name[300];
    int d = enif_get_atom(env, argv[1], name, sizeof name, ERL_NIF_UTF8);
    ERL_NIF_TERM made;
    int e = enif_make_existing_atom(env, "no atom of this name", &made, ERL_NIF_UTF8);
    return enif_make_tuple(env, 7, enif_make_int(env, a), enif_make_int(env, b), enif_make_int(env, c),
                           enif_make_uint(env, length), enif_make_int(env, d), enif_make_int(env, e),
                           d ? enif_make_string(env, name, ERL_NIF_UTF8) : atom(env, "none"));
}

static ERL_NIF_TERM maps(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc;
    ErlNifMapIterator at;
    ERL_NIF_TERM key, value, back = enif_make_list(env, 0), copy = enif_make_new_map(env);
    if (!enif_map_iterator_create(env, argv[0], &at, ERL_NIF_MAP_ITERATOR_FIRST))
        return enif_make_badarg(env);
    while (enif_map_iterator_get_pair(env, &at, &key, &value)) {
        back = enif_make_list_cell(env, key, back);
        enif_make_map_put(env, copy, key, enif_make_tuple1(env, value), &copy);
        enif_map_iterator_next(env, &at);
    }
    int tail = enif_map_iterator_is_tail(env, &at);
    enif_map_iterator_destroy(env, &at);
    enif_make_map_remove(env, copy, atom(env, "gone"), &copy);
    return enif_make_tuple3(env, back, copy, enif_make_int(env, tail));
}

static ERL_NIF_TERM binaries(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc;
    ErlNifBinary in, out;
    ERL_NIF_TERM fresh, list = argv[0];
    if (!enif_inspect_iolist_as_binary(env, list, &in))
        return enif_make_badarg(env);
    enif_alloc_binary(in.size, &out);
    for (size_t i = 0; i < in.size; i++)
        out.data[i] = in.data[in.size - 1 - i];
    enif_realloc_binary(&out, in.size + 1);
    out.data[in.size] = '!';
    unsigned char *bytes = enif_make_new_binary(env, 3, &fresh);
    memcpy(bytes, "new", 3);
    size_t size = out.size;
    ERL_NIF_TERM made = enif_make_binary(env, &out);
    return enif_make_tuple3(env, made, enif_make_sub_binary(env, made, 1, size - 1), fresh);
}

static ERL_NIF_TERM external(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc;
    ErlNifBinary bytes;
    ERL_NIF_TERM term;
    enif_term_to_binary(env, argv[0], &bytes);
    size_t used = enif_binary_to_term(env, bytes.data, bytes.size, &term, 0);
    int same = used == bytes.size && enif_is_identical(term, argv[0]);
    enif_release_binary(&bytes);
    char text[256];
    enif_snprintf(text, sizeof text, "<%T|%5d|%-3s|%lu>", argv[0], -7, "x", 1234567890123UL);
    return enif_make_tuple3(env, enif_make_int(env, same), enif_make_string(env, text, ERL_NIF_LATIN1),
                            enif_make_ulong(env, enif_hash(ERL_NIF_PHASH2, argv[0], 0)));
}

static ERL_NIF_TERM raise(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc;
    return enif_raise_exception(env, argv[0]);
}

static ERL_NIF_TERM make_thing(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc;
    struct thing *thing = enif_alloc_resource(thing_type, sizeof *thing);
    enif_self(env, &thing->owner);
    enif_get_int(env, argv[0], &thing->number);
    ERL_NIF_TERM term = enif_make_resource(env, thing);
    enif_release_resource(thing);
    return term;
}

static ERL_NIF_TERM thing_number(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc;
    struct thing *thing;
    if (!enif_get_resource(env, argv[0], thing_type, (void **)&thing))
        return enif_make_badarg(env);
    return enif_make_int(env, thing->number);
}

static ERL_NIF_TERM thing_bytes(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc;
    struct thing *thing;
    if (!enif_get_resource(env, argv[0], thing_type, (void **)&thing))
        return enif_make_badarg(env);
    return enif_make_resource_binary(env, thing, &thing->number, sizeof thing->number);
}

static ERL_NIF_TERM watch(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc;
    struct thing *thing;
    ErlNifPid pid;
    if (!enif_get_resource(env, argv[0], thing_type, (void **)&thing) || !enif_get_local_pid(env, argv[1], &pid))
        return enif_make_badarg(env);
    return enif_make_int(env, enif_monitor_process(env, thing, &pid, &thing->monitor));
}

static ERL_NIF_TERM unwatch(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc;
    struct thing *thing;
    if (!enif_get_resource(env, argv[0], thing_type, (void **)&thing))
        return enif_make_badarg(env);
    return enif_make_int(env, enif_demonitor_process(env, thing, &thing->monitor));
}

/* Has a message sent when there is something to read, and has that be so. */
static ERL_NIF_TERM select_pipe(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc;
    struct thing *thing;
    if (!enif_get_resource(env, argv[0], thing_type, (void **)&thing) || pipe(thing->fds) < 0)
        return enif_make_badarg(env);
    int selected = enif_select(env, thing->fds[0], ERL_NIF_SELECT_READ, thing, NULL, argv[1]);
    int written = (int)write(thing->fds[1], "x", 1);
    return enif_make_tuple2(env, enif_make_int(env, selected), enif_make_int(env, written));
}

static ERL_NIF_TERM stop_pipe(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc;
    struct thing *thing;
    if (!enif_get_resource(env, argv[0], thing_type, (void **)&thing))
        return enif_make_badarg(env);
    close(thing->fds[1]);
    int stopped = enif_select(env, thing->fds[0], ERL_NIF_SELECT_STOP, thing, NULL, atom(env, "undefined"));
    return enif_make_int(env, stopped < 0 ? -1 : stopped > 0);
}

/* A thread that sends as many messages as it is told. */
struct work {
    ErlNifPid to;
    int count;
};

static void *send_all(void *argument)
{
    struct work *work = argument;
    for (int i = 0; i < work->count; i++) {
        ErlNifEnv *env = enif_alloc_env();
        ERL_NIF_TERM list = enif_make_list3(env, enif_make_int(env, i), enif_make_double(env, i), atom(env, "x"));
        enif_send(NULL, &work->to, env, enif_make_tuple2(env, atom(env, "from_thread"), list));
        enif_free_env(env);
    }
    enif_thread_exit(work);
    return NULL;
}

static ERL_NIF_TERM from_thread(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc;
    struct work work;
    ErlNifTid tid;
    void *result;
    enif_self(env, &work.to);
    enif_get_int(env, argv[0], &work.count);
    if (enif_thread_create("sender", &tid, send_all, &work, NULL) != 0)
        return enif_make_badarg(env);
    enif_thread_join(tid, &result);
    return atom(env, result == &work ? "ok" : "other");
}

static ERL_NIF_TERM last_step(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc;
    return enif_make_tuple3(env, argv[0], argv[1], enif_make_int(env, enif_thread_type()));
}

static ERL_NIF_TERM one_step(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc;
    int left;
    enif_get_int(env, argv[0], &left);
    ERL_NIF_TERM next[2] = {enif_make_int(env, left - 1), enif_make_list_cell(env, argv[0], argv[1])};
    if (left == 0)
        return enif_schedule_nif(env, "last_step", ERL_NIF_DIRTY_JOB_IO_BOUND, last_step, 2, argv);
    return enif_schedule_nif(env, "one_step", 0, one_step, 2, next);
}

static ERL_NIF_TERM steps(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc;
    ERL_NIF_TERM first[2] = {argv[0], enif_make_list(env, 0)};
    return enif_schedule_nif(env, "one_step", 0, one_step, 2, first);
}

static ERL_NIF_TERM failing_step(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc, (void)argv;
    return enif_make_badarg(env);
}

static ERL_NIF_TERM fail_later(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    return enif_schedule_nif(env, "failing_step", 0, failing_step, argc, argv);
}

/* Builds a term, on the schedulers that the table says. */
static ERL_NIF_TERM dirty(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc;
    ERL_NIF_TERM list = enif_make_list(env, 0);
    for (int i = 0; i < 1000; i++)
        list = enif_make_list_cell(env, enif_make_tuple2(env, enif_make_int(env, i), argv[0]), list);
    ErlNifPid self;
    enif_self(env, &self);
    enif_send(env, &self, NULL, enif_make_tuple2(env, atom(env, "dirty"), argv[0]));
    return enif_make_tuple2(env, enif_make_int(env, enif_thread_type()), list);
}

/* Says that it is there, and waits: until its process is killed, or for so many milliseconds. Then it sends how it was
   and the third argument, which a process that is gone sends to nobody, and an environment of its own does. */
static ERL_NIF_TERM linger(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc;
    ErlNifPid self, to;
    int left = 0, alive;
    if (!enif_get_local_pid(env, argv[0], &to) || !enif_get_int(env, argv[1], &left))
        return enif_make_badarg(env);
    enif_self(env, &self);
    enif_send(env, &to, NULL, enif_make_tuple2(env, atom(env, "lingers"), enif_make_pid(env, &self)));
    while ((alive = enif_is_current_process_alive(env)) && left-- > 0)
        usleep(1000);
    if (!alive) {
        enif_send(env, &to, NULL, atom(env, "sent_by_nobody"));
        usleep(100000);
    }
    ErlNifEnv *own = enif_alloc_env();
    ERL_NIF_TERM copy = enif_make_copy(own, argv[2]);
    enif_send(NULL, &to, own, enif_make_tuple3(own, atom(own, "lingered"), enif_make_int(own, alive), copy));
    enif_free_env(own);
    return enif_make_tuple2(env, argv[2], enif_make_int(env, enif_thread_type()));
}

static ERL_NIF_TERM queue(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc;
    ErlNifIOQueue *queue = enif_ioq_create(ERL_NIF_IOQ_NORMAL);
    ErlNifIOVec vector, *given = &vector;
    ERL_NIF_TERM tail, head;
    if (!enif_inspect_iovec(env, 64, argv[0], &tail, &given)) {
        enif_ioq_destroy(queue);
        return enif_make_badarg(env);
    }
    enif_ioq_enqv(queue, given, 1);
    size_t all = enif_ioq_size(queue), left = 0, first = 0;
    enif_ioq_deq(queue, 2, &left);
    int peeked = enif_ioq_peek_head(env, queue, &first, &head), count = 0;
    enif_ioq_peek(queue, &count);
    ERL_NIF_TERM result = enif_make_tuple5(env, enif_make_ulong(env, all), enif_make_ulong(env, left),
                                           enif_make_int(env, count), peeked ? head : atom(env, "none"), tail);
    enif_ioq_destroy(queue);
    return result;
}

static ERL_NIF_TERM data(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc, (void)argv;
    return enif_make_int(env, *(int *)enif_priv_data(env));
}

static int open_types(ErlNifEnv *env)
{
    ErlNifResourceTypeInit init = {thing_gone, thing_stop, thing_down, 3, NULL};
    ErlNifResourceFlags tried;
    thing_type = enif_init_resource_type(env, "thing", &init, ERL_NIF_RT_CREATE | ERL_NIF_RT_TAKEOVER, &tried);
    return thing_type == NULL;
}

static int load(ErlNifEnv *env, void **data, ERL_NIF_TERM info)
{
    int number;
    if (!enif_get_int(env, info, &number) || open_types(env))
        return 7;
    *data = enif_alloc(sizeof(int));
    *(int *)*data = number;
    return 0;
}

static int upgrade(ErlNifEnv *env, void **data, void **old, ERL_NIF_TERM info)
{
    (void)info;
    if (open_types(env))
        return 8;
    *data = enif_alloc(sizeof(int));
    *(int *)*data = *(int *)*old + 1;
    return 0;
}

static void unload(ErlNifEnv *env, void *data)
{
    (void)env;
    enif_free(data);
}

static ERL_NIF_TERM give(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc;
    return ok(env, argv[0]);
}

static ErlNifFunc funcs[] = {
    {"numbers", 1, numbers, 0},
    {"texts", 2, texts, 0},
    {"maps", 1, maps, 0},
    {"binaries", 1, binaries, 0},
    {"external", 1, external, 0},
    {"raise", 1, raise, 0},
    {"make_thing", 1, make_thing, 0},
    {"thing_number", 1, thing_number, 0},
    {"thing_bytes", 1, thing_bytes, 0},
    {"watch", 2, watch, 0},
    {"unwatch", 1, unwatch, 0},
    {"select_pipe", 2, select_pipe, 0},
    {"stop_pipe", 1, stop_pipe, 0},
    {"from_thread", 1, from_thread, 0},
    {"steps", 1, steps, 0},
    {"fail_later", 2, fail_later, 0},
    {"dirty_cpu", 1, dirty, ERL_NIF_DIRTY_JOB_CPU_BOUND},
    {"dirty_io", 1, dirty, ERL_NIF_DIRTY_JOB_IO_BOUND},
    {"linger", 3, linger, ERL_NIF_DIRTY_JOB_IO_BOUND},
    {"queue", 1, queue, 0},
    {"data", 0, data, 0},
    {"give", 1, give, 0},
};

ERL_NIF_INIT(calls, funcs, load, NULL, upgrade, unload)
