/* A driver that crashes: at a command, or in a job. */

#include <erl_driver.h>

/* The compiler does not know that it is null. */
static int *volatile nowhere;

static ErlDrvPort port_of_job;

static ErlDrvData start(ErlDrvPort port, char *command)
{
    (void)command;
    port_of_job = port;
    return (ErlDrvData)port;
}

static void crash(void *data)
{
    (void)data;
    *nowhere = 1;
}

static void output(ErlDrvData data, char *bytes, ErlDrvSizeT size)
{
    (void)data;
    if (size > 0 && bytes[0] == 'j')
        driver_async(port_of_job, NULL, crash, NULL, NULL);
    else
        crash(NULL);
}

static ErlDrvEntry entry = {
    .start = start,
    .output = output,
    .driver_name = "crash_drv",
    .extended_marker = ERL_DRV_EXTENDED_MARKER,
    .major_version = ERL_DRV_EXTENDED_MAJOR_VERSION,
    .minor_version = ERL_DRV_EXTENDED_MINOR_VERSION,
};

DRIVER_INIT(crash_drv)
{
    return &entry;
}
