/* NIFs that take a known time, on ordinary and on dirty schedulers. */

#include <erl_nif.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>

static atomic_int released;

static long long now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

/* Keeps its thread busy for so many milliseconds at least. */
static void spin_ms(int ms)
{
    long long end = now_ns() + ms * 1000000LL;
    while (now_ns() < end)
        ;
}

static ERL_NIF_TERM spin(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    int ms;
    (void)argc;
    if (!enif_get_int(env, argv[0], &ms))
        return enif_make_badarg(env);
    spin_ms(ms);
    return enif_make_atom(env, "ok");
}

/* Goes on until release/0 is called, and so many milliseconds more. */
static ERL_NIF_TERM hold(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    while (!atomic_load(&released))
        ;
    return spin(env, argc, argv);
}

static ERL_NIF_TERM release(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc, (void)argv;
    atomic_store(&released, 1);
    return enif_make_atom(env, "ok");
}

/* An ordinary NIF that goes on on a dirty scheduler. */
static ERL_NIF_TERM goes_on(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    return enif_schedule_nif(env, "spin", ERL_NIF_DIRTY_JOB_IO_BOUND, spin, argc, argv);
}

static ERL_NIF_TERM crash(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc, (void)argv;
    *(volatile int *)8 = 1;
    return enif_make_atom(env, "not_reached");
}

static ERL_NIF_TERM aborts(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc, (void)argv;
    raise(SIGABRT);
    return enif_make_atom(env, "not_reached");
}

static ErlNifFunc functions[] = {
    {"spin", 1, spin, 0},
    {"dirty_cpu", 1, hold, ERL_NIF_DIRTY_JOB_CPU_BOUND},
    {"dirty_io", 1, spin, ERL_NIF_DIRTY_JOB_IO_BOUND},
    {"release", 0, release, 0},
    {"goes_on", 1, goes_on, 0},
    {"crash", 0, crash, 0},
    {"dirty_crash", 0, crash, ERL_NIF_DIRTY_JOB_CPU_BOUND},
    {"aborts", 0, aborts, 0},
};

ERL_NIF_INIT(times, functions, NULL, NULL, NULL, NULL)
