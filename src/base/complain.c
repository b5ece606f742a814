#include "base/complain.h"

#include <stdarg.h>
#include <stdio.h>

int complain(char *text, size_t room, int fault, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(text, room, format, args);
	va_end(args);
	return fault;
}
