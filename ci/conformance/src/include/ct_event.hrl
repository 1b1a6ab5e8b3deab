%% What suites use of Common Test's header of events: benchmark results.
-record(event, {name, data}).
