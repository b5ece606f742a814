/*
 * What a service tells the one that manages it: READY=1, STOPPING=1, WATCHDOG=1; see sd_notify(3).
 */
#pragma once

/* Tell it, if one is waiting to hear. Nobody learns whether it did. */
void service_tell(const char *text);
