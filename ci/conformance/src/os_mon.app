%% What suites use of os_mon, which not every installed OTP has: how much memory the machine has.
{application, os_mon,
 [{description, "memsup, and nothing else of os_mon"},
  {vsn, "0"},
  {modules, [os_mon, memsup]},
  {registered, [os_mon_sup, memsup]},
  {applications, [kernel, stdlib, sasl]},
  {env, [{start_cpu_sup, false}, {start_disksup, false}, {start_memsup, true}, {start_os_sup, false}]},
  {mod, {os_mon, []}}]}.
