/*
 * What the kernel says about processes.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Does a process with that pid and start time run? */
bool process_is_seen(uint32_t pid, uint64_t start);

/* What this process costs. */
struct process_figures {
	double cpu_s;
	uint64_t resident_bytes, virtual_bytes;
	uint64_t open_files, files_max; /* open_files 0: this kernel does not say */
};
struct process_figures process_figures(void);
