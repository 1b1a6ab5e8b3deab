// What `native_work.erl` calls: native functions that do one thing, and a tracer that wants no message.

#include <erl_nif.h>
#include <stdint.h>

typedef ERL_NIF_TERM Term;

static Term nothing(ErlNifEnv *env, int argc, const Term argv[]) { return argv[0]; }

static Term list(ErlNifEnv *env, int argc, const Term argv[]) {
  Term of[20];
  for (int i = 0; i < 20; i++) of[i] = enif_make_int(env, i);
  return enif_make_list_from_array(env, of, 20);
}

static Term map(ErlNifEnv *env, int argc, const Term argv[]) {
  Term keys[8], values[8], made;
  for (int i = 0; i < 8; i++) {
    keys[i] = enif_make_int(env, i);
    values[i] = argv[0];
  }
  return enif_make_map_from_arrays(env, keys, values, 8, &made) ? made : enif_make_badarg(env);
}

static Term inspect(ErlNifEnv *env, int argc, const Term argv[]) {
  ErlNifBinary binary;
  if (!enif_inspect_binary(env, argv[0], &binary)) return enif_make_badarg(env);
  return enif_make_uint64(env, binary.size);
}

struct sending {
  ErlNifPid to;
  unsigned count;
};

static void *sender(void *argument) {
  struct sending *sending = argument;
  ErlNifEnv *env = enif_alloc_env();
  for (unsigned i = 0; i < sending->count; i++) {
    enif_send(NULL, &sending->to, env, enif_make_tuple2(env, enif_make_atom(env, "n"), enif_make_uint(env, i)));
    enif_clear_env(env);
  }
  enif_free_env(env);
  return NULL;
}

// A thread sends this many messages to the caller; the call ends when all are sent.
static Term send_from_thread(ErlNifEnv *env, int argc, const Term argv[]) {
  struct sending sending;
  ErlNifTid thread;
  enif_self(env, &sending.to);
  if (!enif_get_uint(env, argv[0], &sending.count)) return enif_make_badarg(env);
  if (enif_thread_create("sender", &thread, sender, &sending, NULL)) return enif_make_badarg(env);
  enif_thread_join(thread, NULL);
  return enif_make_atom(env, "ok");
}

static Term enabled(ErlNifEnv *env, int argc, const Term argv[]) {
  return enif_make_atom(env, "discard");
}

static Term trace(ErlNifEnv *env, int argc, const Term argv[]) { return enif_make_atom(env, "ok"); }

static ErlNifFunc functions[] = {
  {"nothing", 1, nothing},
  {"list", 1, list},
  {"map", 1, map},
  {"inspect", 1, inspect},
  {"dirty", 1, nothing, ERL_NIF_DIRTY_JOB_CPU_BOUND},
  {"send_from_thread", 1, send_from_thread, ERL_NIF_DIRTY_JOB_CPU_BOUND},
  {"enabled", 3, enabled},
  {"trace", 5, trace},
};

ERL_NIF_INIT(native_work, functions, NULL, NULL, NULL, NULL)
