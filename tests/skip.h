/* A test that is skipped says why: ./dev check prints it. */
#pragma once

#define skip_because(...)                                 \
	do {                                              \
		print_message("skipped: %s: ", __func__); \
		print_message(__VA_ARGS__);               \
		print_message("\n");                      \
		skip();                                   \
	} while (0)
