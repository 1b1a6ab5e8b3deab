// What the program exports to libraries that it opens: the functions and data of `erl_nif.h` and `erl_driver.h`, by their
// names. Build scripts include this list.
[
    "enif_*",
    "driver_*",
    "erl_drv_*",
    "*_driver_entry",
    "set_*port*",
    "get_port_flags",
    "erl_errno_id",
    "null_func",
    "dtrace_drvport_str",
]
