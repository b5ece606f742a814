#include "cli/frame/exit.h"

/* The same as in the server's table of refusals: tests/unit/test_cli_words.c compares them. */
enum exit_status exit_of_refusal(int http_status, struct span code)
{
	if (span_equal(code, SPAN("idempotency_conflict")))
		return EXIT_CONFLICT;
	switch (http_status) {
	case 400:
	case 422:
		return EXIT_USAGE;
	case 401:
	case 403:
		return EXIT_UNAUTHORISED;
	case 404:
		return EXIT_NOT_FOUND;
	case 409:
	case 410:
	case 412:
		return EXIT_CONFLICT;
	case 429:
	case 502:
	case 503:
	case 504:
		return EXIT_UNREACHABLE;
	default:
		return EXIT_FAILED;
	}
}
