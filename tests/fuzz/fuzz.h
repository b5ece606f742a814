/*
 * What libFuzzer calls. A target returns 0, and aborts when something that must hold does not.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
