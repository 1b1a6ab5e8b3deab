// A tracer module: answers as the map in its state says, and sends what it is told to the process there.
#include <erl_nif.h>
#include <string.h>

static int load(ErlNifEnv *env, void **data, ERL_NIF_TERM info) { return 0; }

static ERL_NIF_TERM answer(ErlNifEnv *env, const ERL_NIF_TERM argv[]) {
  const ERL_NIF_TERM *state;
  int arity;
  ERL_NIF_TERM value;
  if (!enif_get_tuple(env, argv[1], &arity, &state)) return enif_make_atom(env, "remove");
  if (enif_get_map_value(env, state[0], argv[0], &value)) return value;
  return enif_make_atom(env, "trace");
}

// enabled(Tag, State, Tracee)
static ERL_NIF_TERM enabled(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) { return answer(env, argv); }

// enabled_call(Tag, State, Tracee): `call_discard` of the map is for it alone.
static ERL_NIF_TERM enabled_call(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  const ERL_NIF_TERM *state;
  int arity;
  if (enif_get_tuple(env, argv[1], &arity, &state)
      && enif_is_identical(enif_make_atom(env, "call_discard"), state[0]))
    return enif_make_atom(env, "discard");
  return answer(env, argv);
}

static ERL_NIF_TERM tell(ErlNifEnv *env, const char *how, const ERL_NIF_TERM argv[]) {
  const ERL_NIF_TERM *state;
  int arity;
  ErlNifPid to;
  if (enif_get_tuple(env, argv[1], &arity, &state) && enif_get_local_pid(env, state[1], &to))
    enif_send(env, &to, NULL,
              enif_make_tuple5(env, enif_make_atom(env, how), argv[0], argv[2], argv[3], argv[4]));
  return enif_make_atom(env, "ok");
}

// trace(Tag, State, Tracee, Term, Options)
static ERL_NIF_TERM trace(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) { return tell(env, "trace", argv); }
static ERL_NIF_TERM trace_call(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  return tell(env, "trace_call", argv);
}

#ifndef MODULE
#define MODULE tracers
#endif

static ErlNifFunc functions[] = {
    {"enabled", 3, enabled, 0},
    {"trace", 5, trace, 0},
#ifndef WITHOUT_CALL
    {"enabled_call", 3, enabled_call, 0},
    {"trace_call", 5, trace_call, 0},
#endif
};
#define INIT(module) ERL_NIF_INIT(module, functions, load, NULL, NULL, NULL)
INIT(MODULE)
