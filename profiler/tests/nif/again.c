// A library that counts its calls, and tells its end some time before it has ended.
#include <erl_nif.h>
#include <unistd.h>

static int calls;
static ErlNifPid owner;

static int load(ErlNifEnv *env, void **data, ERL_NIF_TERM info) { return !enif_get_local_pid(env, info, &owner); }

static void unload(ErlNifEnv *env, void *data) {
  enif_send(env, &owner, NULL, enif_make_atom(env, "unloaded"));
  usleep(20000);
}

// count()
static ERL_NIF_TERM count(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) { return enif_make_int(env, ++calls); }

static ErlNifFunc functions[] = {{"count", 0, count, 0}};
ERL_NIF_INIT(again, functions, load, NULL, NULL, unload)
