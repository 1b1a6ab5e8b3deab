%% What suites use of Common Test's header. The build puts it where
%% -include_lib("common_test/include/ct.hrl") looks first, so that no
%% common_test application is needed.

%% The value of a key of the test configuration.
-define(config, test_server:lookup_config).

%% A mark of old on statements.
-define(line, ).

%% A second node, named after the suite and the case.
-define(CT_PEER(), ?CT_PEER([])).
-define(CT_PEER(Options), test_server:start_peer(Options, ?MODULE, ?FUNCTION_NAME)).
-define(CT_PEER_NAME(), ?CT_PEER_NAME(?FUNCTION_NAME)).
-define(CT_PEER_NAME(Case), test_server:peer_name(?MODULE, Case)).

%% A node of another release.
-define(CT_PEER_REL(Options, Release, Dir),
        test_server:start_peer(Options, ?MODULE, ?FUNCTION_NAME, Release, Dir)).

%% How important a line of the log is.
-define(MIN_IMPORTANCE, 0).
-define(LOW_IMPORTANCE, 25).
-define(STD_IMPORTANCE, 50).
-define(HI_IMPORTANCE, 75).
-define(MAX_IMPORTANCE, 99).

%% How much of the log is written.
-define(MIN_VERBOSITY, 0).
-define(LOW_VERBOSITY, 25).
-define(STD_VERBOSITY, 50).
-define(HI_VERBOSITY, 75).
-define(MAX_VERBOSITY, 100).
