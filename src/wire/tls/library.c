#include "wire/tls/library.h"

#include <assert.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "wire/tls/certificate.h"

#define TEXT(x)   #x
#define SONAME(n) "libssl.so." TEXT(n)

/* One text instead of a table of pointers, which the loader would have to adjust at every start of every program. */
static const char names[] =
#define X(name) #name "\0"
	TLS_FUNCTIONS(X)
#undef X
	;

static bool load(struct tls_library *library)
{
	void *object = dlopen(SONAME(OPENSSL_SHLIB_VERSION), RTLD_NOW | RTLD_LOCAL);
	char *at = (char *)library;

	for (const char *name = names; object && *name; name += strlen(name) + 1) {
		void *function = dlsym(object, name); /* looks into libcrypto, too */
		if (!function)
			return false; /* it stays loaded: nothing else of this program wants it */
		memcpy(at, &function, sizeof function);
		at += sizeof function;
	}
	return object != NULL;
}

/* What is set up at the first call has no memory, and OpenSSL does not try again: its other functions would use what is not there. */
static bool set_up(const struct tls_library *library)
{
	if (library->OSSL_LIB_CTX_get0_global_default())
		return true;
	tls_missing = "https needs OpenSSL 3, which found no memory when it was started";
	return false;
}

const struct tls_library *tls_library(void)
{
	static struct tls_library library;
	static enum { UNKNOWN, LOADED, MISSING } state;

	if (state == UNKNOWN)
		state = load(&library) && set_up(&library) ? LOADED : MISSING;
	return state == LOADED ? &library : NULL;
}
