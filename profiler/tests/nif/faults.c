/* NIFs that do what they may not: give terms of others' environments, and crash. */

#include <erl_nif.h>
#include <stdlib.h>

/* The compiler does not know that it is null. */
static int *volatile nowhere;

static ERL_NIF_TERM kept;
static ErlNifResourceType *crashing;

/* A term of an environment that is gone. */
static ERL_NIF_TERM dead_term(void)
{
    ErlNifEnv *env = enif_alloc_env();
    ERL_NIF_TERM term = enif_make_tuple2(env, enif_make_atom(env, "dead"), enif_make_int(env, 1));
    enif_free_env(env);
    return term;
}

static ERL_NIF_TERM gives_dead(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)env, (void)argc, (void)argv;
    return dead_term();
}

static ERL_NIF_TERM hides_dead(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc, (void)argv;
    enif_make_list1(env, dead_term());
    return enif_make_atom(env, "ok");
}

static ERL_NIF_TERM raises_dead(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc, (void)argv;
    return enif_raise_exception(env, dead_term());
}

static ERL_NIF_TERM passes_dead(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc, (void)argv;
    ERL_NIF_TERM dead = dead_term();
    return enif_schedule_nif(env, "gives_dead", 0, gives_dead, 1, &dead);
}

static ERL_NIF_TERM keep(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc;
    kept = argv[0];
    return enif_make_atom(env, "ok");
}

static ERL_NIF_TERM gives_kept(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)env, (void)argc, (void)argv;
    return kept;
}

/* Puts a term of the caller's into a message with an environment of its own, without a copy. */
static ERL_NIF_TERM sends_own(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc;
    ErlNifPid self;
    ErlNifEnv *message = enif_alloc_env();
    enif_self(env, &self);
    enif_send(env, &self, message, enif_make_list1(message, argv[0]));
    enif_free_env(message);
    return enif_make_atom(env, "ok");
}

static ERL_NIF_TERM writes_to_null(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc, (void)argv;
    *nowhere = 1;
    return enif_make_atom(env, "not_reached");
}

static ERL_NIF_TERM calls_abort(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)env, (void)argc, (void)argv;
    abort();
}

static ERL_NIF_TERM traps(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc, (void)argv;
    __builtin_trap();
    return enif_make_atom(env, "not_reached");
}

static volatile int deep;

static int overflow(int n)
{
    volatile char frame[4096];
    frame[n % 4096] = (char)n;
    return deep ? overflow(n + 1) + frame[0] : 0;
}

static ERL_NIF_TERM overflows(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc, (void)argv;
    deep = 1;
    return enif_make_int(env, overflow(0));
}

static void crashes(ErlNifEnv *env, void *object)
{
    (void)env, (void)object;
    *nowhere = 1;
}

static ERL_NIF_TERM frees(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc, (void)argv;
    enif_release_resource(enif_alloc_resource(crashing, 1));
    return enif_make_atom(env, "not_reached");
}

static int load(ErlNifEnv *env, void **data, ERL_NIF_TERM info)
{
    (void)data, (void)info;
    crashing = enif_open_resource_type(env, NULL, "crashing", crashes, ERL_NIF_RT_CREATE, NULL);
    return crashing == NULL;
}

static ErlNifFunc functions[] = {
    {"gives_dead", 1, gives_dead, 0},
    {"dirty_gives_dead", 1, gives_dead, ERL_NIF_DIRTY_JOB_CPU_BOUND},
    {"hides_dead", 1, hides_dead, 0},
    {"dirty_hides_dead", 1, hides_dead, ERL_NIF_DIRTY_JOB_IO_BOUND},
    {"raises_dead", 1, raises_dead, 0},
    {"passes_dead", 1, passes_dead, 0},
    {"keep", 1, keep, 0},
    {"gives_kept", 1, gives_kept, 0},
    {"sends_own", 1, sends_own, 0},
    {"writes_to_null", 1, writes_to_null, 0},
    {"dirty_writes_to_null", 1, writes_to_null, ERL_NIF_DIRTY_JOB_IO_BOUND},
    {"calls_abort", 1, calls_abort, 0},
    {"traps", 1, traps, 0},
    {"overflows", 1, overflows, 0},
    {"frees", 1, frees, 0},
};

ERL_NIF_INIT(faults, functions, load, NULL, NULL, NULL)
