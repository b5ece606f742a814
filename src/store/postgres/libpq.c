#include "store/postgres/libpq.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

struct libpq pq;

int libpq_load(void)
{
	static void *library;

	if (library)
		return 0;
	void *found = dlopen("libpq.so.5", RTLD_NOW | RTLD_LOCAL);
	if (!found)
		return -ENOTSUP;
	bool whole = true;
#define X(name)                                        \
	{                                              \
		void *at = dlsym(found, #name);        \
		memcpy(&pq.name, &at, sizeof pq.name); \
		whole &= at != NULL;                   \
	}
	LIBPQ_FUNCTIONS(X)
#undef X
	if (!whole) {
		dlclose(found);
		return -ENOTSUP;
	}
	library = found; /* until the end: it has threads of its own libraries behind it */
	return 0;
}
