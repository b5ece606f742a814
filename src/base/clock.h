/* What time it is, for programs: core is told. */
#pragma once

#include <stdint.h>

/* People's time, in milliseconds since 1970. It may be set, forth and back. */
int64_t clock_wall_ms(void);
